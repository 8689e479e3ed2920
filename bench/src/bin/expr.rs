//! Templates: evaluating a compiled one, and loading and evaluating. Six shapes, from a bare variable to a
//! comprehension.

use std::hint::black_box;

use serde_json::{Map, Value as Json};
use toolwright_bench::nanos;
use toolwright_expr::{EvalLimits, Template, Value, Variables};

#[derive(serde::Deserialize)]
struct Shape {
    name: String,
    template: String,
    vars: Map<String, Json>,
}

#[expect(clippy::print_stdout, reason = "this is the program's output")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shapes: Vec<Shape> = serde_json::from_str(include_str!("../../../testdata/bench/expr.json"))?;
    let limits = EvalLimits::default();
    let mut answer = Map::new();
    for Shape { name, template, vars } in shapes {
        let scope: Variables =
            vars.iter().map(|(name, value)| (name.clone(), Value::from_json(value))).collect();
        let compiled = Template::compile(&template)?;
        answer.insert(format!("value: {name}"), compiled.evaluate(&scope, &limits)?.to_json()?);
        let evaluate = nanos(|| {
            black_box(compiled.evaluate(black_box(&scope), &limits).is_ok());
        });
        let load = nanos(|| {
            let loaded = Template::compile(black_box(&template));
            black_box(loaded.and_then(|template| template.evaluate(&scope, &limits)).is_ok());
        });
        answer.insert(format!("evaluate: {name}"), evaluate.into());
        answer.insert(format!("load: {name}"), load.into());
    }
    println!("{}", Json::Object(answer));
    Ok(())
}
