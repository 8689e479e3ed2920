//! The scripted model: `xtask/peers/scripted_model.py`, started for one agent.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

/// A process that ends with its owner.
pub struct KilledOnDrop(pub Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A model that asks for the calls of a script, and logs what it is sent.
pub struct ScriptedModel {
    pub port: u16,
    log: PathBuf,
    _process: KilledOnDrop,
}

impl ScriptedModel {
    pub fn start(folder: &Path, calls: &Value) -> Result<Self> {
        let (script, log) = (folder.join("script.json"), folder.join("requests.jsonl"));
        std::fs::write(&script, calls.to_string())?;
        let _ = std::fs::remove_file(&log);
        let mut command = Command::new("python3");
        command.arg(super::script("scripted_model.py")?).arg(&script).arg(&log);
        let process = command.stdout(Stdio::piped()).spawn().context("cannot start python3")?;
        let mut process = KilledOnDrop(process);
        let mut port = String::new();
        BufReader::new(process.0.stdout.take().context("no output")?).read_line(&mut port)?;
        let port = port.trim().parse().with_context(|| format!("the scripted model printed {port:?}"))?;
        Ok(ScriptedModel { port, log, _process: process })
    }

    /// What the model was sent, one request a line.
    pub fn requests(&self) -> Result<Vec<String>> {
        let text = std::fs::read_to_string(&self.log).context("the agent asked its model nothing")?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}
