//! What models see of functions: names, descriptions and schemas from hints and docstrings.

use serde_json::{Value, json};

use crate::support::{ResultValue as _, Test, open};

pub(crate) fn tests() -> Vec<Test> {
    vec![
        ("hints_become_schemas", || Box::pin(hints())),
        ("four_styles_of_docstrings_mean_the_same", || Box::pin(docstrings())),
        ("classes_are_written_once_and_may_contain_themselves", || Box::pin(classes())),
        ("a_bad_function_does_not_take_the_others_away", || Box::pin(left_out())),
        ("parameters_that_are_given_are_not_offered", || Box::pin(given())),
        ("what_is_a_tool_is_said_by_marks_lists_or_names", || Box::pin(selection())),
    ]
}

/// The schema of the one parameter of a function with this hint.
async fn parameter(hint: &str) -> Value {
    let source = format!(
        "import datetime, decimal, enum, pathlib, uuid\nfrom typing import *\nclass Color(enum.Enum):\n    RED = 'r'\n    BLUE = 'b'\ndef f(x: {hint}): pass\n"
    );
    let opened = open(&source).await;
    assert_eq!(opened.file.left_out(), []);
    opened.specs().await[0].parameters["properties"]["x"].clone()
}

async fn hints() {
    for (hint, schema) in [
        ("str", json!({"type": "string"})),
        ("int = 3", json!({"type": "integer", "default": 3})),
        ("float", json!({"type": "number"})),
        ("bool", json!({"type": "boolean"})),
        ("bytes", json!({"type": "string", "contentEncoding": "base64"})),
        ("Any", json!({})),
        ("list", json!({"type": "array"})),
        ("List[int]", json!({"type": "array", "items": {"type": "integer"}})),
        ("Dict[str, float]", json!({"type": "object", "additionalProperties": {"type": "number"}})),
        ("Set[str]", json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true})),
        (
            "Tuple[int, str]",
            json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2}),
        ),
        ("Tuple[int, ...]", json!({"type": "array", "items": {"type": "integer"}})),
        ("Optional[str] = None", json!({"type": ["string", "null"], "default": null})),
        ("Union[int, str]", json!({"anyOf": [{"type": "integer"}, {"type": "string"}]})),
        ("Literal['a', 'b']", json!({"type": "string", "enum": ["a", "b"]})),
        ("Optional[Literal['a']]", json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]})),
        ("Color = Color.RED", json!({"type": "string", "enum": ["r", "b"], "default": "r"})),
        ("datetime.datetime", json!({"type": "string", "format": "date-time"})),
        ("uuid.UUID", json!({"type": "string", "format": "uuid"})),
        ("pathlib.Path", json!({"type": "string", "format": "path"})),
        ("Annotated[int, 'How many.']", json!({"type": "integer", "description": "How many."})),
        ("'int'", json!({"type": "integer"})),
        ("NewType('Id', str)", json!({"type": "string"})),
        (
            "Sequence[Mapping[str, int]]",
            json!({"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}}),
        ),
    ] {
        assert_eq!(parameter(hint).await, schema, "{hint}");
    }
}

async fn docstrings() {
    let expected = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for, in words."},
            "limit": {"type": "integer", "description": "At most so many.", "default": 10},
        },
        "additionalProperties": false,
        "required": ["query"],
    });
    for docstring in [
        "Searches.\n\n    Args:\n        query (str): What to look for,\n            in words.\n        limit: At most so many.\n\n    Returns:\n        The hits.",
        "Searches.\n\n    Parameters\n    ----------\n    query : str\n        What to look for,\n        in words.\n    limit : int, optional\n        At most so many.\n\n    Returns\n    -------\n    list\n        The hits.",
        "Searches.\n\n    :param query: What to look for,\n        in words.\n    :param int limit: At most so many.\n    :returns: The hits.",
        "Searches.\n\n    @param query: What to look for,\n        in words.\n    @param limit: At most so many.\n    @return: The hits.",
    ] {
        let source = format!("def search(query: str, limit: int = 10):\n    \"\"\"{docstring}\n    \"\"\"\n");
        let spec = open(&source).await.specs().await.remove(0);
        assert_eq!((spec.description.as_str(), &spec.parameters), ("Searches.", &expected), "{docstring}");
    }
}

async fn classes() {
    let source = "
from __future__ import annotations
import dataclasses
from typing import NamedTuple, Optional, TypedDict

@dataclasses.dataclass
class Tree:
    '''A tree.'''
    value: int
    children: list[Tree] = dataclasses.field(default_factory=list)

class Hit(TypedDict, total=False):
    url: str

class Point(NamedTuple):
    x: int
    y: int = 0

def total(tree: Tree, hit: Optional[Hit] = None, point: Point = Point(1)) -> int:
    def add(tree):
        return tree.value + sum(add(child) for child in tree.children)
    return add(tree) + point.x + point.y
";
    let opened = open(source).await;
    let parameters = opened.specs().await.remove(0).parameters;
    assert_eq!(parameters["properties"]["tree"], json!({"$ref": "#/$defs/Tree"}));
    let tree = &parameters["$defs"]["Tree"];
    assert_eq!(tree["properties"]["children"], json!({"type": "array", "items": {"$ref": "#/$defs/Tree"}}));
    assert_eq!((&tree["required"], &tree["description"]), (&json!(["value"]), &json!("A tree.")));
    let arguments = json!({"tree": {"value": 1, "children": [{"value": 2}]}, "point": {"x": 10}});
    let result = opened.call("total", arguments).await;
    assert_eq!((&result.error, result.value()), (&None, json!(13)));
}

async fn left_out() {
    let source = "
from typing import Callable
def good(x: int) -> int:
    return x
def bad(callback: Callable[[int], int]):
    pass
def guessed(count, name='x', unknown: 'Missing' = None):
    '''Guesses.

    Args:
        count (int): How many.
    '''
";
    let opened = open(source).await;
    let names: Vec<String> = opened.specs().await.iter().map(|spec| spec.name.to_string()).collect();
    assert_eq!(names, ["good", "guessed"]);
    let [bad] = opened.file.left_out() else { panic!("{:?}", opened.file.left_out()) };
    assert_eq!((bad.name.as_str(), bad.line), ("bad", Some(5)));
    let guessed = &opened.specs().await[1].parameters["properties"];
    assert_eq!(guessed["count"], json!({"type": "integer", "description": "How many."}));
    assert_eq!(guessed["name"], json!({"type": "string", "default": "x"}));
    assert_eq!(guessed["unknown"], json!({"default": null}));
}

async fn given() {
    let source = "
from typing import Annotated, Optional
class Context: pass
class InjectedToolArg: pass
class Marker(InjectedToolArg): pass
def one(x: int, ctx: Optional[Context] = None) -> bool:
    return ctx is not None
def two(x: int, state: Annotated[dict, Marker()] = None) -> bool:
    return not state
def three(x: int, state: Annotated[dict, InjectedToolArg]):
    pass
def four(x, y):
    '''Args:
        x (int): The x,
            and more.
        y: The y.
    '''
";
    let opened = open(source).await;
    let [three] = opened.file.left_out() else { panic!("{:?}", opened.file.left_out()) };
    assert!(three.reason.contains("another library gives the parameter `state`"), "{three:?}");
    for name in ["one", "two"] {
        let spec = opened.specs().await.into_iter().find(|spec| &*spec.name == name).unwrap();
        assert_eq!(spec.parameters["properties"], json!({"x": {"type": "integer"}}), "{name}");
        assert_eq!(opened.call(name, json!({"x": 1})).await.value(), json!(true), "{name}");
    }
    let four = opened.specs().await.into_iter().find(|spec| &*spec.name == "four").unwrap();
    let expected = json!({
        "x": {"type": "integer", "description": "The x, and more."},
        "y": {"description": "The y."},
    });
    assert_eq!((four.description.as_str(), &four.parameters["properties"]), ("", &expected));
}

async fn selection() {
    let functions = "import os\nfrom json import dumps\ndef a(): pass\ndef b(): pass\ndef _c(): pass\n";
    for (more, expected) in [
        ("", vec!["a", "b"]),
        ("__all__ = ['b']\n", vec!["b"]),
        ("AVAILABLE_TOOLS = {'first': a}\n", vec!["first"]),
        ("tools = [b, _c]\n", vec!["b", "_c"]),
        (
            "from toolwright import tool\n@tool(name='marked', read_only=True)\ndef d(): pass\n",
            vec!["marked"],
        ),
        (
            "class Db:\n    def __init__(self): self.n = 1\n    def query(self): return self.n\ntools = [Db().query]\n",
            vec!["query"],
        ),
        ("import functools\ntools = [functools.partial(a)]\n", vec!["a"]),
    ] {
        let specs = open(&format!("{functions}{more}")).await.specs().await;
        let names: Vec<&str> = specs.iter().map(|spec| &*spec.name).collect();
        assert_eq!(names, expected, "{more}");
    }
}
