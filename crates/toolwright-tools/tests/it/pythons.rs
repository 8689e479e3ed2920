//! `python_execute`: programs alone and in sessions, and the pictures they show.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwright_core::{Content, ErrorKind, ToolCall, ToolResult};
use toolwright_tools::resolve;

use crate::sessions::{marker, running};
use crate::support::{Backend, Bench, cases, value_of};

cases![
    a_session_keeps_variables_and_others_do_not,
    the_end_of_a_program_is_told_as_it_is,
    time_that_is_up_ends_the_session,
    a_call_that_is_given_up_ends_the_session,
    a_session_of_python_ends_with_its_run,
    pictures_are_shown_and_counted,
    programs_cannot_break_their_session,
    a_flood_of_a_program_is_bounded_and_leaves_the_session,
    there_are_only_so_many_sessions,
    marks_of_a_traceback_stand_under_what_they_mean,
];

async fn bench(backend: Backend) -> Bench {
    Bench::of(backend, [resolve("python_execute").unwrap()]).await
}

async fn call(bench: &Bench, session: &str, code: &str) -> ToolResult {
    bench.call("python_execute", json!({"code": code, "session_id": session})).await
}

async fn run(bench: &Bench, session: &str, code: &str) -> Value {
    let result = call(bench, session, code).await;
    assert!(result.error.is_none(), "{code}: {:?}", result.error);
    value_of(&result)
}

async fn a_session_keeps_variables_and_others_do_not(backend: Backend) {
    let bench = bench(backend).await;
    run(&bench, "a", "v = 41\nimport math\ndef f(x): return x + v").await;
    assert_eq!(run(&bench, "a", "print(f(1), math.floor(1.5))").await["stdout"], "42 1\n");
    assert_eq!(run(&bench, "b", "print(v)").await["success"], false);
    for _ in 0..2 {
        let alone = bench.value("python_execute", json!({"code": "print('v' in globals()); v = 1"})).await;
        assert_eq!(alone["stdout"], "False\n");
    }
    let stdin = json!({"code": "print(input(), v)", "stdin": "né ✓\n", "session_id": "a"});
    assert_eq!(bench.value("python_execute", stdin).await["stdout"], "né ✓ 41\n");
    assert_eq!(run(&bench, "a", "input()").await["exit_code"], 1, "what was given is not given again");
    // Objects of a session can be pickled, and what it starts shares its streams.
    let code = "import dataclasses, pickle, subprocess\n@dataclasses.dataclass\nclass D:\n  x: int\n\
                print(pickle.loads(pickle.dumps(D(1))), flush=True)\nsubprocess.run(['echo', 'child'])";
    assert_eq!(run(&bench, "a", code).await["stdout"], "D(x=1)\nchild\n");
}

async fn the_end_of_a_program_is_told_as_it_is(backend: Backend) {
    let bench = bench(backend).await;
    for (code, exit_code, last) in [
        ("1/0", 1, "ZeroDivisionError: division by zero"),
        ("def (", 1, "SyntaxError: invalid syntax"),
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('why')", 1, "why"),
        ("raise SystemExit", 0, ""),
        ("raise KeyboardInterrupt", 1, "KeyboardInterrupt"),
    ] {
        let alone = bench.value("python_execute", json!({"code": code})).await;
        let kept = run(&bench, "s", code).await;
        for told in [&alone, &kept] {
            let stderr = told["stderr"].as_str().unwrap();
            assert_eq!(
                (&told["exit_code"], stderr.lines().last().unwrap_or_default()),
                (&json!(exit_code), last)
            );
            assert!(!stderr.contains("<string>"), "only the program's own lines: {stderr}");
            assert_eq!(told.get("session_ended"), None, "{code}");
        }
    }
    run(&bench, "s", "kept = 1").await;
    let gone = run(&bench, "s", "print('last words', flush=True); import os; os._exit(7)").await;
    assert_eq!((&gone["exit_code"], &gone["session_ended"]), (&json!(7), &json!(true)));
    assert_eq!(gone["stdout"], "last words\n");
    assert_eq!(run(&bench, "s", "print('kept' in globals())").await["stdout"], "False\n");
    let killed = run(&bench, "s", "import os; os.kill(os.getpid(), 9)").await;
    assert_eq!((&killed["exit_code"], &killed["session_ended"]), (&json!(-9), &json!(true)));
    // At the end of a program that stands alone everything it left to be done is done.
    let code = "import atexit, threading, time\natexit.register(lambda: print('bye'))\n\
                threading.Thread(target=lambda: (time.sleep(0.1), print('thread'))).start()";
    assert_eq!(bench.value("python_execute", json!({"code": code})).await["stdout"], "thread\nbye\n");
}

async fn time_that_is_up_ends_the_session(backend: Backend) {
    let bench = bench(backend).await;
    run(&bench, "s", "v = 1").await;
    let marker = marker();
    let code = format!("import subprocess\nprint('begun')\nsubprocess.run(['setsid', 'sleep', '{marker}'])");
    let arguments = json!({"code": code, "session_id": "s", "timeout": 8});
    let result = bench.call("python_execute", arguments).await;
    let error = result.error.clone().unwrap();
    assert_eq!(error.kind, ErrorKind::Timeout);
    assert!(
        error.message.contains("its variables are gone") && result.to_text().contains("begun"),
        "{result:?}"
    );
    until_gone(&marker).await;
    assert_eq!(run(&bench, "s", "print('v' in globals())").await["stdout"], "False\n");
}

async fn a_call_that_is_given_up_ends_the_session(backend: Backend) {
    let bench = bench(backend).await;
    run(&bench, "s", "v = 1").await;
    let marker = marker();
    let code = format!("import subprocess; subprocess.run(['sleep', '{marker}'])");
    let given_up =
        bench.run.call(ToolCall::new("2", "python_execute", json!({"code": code, "session_id": "s"})));
    let watch = async {
        let limit = Instant::now() + Duration::from_secs(30);
        while !running(&marker) && Instant::now() < limit {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        _ = given_up => panic!("it ended by itself"),
        () = watch => {}
    }
    until_gone(&marker).await;
    assert_eq!(run(&bench, "s", "print('v' in globals())").await["stdout"], "False\n");
}

async fn a_session_of_python_ends_with_its_run(backend: Backend) {
    let bench = bench(backend).await;
    let marker = marker();
    run(&bench, "s", &format!("import subprocess; p = subprocess.Popen(['setsid', 'sleep', '{marker}'])"))
        .await;
    let Bench { run, sandbox, .. } = bench;
    drop(run);
    until_gone(&marker).await;
    drop(sandbox);
}

/// Waits until no `sleep` of that length runs any more.
async fn until_gone(marker: &str) {
    let limit = Instant::now() + Duration::from_secs(30);
    while running(marker) {
        assert!(Instant::now() < limit, "what was started goes on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A picture of one pixel, as Python writes it.
const PICTURE: &str = "import struct, zlib\n\
def chunk(k, d): return struct.pack('>I', len(d)) + k + d + struct.pack('>I', zlib.crc32(k + d))\n\
png = b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 1, 1, 8, 2, 0, 0, 0)) + \
chunk(b'IDAT', zlib.compress(b'\\0\\1\\2\\3')) + chunk(b'IEND', b'')\n\
class P:\n  def _repr_png_(self): return png\n";

async fn pictures_are_shown_and_counted(backend: Backend) {
    let bench = bench(backend).await;
    let pictures = |result: &ToolResult| {
        result.content.iter().filter(|block| matches!(block, Content::Image(_))).count()
    };
    let one = call(&bench, "s", &format!("{PICTURE}display(P()); display({{'a': 1}})")).await;
    let told = value_of(&one);
    assert_eq!((pictures(&one), &told["stdout"]), (1, &json!("{'a': 1}\n")));
    let path = told["images"][0].as_str().unwrap();
    assert!(path.starts_with("./outputs/image_") && bench.folder.join(path).is_file(), "{path}");
    let six = call(&bench, "s", "for _ in range(6): display(P())").await;
    assert_eq!((pictures(&six), &value_of(&six)["images_left_out"]), (4, &json!(2)));
    let alone = json!({"code": format!("{PICTURE}open('a.png', 'wb').write(png); display_image('a.png')")});
    assert_eq!(pictures(&bench.call("python_execute", alone).await), 1);
    bench.write("no.png", "not a picture");
    let none = call(&bench, "s", "display_image('no.png')").await;
    assert_eq!(pictures(&none), 0);
    assert!(none.to_text().contains("./no.png cannot be shown"), "{}", none.to_text());
    assert!(none.error.is_none(), "the program itself worked");
    let missing = run(&bench, "s", "display_image('nowhere.png')").await;
    assert!(missing["stderr"].as_str().unwrap().contains("FileNotFoundError"));
}

async fn programs_cannot_break_their_session(backend: Backend) {
    let bench = bench(backend).await;
    for code in [
        "import sys; sys.stdout.close()",
        "import os; os.close(1); os.close(2); os.close(0)",
        "import sys; sys.stdout = None; sys.stderr = None",
        "import os; os.chdir('/')",
        "del display, __builtins__",
        "import builtins; builtins.print = None",
        "import os\nif os.fork() == 0:\n  pass",
        "import sys; sys.modules.clear()",
        "globals().clear()",
    ] {
        run(&bench, "s", code).await;
        let told = run(&bench, "s", "import os; os.write(1, b'alive ' + os.getcwd().encode())").await;
        assert_eq!(told["stdout"], format!("alive {}", bench.folder.display()), "{code}: {told}");
    }
    // A mark that is made up is output like any other.
    let told =
        run(&bench, "s", "import os; os.write(1, b'\\x1e0123456789abcdef0123456789abcdef\\x1e{}\\n')").await;
    assert_eq!(told["stdout"].as_str().unwrap().len(), 37);
}

async fn a_flood_of_a_program_is_bounded_and_leaves_the_session(backend: Backend) {
    let bench = bench(backend).await;
    run(&bench, "s", "v = 1").await;
    let result = call(&bench, "s", "import os\nfor _ in range(400): os.write(1, b'x' * 65536)").await;
    assert_eq!(result.error.as_ref().unwrap().kind, ErrorKind::OutputLimit);
    assert!(result.to_text().len() < 3 << 20, "{}", result.to_text().len());
    assert_eq!(run(&bench, "s", "print(v)").await["stdout"], "1\n");
}

async fn there_are_only_so_many_sessions(backend: Backend) {
    let bench = bench(backend).await;
    for number in 0..8 {
        run(&bench, &number.to_string(), "v = 1").await;
    }
    assert_eq!(call(&bench, "9", "").await.error.unwrap().kind, ErrorKind::Limit);
    run(&bench, "3", "import os; os._exit(0)").await;
    run(&bench, "9", "v = 1").await;
    assert_eq!(call(&bench, &"n".repeat(101), "").await.error.unwrap().kind, ErrorKind::Parsing);
}

async fn marks_of_a_traceback_stand_under_what_they_mean(backend: Backend) {
    let bench = bench(backend).await;
    let told =
        async |code: &str| run(&bench, "a", code).await["stderr"].as_str().unwrap_or_default().to_owned();
    let marks =
        |told: &str| told.lines().filter(|line| line.contains('^')).map(str::to_owned).collect::<Vec<_>>();
    let (ended, open) = (told("x = 1\ny = x + 'a'\n").await, told("x = 1\ny = x + 'a'").await);
    assert_eq!(marks(&open), marks(&ended), "{open}");
    assert!(marks(&open).is_empty() || marks(&open) == ["        ~~^~~~~"], "{open}");
}
