//! A pseudo-terminal for tests: the program in it, and its screen.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

/// Pieces of output, each with the time it came.
pub type Recording = Vec<(Duration, Vec<u8>)>;

pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    writer: Arc<Mutex<Box<dyn std::io::Write + Send>>>,
    parser: Arc<Mutex<vt100::Parser>>,
    /// Everything the program wrote, with the time it came.
    pub record: Arc<Mutex<Recording>>,
    /// Reads the output; ends when no process has the terminal open.
    reading: JoinHandle<()>,
}

impl Terminal {
    /// Starts the program in a terminal of that size.
    pub fn start(
        folder: &Path,
        args: &[&str],
        columns: u16,
        rows: u16,
        variables: &[(&str, &str)],
    ) -> Terminal {
        Terminal::start_as(folder, args, columns, rows, variables, "\x1b[?62;22c")
    }

    /// The same in a terminal that says of its attributes what is given.
    pub fn start_as(
        folder: &Path,
        args: &[&str],
        columns: u16,
        rows: u16,
        variables: &[(&str, &str)],
        attributes: &'static str,
    ) -> Terminal {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_toolwright"));
        command.args(args);
        Terminal::spawn(folder, command, columns, rows, variables, attributes)
    }

    /// The program as the job of a shell, which says when it is stopped and goes on with it after an Enter.
    pub fn start_in_shell(folder: &Path, args: &[&str], columns: u16, rows: u16) -> Terminal {
        let script = "set -m; \"$0\" \"$@\"; while echo '[in the shell]' && read -r line; do fg; done";
        let mut command = CommandBuilder::new("/bin/sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_toolwright")]);
        command.args(args);
        Terminal::spawn(folder, command, columns, rows, &[], "\x1b[?62;22c")
    }

    fn spawn(
        folder: &Path,
        mut command: CommandBuilder,
        columns: u16,
        rows: u16,
        variables: &[(&str, &str)],
        attributes: &'static str,
    ) -> Terminal {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        command.cwd(folder);
        command.env_clear();
        command.env("HOME", folder);
        command.env("TERM", "xterm-256color");
        crate::NO_SERVERS.iter().for_each(|(name, value)| command.env(name, value));
        variables.iter().for_each(|(name, value)| command.env(name, value));
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let writer = Arc::new(Mutex::new(pair.master.take_writer().unwrap()));
        let parser = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 1000)));
        let record = Arc::new(Mutex::new(Vec::new()));
        let (seen, kept, replies, start) = (parser.clone(), record.clone(), writer.clone(), Instant::now());
        let reading = std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if String::from_utf8_lossy(&buffer[..read]).contains("\x1b[c") {
                    let _ = replies.lock().unwrap().write_all(attributes.as_bytes());
                }
                seen.lock().unwrap().process(&buffer[..read]);
                kept.lock().unwrap().push((start.elapsed(), buffer[..read].to_vec()));
            }
        });
        Terminal { child, master: pair.master, writer, parser, record, reading }
    }

    pub fn send(&mut self, keys: &str) {
        let mut writer = self.writer.lock().unwrap();
        writer.write_all(keys.as_bytes()).and_then(|()| writer.flush()).unwrap();
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.parser.lock().unwrap().screen_mut().set_size(rows, columns);
        self.master.resize(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }).unwrap();
    }

    /// Everything the program wrote.
    pub fn written(&self) -> String {
        let bytes: Vec<u8> =
            self.record.lock().unwrap().iter().flat_map(|(_, bytes)| bytes.clone()).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The screen as it is, without the blank rows at its end.
    pub fn screen(&self) -> String {
        self.parser.lock().unwrap().screen().contents().trim_end().to_owned()
    }

    /// Waits until a text is on the screen; for the heading of an input (`#2`), until the input can be typed
    /// below it.
    pub fn wait(&mut self, text: &str) {
        let prompt = |screen: &str| screen.lines().last().is_some_and(|line| line.starts_with('>'));
        let ready = |screen: &str| !text.starts_with('#') || prompt(screen);
        self.wait_for(&format!("`{text}`"), |screen| screen.contains(text) && ready(screen));
    }

    pub fn wait_for(&mut self, what: &str, there: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while !there(&self.screen()) {
            assert!(start.elapsed() < Duration::from_secs(40), "never saw {what} in:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Waits for the program to end; its exit code.
    pub fn end(&mut self) -> u32 {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                self.read_the_rest();
                return status.exit_code();
            }
            assert!(start.elapsed() < Duration::from_secs(40), "never ended:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Terminal {
    /// Waits for the end of the output. A process that the program left behind may hold the terminal open, so
    /// the wait is bounded.
    fn read_the_rest(&self) {
        let start = Instant::now();
        while !self.reading.is_finished() && start.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
