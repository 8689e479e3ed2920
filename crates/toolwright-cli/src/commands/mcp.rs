//! `toolwright mcp`: look at, call and lock the tools of an MCP server.

use std::ffi::OsString;
use std::io::Write as _;

use serde_json::{Value, json};
use toolwright::content::ToolCall;
use toolwright::events::Event;
use toolwright::mcp::{
    Answers, DefinitionFinding, HttpTarget, LockFile, LockedServer, LockedTool, McpServer, McpServerBuilder,
    ServerCommand, ServerStatus, Target, inspect_definition, visible,
};
use toolwright::sandbox::ExecRequest;
use toolwright::tool::{ErrorInfo, ErrorKind, Secret, ToolSource as _};
use toolwright::{Policy, Run, Toolset};
use toolwright_core::text::clip;

use crate::args::{Mcp, McpCall, McpList, McpLock, McpTarget, SandboxArgs};
use crate::commands::{call, mcp_install};
use crate::console::Console;
use crate::prompt::printable;
use crate::report::{self, Failed, Usage};
use crate::{policies, sandboxes, toolbox};

pub async fn run(what: Mcp, console: &Console) -> anyhow::Result<()> {
    match what {
        Mcp::List(what) => list(console, what).await,
        Mcp::Call(what) => call_tool(console, what).await,
        Mcp::Lock(what) => lock(console, what).await,
        Mcp::Install(what) => mcp_install::run(what, console),
    }
}

async fn list(console: &Console, what: McpList) -> anyhow::Result<()> {
    let json = console.is_json();
    let server = server(console, &what.target).await?;
    let server = server.build();
    let tools = started(&server, &what.target).await?;
    let mut out = console.stdout();
    if json {
        console.line(serde_json::to_string(&tools.specs())?)?;
    } else {
        for spec in tools.specs() {
            let summary = spec.description.lines().next().unwrap_or_default();
            writeln!(out, "{:<24} {}", visible(&spec.name), visible(summary))?;
        }
    }
    for (name, why) in server.state().left_out {
        console.say(format_args!("left out `{name}`: {}", printable(&why)));
    }
    server.stop().await;
    Ok(())
}

async fn call_tool(console: &Console, what: McpCall) -> anyhow::Result<()> {
    let json = console.is_json();
    let arguments = call::arguments(console, what.args.as_deref(), &what.arguments)?;
    let server = server(console, &what.target).await?;
    let server = server.timeout(what.timeout).build();
    let tools = started(&server, &what.target).await?;
    tools.find(&what.tool).map_err(|error| Usage::from(error.info()))?;
    let mut builder = Run::builder(Toolset::new()).source(server.clone()).max_output(0);
    if !json {
        let console = console.clone();
        builder = builder.on_event(move |event: &Event| call::show(&console, &event.kind));
    }
    if let Some(policy) = policies::managed()? {
        builder = builder.policy(Policy::approve_all()).mandatory_policy(&policy);
    }
    let run = builder.build()?;
    let result = run.call(ToolCall::new("call_1", what.tool.as_str(), arguments)).await?;
    server.stop().await;
    if json {
        console.line(serde_json::to_string(&result)?)?;
    } else {
        call::print(console, &result, what.save_to.as_deref())?;
    }
    match result.error {
        None => Ok(()),
        Some(error) => Err(Failed(error).into()),
    }
}

async fn lock(console: &Console, what: McpLock) -> anyhow::Result<()> {
    let json = console.is_json();
    let exists = what.file.exists();
    if what.check && !exists {
        let problem = Usage::new(format!("there is no lock `{}`", what.file.display()));
        return Err(problem.hint("the same command without --check writes it").into());
    }
    let mut file = match exists {
        true => LockFile::load(&what.file).map_err(report::unusable)?,
        false => LockFile::default(),
    };
    let server = server(console, &what.target).await?;
    let server = server.build();
    started(&server, &what.target).await?;
    let now = server.lock().await.map_err(|error| anyhow::anyhow!("{error}"))?;
    server.stop().await;
    let before = file.servers.get(&what.name).cloned().unwrap_or_default();
    let is_new = before.tools.is_empty();
    let mut changes: Vec<(String, Vec<String>)> = now
        .tools
        .keys()
        .filter_map(|name| {
            let tool = serde_json::from_value(now.tools.get(name)?.definition.clone()).ok()?;
            let suspension = before.suspends(&now.identity, &tool)?;
            Some((suspension.tool, suspension.changes))
        })
        .collect();
    let another = !before.tools.is_empty() && before.identity != now.identity;
    if another {
        // Every tool would say so.
        let ours = |line: &String| !line.starts_with("server.");
        changes.iter_mut().for_each(|(_, lines)| lines.retain(ours));
        changes.retain(|(_, lines)| !lines.is_empty());
        let server = toolwright::mcp::differences(&json!(before.identity), &json!(now.identity));
        changes.insert(0, ("the server is another one".to_owned(), server));
    }
    let gone = before.tools.keys().filter(|name| !now.tools.contains_key(*name));
    changes.extend(gone.map(|name| (visible(name), vec!["it is no longer listed".to_owned()])));
    let findings = findings(&what.name, &now, &file);
    if !json {
        for (tool, finding) in &findings {
            console.say(format_args!("warning: `{}`: {finding}", visible(tool)));
        }
    }
    if json {
        let found: Vec<Value> = findings
            .iter()
            .map(|(tool, finding)| json!({"tool": tool, "kind": finding.kind.as_str(), "text": finding.text}))
            .collect();
        let changed: Vec<Value> =
            changes.iter().map(|(tool, changes)| json!({"tool": tool, "changes": changes})).collect();
        console.line(
            json!({"server": what.name, "tools": now.tools.len(), "changes": changed, "findings": found}),
        )?;
    } else {
        // The definitions of a server that is approved for the first time are one difference each, and may be
        // hundreds of kilobytes.
        let in_full = what.target.verbose || !is_new;
        for (tool, lines) in &changes {
            match in_full {
                true => {
                    console.line(tool)?;
                    lines.iter().try_for_each(|line| console.line(format_args!("    {line}")))?;
                }
                false => console.line(summary(&now, tool))?,
            }
        }
        if !in_full && !changes.is_empty() {
            console.say("--verbose shows the definitions whole");
        }
    }
    if what.check {
        return match changes.len() {
            0 => {
                let (tools, verb) = match now.tools.len() {
                    1 => ("1 tool".to_owned(), "is as it was"),
                    count => (format!("{count} tools"), "are as they were"),
                };
                console.say(format_args!("{tools} {verb} approved"));
                Ok(())
            }
            _ if another => anyhow::bail!("the server is not the one of the lock"),
            count => anyhow::bail!("{count} of the tools differ from the lock"),
        };
    }
    let tools = report::counted(now.tools.len() as u64, "tool");
    file.servers.insert(what.name, now);
    file.save(&what.file).map_err(report::unusable)?;
    console.say(format_args!("approved {tools} in `{}`", what.file.display()));
    Ok(())
}

/// A tool in one line: its name, and how its description begins.
fn summary(server: &LockedServer, tool: &str) -> String {
    let description = server.tools.get(tool).and_then(|locked| locked.definition["description"].as_str());
    let line = description.unwrap_or_default().trim().lines().next().unwrap_or_default();
    format!("{:<24} {}", visible(tool), visible(&clip(line, 100))).trim_end().to_owned()
}

/// What a person should read of the definitions that are to be approved; also where they speak of tools of
/// other servers of the lock.
fn findings(name: &str, now: &LockedServer, file: &LockFile) -> Vec<(String, DefinitionFinding)> {
    let others = file.servers.iter().filter(|(other, _)| *other != name);
    let others = others.flat_map(|(_, server)| server.tools.keys());
    let others = others.filter(|tool| !now.tools.contains_key(*tool)).cloned().collect();
    let of = |(tool, locked): (&String, &LockedTool)| {
        let findings = inspect_definition(&locked.definition, &others);
        findings.into_iter().map(|finding| (tool.clone(), finding)).collect::<Vec<_>>()
    };
    now.tools.iter().flat_map(of).collect()
}

async fn server(console: &Console, target: &McpTarget) -> anyhow::Result<McpServerBuilder> {
    nothing_in_vain(target)?;
    let builder = match &target.url {
        Some(url) => McpServer::builder(url.as_str(), address(console, url, target)?),
        None => process(target).await?,
    };
    let builder = match console.person() {
        Some(person) => {
            let mut answers = Answers::default();
            answers.person = Some(person);
            builder.answers(answers)
        }
        None => builder,
    };
    Ok(match target.verbose {
        true => {
            let console = console.clone();
            builder.on_log(move |line| console.say(printable(line)))
        }
        false => builder,
    })
}

/// An error for options that would do nothing: a server that somebody believes contained must not run free.
fn nothing_in_vain(target: &McpTarget) -> Result<(), Usage> {
    let SandboxArgs { sandbox, read, write, allow_net, section: _, named: _ } = &target.sandbox;
    let started = [("--env", !target.env.is_empty()), ("--cwd", target.cwd.is_some())];
    let contained = [
        ("--sandbox", sandbox.is_some()),
        ("--read", !read.is_empty()),
        ("--write", !write.is_empty()),
        ("--allow-net", !allow_net.is_empty()),
    ];
    let first =
        |options: &[(&'static str, bool)]| options.iter().find(|(_, given)| *given).map(|(name, _)| *name);
    if target.url.is_some()
        && let Some(option) = first(&started).or_else(|| first(&contained))
    {
        let problem = Usage::new(format!(
            "{option} is for a server that is started here; one with an address runs already"
        ));
        return Err(problem.hint(format!(
            "leave out {option}, or give the command that starts the server after `--` in place of --url"
        )));
    }
    match first(&contained) {
        Some(option) if !target.sandboxed => {
            let problem = Usage::new(format!(
                "{option} is for a server that runs in a sandbox, and this one would not"
            ));
            Err(problem.hint(format!("add --sandboxed, or leave out {option}")))
        }
        _ => Ok(()),
    }
}

/// A server with an address.
fn address(console: &Console, url: &str, target: &McpTarget) -> anyhow::Result<HttpTarget> {
    if !(url.starts_with("https://") || url.starts_with("http://")) {
        let problem = Usage::new(format!("`{url}` is not the address of a server"));
        return Err(problem
            .hint("an address begins with https:// or http://; a command stands after `--`")
            .into());
    }
    let mut address = HttpTarget::new(url).proxies(toolbox::proxies());
    for header in &target.header {
        let (name, value) = header
            .split_once('=')
            .ok_or_else(|| Usage::new(format!("--header `{header}` is not NAME=VALUE")))?;
        let value = match value.strip_prefix('@') {
            Some(variable) => std::env::var(variable)
                .map_err(|_| Usage::new(format!("there is no variable `{variable}`")))?,
            None => value.to_owned(),
        };
        address = address.header(name, Secret::new(value));
    }
    if target.sse {
        address = address.legacy_sse();
    }
    // Where nobody can be sent to a page, the tokens there are have to do.
    Ok(address.oauth(crate::oauth_setup::options(console)))
}

async fn process(target: &McpTarget) -> anyhow::Result<McpServerBuilder> {
    let Some((program, arguments)) = target.command.split_first() else {
        return Err(Usage::new("there is no command after `--`").into());
    };
    let mut variables: Vec<(&str, OsString)> = Vec::new();
    for variable in &target.env {
        variables.push(match variable.split_once('=') {
            Some((name, value)) => (name, value.into()),
            None => {
                let value = std::env::var_os(variable);
                let missing = || Usage::new(format!("there is no variable `{variable}`"));
                (variable.as_str(), value.ok_or_else(missing)?)
            }
        });
    }
    if target.sandboxed {
        let none = || Usage::new("`--sandboxed` contradicts `--sandbox none`").hint("remove --sandboxed");
        let mut command = ExecRequest::new(&target.command);
        command.cwd = target.cwd.as_ref().map(|folder| folder.display().to_string());
        let text = |(name, value): (&str, OsString)| (name.to_owned(), value.to_string_lossy().into_owned());
        command.env = variables.into_iter().map(text).collect();
        let (sandbox, command) = sandboxes::open_for(&target.sandbox, command).await?.ok_or_else(none)?;
        let target = Target::Sandboxed { sandbox, command };
        return Ok(McpServer::builder(program.as_str(), target));
    }
    let mut command = ServerCommand::new(program).args(arguments);
    for (name, value) in variables {
        command = command.env(name, value);
    }
    if let Some(folder) = &target.cwd {
        if !folder.is_dir() {
            return Err(Usage::new(format!("--cwd: there is no folder `{}`", folder.display())).into());
        }
        command = command.folder(folder);
    }
    Ok(McpServer::builder(program.as_str(), command))
}

/// The tools of a server that must start.
async fn started(server: &McpServer, target: &McpTarget) -> anyhow::Result<Toolset> {
    let tools = server.tools().await?;
    let state = server.state();
    let ServerStatus::Failed { why } = state.status else { return Ok(tools) };
    let mut error = ErrorInfo { kind: ErrorKind::Unknown, message: printable(&why), hint: None };
    error.hint = Some(match (&target.url, target.command.first()) {
        (Some(url), _) => {
            // What follows may hold a secret.
            let place = url.split(['?', '#']).next().unwrap_or_default();
            let place = place.rsplit_once('@').map_or(place, |(_, rest)| rest);
            error.message = format!("{}: {}", printable(place), error.message);
            let wants_a_token = why.contains("no authorization") || why.contains("answered 401");
            let hint = match wants_a_token {
                true => {
                    "give it a token you have: --header 'Authorization=Bearer TOKEN', or from a variable: --header Authorization=@VARIABLE"
                }
                false => "is it running, and is this the address of its endpoint?",
            };
            hint.to_owned()
        }
        (None, Some(program)) if why.contains("cannot start") => {
            format!("is `{program}` installed, and on the PATH or named by its whole path?")
        }
        _ if waits_for_network(target, &why) => {
            let hint = "it runs in a sandbox without a network; if it needs one, say what it may reach: --allow-net HOST";
            match state.last_output.is_empty() {
                true => hint.to_owned(),
                false => format!("{hint}. What it wrote last:\n    {}", state.last_output.join("\n    ")),
            }
        }
        _ => match state.last_output.is_empty() {
            true => "it wrote nothing on stderr; try the command by itself: an MCP server waits for input"
                .to_owned(),
            false => format!("what it wrote last:\n    {}", state.last_output.join("\n    ")),
        },
    });
    Err(Failed(error).into())
}

/// Whether a server that never answered may have waited for a network that its sandbox does not give it.
fn waits_for_network(target: &McpTarget, why: &str) -> bool {
    target.sandboxed && target.sandbox.allow_net.is_empty() && why.contains("did not answer")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    /// Why a server could not be started, in the words of the client.
    async fn why(program: &str, argument: &str) -> String {
        let command = ServerCommand::new(program).args([argument]);
        let server = McpServer::builder("s", command)
            .options(|options| options.start_timeout = std::time::Duration::from_millis(500))
            .build();
        server.tools().await.unwrap();
        match server.state().status {
            ServerStatus::Failed { why } => why,
            status => panic!("{status:?}"),
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_that_hangs_in_a_sandbox_may_want_the_network() {
        let (silent, gone) = (why("sleep", "60").await, why("sleep", "0").await);
        for (options, wanted) in [
            (&["--sandboxed"][..], true),
            (&["--sandboxed", "--allow-net", "example.com"], false),
            (&[], false),
        ] {
            let line = [&["toolwright", "mcp", "list"], options, &["--", "npx", "x"]].concat();
            let crate::args::Command::Mcp(Mcp::List(list)) = crate::args::Args::parse_from(line).command
            else {
                panic!("another command")
            };
            assert_eq!(waits_for_network(&list.target, &silent), wanted, "{options:?}: {silent}");
            assert!(!waits_for_network(&list.target, &gone), "{gone}");
        }
    }
}
