//! Programs meant to harm: each ends in a typed error, soon, in little memory. Groups EX and RX of the attack
//! catalogue. Memory is measured by the allocator of this test binary.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};

use toolwright_expr::{Error, ErrorKind, EvalLimits, LimitKind, Program, Script, Template, Value, Variables};

/// Counts what the current thread holds, and the most it ever held.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    let _ = HELD.try_with(|held| {
        held.set(held.get() + change);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

#[expect(unsafe_code, reason = "an allocator cannot be written without; this one only counts")]
// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize);
        count(-(layout.size() as isize));
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A debug build does the same work several times slower.
const TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 5_000 } else { 100 });
const MEMORY: isize = 64 << 20;

/// Processor time of this thread. On a busy machine the clock on the wall would measure the neighbours.
#[expect(unsafe_code, reason = "the standard library has no processor time")]
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to a value of ours that outlives it.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

/// Runs an attack under the default limits and checks what it cost.
fn contained(source: &str, run: impl FnOnce() -> Result<Value, Error>) -> Result<Value, Error> {
    let shown: String = source.chars().take(80).collect();
    let before = HELD.with(Cell::get);
    MOST.with(|most| most.set(before));
    let start = processor_time();
    let result = run();
    let time = processor_time() - start;
    let memory = MOST.with(Cell::get) - before;
    assert!(memory < MEMORY, "{shown} took {memory} bytes");
    assert!(time < TIME, "{shown} took {time:?}");
    result
}

fn attack(source: &str) -> Result<Value, Error> {
    contained(source, || Program::compile(source)?.evaluate(&scope(), &EvalLimits::default()))
}

fn script(source: &str) -> Result<Value, Error> {
    contained(source, || Script::compile(source)?.evaluate(&scope(), &EvalLimits::default()))
}

fn scope() -> Variables {
    [
        ("x", Value::str("secret")),
        ("l", Value::list(vec![Value::Int(1)])),
        ("d", Value::dict([("a", Value::Int(1))])),
    ]
    .into_iter()
    .collect()
}

fn refused(source: &str, kind: ErrorKind) {
    let error = attack(source).expect_err(source);
    assert_eq!(error.kind(), kind, "{source}: {error}");
}

fn limited(source: &str) {
    let error = attack(source).expect_err(source);
    assert!(error.limit().is_some(), "{source}: {error:?}");
}

#[test]
fn ex_01_nothing_leads_from_data_to_the_host() {
    for source in [
        "x.__class__.__mro__",
        "().__class__.__bases__[0]",
        "f'{x.__class__}'",
        "[].append.__self__",
        "x.gi_frame",
        "_getattr_(x, 'upper')",
        "__builtins__",
        "(i for i in l).gi_code",
        "x.y__roles__",
        "lambda: 1",
    ] {
        refused(source, ErrorKind::Forbidden);
    }
    for source in [
        "'{0.__class__}'.format(x)",
        "'{0.upper}'.format(x)",
        "'{0.a}'.format(d)",
        "str.__mro__ if 0 else x.mro",
    ] {
        assert!(
            matches!(attack(source).expect_err(source).kind(), ErrorKind::Attribute | ErrorKind::Forbidden),
            "{source}"
        );
    }
    for source in ["getattr(x, '__class__')", "globals()", "vars()", "type.mro(int)"] {
        assert!(
            matches!(attack(source).expect_err(source).kind(), ErrorKind::UnknownName | ErrorKind::Attribute),
            "{source}"
        );
    }
    refused("setattr(x, 'a', 1)", ErrorKind::Type);
    assert!(attack("'%(__class__)s' % d").is_err());
    assert!(attack("type('X', (), {})").is_err());
}

#[test]
fn ex_02_huge_numbers_are_refused_before_they_are_computed() {
    let product = vec!["9**999999"; 40].join("*");
    for source in [
        "9**9**9",
        &product,
        "1 << 10**9",
        "2**(2**40)",
        "10**40000 * 10**40000",
        "(-7)**99999999",
        "int('f' * 200000, 16)",
        "sum([10**39000 * 10**900 for i in range(1000)])",
    ] {
        limited(source);
    }
    assert!(attack("int('9' * 5000)").is_err());
    assert!(attack("str(10**5000)").is_err());
    limited("[pow(3**20000, 3**20000, 7**20000) for i in range(9)]");
    limited("[(10**30000) // (7**9000) for i in range(100000)]");
    let error = script("n = 1\nfor i in range(1, 100000):\n  n = n * i\nresult = n").expect_err("factorial");
    assert!(error.limit().is_some());
}

#[test]
fn ex_03_amplifiers_pay_before_they_allocate() {
    for source in [
        "'a' * 10**9",
        "('a' * 90000).join(['b'] * 90000)",
        "'1'.zfill(3000000000)",
        "'x'.center(10**10, 'ab'[0])",
        "('a' * 100000).replace('a', 'b' * 100000)",
        "'x'.rjust(10**12)",
        "[0] * 10**9",
        "(1, 2) * 10**9",
        "b'a' * 10**10",
        "f'{1:9999999999}'",
        "'{:>9999999999}'.format(1)",
        "'%9999999d' % 1 * 100",
        "format(1.5, '.999999999f')",
        "list(range(10**9))",
        "bytes(10**10)",
        "'\\t'.expandtabs(10**10)",
        "('ab' * 1000000).split('a') * 10",
        "'a'.translate({97: 'b' * 9000000}) * 9",
        "[[0] * 1000] * 100000 + [[1] * 1000 for i in range(100000)]",
        "'x'.encode() * 10**9",
        "(10**4000).to_bytes(10**10)",
        "print_json([['x' * 1000] * 1000] * 1000)",
        "str([['x' * 1000] * 1000] * 1000)",
        "'{}{}{}'.format(*['x' * 9000000] * 3)",
        "dict.fromkeys(range(10**8))",
        "set(range(10**8))",
        "'%s' % (['x' * 9999] * 99999,)",
        "[str(i) * 100 for i in range(10**6)]",
        "[{} for i in range(10**7)]",
        "[{i: i} for i in range(10**7)]",
        "[(i, i) for i in range(10**7)]",
        "['a' + str(i) for i in range(10**7)]",
        "[[] for i in range(10**7)]",
        "[struct(a=i) for i in range(10**7)]",
        "[l.copy for i in range(10**7)]",
        "[(j for j in l) for i in range(10**7)]",
        "[d.keys() for i in range(10**7)]",
        "[i * 1j for i in range(10**7)]",
        "[slice(i) for i in range(10**7)]",
        "[range(i) for i in range(10**7)]",
        "{i: l.pop for i in range(10**7)}",
        "[ValueError() for i in range(10**7)]",
        "['é' for i in range(10**7)]",
        "[chr(i % 999 + 999) for i in range(10**7)]",
        "[as_yaml(i) for i in range(10**7)]",
        "sorted(range(10**7))",
        "str(as_yaml([['x' * 1000] * 1000] * 1000))",
        "str(as_yaml([['\\x00' * 900] * 1000] * 100, False))",
        "[shell_quote(\"'\" * 100000) for i in range(10**4)]",
    ] {
        limited(source);
    }
    let error = script("s = 'ab'\nfor i in range(64):\n  s = s + s\nresult = s").expect_err("doubling");
    assert_eq!(error.limit(), Some(LimitKind::Bytes));
    let error = script("l = [0]\nfor i in range(64):\n  l.extend(l)\nresult = l").expect_err("doubling");
    assert!(error.limit().is_some());
}

#[test]
fn numbers_that_are_none_do_not_pile_up_in_sets() {
    for (source, count) in [
        ("len({*[88 * -1e3048j - 1] * 15000})", 1),
        ("len({(float('nan') * 1j, i % 3) for i in range(15000)})", 3),
    ] {
        assert_eq!(attack(source).unwrap(), Value::Int(count), "{source}");
    }
}

/// Reading and writing a digit is work on the whole number.
#[test]
fn the_digits_of_many_large_numbers_are_paid_for() {
    limited("str(77507 * [33333000001374558775186**61])");
    limited("f'{[10**4299] * 100000}'");
    limited("print_json([10**4299] * 100000)");
    limited("['%d' % n for n in [10**4299] * 100000]");
    limited("[int('9' * 4300) for i in range(100000)]");
    limited("parse_json('[' + ','.join(['9' * 4300] * 3000) + ']')");
    assert!(attack("len(str([10**4299 + i for i in range(100)]))").is_ok());
    assert!(attack("sum(int('9' * 4300) for i in range(50)) > 0").is_ok());
}

#[test]
fn ex_04_loops_run_out_of_steps() {
    for source in [
        "[0 for a in range(100) for b in range(100) for c in range(100) for d in range(100) if False]",
        "[1 for i in range(10**12) if i < 0]",
        "sum(1 for i in range(10**12))",
        "list(map(str, map(int, map(str, range(10**9)))))",
        "any(i < 0 for i in range(10**12))",
        "max(i for i in range(10**12))",
        "[i for i in range(10**12) if i in range(0)]",
        "10**12 in (i for i in range(10**12))",
        "len([x for x in zip(range(10**12), range(10**12)) if False])",
        "all(map(bool, filter(bool, range(1, 10**12))))",
        "[[a for a in range(10**4)] for b in range(10**4)]",
        "sum([i for i in range(1000)] == [i for i in range(1000)] for j in range(10**7))",
    ] {
        limited(source);
    }
}

#[test]
fn ex_05_deep_and_long_sources_are_refused() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{1:", "}"),
        ("-", ""),
        ("~", ""),
        ("not ", ""),
        ("x if x else ", ""),
        ("f(", ")"),
        ("x[", "]"),
        ("1+(", ")"),
        ("[i for i in ", "]"),
        ("2**", ""),
        ("sorted(l, key=lambda y: ", ")"),
        ("f'{", "}'"),
    ] {
        let source = format!("{}x{}", open.repeat(100_000 / open.len()), close.repeat(100_000 / open.len()));
        let result = attack(&source);
        if !matches!(open, "not " | "-") {
            assert!(result.is_err(), "{open}");
        }
    }
    assert_eq!(attack(&format!("'{}'", "a".repeat(10 << 20))).unwrap_err().limit(), Some(LimitKind::Source));
    assert_eq!(attack(&format!("x{}", ".y".repeat(50_000))).unwrap_err().limit(), Some(LimitKind::Depth));
    assert!(attack(&vec!["1"; 30_000].join("+")).is_ok());
    assert!(attack(&vec!["x"; 30_000].join(" and ")).is_ok());
    assert!(attack(&format!("[{}]", vec!["1"; 30_000].join(","))).is_ok());
}

/// F11: what came before an argument is looked up, not searched, so that twice as many take twice as long.
#[test]
fn a_call_with_many_arguments_is_parsed_in_linear_time() {
    let numbered = |form: fn(usize) -> String| (0..60_000).map(form).collect::<Vec<_>>().join(",");
    for source in [
        format!("max({})", vec!["1"; 200_000].join(",")),
        format!("dict({})", numbered(|n| format!("k{n}={n}"))),
        format!("max({})", numbered(|n| format!("*[{n}]"))),
        format!("dict({})", numbered(|n| format!("**{{'{n}':{n}}}"))),
    ] {
        let start = processor_time();
        let _ = Program::compile(&source);
        let time = processor_time() - start;
        let shown: String = source.chars().take(20).collect();
        assert!(time < TIME, "{shown} took {time:?}");
    }
    let captured = numbered(|n| format!("n{n}"));
    let source = format!("{}=0\ndef f():\n    return [{captured}]\nresult = f()", captured.replace(',', "="));
    let start = processor_time();
    let _ = Script::compile(&source);
    let time = processor_time() - start;
    assert!(time < TIME, "a function that captures 60,000 names took {time:?}");
}

#[test]
fn ex_06_functions_that_call_each_other_end() {
    let error =
        script("def f(n):\n  return g(n)\ndef g(n):\n  return f(n)\nresult = f(1)").expect_err("mutual");
    assert_eq!(error.limit(), Some(LimitKind::Depth));
    assert_eq!(
        script("def f(n):\n  return f(n)\nresult = f(1)").expect_err("self").kind(),
        ErrorKind::Forbidden
    );
    let error =
        script("f = [0]\nfor i in range(100000):\n  f = [f]\nresult = str(f)").expect_err("deep data");
    assert!(error.limit().is_some());
    assert!(script("f = [0]\nfor i in range(30000):\n  f = [f]\nresult = len(f)").is_ok());
    let error = script("g = range(3)\nfor i in range(10000):\n  g = map(str, g)\nresult = list(g)")
        .expect_err("stacked");
    assert_eq!(error.limit(), Some(LimitKind::Depth));
    let error = script("g = range(3)\nfor i in range(1000):\n  g = (x for x in g)\nresult = list(g)")
        .expect_err("stacked");
    assert_eq!(error.limit(), Some(LimitKind::Depth));
    assert_eq!(attack("l.append(l)").unwrap_err().kind(), ErrorKind::Value);
    assert_eq!(attack("d.update(a=[d])").unwrap_err().kind(), ErrorKind::Value);
}

#[test]
fn ex_07_edges_of_numbers_have_a_defined_result() {
    for source in [
        "1 // 0",
        "1 % 0",
        "0 ** -1",
        "1.0 / 0",
        "divmod(1, 0.0)",
        "pow(2, 3, 0)",
        "1 << -1",
        "l[10**30]",
        "int(float('nan'))",
        "2.0 ** 5000",
        "float(10**400)",
        "round(float('inf'))",
    ] {
        assert!(attack(source).is_err(), "{source}");
    }
    let check = |source: &str, wanted: &str| {
        assert_eq!(format!("{:?}", attack(source).expect(source)), wanted, "{source}")
    };
    check("(-9223372036854775808) // -1", "9223372036854775808");
    check("-(-9223372036854775807 - 1)", "9223372036854775808");
    check("abs(-9223372036854775807 - 1)", "9223372036854775808");
    check("9223372036854775807 + 1", "9223372036854775808");
    check("{float('nan'): 1}", "{nan: 1}");
    check("[0.0 == -0.0, str(-0.0)]", "[True, '-0.0']");
    check("range(9223372036854775806, 9223372036854775807)[0]", "9223372036854775806");
    check("[3][-9223372036854775807 - 1:]", "[3]");
    check("'abc'[::-9223372036854775807 - 1]", "'c'");
}

#[test]
fn ex_08_texts_count_characters() {
    let check = |source: &str, wanted: &str| {
        assert_eq!(format!("{:?}", attack(source).expect(source)), wanted, "{source}")
    };
    check("'😀é'[0]", "'😀'");
    check("len('e\\u0301')", "2");
    check("'a😀b'[::-1]", "'b😀a'");
    check("'😀x'.find('x')", "1");
    check("'é'.center(4, '😀')", "'😀é😀😀'");
    for source in ["'\\ud800'", "chr(0xd800)", "parse_json('\"\\\\ud800\"')"] {
        assert!(attack(source).is_err(), "{source}");
    }
}

#[test]
fn ex_09_data_is_never_read_as_a_program() {
    let scope: Variables = [("x", Value::str("${1 + 1} {0.__class__} {{y}}"))].into_iter().collect();
    for text in ["${x}", "a ${x}", "${x + ''}", "${'%s' % x}", "${f'{x}'}"] {
        let value = Template::compile(text).unwrap().evaluate(&scope, &EvalLimits::default()).unwrap();
        assert!(value.as_str().unwrap().ends_with("${1 + 1} {0.__class__} {{y}}"), "{text}");
    }
}

#[test]
fn ex_10_text_for_other_languages_is_encoded() {
    let nasty =
        ["; rm -rf x", "$(id)", "a\nb", "-rf", "it's", "\"}", "\r\nX: y", "", "é😀", "\u{2028}</script>"];
    for text in nasty {
        let scope: Variables = [("x", Value::str(text))].into_iter().collect();
        let evaluate =
            |source: &str| Program::compile(source).unwrap().evaluate(&scope, &EvalLimits::default());
        let json = evaluate("print_json({'q': x})").unwrap();
        let read: serde_json::Value = serde_json::from_str(json.as_str().unwrap()).unwrap();
        assert_eq!(read["q"], text);
        // One word, whatever is in it.
        let quoted = evaluate("shell_quote(x)").unwrap();
        let quoted = quoted.as_str().unwrap();
        let output =
            std::process::Command::new("sh").args(["-c", &format!("printf '[%s]' {quoted}")]).output();
        assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), format!("[{text}]"), "{quoted}");
    }
    refused("shell_quote(5)", ErrorKind::Type);
}

#[test]
fn ex_11_names_outside_the_table_are_unknown() {
    for source in [
        "open('x')",
        "env",
        "input()",
        "compile('1')",
        "lеn(l)",
        "print(1)",
        "__import__('os')",
        "breakpoint()",
        "eval('1')",
    ] {
        assert!(
            matches!(attack(source).expect_err(source).kind(), ErrorKind::UnknownName | ErrorKind::Forbidden),
            "{source}"
        );
    }
}

#[test]
fn ex_12_messages_are_short_whatever_they_quote() {
    for source in [
        "int('x' * 1000000)",
        "d['k' * 1000000]",
        "l.index('y' * 1000000)",
        "float('z' * 1000000)",
        "'%z' % ('a' * 100000)",
    ] {
        let error = attack(source).expect_err(source);
        assert!(error.message().len() < 1_000 && error.render(source).len() < 4_000, "{source}");
    }
}

/// There is no regex engine in the language, so there is no pattern to attack.
#[test]
fn rx_patterns_do_not_exist() {
    for name in ["re", "regex", "match", "search"] {
        assert!(!toolwright_expr::is_builtin(name));
    }
}

#[test]
fn a_cancelled_evaluation_stops_inside_a_loop() {
    let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let limits = EvalLimits {
        steps: u64::MAX / 4,
        cancel: Some(std::sync::Arc::clone(&flag)),
        ..EvalLimits::default()
    };
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        flag.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let program = Program::compile("sum(1 for i in range(10**15))").unwrap();
    assert_eq!(program.evaluate(&(), &limits).unwrap_err().kind(), ErrorKind::Cancelled);
    stopper.join().unwrap();
}

#[test]
fn a_deadline_stops_an_evaluation() {
    let limits = EvalLimits {
        steps: u64::MAX / 4,
        deadline: Some(Instant::now() + Duration::from_millis(30)),
        ..EvalLimits::default()
    };
    let error =
        Program::compile("[0 for i in range(10**15) if False]").unwrap().evaluate(&(), &limits).unwrap_err();
    assert_eq!(error.python_class(), "TimeoutError");
}
