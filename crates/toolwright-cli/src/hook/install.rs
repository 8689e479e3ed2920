//! `toolwright hook install`: has an agent ask our rules about every call.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::args::{HookClient, HookInstall};
use crate::commands::ask;
use crate::console::Console;
use crate::report::Usage;
use crate::{client_files, json_text};

/// How long an agent waits for a hook. The hook itself refuses the call before that.
const TIMEOUT_SECONDS: u64 = 60;

pub fn run(what: &HookInstall, console: &Console) -> anyhow::Result<()> {
    // Rules that cannot be used would refuse every call.
    if let Some(path) = &what.policy {
        ask::policy(Some(path))?;
    }
    let path = file(what)?;
    let place = client_files::settled(&path)?;
    let text = client_files::read_json(&place)?;
    let settings: Value = serde_json::from_str(&text)?;
    let mut hooks = Map::new();
    for event in what.client.events() {
        let known = settings.pointer(&format!("/hooks/{event}"));
        hooks.insert((*event).to_owned(), merged(known, entry(what, event)?)?);
    }
    if !what.write {
        console.line(serde_json::to_string_pretty(&json!({"hooks": hooks}))?)?;
        console.say(format_args!("put this into {}, or say --write", path.display()));
        return Ok(());
    }
    let mut new = text;
    for (event, groups) in &hooks {
        let problem = || Usage::new(format!("`hooks` in {} is not an object", path.display()));
        (new, _) = json_text::put(&new, "hooks", event, groups).ok_or_else(problem)?;
    }
    client_files::write(&place, &new)?;
    if console.is_json() {
        let file = path.to_string_lossy();
        return Ok(console.line(json!({"file": file, "settings": {"hooks": hooks}, "written": true}))?);
    }
    console.say(format_args!("added the hooks to {}; start the agent again", path.display()));
    if what.client == HookClient::Codex {
        console.say("Codex runs hooks that you have reviewed: open it once, and trust these with `/hooks`");
    }
    Ok(())
}

impl HookClient {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            HookClient::ClaudeCode => "claude-code",
            HookClient::Codex => "codex",
        }
    }

    /// The events that it sends us.
    fn events(self) -> &'static [&'static str] {
        match self {
            HookClient::ClaudeCode => &["PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionEnd"],
            // Where it may not run a command by itself, it asks: the rules answer in its user's place.
            HookClient::Codex => &["PreToolUse", "PermissionRequest", "PostToolUse", "SessionEnd"],
        }
    }
}

/// The settings of an agent, the user's or the project's.
fn file(what: &HookInstall) -> anyhow::Result<PathBuf> {
    let (variable, folder, name) = match what.client {
        HookClient::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
        HookClient::Codex => ("CODEX_HOME", ".codex", "hooks.json"),
    };
    if what.project {
        return Ok(Path::new(folder).join(name));
    }
    if let Some(folder) = std::env::var_os(variable).filter(|folder| !folder.is_empty()) {
        return Ok(PathBuf::from(folder).join(name));
    }
    let home = std::env::home_dir().ok_or_else(|| Usage::new("there is no home folder"))?;
    Ok(home.join(folder).join(name))
}

/// Our entry for an event.
fn entry(what: &HookInstall, event: &str) -> anyhow::Result<Value> {
    let mut group = Map::new();
    if event != "SessionEnd" {
        group.insert("matcher".to_owned(), json!("*"));
    }
    let command = command(what, event)?;
    let hook = json!({"type": "command", "command": command, "timeout": TIMEOUT_SECONDS});
    group.insert("hooks".to_owned(), json!([hook]));
    Ok(group.into())
}

/// The command line for an event. Agents go on when a hook crashed or is missing, unless it exits with 2: so
/// does this one then.
fn command(what: &HookInstall, event: &str) -> anyhow::Result<String> {
    let program = std::env::current_exe()?;
    let mut line = format!("{} hook --client {}", quoted(&program), what.client.name());
    if let Some(policy) = &what.policy {
        line.push_str(&format!(" --policy {}", quoted(&std::path::absolute(policy)?)));
    }
    if !matches!(event, "PreToolUse" | "PermissionRequest") {
        return Ok(line);
    }
    let failed = "toolwright hook failed, so the call is refused";
    let script =
        format!("{line} || {{ code=$?; [ $code = 2 ] || echo \"{failed} (exit code $code)\" >&2; exit 2; }}");
    // The agent's shell may be any.
    Ok(format!("/bin/sh -c {}", quoted(Path::new(&script))))
}

/// A word for a shell.
fn quoted(word: &Path) -> String {
    format!("'{}'", word.to_string_lossy().replace('\'', "'\\''"))
}

/// The groups of an event with ours; one of ours that is there already is replaced.
fn merged(known: Option<&Value>, ours: Value) -> anyhow::Result<Value> {
    let mut groups = match known {
        None => Vec::new(),
        Some(Value::Array(groups)) => groups.clone(),
        Some(_) => {
            return Err(Usage::new("the hooks of the agent are not lists, so they are left alone").into());
        }
    };
    groups.retain(|group| !is_ours(group));
    groups.push(ours);
    Ok(groups.into())
}

fn is_ours(group: &Value) -> bool {
    let commands =
        group["hooks"].as_array().into_iter().flatten().filter_map(|hook| hook["command"].as_str());
    let mut commands = commands.peekable();
    let ours = |command: &str| command.contains("toolwright") && command.contains(" hook --client ");
    commands.peek().is_some() && commands.all(ours)
}
