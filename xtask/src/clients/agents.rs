//! The agents: the settings that lead each to its model, and how it is started.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::json;

use super::model::KilledOnDrop;

/// The longest that one agent may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// One agent.
pub struct Agent {
    /// Its name on our command line.
    pub name: &'static str,
    program: &'static str,
    /// Writes its settings in a home folder, for a model on this port.
    pub configure: fn(&Path, u16) -> Result<()>,
    arguments: &'static [&'static str],
    /// What is added where hooks decide.
    with_hooks: &'static [&'static str],
    /// Its file of hooks, in the home folder.
    pub hooks: Option<&'static str>,
    /// Its tool for commands, and the parameter with the command.
    pub shell: (&'static str, &'static str),
    /// It adds `wait_for_previous` to every tool, and sends it on.
    pub adds_an_argument: bool,
}

pub const AGENTS: [Agent; 4] = [
    Agent {
        name: "codex",
        program: "codex",
        configure: codex,
        arguments: &["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"],
        with_hooks: &["--dangerously-bypass-hook-trust"],
        hooks: Some(".codex/hooks.json"),
        shell: ("exec_command", "cmd"),
        adds_an_argument: false,
    },
    Agent {
        name: "claude-code",
        program: "claude",
        configure: |_, _| Ok(()),
        arguments: &["--allowedTools", "mcp__tw", "-p"],
        with_hooks: &[],
        hooks: Some(".claude/settings.json"),
        shell: ("Bash", "command"),
        adds_an_argument: false,
    },
    Agent {
        name: "opencode",
        program: "opencode",
        configure: opencode,
        arguments: &["run", "-m", "loc/m"],
        with_hooks: &[],
        hooks: None,
        shell: ("bash", "command"),
        adds_an_argument: false,
    },
    Agent {
        name: "gemini-cli",
        program: "gemini",
        configure: gemini,
        arguments: &["--skip-trust", "--approval-mode", "yolo", "-p"],
        with_hooks: &[],
        hooks: None,
        shell: ("bash", "command"),
        adds_an_argument: true,
    },
];

impl Agent {
    /// Gives the agent one task in a folder that is also its home, and waits for its end.
    pub fn run(&self, packages: &Path, folder: &Path, port: u16, hooks: bool) -> Result<()> {
        let address = format!("http://127.0.0.1:{port}");
        let bin = packages.join("node_modules/.bin");
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(bin.join(self.program));
        command.args(self.arguments).args(if hooks { self.with_hooks } else { &[] }).arg("go");
        command
            .current_dir(folder)
            .env("HOME", folder)
            .env("PATH", format!("{}:{path}", bin.display()))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .env_remove("CODEX_HOME")
            .env("ANTHROPIC_BASE_URL", &address)
            .env("ANTHROPIC_API_KEY", "x")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("GEMINI_API_KEY", "x")
            .env("GOOGLE_GEMINI_BASE_URL", &address)
            .env("NO_PROXY", "127.0.0.1")
            .stdin(Stdio::null());
        let log = folder.join("agent.log");
        command
            .stdout(std::fs::File::create(&log)?)
            .stderr(std::fs::File::options().append(true).open(&log)?);
        eprintln!("$ {} in {}", self.name, folder.display());
        let mut process = KilledOnDrop(command.spawn()?);
        let start = Instant::now();
        loop {
            match process.0.try_wait()? {
                Some(_) => return Ok(()),
                None if start.elapsed() > PATIENCE => {
                    let said = std::fs::read_to_string(&log).unwrap_or_default();
                    bail!("{} did not end within {} s: {said}", self.name, PATIENCE.as_secs());
                }
                None => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    Ok(std::fs::write(path, text)?)
}

fn codex(home: &Path, port: u16) -> Result<()> {
    let text = format!(
        "model = \"m\"\nmodel_provider = \"loc\"\n\n[model_providers.loc]\nname = \"loc\"\n\
         base_url = \"http://127.0.0.1:{port}/v1\"\nwire_api = \"responses\"\n"
    );
    write(home, ".codex/config.toml", &text)
}

fn opencode(home: &Path, port: u16) -> Result<()> {
    let modalities = json!({"input": ["text", "image"], "output": ["text"]});
    let model = json!({"name": "m", "tool_call": true, "attachment": true, "modalities": modalities});
    let options = json!({"baseURL": format!("http://127.0.0.1:{port}/v1"), "apiKey": "x"});
    let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "loc", "options": options, "models": {"m": model}});
    let settings = json!({"provider": {"loc": provider}, "model": "loc/m", "autoupdate": false});
    write(home, ".config/opencode/opencode.json", &settings.to_string())
}

fn gemini(home: &Path, _: u16) -> Result<()> {
    let settings = json!({"security": {"auth": {"selectedType": "gemini-api-key"}}});
    write(home, ".gemini/settings.json", &settings.to_string())
}
