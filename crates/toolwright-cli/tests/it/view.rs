//! The page of `toolwright view`, in a real browser.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::browser::Page;
use crate::fake_model::FakeModel;
use crate::{show_in, show_with};

/// `toolwright view` at work, and the address it printed.
pub struct Served {
    process: Child,
    pub address: String,
}

impl Served {
    pub fn start(home: &Path) -> Served {
        Served::start_with(home, &["view"])
    }

    fn start_with(home: &Path, args: &[&str]) -> Served {
        let mut process = Command::new(env!("CARGO_BIN_EXE_toolwright"))
            .args(args)
            .env_clear()
            .env("HOME", home)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Served { process, address: address.trim().to_owned() }
    }

    /// How it ends when it is told something.
    pub fn told(mut self, tell: impl FnOnce(u32)) -> ExitStatus {
        tell(self.process.id());
        self.process.wait().unwrap()
    }

    /// The whole answer to a request, as bytes on the wire.
    fn get(&self, path: &str, host: Option<&str>) -> String {
        let place = self.address.strip_prefix("http://").unwrap();
        let (name, token) = place.split_once('/').unwrap();
        let mut stream = std::net::TcpStream::connect(name).unwrap();
        let path = path.replace("TOKEN/", token);
        let host = host.unwrap_or(name);
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A folder with recorded runs: a picture, a hostile text, a failure.
fn recorded() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
- text: "Hello <img src=x onerror='document.title=\"owned\"'>"
  usage: {input_tokens: 120, output_tokens: 30}
  calls:
    - {tool: chart, arguments: {values: [1, 3, 2]}}
- calls: [{tool: add, arguments: {x: 1}}]
  usage: {input_tokens: 200, output_tokens: 12}
- text: "<script>document.title='owned'</script> needle in the answer"
  usage: {input_tokens: 260, output_tokens: 44}
"#;
    std::fs::write(folder.path().join("replies.yaml"), script).unwrap();
    let shown =
        show_in(folder.path(), &["ask", "Draw <b>three</b> bars", "--model", "scripted/replies.yaml"], "");
    assert!(shown.ends_with("exit 0\n"), "{shown}");
    folder
}

#[test]
fn only_this_machine_with_the_right_address_gets_an_answer() {
    let folder = recorded();
    let served = Served::start(folder.path());
    let page = served.get("TOKEN/", None);
    assert!(
        page.starts_with("HTTP/1.1 200") && page.contains("content-security-policy: default-src 'none'"),
        "{page}"
    );
    assert!(served.get("TOKEN/api/runs", None).contains("Draw <b>three</b> bars"));
    assert!(served.get("", None).starts_with("HTTP/1.1 404"));
    assert!(served.get("0123456789abcdef0123456789abcdef/api/runs", None).starts_with("HTTP/1.1 404"));
    assert!(served.get("TOKEN/", Some("evil.example:80")).starts_with("HTTP/1.1 403"));
    assert!(served.get("TOKEN/api/run/..%2F..%2Freplies", None).starts_with("HTTP/1.1 404"));
    assert!(served.get("TOKEN/api/run/nope/live", None).ends_with("0\r\n\r\n"));
}

#[test]
fn a_run_is_shown_searched_and_looked_into() {
    let folder = recorded();
    let served = Served::start(folder.path());
    let Some(mut page) = Page::open(&served.address) else { return };
    page.wait("document.querySelectorAll('.row').length >= 6");
    assert_eq!(page.value("document.title"), "Toolwright runs");
    assert_eq!(page.value("document.querySelectorAll('#rows img, #rows script, #rows b').length"), 0);
    let facts = page.value("document.getElementById('facts').innerText").as_str().unwrap().to_owned();
    assert!(facts.contains("scripted/replies.yaml") && facts.contains("580 in, 86 out"), "{facts}");
    assert_eq!(page.value("document.querySelectorAll('#charts .c-in').length"), 3);
    // The picture of the first call.
    page.value("[...document.querySelectorAll('.row.call')][0].click()");
    page.wait("document.querySelector('#detail img')?.naturalWidth > 0");
    // The failure of the second.
    page.value("[...document.querySelectorAll('.row.call')][1].click()");
    page.wait("document.getElementById('detail').innerText.includes('`y` is missing')");
    // Searching.
    let search = |text: &str| {
        format!(
            "(() => {{ const box = document.getElementById('search'); box.value = {text:?}; box.dispatchEvent(new Event('input')); }})()"
        )
    };
    page.value(&search("NEEDLE in"));
    page.wait("document.getElementById('found').textContent === '1 found' && document.querySelectorAll('.row').length === 1");
    page.value("document.querySelector('.row').click()");
    page.wait("document.querySelector('#detail mark')?.textContent === 'needle in'");
    page.value(&search(""));
    page.value("document.getElementById('failed').click()");
    page.wait("document.getElementById('found').textContent === '1 found' && document.querySelector('.row').innerText.includes('add')");
    // Dark and light.
    let back = "getComputedStyle(document.body).backgroundColor";
    let before = page.value(back);
    page.value("document.getElementById('theme').click()");
    assert_ne!(page.value(back), before);
    assert_eq!(page.value("document.title"), "Toolwright runs");
}

/// The list says how each run stands, and where there is no room for it, it can still be reached.
#[test]
fn the_list_of_runs_is_legible_and_at_hand() {
    let folder = recorded();
    let served = Served::start(folder.path());
    let Some(mut page) = Page::open(&served.address) else { return };
    page.wait("document.querySelectorAll('.row').length >= 6");
    let seen = "(() => { const box = document.querySelector('#runs .soft span'), line = box.parentElement;
        return box.textContent === 'done' && box.offsetLeft + box.offsetWidth <= line.offsetLeft + line.clientWidth; })()";
    assert_eq!(page.value(seen), true);
    let list = "document.querySelector('nav').offsetWidth > 0";
    assert_eq!(page.value(list), true);
    let narrow = serde_json::json!({"width": 600, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    page.send("Emulation.setDeviceMetricsOverride", narrow);
    page.wait(&format!("!({list}) && document.getElementById('list').offsetWidth > 0"));
    page.value("document.getElementById('list').click()");
    page.wait(list);
    page.value("document.querySelector('#runs li a').click()");
    page.wait(&format!("!({list}) && document.querySelectorAll('.row').length >= 6"));
}

/// The chart of the cost, of a model whose price is known.
#[test]
fn what_a_run_cost_is_drawn() {
    let model = FakeModel::start();
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{}", model.address);
    let variables = [("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", url.as_str())];
    let shown = show_with(folder.path(), &["ask", "hello"], "", &variables);
    assert!(shown.ends_with("exit 0\n"), "{shown}");
    let served = Served::start(folder.path());
    let Some(mut page) = Page::open(&served.address) else { return };
    page.wait("document.querySelectorAll('.row').length >= 2");
    assert!(page.value("document.getElementById('facts').innerText").as_str().unwrap().contains("$0.00"));
    let line = page.value("document.querySelector('#charts .c-cost').getAttribute('points')");
    // One turn: from nothing at the left to all of it at the right.
    assert_eq!(line.as_str().unwrap().split(' ').count(), 2, "{line}");
    let text = page.value("document.getElementById('charts').innerText + document.body.innerText");
    assert!(text.as_str().unwrap().contains("cost, summed: $0.00"), "{text}");
}

/// A run that counts down.
fn count_down(folder: &Path, seconds: u32) -> Child {
    let script =
        format!("- calls: [{{tool: countdown, arguments: {{seconds: {seconds}}}}}]\n- text: It is over.\n");
    std::fs::write(folder.join("slow.yaml"), script).unwrap();
    Command::new(env!("CARGO_BIN_EXE_toolwright"))
        .args(["ask", "Count", "--model", "scripted/slow.yaml", "--tools", "countdown"])
        .current_dir(folder)
        .env_clear()
        .env("HOME", folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_run_is_followed_while_it_goes_on() {
    let folder = recorded();
    let served = Served::start(folder.path());
    let Some(mut page) = Page::open(&served.address) else { return };
    page.wait("document.querySelectorAll('.row').length >= 6");
    let mut run = count_down(folder.path(), 3);
    // The list notices it by itself.
    page.wait("document.querySelectorAll('#runs li').length === 2");
    page.value("document.querySelector('#runs li a').click()");
    page.wait("document.querySelector('.row.call')");
    assert!(run.wait().unwrap().success());
    page.wait("document.getElementById('facts').innerText.includes('done') && document.getElementById('live').hidden");
    page.wait("document.getElementById('rows').innerText.includes('It is over.')");
}

/// A run whose process was killed writes nothing more; it is shown as cut off, and its last call too.
#[test]
fn a_run_that_was_killed_is_no_longer_followed() {
    let folder = recorded();
    let mut run = count_down(folder.path(), 600);
    let show = || show_in(folder.path(), &["runs", "show", "last"], "");
    crate::support::wait_until("the call", || show().contains("countdown"));
    assert!(show().contains("countdown(seconds=600)  still running"), "{}", show());
    let served = Served::start(folder.path());
    let mut page = Page::open(&served.address);
    if let Some(page) = &mut page {
        page.wait("document.querySelector('.row.call') && !document.getElementById('live').hidden");
    }
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(show().contains("countdown(seconds=600)  interrupted"), "{}", show());
    let Some(mut page) = page else { return };
    page.wait("document.getElementById('facts').innerText.includes('cut off') && document.getElementById('live').hidden");
    page.wait("document.querySelector('.row.call').innerText.includes('interrupted')");
    page.value("document.querySelector('.row.call').click()");
    page.wait("document.getElementById('detail').innerText.includes('the run was cut off')");
}

/// A home with one recorded run of calls: the argument and the text of each.
fn calls(calls: impl Iterator<Item = (String, String)>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join(".local/share/toolwright/runs");
    std::fs::create_dir_all(&store).unwrap();
    let mut file =
        std::io::BufWriter::new(std::fs::File::create(store.join("0000000000001-1-0.jsonl")).unwrap());
    let time = "2026-01-01T00:00:00.000000Z";
    writeln!(
        file,
        r#"{{"seq":0,"time":"{time}","event":"run_started","version":1,"run_id":"0-1-0","tools":[]}}"#
    )
    .unwrap();
    for (span, (path, text)) in calls.enumerate() {
        let (path, text) = (serde_json::json!(path), serde_json::json!(text));
        writeln!(file, r#"{{"seq":1,"time":"{time}","event":"call_started","span":{span},"call_id":"c","tool":"read_file","arguments":{{"path":{path}}}}}"#).unwrap();
        writeln!(file, r#"{{"seq":2,"time":"{time}","event":"call_finished","span":{span},"duration_us":5,"result":{{"call_id":"c","name":"read_file","content":[{{"type":"text","text":{text}}}]}}}}"#).unwrap();
    }
    drop(file.into_inner().unwrap());
    folder
}

/// What is searched for is a text, quotes included.
#[test]
fn quotes_are_searched_for() {
    let given = [("a.txt", "C:\\temp"), ("b.txt", "say \"hello\" twice")];
    let folder = calls(given.iter().map(|(path, text)| (path.to_string(), text.to_string())));
    let served = Served::start(folder.path());
    for (text, found) in [("%22", "[1]"), ("%22hello%22", "[1]"), ("%5C", "[0]"), ("nothing", "[]")] {
        let answer = served.get(&format!("TOKEN/api/run/0000000000001-1-0/filter?q={text}"), None);
        assert!(answer.contains(&format!("\"items\":{found}")), "{text}: {answer}");
    }
}

/// A program gets the address as JSON; a record without times is shown all the same.
#[test]
fn a_program_gets_the_address_and_a_record_may_have_no_times() {
    let folder = calls([("a.txt".to_owned(), "x".to_owned())].into_iter());
    let run = folder.path().join(".local/share/toolwright/runs/0000000000001-1-0.jsonl");
    let text = std::fs::read_to_string(&run).unwrap();
    std::fs::write(&run, text.replacen("2026-01-01", "1970-01-01", 1)).unwrap();
    let mut served = Served::start_with(folder.path(), &["view", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&served.address).unwrap();
    served.address = told["address"].as_str().unwrap().to_owned();
    assert!(served.address.starts_with("http://127.0.0.1:"), "{told}");
    let Some(mut page) = Page::open(&served.address) else { return };
    page.wait("document.querySelectorAll('.row.call').length === 1");
    page.wait("document.getElementById('facts').innerText.includes('not known')");
    page.wait("document.getElementById('runs').innerText.includes('time not known')");
}

/// What a tool gave cannot hide, turn the text around, run, or keep the browser busy.
#[test]
fn hostile_texts_are_shown_as_they_are_and_long_ones_in_parts() {
    let hostile = "gpj.\u{202e}txt \x1b[2J<script>document.title='owned'</script> 👨\u{200d}👩";
    let text = format!("{hostile}\n{}", "0123456789abcde\n".repeat(500_000));
    let folder = calls([(hostile.to_owned(), text)].into_iter());
    let served = Served::start(folder.path());
    let Some(mut page) = Page::open(&served.address) else { return };
    page.wait("document.querySelectorAll('.row.call').length === 1");
    let shown = "\\u{202e}txt \\u{1b}[2J<script>";
    let row = page.value("document.querySelector('.row.call').innerText");
    assert!(row.as_str().unwrap().contains(shown), "{row}");
    page.value("document.querySelector('.row.call').click()");
    page.wait("document.querySelector('#detail button.more')?.textContent.endsWith('more characters')");
    let text = page.value("document.querySelector('#detail pre:last-child').textContent.slice(0, 200)");
    assert!(
        text.as_str().unwrap().contains(shown) && text.as_str().unwrap().contains("👨\u{200d}👩"),
        "{text}"
    );
    let length = "document.querySelector('#detail pre:last-child').textContent.length";
    let before = page.value(length).as_u64().unwrap();
    assert!(before < 300_000, "{before}");
    page.value("document.querySelector('#detail button.more').click()");
    assert!(page.value(length).as_u64().unwrap() > before + 100_000);
    assert_eq!(page.value("document.title"), "Toolwright runs");
}

#[test]
fn ten_thousand_calls_stay_light() {
    let folder = calls((0..10_000).map(|span| (format!("file-{span}"), format!("text {span}"))));
    let served = Served::start(folder.path());
    let Some(mut page) = Page::open(&served.address) else { return };
    page.wait("document.querySelectorAll('.row').length > 10");
    // The page holds what is seen, not what there is.
    assert!(page.value("document.querySelectorAll('.row').length").as_u64().unwrap() < 80);
    page.value("document.getElementById('timeline').scrollTop = 5000 * 28");
    page.wait("document.getElementById('rows').innerText.includes('file-5000')");
    page.value("document.getElementById('timeline').scrollTop = 1e9");
    page.wait("document.getElementById('rows').innerText.includes('file-9999')");
    // A jump, drawing included, in the time of the page itself.
    let took = page.value(
        "(async () => { const box = document.getElementById('timeline'); const start = performance.now();
          for (let step = 0; step < 50; step++) { box.scrollTop = (step * 7919 % 9900) * 28; await draw(); }
          return (performance.now() - start) / 50; })()",
    );
    eprintln!("a jump in 10,000 calls takes {took} ms");
    assert!(took.as_f64().unwrap() < 1000.0, "{took} ms");
    page.value("(() => { const box = document.getElementById('search'); box.value = 'file-7777'; box.dispatchEvent(new Event('input')); })()");
    page.wait("document.getElementById('found').textContent === '1 found'");
}

/// F14: requests without the token, finished or not, keep the owner out for no time.
#[test]
fn strangers_do_not_keep_the_owner_out() {
    let home = recorded();
    let served = Served::start(home.path());
    let place = served.address.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let strangers: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(&place).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: half").unwrap();
            stream
        })
        .collect();
    let start = std::time::Instant::now();
    let answer = served.get("TOKEN/", None);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
    drop(strangers);
}
