//! Whether the MCP servers of a file may be started that nobody named.
//!
//! A `toolwright.yaml` that happens to lie in a folder may be a stranger's, and a server is any command at all. So the person
//! sees the exact command and is asked, once for each command and folder. Whoever names the file has said that they trust it.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolwright::lang::Server;
use toolwright::text::visible;
use toolwright::{ErrorKind, ToolError, is_secret_name};

use crate::prompt::{self, Terminal};
use crate::saved::{self, Readers};
use crate::{commands, keyboard, runs};

/// What was allowed, in the user's data folder.
const KEPT: &str = "allowed-servers.json";

/// An error unless the person allows the server, now or earlier.
pub fn allowed(file: &Path, name: &str, server: &Server) -> Result<(), ToolError> {
    let refused = |why: String| ToolError::of(ErrorKind::Approval, why);
    let folder = std::env::current_dir().map_err(|error| refused(error.to_string()))?;
    let (folder, file) = (folder.display().to_string(), file.display().to_string());
    let key = key(&folder, server);
    let mut kept = kept();
    if kept.contains_key(&key) {
        return Ok(());
    }
    let shown = shown(server);
    if Terminal::if_there().is_none() {
        let why = format!("{file} was found and not named, and nobody is here to allow:\n    {shown}");
        return Err(refused(why).hint(format!("-f {file} says that you trust the file")));
    }
    let verb =
        if matches!(server, Server::Stdio { .. }) { "start this program" } else { "talk to this server" };
    let question = format!(
        "\n{}, which was found here, wants to {verb} for its MCP server `{}`:\n\n    {}\n\n",
        visible(&file),
        visible(name),
        shown.replace('\n', "\n    ")
    );
    match ask(question) {
        Some(true) => {
            kept.insert(key, json!({"folder": folder, "server": shown}));
            keep(kept);
            Ok(())
        }
        Some(false) => Err(refused("you did not allow it".to_owned())),
        None => Err(refused("nobody answered whether it may".to_owned())),
    }
}

/// Everything that makes it another server. Of a value that may be secret only the hash is kept.
fn key(folder: &str, server: &Server) -> String {
    let what = match server {
        Server::Stdio { command, args, env, cwd, sandbox, trust } => {
            let env: Vec<_> = env.iter().collect();
            json!([folder, command, args, env, cwd, sandbox, trust.sampling])
        }
        Server::Http { url, headers, trust, .. } => {
            let headers: Vec<_> = headers.iter().collect();
            json!([folder, url, headers, trust.sampling])
        }
    };
    let hash = Sha256::digest(what.to_string().as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The server as a person would write it, whole. The values of variables and headers with secret names are left out.
fn shown(server: &Server) -> String {
    let pair = |(name, value): (&String, &String), between: &str| match is_secret_name(name) {
        true => format!("{}{between}(hidden)", visible(name)),
        false => format!("{}{between}{}", visible(name), quoted(value)),
    };
    let mut lines = Vec::new();
    match server {
        Server::Stdio { command, args, env, cwd, sandbox, trust: _ } => {
            let words = std::iter::once(command).chain(args).map(|word| quoted(word));
            lines.push(words.collect::<Vec<_>>().join(" "));
            lines.extend(env.iter().map(|variable| format!("with {}", pair(variable, "="))));
            lines.extend(cwd.as_ref().map(|folder| format!("in the folder {}", quoted(folder))));
            lines.extend(
                sandbox.as_ref().map(|policy| format!("in a sandbox: {}", visible(&policy.to_string()))),
            );
        }
        Server::Http { url, headers, .. } => {
            lines.push(quoted(url));
            lines.extend(headers.iter().map(|header| format!("with {}", pair(header, ": "))));
        }
    }
    if let Some(model) = &server.trust().sampling {
        lines.push(format!("which may ask the model {}", quoted(model)));
    }
    lines.join("\n")
}

/// A word as a shell would read it back, with nothing invisible in it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-?&".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => visible(&format!("'{}'", word.replace('\'', "'\\''"))),
    }
}

/// Asks until the answer is one; `None` when nobody answers, or Ctrl-C does.
fn ask(question: String) -> Option<bool> {
    let asking = async {
        tokio::select! {
            answer = keyboard::ask(move || prompt::yes_or_no(&question, "Allow it, here and from now on? [y]es, [n]o: ")) => answer.ok().flatten(),
            () = commands::told_to_stop() => None,
        }
    };
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(asking))
}

fn place() -> Option<PathBuf> {
    Some(runs::data()?.join(KEPT))
}

/// What was allowed; nothing, when there is no such file or it is not one of ours.
fn kept() -> Map<String, Value> {
    let text = place().and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn keep(kept: Map<String, Value>) {
    let Some(path) = place() else { return };
    let text = format!("{:#}\n", Value::Object(kept));
    let folder = path.parent().unwrap_or(&path);
    let kept = std::fs::create_dir_all(folder)
        .map_err(anyhow::Error::from)
        .and_then(|()| saved::replace(&path, text.as_bytes(), Readers::Owner));
    if let Err(error) = kept {
        // It is asked again the next time.
        let _ = writeln!(std::io::stderr(), "the answer is not kept: {error:#}");
    }
}
