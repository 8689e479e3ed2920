//! This test program is its own worker: it starts itself again and meets every way in which a worker can end.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "these are tests")]

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use serde_json::json;
use toolwright_worker::{
    Command, Connection, Event, Failure, Worker, WorkerError, WorkerLimits, limit_this_process,
};

fn main() {
    if std::env::args().nth(1).as_deref() == Some("__worker") {
        return work();
    }
    let test = |name: &str, run: fn()| {
        Trial::test(name, move || {
            run();
            Ok(())
        })
    };
    let tests = vec![
        test("a_worker_reads_the_file_it_is_handed", reads_a_file),
        test("a_worker_cannot_write_files", writes),
        test("a_worker_asks_and_is_answered", asks),
        test("a_failure_keeps_its_kind", fails),
        test("a_crash_gives_what_came_before_it", crashes),
        test("memory_is_bounded", memory),
        test("time_is_bounded_and_the_tree_is_killed", time),
        test("output_is_bounded", output),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

fn limits() -> WorkerLimits {
    WorkerLimits { memory: 512 << 20, time: Duration::from_secs(20), ..WorkerLimits::default() }
}

fn start(operation: &str, limits: WorkerLimits, file: Option<&std::fs::File>) -> Worker {
    let command = Command::this_program(["__worker"]).unwrap();
    let files: Vec<&std::fs::File> = file.into_iter().collect();
    Worker::start(&command, limits, operation, json!({"memory": limits.memory}), &files).unwrap()
}

/// What the worker does, by the name of the operation.
fn work() {
    let mut connection = Connection::from_stdin().unwrap();
    let (operation, arguments, files) = connection.call().unwrap();
    let memory = arguments["memory"].as_u64().unwrap();
    limit_this_process(&WorkerLimits { memory, ..limits() }).unwrap();
    match operation.as_str() {
        "read" => {
            let mut text = String::new();
            for mut file in files {
                file.read_to_string(&mut text).unwrap();
            }
            connection.progress(1, 2).unwrap();
            connection.output(json!({"text": text}), &[b"\x00\x01"]).unwrap();
            connection.result(json!({"environment": std::env::vars().count()})).unwrap();
        }
        "write" => {
            let path = std::env::temp_dir().join(format!("toolwright-worker-write-{}", std::process::id()));
            let mut file = std::fs::File::create(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            let written = file.write_all(b"x").is_ok();
            connection.result(json!(written)).unwrap();
        }
        "ask" => {
            let answer = connection.ask(json!("how many?")).unwrap();
            connection.result(answer).unwrap();
        }
        "fail" => {
            let failure = Failure {
                kind: "damaged".to_owned(),
                message: "no".to_owned(),
                hint: Some("try".to_owned()),
            };
            connection.error(failure).unwrap();
        }
        "crash" => {
            connection.output(json!(1), &[]).unwrap();
            std::process::abort();
        }
        "memory" => {
            let mut all: Vec<Vec<u8>> = Vec::new();
            for _ in 0..10_000 {
                all.push(vec![1; 64 << 20]);
            }
            connection.result(json!(all.len())).unwrap();
        }
        "sleep" => {
            let mut child = std::process::Command::new("/bin/sleep").arg("1000").spawn().unwrap();
            connection.output(json!(child.id()), &[]).unwrap();
            child.wait().unwrap();
        }
        "flood" => loop {
            connection.output(json!("x".repeat(1 << 20)), &[]).unwrap();
        },
        other => panic!("no operation `{other}`"),
    }
}

fn reads_a_file() {
    let path = std::env::temp_dir().join(format!("toolwright-worker-{}", std::process::id()));
    std::fs::write(&path, "the words").unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let mut worker = start("read", limits(), Some(&file));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(worker.next().unwrap(), Event::Progress { done: 1, total: 2 }));
    match worker.next().unwrap() {
        Event::Output(value, attachments) => {
            assert_eq!((value, attachments), (json!({"text": "the words"}), vec![vec![0, 1]]));
        }
        other => panic!("{other:?}"),
    }
    match worker.next().unwrap() {
        Event::Result(value) => assert_eq!(value, json!({"environment": 0})),
        other => panic!("{other:?}"),
    }
}

/// The kernel ends a worker that writes a file: signal 25 is SIGXFSZ.
fn writes() {
    let error = start("write", limits(), None).next().unwrap_err().to_string();
    assert_eq!(error, "the worker crashed (signal 25)");
}

fn asks() {
    let mut worker = start("ask", limits(), None);
    assert!(matches!(worker.next().unwrap(), Event::Ask(question) if question == json!("how many?")));
    worker.answer(json!(42)).unwrap();
    assert!(matches!(worker.next().unwrap(), Event::Result(value) if value == json!(42)));
}

fn fails() {
    match start("fail", limits(), None).next() {
        Err(WorkerError::Failed(failure)) => {
            assert_eq!((failure.kind.as_str(), failure.hint.as_deref()), ("damaged", Some("try")));
        }
        other => panic!("{other:?}"),
    }
}

fn crashes() {
    let mut worker = start("crash", limits(), None);
    assert!(matches!(worker.next().unwrap(), Event::Output(value, _) if value == json!(1)));
    let error = worker.next().unwrap_err().to_string();
    assert!(error.starts_with("the worker crashed (signal"), "{error}");
}

fn memory() {
    let error = start("memory", limits(), None).next().unwrap_err().to_string();
    assert_eq!(error, "the worker needed more than 512 MiB of memory");
}

fn time() {
    let limits = WorkerLimits { time: Duration::from_secs(3), ..limits() };
    let begun = Instant::now();
    let mut worker = start("sleep", limits, None);
    let Event::Output(child, _) = worker.next().unwrap() else { panic!("no child") };
    assert!(matches!(worker.next(), Err(WorkerError::TimedOut(_))));
    assert!(begun.elapsed() < Duration::from_secs(15));
    drop(worker);
    // The child of the worker is gone too, or is waiting to be reaped by the first process.
    let stat = format!("/proc/{child}/stat");
    let gone = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "))
    });
    assert!(gone, "the child of the worker still runs");
}

fn output() {
    let limits = WorkerLimits { output: 10 << 20, ..limits() };
    let mut worker = start("flood", limits, None);
    let error = loop {
        if let Err(error) = worker.next() {
            break error;
        }
    };
    assert!(matches!(error, WorkerError::TooMuch(_)), "{error:?}");
}
