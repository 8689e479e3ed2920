//! Parameters: what a model may leave out, what is enforced, and what the program provides instead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolwright_core::{
    DynSandbox, ErrorKind, ExecRequest, ExecResult, RunScope, Sandbox, State, Tool, ToolContext, ToolDef,
    ToolError, tool, toolset,
};

use crate::{call, call_in, failure, value};

fn property(tool: &ToolDef, name: &str) -> Value {
    tool.spec().parameters["properties"][name].clone()
}

#[derive(Debug, Default, serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Fast,
    Careful,
}

const LIMIT: u32 = 20;

/// Has defaults.
#[tool]
async fn defaults(
    /// A count.
    #[tool(default = LIMIT)]
    count: u32,
    /// Text.
    #[tool(default = "hello")]
    text: String,
    /// Maybe text.
    #[tool(default = "maybe")]
    perhaps: Option<String>,
    /// A mode.
    #[tool(default = Mode::Careful)]
    mode: Mode,
    /// Another mode.
    #[tool(default)]
    other: Mode,
    /// Numbers.
    #[tool(default = vec![1, 2])]
    numbers: Vec<i64>,
    /// Nothing said.
    nothing: Option<bool>,
    /// Nothing, said.
    #[tool(default)]
    said: Option<bool>,
    /// Nothing, said otherwise.
    #[tool(default = None)]
    none: Option<bool>,
    /// By serde.
    #[serde(default)]
    by_serde: i64,
) -> Value {
    assert_eq!((said, none), (None, None));
    json!([count, text, perhaps, mode, other, numbers, nothing, by_serde])
}

#[tokio::test]
async fn defaults_are_told_to_the_model_and_used() {
    let tool = defaults();
    assert_eq!(tool.spec().parameters["required"], json!([]));
    let told =
        ["count", "text", "perhaps", "mode", "other", "numbers", "nothing", "said", "none", "by_serde"]
            .map(|name| property(&tool, name).get("default").cloned());
    assert_eq!(
        told,
        [
            Some(json!(20)),
            Some(json!("hello")),
            Some(json!("maybe")),
            Some(json!("careful")),
            Some(json!("fast")),
            Some(json!([1, 2])),
            None,
            None,
            None,
            Some(json!(0))
        ]
    );
    assert_eq!(
        value(&tool, json!({})).await,
        json!([20, "hello", "maybe", "careful", "fast", [1, 2], null, 0])
    );
    assert_eq!(
        value(&tool, json!({"count": 1, "mode": "fast", "nothing": true})).await,
        json!([1, "hello", "maybe", "fast", "fast", [1, 2], true, 0])
    );
}

/// Has names that Rust keeps for itself, and other names for one of them.
#[tool]
async fn raw(
    /// Of what kind.
    #[tool(default = "plain")]
    r#type: String,
    /// What to look for.
    #[serde(alias = "q", alias = "search")]
    query: String,
) -> Vec<String> {
    vec![r#type, query]
}

struct Raw;

#[toolset]
impl Raw {
    /// Has a name that Rust keeps for itself.
    #[tool]
    async fn r#move(
        &self,
        /// Where to.
        #[tool(default = 7)]
        r#in: i64,
    ) -> i64 {
        r#in
    }
}

#[tokio::test]
async fn raw_names_and_other_names_are_taken() {
    let tool = raw();
    assert_eq!(tool.spec().parameter_names().collect::<Vec<_>>(), ["type", "query"]);
    for name in ["query", "q", "search"] {
        let arguments = tool.policy().with_real_names(json!({name: "x"}));
        assert_eq!(value(&tool, arguments).await, json!(["plain", "x"]));
    }
    let set = Raw.into_tools().unwrap();
    let tool = ToolDef::of(set.get("move").unwrap().tool.clone());
    assert_eq!(value(&tool, json!({})).await, json!(7));
}

const MOST: i64 = 10;

/// Has limits.
#[tool]
#[expect(unused_variables, reason = "only the schema is looked at")]
async fn limits(
    /// Between.
    #[tool(min = 1, max = MOST, example = 5)]
    between: i64,
    /// Strictly between.
    #[tool(exclusive_min = -1.5, exclusive_max = 1.5)]
    strictly: Option<f64>,
    /// A word.
    #[tool(min_length = 2, max_length = 4, pattern = "^[a-z]+$", examples("ab", "cd"))]
    word: Option<String>,
    /// An address.
    #[tool(format = "email", examples = ["a@b.c"])]
    address: Option<String>,
    /// Some.
    #[tool(min_items = 1, max_items = 2)]
    some: Option<Vec<String>>,
    /// By schemars.
    #[schemars(range(min = 3))]
    by_schemars: Option<i64>,
) {
}

#[tokio::test]
async fn limits_are_told_to_the_model_and_enforced() {
    let tool = limits();
    assert_eq!(
        tool.spec().parameters["properties"],
        json!({
            "between": {"description": "Between.", "type": "integer", "minimum": 1, "maximum": 10, "examples": [5]},
            "strictly": {
                "description": "Strictly between.", "type": ["number", "null"],
                "exclusiveMinimum": -1.5, "exclusiveMaximum": 1.5
            },
            "word": {
                "description": "A word.", "type": ["string", "null"], "minLength": 2, "maxLength": 4,
                "pattern": "^[a-z]+$", "examples": ["ab", "cd"]
            },
            "address": {
                "description": "An address.", "type": ["string", "null"], "format": "email", "examples": ["a@b.c"]
            },
            "some": {
                "description": "Some.", "type": ["array", "null"], "items": {"type": "string"},
                "minItems": 1, "maxItems": 2
            },
            "by_schemars": {"description": "By schemars.", "type": ["integer", "null"], "minimum": 3}
        })
    );
    assert!(call(&tool, json!({"between": 1, "word": "abc", "some": ["x"], "strictly": 1.4})).await.is_ok());
    for (arguments, problem) in [
        (json!({"between": 0}), "`between`: 0 is less than 1"),
        (json!({"between": 11}), "`between`: 11 is more than 10"),
        (json!({"between": 1, "strictly": 1.5}), "`strictly`: 1.5 is not less than 1.5"),
        (json!({"between": 1, "strictly": -1.5}), "`strictly`: -1.5 is not more than -1.5"),
        (json!({"between": 1, "word": "a"}), "`word`: \"a\" is shorter than 2 characters"),
        (json!({"between": 1, "word": "abcde"}), "`word`: \"abcde\" is longer than 4 characters"),
        (json!({"between": 1, "word": "AB"}), "`word`: \"AB\" does not match `^[a-z]+$`"),
        (json!({"between": 1, "some": []}), "`some`: there are fewer than 1 items"),
        (json!({"between": 1, "some": ["a", "b", "c"]}), "`some`: there are more than 2 items"),
        (json!({"between": 1, "by_schemars": 2}), "`by_schemars`: 2 is less than 3"),
    ] {
        assert_eq!(failure(&tool, arguments).await, format!("the arguments do not fit:\n- {problem}"));
    }
}

/// Has other names.
#[tool]
async fn names(
    /// The first.
    #[tool(rename = "first-name")]
    first: String,
    /// The second.
    #[serde(rename = "lastName", alias = "surname")]
    second: String,
) -> String {
    format!("{first} {second}")
}

#[tokio::test]
async fn a_parameter_can_have_another_name_for_models() {
    assert_eq!(names().spec().parameter_names().collect::<Vec<_>>(), ["first-name", "lastName"]);
    assert_eq!(value(&names(), json!({"first-name": "A", "lastName": "B"})).await, json!("A B"));
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Tree {
    value: i64,
    #[serde(default)]
    children: Vec<Tree>,
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Shape {
    Circle { radius: f64 },
    Square { side: f64 },
}

/// Takes every class of type.
#[tool]
async fn types(
    /// A small integer.
    small: u8,
    /// A number.
    number: f64,
    /// A flag.
    flag: bool,
    /// A set.
    set: BTreeSet<String>,
    /// A map.
    map: BTreeMap<String, Vec<i64>>,
    /// A pair.
    pair: (String, i64),
    /// A shape.
    shape: Shape,
    /// A tree.
    tree: Tree,
    /// A day.
    day: jiff::civil::Date,
    /// Anything.
    any: Value,
) -> Value {
    json!([small, number, flag, set, map, pair, shape, tree, day.to_string(), any])
}

#[tokio::test]
async fn every_class_of_type_arrives() {
    let arguments = json!({
        "small": 5.0, "number": 2, "flag": "true", "set": ["b", "a"], "map": {"x": [1, "2"]}, "pair": ["a", "1"],
        "shape": {"kind": "circle", "radius": 1.5}, "tree": {"value": 1, "children": [{"value": 2}]},
        "day": "2026-02-28", "any": [null]
    });
    let tree = json!({"value": 1, "children": [{"value": 2, "children": []}]});
    assert_eq!(
        value(&types(), arguments.clone()).await,
        json!([5, 2.0, true, ["a", "b"], {"x": [1, 2]}, ["a", 1], {"kind": "circle", "radius": 1.5}, tree, "2026-02-28", [null]])
    );
    let mut wrong = arguments;
    wrong["small"] = json!(256);
    wrong["pair"] = json!(["a"]);
    let message = failure(&types(), wrong.clone()).await;
    for part in ["`small`: 256 is more than 255", "`pair`: there are fewer than 2 items"] {
        assert!(message.contains(part), "{message}");
    }
    wrong["small"] = json!(1);
    wrong["pair"] = json!(["a", 1]);
    wrong["set"] = json!([]);
    wrong["day"] = json!("2026-02-30");
    assert!(failure(&types(), wrong).await.contains("`day`"));
}

struct Database(Mutex<Vec<String>>);

/// Uses everything the program provides.
#[tool]
async fn provided(
    ctx: &ToolContext,
    owned: ToolContext,
    db: State<Database>,
    sandbox: &DynSandbox,
    shared: Arc<DynSandbox>,
    borrowed: &Arc<DynSandbox>,
    /// A line.
    line: String,
) -> Result<String, ToolError> {
    db.0.0.lock().unwrap().push(line);
    let text = sandbox.read_text("f").await?;
    let rows = db.0.0.lock().unwrap().len();
    Ok(format!("{} {} {text} {} {} {rows}", ctx.call_id(), owned.depth(), shared.kind(), borrowed.kind()))
}

/// Uses everything the program provides, on a thread of its own.
#[tool]
fn provided_to_plain_functions(
    ctx: &ToolContext,
    owned: ToolContext,
    db: State<Database>,
    sandbox: &DynSandbox,
    shared: Arc<DynSandbox>,
    /// A line.
    line: String,
) -> Result<String, ToolError> {
    db.0.0.lock().unwrap().push(line);
    let rows = db.0.0.lock().unwrap().len();
    Ok(format!("{} {} {} {} {rows}", ctx.call_id(), owned.depth(), sandbox.kind(), shared.kind()))
}

struct Fake;

impl Sandbox for Fake {
    fn kind(&self) -> &str {
        "fake"
    }

    fn isolates(&self) -> bool {
        false
    }

    async fn exec(&self, _: ExecRequest) -> Result<ExecResult, ToolError> {
        Err(ToolError::new("no commands"))
    }

    async fn write_file(&self, _: &str, _: &[u8]) -> Result<(), ToolError> {
        Ok(())
    }

    async fn read_file(&self, _: &str) -> Result<Vec<u8>, ToolError> {
        Ok(b"file".to_vec())
    }
}

#[tokio::test]
async fn what_the_program_provides_is_not_told_to_a_model() {
    for tool in [provided(), provided_to_plain_functions()] {
        assert_eq!(tool.spec().parameter_names().collect::<Vec<_>>(), ["line"]);
    }
    let mut scope = RunScope::default().with_state(Database(Mutex::new(Vec::new())));
    let missing = call_in(&ToolContext::detached_in(scope.clone()), &provided(), json!({"line": "x"})).await;
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::SandboxUnavailable);
    scope.sandboxes.insert("default".to_owned(), Arc::new(Fake));
    let context = ToolContext::detached_in(scope);
    let text = |output: toolwright_core::ToolOutput| output.to_text();
    let got = call_in(&context, &provided(), json!({"line": "x"})).await.map(text);
    assert_eq!(got.unwrap(), "call 0 file fake fake 1");
    let got = call_in(&context, &provided_to_plain_functions(), json!({"line": "y"})).await.map(text);
    assert_eq!(got.unwrap(), "call 0 fake fake 2");
}

#[tokio::test]
async fn missing_state_is_fatal() {
    /// Needs state.
    #[tool]
    fn needs(db: State<u128>) -> u64 {
        u64::try_from(*db).unwrap_or(0)
    }
    assert!(call(&needs(), json!({})).await.unwrap_err().is_fatal());
}
