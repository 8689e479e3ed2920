//! `cargo xtask live [FORMAT] [TASK]`: starts a llama.cpp server with a small model, and runs the tasks of
//! `xtask/runs/src/live/` on it. The model is downloaded on first use (1.1 GB).

use std::io::BufRead as _;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::bench::peer;

/// Runs the tasks whose names contain `task` over the wire formats whose names contain `format`.
pub fn run(format: &str, task: &str) -> Result<()> {
    let server = Server::start()?;
    crate::test::runs(&["live", &server.url, format, task])
}

/// The model on its server, which ends with this value.
struct Server {
    process: Child,
    url: String,
}

impl Server {
    fn start() -> Result<Self> {
        let (name, packages) = crate::test::LLAMA;
        let python = peer::python(name, packages)?;
        let script = crate::root().join("xtask/peers/small_model.py");
        let folder = crate::root().join("target/peers/qwen");
        std::fs::create_dir_all(&folder)?;
        peer::check(Command::new(&python).arg(&script).arg("fetch").arg(&folder))?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(&python);
        command.arg(script).arg("serve").arg(folder).arg(port.to_string());
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        std::io::BufReader::new(process.stdout.take().context("no stdout")?).read_line(&mut line)?;
        if line.is_empty() {
            bail!("the server did not start: {}", process.wait()?);
        }
        Ok(Server { process, url: format!("http://127.0.0.1:{port}/v1") })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
