//! `toolwright mcp install`: tells an MCP client how to reach our server.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolwright::lang::{Severity, Wanted};

use crate::args::{McpClient, McpInstall};
use crate::console::Console;
use crate::opening::FileChoice;
use crate::report::{self, Usage};
use crate::{client_files, json_text, toml_text};

/// How a client keeps its servers.
struct ConfigFormat {
    /// The file, in the user's home or in the project.
    path: PathBuf,
    /// The key the servers stand under.
    key: &'static str,
    /// How an entry is written.
    style: EntryStyle,
    /// What an address is called.
    url: &'static str,
}

/// How an entry is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryStyle {
    /// `command` and `args`, or an address.
    Plain,
    /// The same, with `type`: `stdio` or `http`.
    Typed,
    /// As opencode has it: one list with the command, and `type`: `local` or `remote`.
    OpenCode,
}

/// How a client passes variables of its own environment on to a server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VariablePassing {
    /// All of them, by itself.
    Inherited,
    /// Those that a list of this name names.
    Listed(&'static str),
    /// Those that `env` names, with a reference to each.
    Referenced,
    /// It is not started from a shell, so they are set in its own settings.
    SetThere,
}

impl VariablePassing {
    fn of(client: McpClient) -> Self {
        match client {
            McpClient::ClaudeCode | McpClient::Opencode => VariablePassing::Inherited,
            McpClient::Codex => VariablePassing::Listed("env_vars"),
            McpClient::GeminiCli => VariablePassing::Referenced,
            McpClient::ClaudeDesktop | McpClient::Cursor | McpClient::Vscode | McpClient::Windsurf => {
                VariablePassing::SetThere
            }
        }
    }

    /// Adds variables to an entry.
    fn add(self, entry: &mut Map<String, Value>, names: &[String]) {
        if names.is_empty() {
            return;
        }
        match self {
            VariablePassing::Inherited | VariablePassing::SetThere => {}
            VariablePassing::Listed(key) => {
                entry.insert(key.to_owned(), json!(names));
            }
            VariablePassing::Referenced => {
                let reference = |name: &String| (name.clone(), json!(format!("${name}")));
                entry.insert("env".to_owned(), names.iter().map(reference).collect::<Map<_, _>>().into());
            }
        }
    }
}

pub fn run(what: McpInstall, console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    let form = form(what.client, what.project)?;
    let names = what.file.as_deref().map_or(Ok(Vec::new()), variables)?;
    let mut entry = entry(&form, &what)?;
    let passing = VariablePassing::of(what.client);
    passing.add(&mut entry, &names);
    if passing == VariablePassing::SetThere && !names.is_empty() {
        let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        console.say(format_args!(
            "the file needs {names}: set them in `env` of the entry, or where the client is started"
        ));
    }
    if what.client == McpClient::GeminiCli {
        console.say("Gemini CLI starts servers in trusted folders only (`/trust`)");
    }
    if what.client == McpClient::ClaudeDesktop && what.url.is_some() {
        console.say("the file of Claude Desktop takes programs only: `mcp-remote` (npm, needs Node) passes on to the address. For one on the internet, Settings > Connectors does without it");
    }
    let mut servers = Map::new();
    servers.insert(what.name.clone(), entry.clone().into());
    let told = |settings: Value| json!({"file": form.path.to_string_lossy(), "settings": settings, "written": what.write});
    if json && !what.write {
        return Ok(console.line(told(json!({form.key: servers})))?);
    }
    if !what.write {
        match is_toml(&form.path) {
            true => console.line(toml_text::table(form.key, &what.name, &entry).trim_end())?,
            false => console.line(serde_json::to_string_pretty(&json!({form.key: servers}))?)?,
        }
        console.say(format_args!("put this into {}, or say --write", form.path.display()));
        return Ok(());
    }
    let place = client_files::settled(&form.path)?;
    let (text, known) = match is_toml(&form.path) {
        true => {
            toml_text::put(&client_files::read(&place)?, form.key, &what.name, &entry).map_err(|why| {
                let problem = Usage::new(format!("{} cannot be changed: {why}", form.path.display()));
                problem.hint("leave out --write, and add what is printed by hand")
            })?
        }
        false => json_text::put(&client_files::read_json(&place)?, form.key, &what.name, &entry.into())
            .ok_or_else(|| {
                Usage::new(format!("`{}` in {} is not an object", form.key, form.path.display()))
            })?,
    };
    client_files::write(&place, &text)?;
    if json {
        return Ok(console.line(told(json!({form.key: servers})))?);
    }
    let word = if known { "replaced" } else { "added" };
    console.say(format_args!("{word} `{}` in {}; start the client again", what.name, form.path.display()));
    Ok(())
}

fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "toml")
}

/// The variables that a file of tools uses. A file with mistakes is refused before anything is written: most
/// clients do not show why a server did not start.
fn variables(path: &Path) -> anyhow::Result<Vec<String>> {
    let choice = FileChoice::named(path);
    crate::files::exists(path)?;
    let parsed = choice.parse_inert()?;
    let known = parsed.known(parsed.environment()?)?;
    let known = known.arguments(&super::run::arguments(path, &[]));
    let problems = parsed.file.check(&known);
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Err(report::refused(&problems).into());
    }
    let needs = parsed.file.needs(&Wanted::everything());
    Ok(parsed.file.variables(&known, &needs).into_iter().map(|variable| variable.name).collect())
}

fn form(client: McpClient, project: bool) -> anyhow::Result<ConfigFormat> {
    let home = std::env::home_dir().ok_or_else(|| Usage::new("there is no home folder"))?;
    let config = match std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None if cfg!(target_os = "macos") => home.join("Library/Application Support"),
        None => home.join(".config"),
    };
    let plain =
        |path: PathBuf| ConfigFormat { path, key: "mcpServers", style: EntryStyle::Plain, url: "url" };
    let only_user = |form: ConfigFormat| match project {
        true => Err(Usage::new("this client keeps servers for the user only; leave out --project")),
        false => Ok(form),
    };
    Ok(match client {
        McpClient::ClaudeDesktop => only_user(plain(config.join("Claude/claude_desktop_config.json")))?,
        McpClient::ClaudeCode if project => {
            ConfigFormat { style: EntryStyle::Typed, ..plain(".mcp.json".into()) }
        }
        McpClient::ClaudeCode => {
            ConfigFormat { style: EntryStyle::Typed, ..plain(home.join(".claude.json")) }
        }
        McpClient::Cursor if project => plain(".cursor/mcp.json".into()),
        McpClient::Cursor => plain(home.join(".cursor/mcp.json")),
        McpClient::Vscode if project => {
            ConfigFormat { key: "servers", style: EntryStyle::Typed, ..plain(".vscode/mcp.json".into()) }
        }
        McpClient::Vscode => ConfigFormat {
            key: "servers",
            style: EntryStyle::Typed,
            ..plain(config.join("Code/User/mcp.json"))
        },
        McpClient::Windsurf => only_user(ConfigFormat {
            url: "serverUrl",
            ..plain(home.join(".codeium/windsurf/mcp_config.json"))
        })?,
        McpClient::GeminiCli if project => {
            ConfigFormat { url: "httpUrl", ..plain(".gemini/settings.json".into()) }
        }
        McpClient::GeminiCli => ConfigFormat { url: "httpUrl", ..plain(home.join(".gemini/settings.json")) },
        McpClient::Codex => {
            let folder = std::env::var_os("CODEX_HOME").filter(|folder| !folder.is_empty());
            let folder = folder.map_or_else(|| home.join(".codex"), PathBuf::from);
            only_user(ConfigFormat { key: "mcp_servers", ..plain(folder.join("config.toml")) })?
        }
        McpClient::Opencode => {
            let folder = std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty());
            let folder = folder.map_or_else(|| home.join(".config"), PathBuf::from);
            let path = if project { "opencode.json".into() } else { folder.join("opencode/opencode.json") };
            ConfigFormat { key: "mcp", style: EntryStyle::OpenCode, ..plain(path) }
        }
    })
}

/// The entry of our server. The program is named by its full path: clients with windows have no shell's PATH.
fn entry(form: &ConfigFormat, what: &McpInstall) -> anyhow::Result<Map<String, Value>> {
    let mut entry = Map::new();
    if let Some(url) = &what.url {
        if !(url.starts_with("https://") || url.starts_with("http://")) {
            let problem = Usage::new(format!("`{url}` is not the address of a server"));
            return Err(problem.hint("`toolwright serve --http 127.0.0.1:3000` prints its own").into());
        }
        if what.client == McpClient::ClaudeDesktop {
            // Its file takes commands only; this one speaks to the address for it.
            entry.insert("command".to_owned(), json!("npx"));
            entry.insert("args".to_owned(), json!(["-y", "mcp-remote", url]));
            return Ok(entry);
        }
        match form.style {
            EntryStyle::Plain => {}
            EntryStyle::Typed => drop(entry.insert("type".to_owned(), json!("http"))),
            EntryStyle::OpenCode => drop(entry.insert("type".to_owned(), json!("remote"))),
        }
        entry.insert(form.url.to_owned(), json!(url));
        return Ok(entry);
    }
    let program = std::env::current_exe()?.display().to_string();
    let mut args = vec!["serve".to_owned()];
    if let Some(file) = &what.file {
        args.push(std::path::absolute(file)?.display().to_string());
    }
    if form.style == EntryStyle::OpenCode {
        args.insert(0, program);
        entry.insert("type".to_owned(), json!("local"));
        entry.insert("command".to_owned(), json!(args));
        return Ok(entry);
    }
    if form.style == EntryStyle::Typed {
        entry.insert("type".to_owned(), json!("stdio"));
    }
    entry.insert("command".to_owned(), json!(program));
    entry.insert("args".to_owned(), json!(args));
    Ok(entry)
}
