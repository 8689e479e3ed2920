//! Whether a file that nobody named may do what a stranger should not: start MCP servers, open the sandbox,
//! send keys elsewhere.
//!
//! A `toolwright.yaml` that happens to lie in a folder may be a stranger's. So the person sees exactly what
//! it wants and is asked, once for each wish and folder. Whoever names the file has said that they trust it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolwright::ToolError;
use toolwright::file::{SandboxKind, SandboxSection};
use toolwright::lang::Server;
use toolwright::model::ModelConfig;
use toolwright::sandbox::{Layer, Network};
use toolwright::tool::ErrorKind;
use toolwright_core::text::visible;
use toolwright_runtime::is_secret_name;

use crate::console::Console;
use crate::prompt;
use crate::write_file::{self, FileAccess};
use crate::{commands, runs};

/// What was allowed, in the user's data folder.
const KEPT: &str = "allowed.json";

/// An error unless the person allows the server, now or earlier.
pub async fn server(console: &Console, file: &Path, name: &str, server: &Server) -> Result<(), ToolError> {
    let verb =
        if matches!(server, Server::Stdio { .. }) { "start this program" } else { "talk to this server" };
    let wish = format!("{verb} for its MCP server `{}`", visible(name));
    Wish { wish, shown: shown(server), whole: whole(server) }.granted(console, file).await
}

/// The same for what the sandboxes of a found file open.
pub async fn sandboxes(
    console: &Console,
    found: Option<&Path>,
    section: &SandboxSection,
    named: &[(String, SandboxSection)],
) -> Result<(), ToolError> {
    let Some(file) = found else { return Ok(()) };
    let named = named.iter().map(|(name, section)| (format!(" of the sandbox `{}`", visible(name)), section));
    for (which, section) in std::iter::once((String::new(), section)).chain(named) {
        let opens = opens(section);
        if !opens.is_empty() {
            let wish = format!("open more to the commands{which}");
            Wish { wish, shown: opens.join("\n"), whole: json!(["sandbox", format!("{section:?}")]) }
                .granted(console, file)
                .await?;
        }
    }
    Ok(())
}

/// The same for a model of a found file that is not where its vendor is: it is sent the person's words, and a
/// key.
pub fn model(console: &Console, file: &Path, name: &str, config: &ModelConfig) -> Result<(), ToolError> {
    let ModelConfig { base_url, key_env, proxy, .. } = config;
    let elsewhere = [("", base_url), ("through the proxy ", proxy)];
    let mut lines: Vec<String> = elsewhere
        .iter()
        .filter_map(|(how, url)| url.as_ref().map(|url| format!("{how}{}", quoted(url))))
        .collect();
    if lines.is_empty() {
        return Ok(());
    }
    lines.extend(key_env.as_ref().map(|name| format!("with the key in {}", quoted(name))));
    let wish = format!("send what you say to the model `{}` here", visible(name));
    let wish = Wish { wish, shown: lines.join("\n"), whole: json!(["model", base_url, key_env, proxy]) };
    // Tools ask for their models in the middle of a call, and models are found synchronously.
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(wish.granted(console, file)))
}

/// What a file wants to do.
struct Wish {
    /// What it is, after "wants to".
    wish: String,
    /// All of it, for a person.
    shown: String,
    /// All that makes it another wish.
    whole: Value,
}

impl Wish {
    async fn granted(self, console: &Console, file: &Path) -> Result<(), ToolError> {
        let refused = |why: String| ToolError::of(ErrorKind::Approval, why);
        let folder = std::env::current_dir().map_err(|error| refused(error.to_string()))?;
        let (folder, file) = (folder.display().to_string(), visible(&file.display().to_string()));
        let Wish { wish, shown, whole } = self;
        let hash = Sha256::digest(json!([folder, whole]).to_string().as_bytes());
        let key: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut kept = kept();
        if kept.contains_key(&key) {
            return Ok(());
        }
        let shown = shown.replace('\n', "\n    ");
        let nobody = match console.has_person() {
            false => Some("nobody is here to allow that it may"),
            true if console.chat_reads_keys() => {
                Some("in the middle of a chat nobody is asked whether it may")
            }
            true => None,
        };
        if let Some(nobody) = nobody {
            let why = format!("{file} was found and not named, and {nobody} {wish}:\n    {shown}");
            return Err(refused(why).hint(format!("-f {file} says that you trust the file")));
        }
        let question = format!("\n{file}, which was found here, wants to {wish}:\n\n    {shown}\n\n");
        match ask(console, question).await {
            Some(true) => {
                kept.insert(key, json!({"folder": folder, "wish": wish, "what": shown}));
                keep(console, kept);
                Ok(())
            }
            Some(false) => Err(refused(format!("you did not allow {file} to {wish}"))),
            None => Err(refused(format!("nobody answered whether {file} may {wish}"))),
        }
    }
}

/// What a section gives to commands that they do not have by themselves. The folder it lies in is theirs
/// anyway.
fn opens(section: &SandboxSection) -> Vec<String> {
    let here = std::fs::canonicalize(".").ok();
    let outside = |path: &&PathBuf| {
        let real = std::fs::canonicalize(path).ok();
        !real.zip(here.as_ref()).is_some_and(|(real, here)| real.starts_with(here))
    };
    let path = |path: &Path| quoted(&path.to_string_lossy());
    let mut lines = Vec::new();
    match section.kind() {
        SandboxKind::Local => {
            lines.push("they run on this machine, in no sandbox at all".to_owned());
            lines.extend(section.setup.as_ref().map(|script| format!("beginning with: {}", quoted(script))));
            lines.extend(
                section.files.keys().map(|name| format!("this file is written first: {}", quoted(name))),
            );
        }
        SandboxKind::Engine(name) => lines.push(format!("they run in a container, {}", quoted(&name))),
        SandboxKind::Process | SandboxKind::None => {}
    }
    lines.extend(section.read.iter().filter(outside).map(|at| format!("they may read {}", path(at))));
    lines.extend(section.write.iter().filter(outside).map(|at| format!("they may write in {}", path(at))));
    if let Network::Allow(hosts) = &section.network {
        lines.extend(hosts.iter().map(|host| format!("they may reach {}", quoted(host))));
    }
    lines.extend(section.env.pass.iter().map(|name| format!("they see your variable {}", quoted(name))));
    if section.protect.is_some() {
        lines.push("they may write files that run programs outside, such as .git/hooks".to_owned());
    }
    if let Some(require) = &section.require {
        let dropped = Layer::DEFAULT_REQUIRED.iter().filter(|layer| !require.contains(layer));
        lines.extend(dropped.map(|layer| format!("they run also where there is no {layer}")));
    }
    lines
}

/// Everything that makes it another server. Of a value that may be secret only the hash is kept.
fn whole(server: &Server) -> Value {
    match server {
        Server::Stdio { command, args, env, cwd, sandbox, trust } => {
            let env: Vec<_> = env.iter().collect();
            json!([command, args, env, cwd, sandbox, trust.sampling])
        }
        Server::Http { url, headers, trust, .. } => {
            let headers: Vec<_> = headers.iter().collect();
            json!([url, headers, trust.sampling])
        }
    }
}

/// The server as a person would write it, whole. The values of variables and headers with secret names are
/// left out.
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
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => visible(&format!("'{}'", word.replace('\'', "'\\''"))),
    }
}

/// Asks until the answer is one; `None` when nobody answers, or Ctrl-C does.
async fn ask(console: &Console, question: String) -> Option<bool> {
    tokio::select! {
        answer = console.ask(move |dialogue| prompt::yes_or_no(dialogue, &question, "Allow it, here and from now on? [y]es, [n]o: ")) => answer,
        _ = commands::told_to_stop() => None,
    }
}

fn place() -> Option<PathBuf> {
    Some(runs::data()?.join(KEPT))
}

/// What was allowed; nothing, when there is no such file or it is not one of ours.
fn kept() -> Map<String, Value> {
    let text = place().and_then(|path| std::fs::read(path).ok()).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn keep(console: &Console, kept: Map<String, Value>) {
    let Some(path) = place() else { return };
    let text = format!("{:#}\n", Value::Object(kept));
    let folder = path.parent().unwrap_or(&path);
    let kept = std::fs::create_dir_all(folder)
        .map_err(anyhow::Error::from)
        .and_then(|()| write_file::replace(&path, text.as_bytes(), FileAccess::Owner));
    if let Err(error) = kept {
        // It is asked again the next time.
        console.say(format_args!("the answer is not kept: {error:#}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_unless_every_shell_reads_it_as_it_is() {
        for plain in ["npx", "@scope/server", "--port=80", "http://127.0.0.1:80/mcp", "a,b"] {
            assert_eq!(quoted(plain), plain);
        }
        for (word, told) in [
            ("what?.jsonl", "'what?.jsonl'"),
            ("a&b", "'a&b'"),
            ("http://x/?a=1&b=2", "'http://x/?a=1&b=2'"),
            ("it's", "'it'\\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), told);
        }
    }
}
