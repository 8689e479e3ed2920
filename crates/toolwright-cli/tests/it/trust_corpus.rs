//! A corpus of hostile folders. Before trust none of them causes a connection, a read outside, a process, a
//! write or the use of a variable, whichever command finds it.

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::inotify;

use crate::hostile_folders::{CORPUS, FLOW, HostileFolder};

/// The value of variables that nothing may pass on.
const CANARY: &str = "sk-canary-0123456789abcdef";

/// What commands are tried, and whether they may succeed: a check reads the file and nothing else.
const COMMANDS: &[(&[&str], bool)] = &[
    (&["check"], true),
    (&["tools"], false),
    (&["ask", "hi", "--model", "scripted/{HOME}/replies.yaml"], false),
    (&["call", "t", "--args", "{}"], false),
    (&["chat", "--model", "scripted/{HOME}/replies.yaml"], false),
    (&["trust", "show"], true),
];

/// Everything that would notice an effect outside the folder, and the folder itself as it was.
struct Observers {
    root: tempfile::TempDir,
    connections: Arc<AtomicUsize>,
    port: u16,
    opened: std::os::fd::OwnedFd,
}

impl Observers {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in ["out", "home", "work"] {
            std::fs::create_dir(at(folder)).unwrap();
        }
        std::fs::write(at("out/secret.txt"), "- {name: planted, do: {eval: tr0ub4dor}}\n").unwrap();
        std::fs::write(at("out/cookies.sqlite"), "").unwrap();
        std::fs::write(at("secret.txt"), "tr0ub4dor").unwrap();
        std::fs::write(at(".env"), format!("ABOVE={CANARY}\n")).unwrap();
        std::fs::write(at("home/replies.yaml"), "- calls: [{tool: t, arguments: {}}]\n- text: done\n")
            .unwrap();
        let opened = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC).unwrap();
        // The folder above holds the others, and opening them is no reading of a file.
        for file in ["out/secret.txt", "out/cookies.sqlite", "secret.txt", ".env"] {
            inotify::add_watch(&opened, at(file), inotify::WatchFlags::ALL_EVENTS).unwrap();
        }
        let made = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::DELETE;
        inotify::add_watch(&opened, at("out"), made | inotify::WatchFlags::MODIFY).unwrap();
        inotify::add_watch(&opened, root.path(), made).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        std::thread::spawn(move || {
            for _ in listener.incoming().flatten() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        Observers { root, connections, port, opened }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn fill(&self, text: &str) -> String {
        text.replace("{OUT}", &self.at("out").to_string_lossy())
            .replace("{HOME}", &self.at("home").to_string_lossy())
            .replace("{PORT}", &self.port.to_string())
            .replace("{FLOW}", FLOW)
    }

    /// Puts a hostile folder in place.
    fn plant(&self, (_, file, beside): &HostileFolder, owner: Option<u32>) {
        let work = self.at("work");
        let _ = std::fs::remove_dir_all(&work);
        std::fs::create_dir(&work).unwrap();
        for (name, text) in beside.iter().chain(std::iter::once(&("toolwright.yaml", *file))) {
            match text.strip_prefix("->") {
                Some(target) => symlink(self.fill(target), work.join(name)).unwrap(),
                None if *text == "LARGE" => {
                    std::fs::write(work.join(name), vec![b'x'; (1 << 20) + 1]).unwrap()
                }
                None => std::fs::write(work.join(name), self.fill(text)).unwrap(),
            }
            if text.starts_with("#!") {
                std::fs::set_permissions(work.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        if let Some(user) = owner {
            std::os::unix::fs::chown(&work, Some(user), Some(user)).unwrap();
        }
        self.effects();
    }

    /// Runs the program in the folder; its exit code, and all it printed.
    fn run(&self, args: &[&str], user: Option<u32>) -> (Option<i32>, String) {
        let work = self.at("work");
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolwright"));
        command.args(args.iter().map(|arg| self.fill(arg))).current_dir(&work).env_clear();
        command.env("HOME", self.at("home")).env("PATH", format!("{}:/usr/bin:/bin", work.display()));
        command.envs(crate::NO_SERVERS);
        for name in ["OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY"] {
            command.env(name, CANARY);
        }
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        let output =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        (output.status.code(), text.concat())
    }

    /// What happened since it was last looked at, outside the folder.
    fn effects(&self) -> Vec<String> {
        let mut effects = Vec::new();
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.opened, &mut buffer);
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if name != "work" {
                effects.push(format!("file {name}: {:?}", event.events()));
            }
        }
        let connections = self.connections.swap(0, Ordering::SeqCst);
        if connections > 0 {
            effects.push(format!("{connections} connections"));
        }
        effects
    }

    /// The names of all files in a folder, with their sizes.
    fn listing(&self, folder: &str) -> Vec<(PathBuf, u64)> {
        fn list(folder: &Path, all: &mut Vec<(PathBuf, u64)>) {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let found = entry.metadata().unwrap();
                all.push((entry.path(), if found.is_dir() { 0 } else { found.len() }));
                if found.is_dir() {
                    list(&entry.path(), all);
                }
            }
        }
        let mut all = Vec::new();
        list(&self.at(folder), &mut all);
        all.sort();
        all
    }
}

/// Tries every folder with every command.
fn try_all(user: Option<u32>) {
    let observers = Observers::new();
    if let Some(user) = user {
        for folder in ["home", "out", "work"] {
            std::os::unix::fs::chown(observers.at(folder), Some(user), Some(user)).unwrap();
        }
        std::fs::set_permissions(observers.root.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert!(CORPUS.len() >= 60);
    let mut failures = Vec::new();
    for hostile in CORPUS {
        for (args, may_succeed) in COMMANDS {
            observers.plant(hostile, user);
            let (work, home) = (observers.listing("work"), observers.listing("home"));
            let (code, printed) = observers.run(args, user);
            let mut wrong = observers.effects();
            if !may_succeed && code != Some(2) {
                wrong.push(format!("exit {code:?}"));
            }
            for secret in [CANARY, "tr0ub4dor"] {
                if printed.contains(secret) {
                    wrong.push(format!("printed {secret}"));
                }
            }
            if observers.listing("work") != work || observers.listing("home") != home {
                wrong.push("a file was written".to_owned());
            }
            if printed.contains("panicked") || code.is_none() {
                wrong.push("it did not end well".to_owned());
            }
            if !wrong.is_empty() {
                failures.push(format!("{} {args:?}: {wrong:?}\n{printed}", hostile.0));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn no_hostile_folder_has_an_effect_before_trust() {
    try_all(None);
}

#[test]
fn no_hostile_folder_has_an_effect_before_trust_for_an_ordinary_user() {
    if !rustix::process::getuid().is_root() {
        eprintln!("skipped: no_hostile_folder_has_an_effect_before_trust_for_an_ordinary_user (not root)");
        return;
    }
    try_all(Some(65_534));
}

/// The observers notice what the same folders do when they are named.
#[test]
fn the_observers_notice_what_a_named_file_does() {
    let observers = Observers::new();
    let noticed = |name: &str, args: &[&str]| {
        let hostile = CORPUS.iter().find(|(known, ..)| *known == name).unwrap();
        observers.plant(hostile, None);
        let before = observers.listing("work");
        let (_, printed) = observers.run(&[args, &["-f", "toolwright.yaml"]].concat(), None);
        let mut effects = observers.effects();
        effects.extend(printed.contains(CANARY).then(|| "canary".to_owned()));
        effects.extend((observers.listing("work") != before).then(|| "written".to_owned()));
        effects
    };
    for (name, args, part) in [
        ("brave-key", &["call", "t"][..], "connections"),
        ("elastic-key", &["call", "t"], "connections"),
        ("env-in-data", &["call", "t"], "canary"),
        ("sql-read", &["tools"], "file"),
        ("sql-make", &["tools"], "file"),
        ("sql-make-here", &["tools"], "written"),
        ("server", &["tools"], "file"),
        ("server-script", &["tools"], "file"),
        ("server-path", &["tools"], "file"),
        ("server-http", &["tools"], "connections"),
        ("model-elsewhere", &["ask", "hi", "--no-record"], "connections"),
        ("include-link", &["check"], ""),
        ("sandbox-local", &["call", "t", "command=true"], "file"),
        ("dotenv-here", &["call", "t"], "canary"),
    ] {
        let effects = noticed(name, args);
        assert!(part.is_empty() || effects.iter().any(|effect| effect.contains(part)), "{name}: {effects:?}");
    }
}
