//! Calls of functions: results, errors, state, what they can ask for.

use serde_json::json;
use toolwright_core::{Content, ErrorKind, ToolCall, ToolDef, ToolSource as _, ToolSpec};
use toolwright_runtime::Run;

use crate::support::{ResultValue as _, Test, open};

pub(crate) fn tests() -> Vec<Test> {
    vec![
        ("values_come_back_as_they_are", || Box::pin(values())),
        ("pictures_anywhere_in_a_result_become_blocks", || Box::pin(pictures())),
        ("arguments_are_what_hints_name", || Box::pin(arguments())),
        ("exceptions_keep_their_kind", || Box::pin(errors())),
        ("state_lives_as_long_as_the_worker", || Box::pin(state())),
        ("an_isolated_call_keeps_and_breaks_nothing", || Box::pin(isolated())),
        ("async_functions_run_together", || Box::pin(together())),
        ("a_function_can_call_tools_report_and_keep_values", || Box::pin(context())),
        ("what_is_printed_is_kept_with_an_error", || Box::pin(printed())),
        ("a_file_sees_its_folder_and_nothing_to_write_or_reach", || Box::pin(confined())),
    ]
}

async fn values() {
    let source = "
import dataclasses, datetime, decimal, enum, math, pathlib
@dataclasses.dataclass
class Point:
    x: int
class Color(enum.Enum):
    RED = 'r'
def text(): return 'hi'
def nothing(): pass
def number(): return 1.5
def odd(): return [math.nan, decimal.Decimal('0.1'), pathlib.Path('a'), Color.RED, {1: Point(2)}, (1, 2)]
def date(): return {'at': datetime.date(2026, 1, 2)}
def words():
    yield 'a'
    yield 'b'
def numbers():
    yield 1
    yield 2
def unwritable(): return {'x': [object()]}
";
    let opened = open(source).await;
    for (tool, expected) in [
        ("text", json!("hi")),
        ("nothing", json!(null)),
        ("number", json!(1.5)),
        ("odd", json!(["nan", "0.1", "a", "r", {"1": {"x": 2}}, [1, 2]])),
        ("date", json!({"at": "2026-01-02"})),
        ("words", json!("ab")),
        ("numbers", json!([1, 2])),
    ] {
        let result = opened.call(tool, json!({})).await;
        assert_eq!((&result.error, result.value()), (&None, expected), "{tool}");
    }
    let error = opened.call("unwritable", json!({})).await.error.unwrap();
    assert!(error.message.contains("result.x[0]"), "{error:?}");
}

async fn pictures() {
    let source = "
import base64
PNG = base64.b64decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==')
from toolwright import Image
def alone(): return Image(PNG)
def inside(): return {'chart': PNG, 'n': 1}
def listed(): return ['before', PNG, 'after']
";
    let opened = open(source).await;
    let is_picture = |block: &Content| matches!(block, Content::Image { .. });
    let alone = opened.call("alone", json!({})).await;
    assert!(matches!(&alone.content[..], [block] if is_picture(block)), "{alone:?}");
    let inside = opened.call("inside", json!({})).await.content;
    assert_eq!(inside[0], Content::json(json!({"chart": "[image 1]", "n": 1})));
    assert!(is_picture(&inside[1]));
    let listed = opened.call("listed", json!({})).await.content;
    assert_eq!((&listed[0], &listed[2]), (&Content::text("before"), &Content::text("after")));
    assert!(is_picture(&listed[1]));
}

async fn arguments() {
    let source = "
import datetime, enum, pathlib
class Color(enum.Enum):
    RED = 'r'
def kinds(color: Color, at: datetime.datetime, path: pathlib.Path, tags: set, ratio: float) -> list:
    return [type(x).__name__ for x in (color, at, path, tags, ratio)]
def passed(a, /, b, *more: int, c=4, **rest: str):
    return [a, b, list(more), c, rest]
";
    let opened = open(source).await;
    let arguments =
        json!({"color": "r", "at": "2026-01-02T03:04:05Z", "path": "a/b", "tags": ["x"], "ratio": 1});
    let result = opened.call("kinds", arguments).await.value();
    assert_eq!(result, json!(["Color", "datetime", "PosixPath", "set", "float"]));
    let result = opened.call("passed", json!({"a": 1, "b": 2, "more": [3, 4], "z": "q"})).await;
    assert_eq!(result.value(), json!([1, 2, [3, 4], 4, {"z": "q"}]));
    let error = opened.call("kinds", json!({"color": "x"})).await.error.unwrap();
    assert_eq!(error.kind, ErrorKind::Parsing);
}

async fn errors() {
    let source = "
from toolwright import ToolError
def missing(): open('/no/such/file')
def denied(): raise PermissionError('no')
def late(): raise TimeoutError('late')
def value(): raise ValueError('wrong')
def own(): raise ToolError('too many', kind='limit', hint='ask for fewer')
def leaves(): raise SystemExit(3)
";
    let opened = open(source).await;
    for (tool, kind, message) in [
        (
            "missing",
            ErrorKind::FileNotFound,
            "FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'",
        ),
        ("denied", ErrorKind::Permission, "PermissionError: no"),
        ("late", ErrorKind::Timeout, "TimeoutError: late"),
        ("value", ErrorKind::Unknown, "ValueError: wrong"),
        ("own", ErrorKind::Limit, "too many"),
        ("leaves", ErrorKind::Unknown, "SystemExit: 3"),
    ] {
        let error = opened.call(tool, json!({})).await.error.unwrap();
        assert_eq!((error.kind, error.message.as_str()), (kind, message));
    }
    let hint = opened.call("own", json!({})).await.error.unwrap().hint;
    assert_eq!(hint.as_deref(), Some("ask for fewer"));
}

async fn state() {
    let source = "
count = 0
def add() -> int:
    global count
    count += 1
    return count
def die():
    import os
    os._exit(7)
";
    let opened = open(source).await;
    assert_eq!(opened.call("add", json!({})).await.value(), json!(1));
    assert_eq!(opened.call("add", json!({})).await.value(), json!(2));
    let error = opened.call("die", json!({})).await.error.unwrap();
    assert!(error.message.contains("code 7"), "{error:?}");
    let again = opened.call("add", json!({})).await;
    assert_eq!(again.value(), json!(1));
    assert!(again.metadata.contains_key("note"), "{again:?}");
}

async fn isolated() {
    let source = "
import os, time
from toolwright import tool, Context
kept = []
@tool(isolate=True)
def add(n: int) -> list:
    kept.append(n)
    print('added')
    return kept
@tool
def keep(n: int) -> list:
    kept.append(n)
    return kept
@tool(isolate=True)
def die():
    os._exit(7)
@tool(isolate=True)
def large() -> int:
    return len(bytearray(200 << 20))
@tool(isolate=True)
def junk() -> int:
    for fd in range(3, 600):
        try: os.write(fd, b'\\xff' * 64)
        except OSError: pass
    return 1
@tool(isolate=True, timeout=0.7)
def stick():
    os.system('sleep 1000 &')
    while True: pass
@tool(isolate=True)
def picture():
    return {'a': b'\\x89PNG\\r\\n\\x1a\\n' + bytes(100_000)}
@tool(isolate=True)
def asks(ctx: Context) -> list:
    ctx.progress(1, 2)
    ctx.set('seen', 3)
    return [ctx.get('seen'), ctx.call_tool('keep', n=9)]
@tool(isolate=True)
async def later() -> int:
    return 5
";
    let opened = open(source).await;
    assert_eq!(opened.call("keep", json!({"n": 1})).await.value(), json!([1]));
    for _ in 0..2 {
        let added = opened.call("add", json!({"n": 2})).await;
        assert_eq!((&added.error, added.value()), (&None, json!([1, 2])));
    }
    let died = opened.call("die", json!({})).await.error.unwrap();
    assert_eq!(died.message, "the function ended its process: exit code 7");
    assert_eq!(opened.call("stick", json!({})).await.error.unwrap().kind, ErrorKind::Timeout);
    assert!(opened.call("junk", json!({})).await.error.is_some());
    assert_eq!(opened.call("large", json!({})).await.value(), json!(200 << 20));
    assert_eq!(opened.call("picture", json!({})).await.content.len(), 2);
    assert_eq!(opened.call("later", json!({})).await.value(), json!(5));
    // `keep` is a function of the same worker, which waits for this one.
    let asked = opened.call("asks", json!({})).await;
    assert_eq!((&asked.error, asked.value()), (&None, json!([3, [1, 9]])));
    // The state of the worker is what it was.
    let kept = opened.call("keep", json!({"n": 3})).await;
    assert_eq!((kept.value(), kept.metadata.contains_key("note")), (json!([1, 9, 3]), false));
}

async fn together() {
    // Each waits until all have begun, so that they end only if they run together.
    let source = "
import asyncio
begun = 0
async def meet(n: int) -> int:
    global begun
    begun += 1
    while begun < 5:
        await asyncio.sleep(0.01)
    return n
";
    let opened = open(source).await;
    let mut calls = Vec::new();
    for n in 0..5 {
        let run = opened.run.clone();
        calls.push(tokio::spawn(async move {
            run.call(ToolCall::new(n.to_string(), "meet", json!({"n": n}))).await.unwrap().value()
        }));
    }
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap(), json!(n));
    }
}

async fn context() {
    let source = "
from toolwright import Context
def work(n: int, ctx: Context) -> list:
    ctx.progress(1, 2, 'half')
    ctx.set('seen', ctx.get('seen', 0) + 1)
    return [ctx.call_tool('double', n=n), ctx.get('seen')]
async def later(n: int, ctx: Context) -> int:
    return await ctx.call_tool('double', n=n)
def fails(ctx: Context):
    ctx.call_tool('nothing')
def outer(ctx: Context) -> int:
    return ctx.call_tool('inner', n=1) + ctx.call_tool('later', n=2)
def inner(n: int, ctx: Context) -> int:
    return ctx.call_tool('double', n=n)
";
    let opened = open(source).await;
    let mut spec = ToolSpec::new("double", "Doubles.");
    spec.parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let double =
        ToolDef::dynamic(spec, |_, arguments| async move { json!(arguments["n"].as_i64().unwrap() * 2) });
    let tools = opened.file.tools().await.unwrap().with(double).unwrap();
    assert!(tools.get("work").unwrap().tool.spec().parameters["properties"].get("ctx").is_none());
    let run = Run::builder(tools).build().unwrap();
    let call = |tool: &str, arguments| {
        let (run, call) = (run.clone(), ToolCall::new("1", tool, arguments));
        async move { run.call(call).await.unwrap() }
    };
    assert_eq!(call("work", json!({"n": 4})).await.value(), json!([8, 1]));
    assert_eq!(call("work", json!({"n": 5})).await.value(), json!([10, 2]));
    assert_eq!(call("later", json!({"n": 6})).await.value(), json!(12));
    // A function can call others of its file, which run while it waits.
    assert_eq!(call("outer", json!({})).await.value(), json!(6));
    assert_eq!(call("fails", json!({})).await.error.unwrap().kind, ErrorKind::Parsing);
}

async fn printed() {
    let source = "
import os, sys
def loud():
    print('one')
    print('two', file=sys.stderr)
    os.system('echo three')
    raise ValueError('four')
";
    let opened = open(source).await;
    let result = opened.call("loud", json!({})).await;
    let text = result.to_text();
    assert!(text.contains("one") && text.contains("two"), "{result:?}");
    // The shell's output comes through a pipe of its own.
    let again = opened.call("loud", json!({})).await;
    assert_eq!(again.error.unwrap().message, "ValueError: four");
}

async fn confined() {
    let source = "
import os, socket
def look() -> list:
    return sorted(os.listdir(os.path.dirname(__file__)))
def write():
    open(os.path.join(os.path.dirname(__file__), 'x'), 'w')
def reach():
    socket.create_connection(('127.0.0.1', 22), timeout=2)
def secret():
    return open('/etc/shadow').read()
def variables():
    return sorted(os.environ)
";
    let opened = open(source).await;
    assert_eq!(opened.call("look", json!({})).await.value(), json!(["tools.py"]));
    for tool in ["write", "reach", "secret"] {
        assert!(opened.call(tool, json!({})).await.error.is_some(), "{tool}");
    }
    let variables = opened.call("variables", json!({})).await.to_text();
    assert!(!variables.contains("CARGO"), "{variables}");
}
