//! `analyze_data`: measures of a list of numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolwright_core::{ToolDef, ToolError, ToolOutput, tool};

use crate::options::{Options, object};

/// A measure of a list of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "lowercase")]
enum Operation {
    Mean,
    Median,
    Std,
    Min,
    Max,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::Mean => "mean",
            Operation::Median => "median",
            Operation::Std => "std",
            Operation::Min => "min",
            Operation::Max => "max",
        }
    }

    /// The measure of some numbers, which are sorted.
    fn of(self, sorted: &[f64]) -> Result<f64, ToolError> {
        let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else {
            return Err(ToolError::invalid("`data` is empty"));
        };
        let value = match self {
            Operation::Mean => mean(sorted),
            Operation::Median => median(sorted),
            Operation::Std if sorted.len() < 2 => {
                let error = ToolError::invalid("`std` needs at least two numbers");
                return Err(error.hint("it is the deviation of a sample, divided by n - 1"));
            }
            Operation::Std => deviation(sorted),
            Operation::Min => *least,
            Operation::Max => *most,
        };
        if value.is_finite() {
            return Ok(value);
        }
        Err(ToolError::new(format!("the {} of these numbers is too large for a number", self.name())))
    }
}

/// Perform statistical analysis on data.
#[tool(category = "data", read_only, finish = with_measures)]
pub async fn analyze_data(
    #[tool(setup)] _options: &Options,
    /// The numbers.
    #[tool(min_items = 1)]
    data: Vec<f64>,
    /// What to compute; std is the standard deviation of a sample (divided by n - 1).
    #[tool(min_items = 1)]
    operations: Vec<Operation>,
) -> Result<ToolOutput, ToolError> {
    let mut sorted = data;
    sorted.sort_by(f64::total_cmp);
    let measured = operations.into_iter().map(|one| Ok((one.name().to_owned(), one.of(&sorted)?.into())));
    let measured: Map<String, Value> = measured.collect::<Result<_, ToolError>>()?;
    Ok(ToolOutput::json(Value::Object(measured)))
}

fn with_measures(tool: ToolDef, _: &Options) -> ToolDef {
    let number = json!({"type": "number"});
    let all = ["mean", "median", "std", "min", "max"].map(|name| (name.to_owned(), number.clone()));
    tool.with_output_schema(object(json!({}), Value::Object(all.into_iter().collect())))
}

/// The mean, in steps that do not overflow where the sum would, and with the error of each carried along.
fn mean(numbers: &[f64]) -> f64 {
    let count = numbers.len() as f64;
    let sum: f64 = compensated(numbers.iter().copied());
    if sum.is_finite() { sum / count } else { compensated(numbers.iter().map(|number| number / count)) }
}

/// The sum of Kahan and Neumaier: small numbers beside large ones are not lost.
fn compensated(numbers: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for number in numbers {
        let next = sum + number;
        lost += if sum.abs() >= number.abs() { (sum - next) + number } else { (number - next) + sum };
        sum = next;
    }
    if lost.is_finite() { sum + lost } else { sum }
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    match sorted.len() % 2 {
        1 => at(middle),
        // Halves first: the sum of two numbers may be none.
        _ => at(middle - 1) / 2.0 + at(middle) / 2.0,
    }
}

/// The standard deviation of a sample.
fn deviation(numbers: &[f64]) -> f64 {
    let mean = mean(numbers);
    let squares = numbers.iter().map(|number| (number - mean) * (number - mean));
    (compensated(squares) / (numbers.len() - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwright_core::{ErrorKind, Tool as _, ToolContext};

    async fn measured(arguments: Value) -> Result<Value, ErrorKind> {
        let tool = analyze_data(&Options::new());
        let arguments = tool.prepared(arguments).map_err(|error| error.kind())?.arguments;
        let output = tool.call(&ToolContext::detached(), arguments).await;
        output.map(|output| output.value()).map_err(|error| error.kind())
    }

    #[tokio::test]
    async fn measures_are_those_that_were_asked_for() {
        let all = ["mean", "median", "std", "min", "max"];
        assert_eq!(
            measured(json!({"data": [2, 4, 4, 4, 5, 5, 7, 9], "operations": all})).await,
            Ok(json!({"mean": 5.0, "median": 4.5, "std": 2.138_089_935_299_395, "min": 2.0, "max": 9.0}))
        );
        let one = measured(json!({"data": [3, 1, 2], "operations": ["median"]})).await;
        assert_eq!(one, Ok(json!({"median": 2.0})));
    }

    #[tokio::test]
    async fn large_and_mixed_numbers_keep_their_digits() {
        let data = json!({"data": [1e16, 1.0, -1e16, 1.0], "operations": ["mean"]});
        assert_eq!(measured(data).await, Ok(json!({"mean": 0.5})));
        let largest = json!({"data": [f64::MAX, f64::MAX], "operations": ["mean", "median"]});
        assert_eq!(measured(largest).await, Ok(json!({"mean": f64::MAX, "median": f64::MAX})));
    }

    #[tokio::test]
    async fn what_has_no_measure_is_an_error() {
        for (arguments, kind) in [
            (json!({"data": [], "operations": ["mean"]}), ErrorKind::Parsing),
            (json!({"data": [1], "operations": []}), ErrorKind::Parsing),
            (json!({"data": [1], "operations": ["std"]}), ErrorKind::Parsing),
            (json!({"data": [1], "operations": ["mode"]}), ErrorKind::Parsing),
            (json!({"data": ["x"], "operations": ["mean"]}), ErrorKind::Parsing),
            (json!({"data": [f64::MAX, f64::MIN], "operations": ["std"]}), ErrorKind::Unknown),
        ] {
            assert_eq!(measured(arguments.clone()).await, Err(kind), "{arguments}");
        }
    }
}
