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

async fn imports() {
    let mut options = PythonOptions::default();
    options.import_timeout = Duration::from_secs(3);
    for (source, words) in [
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
    ] {
        let Err(error) = try_open(source, options.clone()).await else { panic!("{source}") };
        assert!(error.message().contains(words), "{source}: {error}");
        assert!(error.message().len() < 30_000);
    }
}

async fn noisy() {
    for source in [
        "print('hello' * 100000)",
        "import sys; sys.stdout.write('x'); sys.stderr.write('y')",
        "import os; os.write(1, b'raw'); os.write(2, b'raw')",
        "import threading, time\nthreading.Thread(target=lambda: time.sleep(1000)).start()",
        "import os\nif os.fork() == 0: os._exit(0)",
        "import os; os.closerange(3, 256)",
        "import sys; sys.stdin.read()",
        "import sys; sys.argv; sys.setrecursionlimit(200)",
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
        "import os; os.chdir('/')",
        "import sys; sys.stdout = None; sys.stderr = None",
        "import builtins; del builtins.print",
    ] {
        let opened = open(&format!("{source}\ndef add(x: int) -> int:\n    return x + 1\n")).await;
        let result = opened.call("add", json!({"x": 1})).await;
        assert_eq!((&result.error, result.value()), (&None, json!(2)), "{source}");
    }
}

/// Ways to be stuck, as the body of a function.
const STUCK: [&str; 12] = [
    "while True: pass",
    "import time; time.sleep(1000)",
    "import threading; threading.Event().wait()",
    "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "import subprocess; subprocess.run(['sleep', '1000'])",
    "import os; os.system('sleep 1000 & sleep 1000')",
    "import os; r, w = os.pipe(); os.read(r, 1)",
    "import select; select.select([], [], [])",
    "import socket; a, b = socket.socketpair(); a.recv(1)",
    "import re; re.match('(a+)+$', 'a' * 64 + 'b')",
    "sum(iter(int, 1))",
    "
    import time
    while True:
        try:
            time.sleep(1)
        except BaseException:
            pass",
];

async fn stuck() {
    for body in STUCK {
        let source = format!(
            "def stick():\n    print('begun', flush=True)\n    {body}\ndef fine() -> int:\n    return 1\n"
        );
        let mut options = PythonOptions::default();
        options.timeout = Some(Duration::from_secs(2));
        let opened = try_open(&source, options).await.unwrap();
        let since = Instant::now();
        let result = opened.call("stick", json!({})).await;
        let error = result.error.clone().unwrap();
        assert_eq!(error.kind, ErrorKind::Timeout, "{body}");
        assert!(result.to_text().contains("begun"), "{body}: {result:?}");
        let fine = opened.call("fine", json!({})).await;
        assert_eq!((&fine.error, fine.value()), (&None, json!(1)), "{body}");
        // The bound is generous: the machine may be busy.
        assert!(since.elapsed() < Duration::from_secs(30), "{body}: {:?}", since.elapsed());
    }
}

async fn harmful() {
    for body in [
        "import os; os._exit(0)",
        "import os; os.abort()",
        "import os; os.kill(os.getpid(), 9)",
        "import ctypes; ctypes.string_at(0)",
        "import sys; sys.exit(1)",
        "raise KeyboardInterrupt",
        "import gc, os\n    for fd in range(400, 600):\n        try: os.close(fd)\n        except OSError: pass",
        "import os\n    for fd in range(400, 600):\n        try: os.write(fd, b'\\xff' * 64)\n        except OSError: pass",
        "import threading; threading.Thread(target=lambda: 1 / 0).start()",
        "def f(): f()\n    f()",
        "import os; os.fork()",
    ] {
        let opened = open(&format!("def harm():\n    {body}\ndef fine() -> int:\n    return 1\n")).await;
        let harmed = opened.call("harm", json!({})).await;
        assert!(harmed.error.is_none_or(|error| error.kind != ErrorKind::Fatal), "{body}");
        let fine = opened.call("fine", json!({})).await;
        assert_eq!((&fine.error, fine.value()), (&None, json!(1)), "{body}");
    }
}

async fn flood() {
    let source = "
def flood() -> int:
    for _ in range(3000):
        print('x' * 10000)
    return 1
def large() -> str:
    return 'x' * 80_000_000
def many() -> list:
    return [0] * 3_000_000
";
    let opened = open(source).await;
    assert_eq!(opened.call("flood", json!({})).await.value(), json!(1));
    for tool in ["large", "many"] {
        assert!(opened.call(tool, json!({})).await.error.is_some(), "{tool}");
        assert_eq!(opened.call("flood", json!({})).await.value(), json!(1));
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
