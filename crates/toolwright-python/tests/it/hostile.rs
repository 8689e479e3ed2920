//! Files and functions that misbehave: the run survives each, and the next call works.

use std::time::{Duration, Instant};

use serde_json::json;
use toolwright_core::{ErrorKind, ToolCall};
use toolwright_python::PythonOptions;

use crate::support::{ResultValue as _, Test, open, try_open};

pub(crate) fn tests() -> Vec<Test> {
    vec![
        ("files_that_cannot_be_imported_say_why", || Box::pin(imports())),
        ("files_that_do_more_than_define_functions_are_usable", || Box::pin(noisy())),
        ("stuck_functions_end_with_what_they_printed", || Box::pin(stuck())),
        ("functions_that_harm_their_worker_harm_no_later_call", || Box::pin(harmful())),
        ("output_without_end_is_bounded", || Box::pin(flood())),
        ("cancelled_async_calls_leave_the_worker_alone", || Box::pin(cancelled())),
    ]
}

/// Files that cannot be imported, and what is reported of each.
const BROKEN: [(&str, &str); 19] = [
    ("raise ValueError('no')", "ValueError: no"),
    ("import no_such_module", "No module named 'no_such_module'"),
    ("def f(:", "SyntaxError"),
    ("import sys; sys.exit(3)", "SystemExit"),
    ("import os; os._exit(3)", "code 3"),
    ("import os; os.abort()", "signal 6"),
    ("import time; time.sleep(1000)", "more than 3 s"),
    ("while True: pass", "more than 3 s"),
    ("import os; os.kill(os.getpid(), 9)", "signal 9"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("raise BaseException('x' * 100000)", "BaseException"),
    ("import os\nif os.fork() != 0: os._exit(4)", "code 4"),
    ("x = [0] * (1 << 50)", "MemoryError"),
    // It reads the end of a closed socket, or fails to read it.
    ("import os; os.closerange(3, 1024)", "its process exited with code"),
    ("import signal, time; signal.alarm(1); time.sleep(60)", "signal 14"),
    ("import ctypes; ctypes.string_at(0)", "signal 11"),
    ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "its text cannot be made"),
    ("import sys\nsys.settrace(lambda *a: 1 / 0)", "ZeroDivisionError"),
    ("import os; os.kill(-1, 9)", "ProcessLookupError"),
];

async fn imports() {
    let mut options = PythonOptions::default();
    options.import_timeout = Duration::from_secs(3);
    let mut failed = Vec::new();
    for (source, words) in BROKEN {
        match try_open(source, options.clone()).await {
            Err(error) if error.message().contains(words) && error.message().len() < 30_000 => {}
            Err(error) => failed.push(format!("{source}: {error}")),
            Ok(_) => failed.push(format!("{source}: imported")),
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Files that do more than define functions, and are usable.
const NOISY: [&str; 25] = [
    "print('hello' * 100000)",
    "import sys; sys.stdout.write('x'); sys.stderr.write('y')",
    "import os; os.write(1, b'raw'); os.write(2, b'raw')",
    "import threading, time\nthreading.Thread(target=lambda: time.sleep(1000)).start()",
    "import os\nif os.fork() == 0: os._exit(0)",
    "import os; os.fork()",
    "import os; os.closerange(3, 256)",
    "import sys; sys.stdin.read()",
    "import sys; sys.argv; sys.setrecursionlimit(200)",
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
    "import os; os.chdir('/'); os.environ.clear()",
    "import sys; sys.stdout = None; sys.stderr = None",
    "import sys; sys.stdout.close(); sys.stderr.close(); sys.stdin.close()",
    "import builtins; del builtins.print",
    "import sys; sys.path.clear(); sys.modules.pop('json'); sys.modules.pop('os')",
    "import json; json.dumps = json.loads = None",
    "import os; os.write = os.read = os.getpid = None",
    "import struct; struct.pack = struct.unpack = None",
    "import gc; gc.disable(); gc.freeze()",
    "import os; os.nice(5)",
    "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))",
    "def __getattr__(name): raise SystemExit",
    "class Evil:\n    def __getattr__(self, name): raise SystemExit\nevil = Evil()",
    "class Liar:\n    name = description = 'x'\n    @property\n    def run(self): raise KeyboardInterrupt\nliar = Liar()",
    "import warnings, logging; warnings.warn('x'); logging.error('x' * 100000)",
];

async fn noisy() {
    let mut failed = Vec::new();
    for source in NOISY {
        let whole = format!("{source}\ndef add(x: int) -> int:\n    return x + 1\n");
        match try_open(&whole, PythonOptions::default()).await {
            Ok(opened) => {
                let result = opened.call("add", json!({"x": 1})).await;
                if result.error.is_some() || result.value() != json!(2) {
                    failed.push(format!("{source}: {result:?}"));
                }
            }
            Err(error) => failed.push(format!("{source}: {error}")),
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// Ways to be stuck, as the body of a function.
const STUCK: [&str; 30] = [
    "while True: pass",
    "import time; time.sleep(1000)",
    "import threading; threading.Event().wait()",
    "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "import subprocess; subprocess.run(['sleep', '1000'])",
    "import subprocess; subprocess.run(['setsid', 'sleep', '1000'])",
    "import subprocess; subprocess.run(['sh', '-c', 'trap \"\" INT TERM HUP; sleep 1000; sleep 1000'])",
    "import os; os.system('sleep 1000 & sleep 1000')",
    "import os; r, w = os.pipe(); os.read(r, 1)",
    "import select; select.select([], [], [])",
    "import socket; a, b = socket.socketpair(); a.recv(1)",
    "import re; re.match('(a+)+$', 'a' * 64 + 'b')",
    "sum(iter(int, 1))",
    "sum(range(10 ** 12))",
    "10 ** 10 ** 9",
    "import itertools; max(itertools.count())",
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n    while True: pass",
    "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n    while True: pass",
    "import signal; signal.sigwait([signal.SIGUSR1])",
    "import os; os.kill(os.getpid(), 19)",
    "import os; os.fork()\n    while True: pass",
    "import queue; queue.Queue().get()",
    "import threading\n    one = threading.Thread(target=lambda: [0 for _ in iter(int, 1)]); one.start(); one.join()",
    "import concurrent.futures\n    with concurrent.futures.ThreadPoolExecutor(1) as pool: pool.submit(lambda: sum(iter(int, 1)))",
    "import asyncio; asyncio.run(asyncio.sleep(1000))",
    "import ctypes; ctypes.CDLL(None).pause()",
    "import time\n    try: time.sleep(1000)\n    finally: time.sleep(1000)",
    "class Endless(dict):\n        def items(self):\n            while True: pass\n    return Endless()",
    "class Endless:\n        def __str__(self):\n            while True: pass\n    raise ValueError(Endless())",
    "
    import time
    while True:
        try:
            time.sleep(1)
        except BaseException:
            pass",
];

async fn stuck() {
    let mut failed = Vec::new();
    // Two at a time: most of them keep a processor busy.
    for pair in STUCK.chunks(2) {
        let tests: Vec<_> = pair.iter().map(|body| tokio::spawn(stuck_in(body))).collect();
        for test in tests {
            failed.extend(test.await.unwrap().err());
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

async fn stuck_in(body: &'static str) -> Result<(), String> {
    let source = format!(
        "from toolwright import tool\n@tool(timeout=0.7)\ndef stick():\n    print('begun', flush=True)\n    {body}\n\
         @tool\ndef fine() -> int:\n    return 1\n"
    );
    let opened =
        try_open(&source, PythonOptions::default()).await.map_err(|error| format!("{body}: {error}"))?;
    let since = Instant::now();
    let stuck = opened.call("stick", json!({})).await;
    let took = since.elapsed();
    let fine = opened.call("fine", json!({})).await;
    let in_time = stuck.error.as_ref().is_some_and(|error| error.kind == ErrorKind::Timeout)
        && took < Duration::from_millis(1_500)
        && stuck.to_text().contains("begun");
    // The next call waits for the old worker's end. The bound is generous: the machine may be busy.
    let goes_on =
        fine.error.is_none() && fine.value() == json!(1) && since.elapsed() < Duration::from_secs(20);
    if in_time && goes_on { Ok(()) } else { Err(format!("{body}: {took:?} {stuck:?} {fine:?}")) }
}

/// Ways to harm the worker, its connection or its streams.
const HARMFUL: [&str; 34] = [
    "import os; os._exit(0)",
    "import os; os.abort()",
    "import os; os.kill(os.getpid(), 9)",
    "import os; os.kill(os.getppid(), 9)",
    "import os; os.kill(-1, 9)",
    "import signal, os; signal.signal(signal.SIGINT, signal.SIG_DFL); os.kill(os.getpid(), 2)",
    "import ctypes; ctypes.string_at(0)",
    "import sys; sys.setrecursionlimit(10 ** 8)\n    def f(): f()\n    f()",
    "import sys; sys.exit(1)",
    "raise KeyboardInterrupt",
    "class Own(BaseException): pass\n    raise Own",
    "class Own(Exception):\n        def __str__(self): raise ValueError\n    raise Own",
    "raise ValueError('\\ud800' * 10)",
    "raise SystemExit('x' * 10 ** 7)",
    "import gc, os\n    for fd in range(400, 600):\n        try: os.close(fd)\n        except OSError: pass",
    "import os\n    for fd in range(3, 256):\n        try: os.close(fd)\n        except OSError: pass",
    "import os\n    for fd in range(400, 600):\n        try: os.write(fd, b'\\xff' * 64)\n        except OSError: pass",
    "import os\n    for fd in (0, 1, 2): os.close(fd)",
    "import os; os.write(1, b'\\x00\\xff' * 100000)",
    "import sys; sys.stdout = None; sys.stderr = None",
    "import threading; threading.Thread(target=lambda: 1 / 0).start()",
    "import threading, time\n    for _ in range(100): threading.Thread(target=time.sleep, args=(1000,)).start()",
    "def f(): f()\n    f()",
    "import os; os.fork()",
    "import os\n    while True:\n        if os.fork(): os._exit(0)",
    "import os\n    for _ in range(6): os.fork()\n    print('x')",
    "import builtins; builtins.__dict__.clear()",
    "import sys; sys.modules.clear()",
    "import os; os.execv('/bin/true', ['true'])",
    "input()",
    "x = []\n    x.append(x)\n    return x",
    "return iter(int, 1)",
    "return lambda: 1",
    "return type('X', (), {'__class__': property(lambda self: 1 / 0)})()",
];

async fn harmful() {
    let mut failed = Vec::new();
    for body in HARMFUL {
        let opened = open(&format!("def harm():\n    {body}\ndef fine() -> int:\n    return 1\n")).await;
        let harmed = opened.call("harm", json!({})).await;
        let ended =
            harmed.error.as_ref().is_some_and(|error| error.message.contains("the Python worker ended"));
        let fine = opened.call("fine", json!({})).await;
        let has_reason = harmed
            .error
            .as_ref()
            .is_none_or(|error| error.kind != ErrorKind::Fatal && !error.message.is_empty());
        let goes_on = fine.error.is_none() && fine.value() == json!(1);
        // That the state of the first worker is lost is reported.
        let reported = fine.metadata.contains_key("note") == ended;
        if !has_reason || !goes_on || !reported {
            failed.push(format!("{body}: {harmed:?} {fine:?}"));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

async fn flood() {
    let source = "
kept = 0
def flood() -> int:
    global kept
    kept += 1
    for _ in range(3000):
        print('x' * 10000)
    return kept
def large() -> str:
    return 'x' * (1 << 30)
def wide() -> list:
    return ['x' * 1_000_000] * 100
def many() -> list:
    return [0] * 3_000_000
def endless():
    while True:
        yield 1
def picture():
    return b'\\x89PNG\\r\\n\\x1a\\n' + bytes(200 << 20)
";
    let opened = open(source).await;
    for (n, tool) in ["large", "wide", "many", "endless", "picture"].into_iter().enumerate() {
        let error = opened.call(tool, json!({})).await.error.unwrap();
        assert!(["too large", "more than"].iter().any(|words| error.message.contains(words)), "{error:?}");
        // The worker is the same: a result that is too large is refused before it is sent.
        assert_eq!(opened.call("flood", json!({})).await.value(), json!(n + 1), "{tool}");
    }
}

async fn cancelled() {
    let source = "
import asyncio
kept = 0
async def wait():
    global kept
    kept += 1
    await asyncio.sleep(1000)
def count() -> int:
    return kept
";
    let opened = open(source).await;
    let mut calls = Vec::new();
    for n in 0..20 {
        let run = opened.run.clone();
        calls.push(tokio::spawn(async move {
            run.call(ToolCall::new(n.to_string(), "wait", json!({}))).await.unwrap()
        }));
    }
    while opened.call("count", json!({})).await.value() != json!(20) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for call in calls {
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
    }
    let count = opened.call("count", json!({})).await;
    // The same worker answers: it still knows how many began.
    assert_eq!((&count.error, count.value()), (&None, json!(20)));
}
