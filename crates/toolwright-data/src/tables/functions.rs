//! Functions that SQLite lacks: `median`, `quantile`, `stddev`, `corr` and `regexp`.

use regex::{Regex, RegexBuilder};
use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::{Connection, Error, Result};

use super::profile::quantile;

/// The most numbers of one median: they are all kept.
const MOST_NUMBERS: usize = 20_000_000;

pub(super) fn add(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_aggregate_function("median", 1, flags, Quantile)?;
    connection.create_aggregate_function("quantile", 2, flags, Quantile)?;
    connection.create_aggregate_function("stddev", 1, flags, Deviation)?;
    connection.create_aggregate_function("corr", 2, flags, Correlation)?;
    // `x REGEXP pattern` calls `regexp(pattern, x)`.
    connection.create_scalar_function("regexp", 2, flags, |context| {
        let pattern = context.get_or_create_aux(
            0,
            |value| -> std::result::Result<Regex, Box<dyn std::error::Error + Send + Sync>> {
                Ok(RegexBuilder::new(value.as_str()?).size_limit(1 << 20).build()?)
            },
        )?;
        Ok(context.get_raw(1).as_str_or_null()?.is_some_and(|text| pattern.is_match(text)))
    })
}

fn number(context: &Context<'_>, at: usize) -> Result<Option<f64>> {
    use rusqlite::types::ValueRef;
    Ok(match context.get_raw(at) {
        ValueRef::Integer(number) => Some(number as f64),
        ValueRef::Real(number) => Some(number),
        _ => None,
    })
}

struct Quantile;

impl Aggregate<(Vec<f64>, f64), Option<f64>> for Quantile {
    fn init(&self, _: &mut Context<'_>) -> Result<(Vec<f64>, f64)> {
        Ok((Vec::new(), 0.5))
    }

    fn step(&self, context: &mut Context<'_>, (numbers, share): &mut (Vec<f64>, f64)) -> Result<()> {
        if context.len() > 1 {
            *share = number(context, 1)?.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| {
                Error::UserFunctionError("the second value of quantile must be between 0 and 1".into())
            })?;
        }
        if numbers.len() >= MOST_NUMBERS {
            return Err(Error::UserFunctionError("too many numbers for a median".into()));
        }
        numbers.extend(number(context, 0)?);
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, state: Option<(Vec<f64>, f64)>) -> Result<Option<f64>> {
        let Some((mut numbers, share)) = state else { return Ok(None) };
        numbers.sort_by(f64::total_cmp);
        Ok(quantile(&numbers, share))
    }
}

struct Deviation;

impl Aggregate<(f64, f64, f64), Option<f64>> for Deviation {
    fn init(&self, _: &mut Context<'_>) -> Result<(f64, f64, f64)> {
        Ok((0.0, 0.0, 0.0))
    }

    fn step(&self, context: &mut Context<'_>, (count, mean, spread): &mut (f64, f64, f64)) -> Result<()> {
        if let Some(number) = number(context, 0)? {
            *count += 1.0;
            let delta = number - *mean;
            *mean += delta / *count;
            *spread += delta * (number - *mean);
        }
        Ok(())
    }

    /// Of a sample: divided by n - 1.
    fn finalize(&self, _: &mut Context<'_>, state: Option<(f64, f64, f64)>) -> Result<Option<f64>> {
        Ok(state.filter(|(count, ..)| *count > 1.0).map(|(count, _, spread)| (spread / (count - 1.0)).sqrt()))
    }
}

/// Count, means, spreads and their product.
#[derive(Default)]
struct Pairs {
    count: f64,
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

struct Correlation;

impl Aggregate<Pairs, Option<f64>> for Correlation {
    fn init(&self, _: &mut Context<'_>) -> Result<Pairs> {
        Ok(Pairs::default())
    }

    fn step(&self, context: &mut Context<'_>, pairs: &mut Pairs) -> Result<()> {
        if let (Some(x), Some(y)) = (number(context, 0)?, number(context, 1)?) {
            pairs.count += 1.0;
            let dx = x - pairs.mean_x;
            pairs.mean_x += dx / pairs.count;
            let dy = y - pairs.mean_y;
            pairs.mean_y += dy / pairs.count;
            pairs.xx += dx * (x - pairs.mean_x);
            pairs.yy += dy * (y - pairs.mean_y);
            pairs.xy += dx * (y - pairs.mean_y);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, state: Option<Pairs>) -> Result<Option<f64>> {
        let spread = |pairs: &Pairs| (pairs.xx * pairs.yy).sqrt();
        Ok(state.filter(|pairs| spread(pairs) > 0.0).map(|pairs| pairs.xy / spread(&pairs)))
    }
}
