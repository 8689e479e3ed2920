//! `toolwright mcp install`: tells an MCP client how to reach our server.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use crate::args::{McpClient, McpInstall};
use crate::console::Console;
use crate::json_text;
use crate::report::Usage;
use crate::write_file::{self, FileAccess};

/// How a client keeps its servers.
struct ConfigFormat {
    /// The file, in the user's home or in the project.
    path: PathBuf,
    /// The key the servers stand under.
    key: &'static str,
    /// Whether an entry says what kind it is.
    typed: bool,
    /// What an address is called.
    url: &'static str,
}

pub fn run(what: McpInstall, console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    let form = form(what.client, what.project)?;
    let entry = entry(&form, &what)?;
    if what.client == McpClient::ClaudeDesktop && what.url.is_some() {
        console.say("the file of Claude Desktop takes programs only: `mcp-remote` (npm, needs Node) passes on to the address. For one on the internet, Settings > Connectors does without it");
    }
    let mut servers = Map::new();
    servers.insert(what.name.clone(), entry.clone());
    let told = |settings: Value| json!({"file": form.path.to_string_lossy(), "settings": settings, "written": what.write});
    if what.client == McpClient::Codex {
        if json && !what.write {
            return Ok(console.line(told(json!({"mcp_servers": servers})))?);
        }
        return codex(console, &what, &entry, &form.path);
    }
    if json && !what.write {
        return Ok(console.line(told(json!({form.key: servers})))?);
    }
    if !what.write {
        console.line(serde_json::to_string_pretty(&json!({form.key: servers}))?)?;
        console.say(format_args!("put this into {}, or say --write", form.path.display()));
        return Ok(());
    }
    let place = settled(&form.path)?;
    let text = read(&place)?;
    let Some((text, known)) = json_text::put(&text, form.key, &what.name, &entry) else {
        return Err(Usage::new(format!("`{}` in {} is not an object", form.key, form.path.display())).into());
    };
    write(&place, &text)?;
    if json {
        return Ok(console.line(told(json!({form.key: servers})))?);
    }
    let word = if known { "replaced" } else { "added" };
    console.say(format_args!("{word} `{}` in {}; start the client again", what.name, form.path.display()));
    Ok(())
}

fn form(client: McpClient, project: bool) -> anyhow::Result<ConfigFormat> {
    let home = std::env::home_dir().ok_or_else(|| Usage::new("there is no home folder"))?;
    let config = match std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None if cfg!(target_os = "macos") => home.join("Library/Application Support"),
        None => home.join(".config"),
    };
    let plain = |path: PathBuf| ConfigFormat { path, key: "mcpServers", typed: false, url: "url" };
    let only_user = |form: ConfigFormat| match project {
        true => Err(Usage::new("this client keeps servers for the user only; leave out --project")),
        false => Ok(form),
    };
    Ok(match client {
        McpClient::ClaudeDesktop => only_user(plain(config.join("Claude/claude_desktop_config.json")))?,
        McpClient::ClaudeCode if project => ConfigFormat { typed: true, ..plain(".mcp.json".into()) },
        McpClient::ClaudeCode => ConfigFormat { typed: true, ..plain(home.join(".claude.json")) },
        McpClient::Cursor if project => plain(".cursor/mcp.json".into()),
        McpClient::Cursor => plain(home.join(".cursor/mcp.json")),
        McpClient::Vscode if project => {
            ConfigFormat { key: "servers", typed: true, ..plain(".vscode/mcp.json".into()) }
        }
        McpClient::Vscode => {
            ConfigFormat { key: "servers", typed: true, ..plain(config.join("Code/User/mcp.json")) }
        }
        McpClient::Windsurf => only_user(ConfigFormat {
            url: "serverUrl",
            ..plain(home.join(".codeium/windsurf/mcp_config.json"))
        })?,
        McpClient::GeminiCli if project => {
            ConfigFormat { url: "httpUrl", ..plain(".gemini/settings.json".into()) }
        }
        McpClient::GeminiCli => ConfigFormat { url: "httpUrl", ..plain(home.join(".gemini/settings.json")) },
        McpClient::Codex => only_user(plain(home.join(".codex/config.toml")))?,
    })
}

/// The entry of our server. The program is named by its full path: clients with windows have no shell's PATH.
fn entry(form: &ConfigFormat, what: &McpInstall) -> anyhow::Result<Value> {
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
            return Ok(entry.into());
        }
        if form.typed {
            entry.insert("type".to_owned(), json!("http"));
        }
        entry.insert(form.url.to_owned(), json!(url));
        return Ok(entry.into());
    }
    let program = std::env::current_exe()?;
    let mut args = vec!["serve".to_owned()];
    if let Some(file) = &what.file {
        let file = std::path::absolute(file)?;
        if !file.exists() {
            return Err(Usage::new(format!("there is no file `{}`", file.display())).into());
        }
        args.push(file.display().to_string());
    }
    if form.typed {
        entry.insert("type".to_owned(), json!("stdio"));
    }
    entry.insert("command".to_owned(), json!(program.display().to_string()));
    entry.insert("args".to_owned(), json!(args));
    Ok(entry.into())
}

/// Codex keeps its servers in TOML, which is only printed.
fn codex(console: &Console, what: &McpInstall, entry: &Value, path: &Path) -> anyhow::Result<()> {
    if what.write {
        let problem = Usage::new("the file of this client is not written by us");
        return Err(problem
            .hint(format!("leave out --write, and add what is printed to {}", path.display()))
            .into());
    }
    // Strings and lists of strings look the same in TOML and in JSON.
    console.line(format_args!("[mcp_servers.{}]", serde_json::to_string(&what.name)?))?;
    for (key, value) in entry.as_object().into_iter().flatten() {
        console.line(format_args!("{key} = {value}"))?;
    }
    console.say(format_args!("put this into {}", path.display()));
    Ok(())
}

/// Where the settings are. People link them to a folder of settings they keep together: such a link is
/// followed when it, the file and their folders are the user's own. A link in a project may be a stranger's,
/// and is replaced.
fn settled(path: &Path) -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    if path.is_relative() || !is_link {
        return Ok(path.to_owned());
    }
    let user = rustix::process::geteuid().as_raw();
    let own = |found: std::io::Result<std::fs::Metadata>| found.is_ok_and(|found| found.uid() == user);
    let own_folder = |file: &Path| {
        let folder = file.parent().map(std::fs::metadata);
        folder.is_some_and(|found| found.is_ok_and(|found| found.uid() == user && found.mode() & 0o022 == 0))
    };
    match std::fs::canonicalize(path) {
        Ok(target)
            if own(std::fs::symlink_metadata(path))
                && own(std::fs::metadata(&target))
                && own_folder(path)
                && own_folder(&target) =>
        {
            Ok(target)
        }
        found => {
            let target =
                found.map_or_else(|_| "nothing".to_owned(), |target| format!("`{}`", target.display()));
            let problem = format!(
                "`{}` is a link to {target}: it is followed only when it, the file and their folders are yours, and nobody else can write there",
                path.display()
            );
            Err(Usage::new(problem).hint("leave out --write, and add what is printed by hand").into())
        }
    }
}

/// The settings as they stand there: a JSON object.
fn read(path: &Path) -> anyhow::Result<String> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => return Ok("{}\n".to_owned()),
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok("{}\n".to_owned()),
        Err(error) => return Err(Usage::new(format!("cannot read {}: {error}", path.display())).into()),
    };
    match serde_json::from_str::<Map<String, Value>>(&text) {
        Ok(_) => Ok(text),
        // Comments and other extensions of JSON are not read right.
        Err(_) => {
            let problem = Usage::new(format!("{} is not plain JSON, so it is left alone", path.display()));
            Err(problem.hint("leave out --write, and add what is printed by hand").into())
        }
    }
}

/// Replaces the file whole, so that a crash leaves the old one or the new one.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
        // A project may come from a stranger, and its `.cursor` lead into the user's own.
        if path.is_relative() && std::fs::symlink_metadata(folder)?.is_symlink() {
            let problem =
                Usage::new(format!("`{}` is a link, so nothing is written there", folder.display()));
            return Err(problem.hint("leave out --write, and add what is printed by hand").into());
        }
    }
    write_file::replace(path, text.as_bytes(), FileAccess::Inherit)
}
