//! Scripts: statements, functions, host functions, and what is refused.

use toolwright_expr::{ErrorKind, EvalLimits, HostArgs, HostError, NamedFunction, Script, Value, Variables};

fn scope() -> Variables {
    let add = |args: HostArgs| {
        let part = |name: &str| args.named.get(name).and_then(Value::as_i64);
        match (part("a"), part("b")) {
            (Some(a), Some(b)) => Ok(Value::Int(a + b)),
            _ => Err(HostError::new("ValidationError", "a and b are required")),
        }
    };
    [
        ("x", Value::Int(3)),
        ("tags", Value::list(vec!["red".into(), "green".into()])),
        ("pair", Value::tuple(vec![1.into(), 2.into()])),
        ("add", Value::host(NamedFunction::new("add", add))),
    ]
    .into_iter()
    .collect()
}

fn check(source: &str, wanted: &str) {
    let result = Script::compile(source).and_then(|script| script.evaluate(&scope(), &EvalLimits::default()));
    match result {
        Ok(value) => assert_eq!(format!("{value:?}"), wanted, "{source}"),
        Err(error) => assert_eq!(format!("{}: {error}", error.python_class()), wanted, "{source}"),
    }
}

fn refused(source: &str) {
    let error = Script::compile(source).err().unwrap_or_else(|| panic!("{source} compiled"));
    assert_eq!(error.kind(), ErrorKind::Forbidden, "{source}: {error}");
    assert_eq!(error.python_class(), "SyntaxError");
}

#[test]
fn the_result_is_a_variable_or_what_run_returns() {
    check("result = 1 + 2", "3");
    check("def run():\n  return 1 + 2", "3");
    check("def run():\n  return 1\nresult = 2", "2");
    check("y = 10", "RuntimeError: Script must either define a 'result' variable or a 'run()' function.");
}

#[test]
fn statements_do_what_pythons_do() {
    check(
        "total = 0\nfor i in [1, 2, 3]:\n  if i == 2:\n    continue\n  total = total + i\nresult = total",
        "4",
    );
    check("for i in range(9):\n  if i == 4:\n    break\nelse:\n  i = -1\nresult = i", "4");
    check("for i in []:\n  pass\nelse:\n  result = 'none'", "'none'");
    check("y = 1\ny += 2\ny *= 5\nresult = y", "15");
    check("l = [1]\nm = l\nl += [2]\nresult = m", "[1, 2]");
    check("a, (b, *c) = 1, (2, 3, 4)\nresult = [c, b, a]", "[[3, 4], 2, 1]");
    check("a = b = []\na.append(1)\nresult = b", "[1]");
    check("d = {}\nd['k'] = [0, 0]\nd['k'][1] = 5\nresult = d", "{'k': [0, 5]}");
    check("d = {'a': 1, 'b': 2}\ndel d['a']\nresult = d", "{'b': 2}");
    check("l = [1, 2, 3]\nl[0:2] = [7]\nresult = l", "[7, 3]");
    check("l = [1, 2, 3]\nl[1:1] = 'ab'\nresult = l", "[1, 'a', 'b', 2, 3]");
    check("l = [1, 2, 3, 4]\nl[::-2] = [8, 9]\nresult = l", "[1, 9, 3, 8]");
    check("l = [1, 2, 3, 4]\ndel l[::2]\nresult = l", "[2, 4]");
    check("l = [1, 2]\nl[5:] = l\nresult = l", "[1, 2, 1, 2]");
    check("y = 1\ndel y\nresult = y", "NameError: name 'y' is not defined");
    check("assert x == 3, 'wrong'\nresult = 'ok'", "'ok'");
    check("assert x == 4, 'wrong'", "AssertionError: wrong");
    check("raise ValueError('bad')", "ValueError: bad");
    check("raise KeyError('k')", "KeyError: 'k'");
    check("if x > 5: result = 1\nelif x > 2: result = 2\nelse: result = 3", "2");
    check("x = x + 1; result = x", "4");
    check("result = [i * i for i in range(4)]  # squares", "[0, 1, 4, 9]");
}

#[test]
fn functions_take_defaults_names_and_rests() {
    check("def f(a, b=2):\n  return a + b\nresult = f(1) + f(1, b=5)", "9");
    check("def f(*a, **k):\n  return [a, k]\nresult = f(1, 2, z=3)", "[(1, 2), {'z': 3}]");
    check("def f(a, *, b=1):\n  return a - b\nresult = f(5, b=2)", "3");
    check("def f(a):\n  return a\nresult = f()", "TypeError: f() missing 1 required argument: 'a'");
    check("def f():\n  return y\ny = 5\nresult = f()", "5");
    check("def f():\n  y = 1\n  return y\ny = 5\nresult = [f(), y]", "[1, 5]");
    check(
        "def f():\n  z = z + 1\n  return z\nz = 5\nresult = f()",
        "UnboundLocalError: cannot access local variable 'z' where it is not associated with a value",
    );
    check("f = lambda v, w=2: v * w\nresult = [f(3), f(3, 4)]", "[6, 12]");
    check("fs = [lambda: i for i in range(3)]\nresult = [f() for f in fs]", "[2, 2, 2]");
    check(
        "def outer(n):\n  return sorted(tags, key=lambda t: len(t) * n)\nresult = outer(-1)",
        "['green', 'red']",
    );
    check("def f(n):\n  return list(i * n for i in range(3))\nresult = f(2)", "[0, 2, 4]");
    check("result = (lambda *a: a)(*pair)", "(1, 2)");
}

#[test]
fn host_functions_are_called_by_name() {
    check("a = add(a=5, b=10)\nresult = add(a=a, b=20)", "35");
    check("result = add(a=1)", "ValidationError: a and b are required");
    check("def run():\n  return [add(a=i, b=1) for i in range(3)]", "[1, 2, 3]");
}

#[test]
fn the_callers_data_is_copied() {
    let scope = scope();
    let script = Script::compile("tags.append('blue')\nresult = [tags, pair]").unwrap();
    let value = script.evaluate(&scope, &EvalLimits::default()).unwrap();
    assert_eq!(format!("{value:?}"), "[['red', 'green', 'blue'], [1, 2]]");
    assert_eq!(scope.value("tags").unwrap().to_string(), "['red', 'green']");
}

#[test]
fn what_could_run_away_is_refused_at_load() {
    for source in [
        "while True:\n  pass",
        "class A:\n  pass",
        "import os",
        "from os import path",
        "try:\n  1\nexcept:\n  2",
        "def f():\n  yield 1",
        "(y := 5)",
        "def f():\n  def g():\n    return 1\n  return g()",
        "def f(n):\n  return f(n - 1)",
        "_y = 1",
        "x.__class__",
        "d = {}\nd['a'] += 1",
        "with x:\n  pass",
        "global x",
        "x.a = 1",
        "async def f():\n  pass",
    ] {
        refused(source);
    }
}

#[test]
fn mistakes_are_located() {
    let source = "y = 1\nresult = [i for i in itmes]\n";
    let items: Variables = [("items", Value::list(vec![]))].into_iter().collect();
    let error = Script::compile(source).unwrap().evaluate(&items, &EvalLimits::default()).unwrap_err();
    assert_eq!(
        error.render(source),
        "error: name 'itmes' is not defined\n  --> 2:22\n2 | result = [i for i in itmes]\n  |                      ^^^^^\n\nhint: did you mean `items`?"
    );
    let error = Script::compile("if x\n  y = 1").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Syntax);
}

#[test]
fn iterators_run_before_a_script_ends_and_before_the_host_sees_them() {
    check("result = (add(a=n, b=1) for n in [1, 2])", "[2, 3]");
    check("result = map(lambda n: add(a=n, b=1), [1, 2])", "[2, 3]");
    check(
        "def run():\n  return {'a': [1, (zip('a', 'b') for n in [0])], 'b': struct(c=(x for x in 'x'))}",
        "{'a': [1, [[('a', 'b')]]], 'b': struct(c=['x'])}",
    );
    check("result = ({'a': (n for n in [1])}.values(), 2)", "(dict_values([[1]]), 2)");
    // What has no iterator in it is what it was, and is looked at once, however often it is there.
    check("x = [1]\nresult = [x, x]\nresult[0].append(2)", "[[1, 2], [1, 2]]");
    check("x = [0]\nfor n in range(60):\n  x = [x, x]\nresult = len([x])", "1");
    let doubled = "x = {'a': [0]}\nfor n in range(60):\n  x = {'a': x, 'b': x.copy()}\nresult = x";
    assert!(Script::compile(doubled).unwrap().evaluate(&scope(), &EvalLimits::default()).is_ok());
    let endless = "def more(f):\n  return (f(f) for i in [0])\nresult = more(more)";
    let error = Script::compile(endless).unwrap().evaluate(&scope(), &EvalLimits::default()).unwrap_err();
    assert_eq!(error.limit(), Some(toolwright_expr::LimitKind::Depth));
    check("result = (1 // n for n in [0])", "ZeroDivisionError: integer division or modulo by zero");
    let long = "result = (n for n in range(10000000) if n < 0)";
    let error = Script::compile(long).unwrap().evaluate(&scope(), &EvalLimits::default()).unwrap_err();
    assert_eq!(error.limit(), Some(toolwright_expr::LimitKind::Steps));
    // Looking through what is given to the host again and again takes no memory: 48 MiB would not do.
    let often = "docs = [{'n': n} for n in range(1000)]\nfor n in range(600):\n  add(a=1, b=2, docs=docs)\nresult = 1";
    let limits = EvalLimits { steps: 20_000_000, ..EvalLimits::default() };
    assert!(Script::compile(often).unwrap().evaluate(&scope(), &limits).is_ok());
}
