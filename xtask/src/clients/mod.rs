//! `cargo xtask clients`: the agents that people run, each driven by a scripted model on loopback against
//! `toolwright serve` (stdio and HTTP) and, where they have hooks, `toolwright hook`. It ends with a table.

mod agents;
mod model;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use self::agents::{AGENTS, Agent};
use self::model::{KilledOnDrop, ScriptedModel};
use crate::npm;
use crate::test::{cargo, check};

/// The agents, from npm.
const PACKAGES: &[&str] = &[
    "@openai/codex@0.169.0",
    "@anthropic-ai/claude-code@2.1.197",
    "opencode-ai@1.18.33",
    "@google/gemini-cli@0.61.0",
];

const TOOLS: &str = "
title: The shop
instructions: Greet before you publish.
tools:
  - {name: greet, description: Greets the named one., annotations: {read_only: true}, input: [{name: who, type: str}], do: {eval: 'Hello, ${who}!'}}
  - {import_tool: marsys.read_file, name: see}
  - {name: publish, description: Publishes., input: [{name: what, type: str}], do: {eval: published}}
  - {name: nothing, description: Nothing., do: {eval: '${None}'}}
  - {name: long, description: Long., do: {eval: '${\"0123456789abcde\\n\" * 65536}'}}
sandbox: {read: [.]}
policy:
  - {tools: [greet, see, nothing, long], decision: approve}
  - {tools: publish, decision: reject, reason: not before noon}
";

const HOOK_POLICY: &str = "
- {tools: bash, when: {command: 'touch denied'}, decision: reject, reason: no touching}
- {tools: bash, when: {command: 'touch plain'}, decision: modify, set: {command: touch changed}}
- {tools: bash, when: {command: 'touch *'}, decision: approve}
";

/// A red picture of 8 by 8 pixels, and how its Base64 begins.
const PICTURE: &[u8] = include_bytes!("dot.png");
const PICTURE_BASE64: &str = "iVBORw0KGgo";

/// How an agent meets us.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Transport {
    Stdio,
    Http,
    Hook,
}

/// What was seen: a row for each way and capability, a cell for each agent.
type Table = BTreeMap<(Transport, usize, &'static str), BTreeMap<&'static str, bool>>;

/// What every agent must show its model, and the text by which that is known.
const SERVED: [(&str, &str); 7] = [
    ("instructions (C12)", "Greet before you publish."),
    ("lists our tools", "Greets the named one."),
    ("result of a call", "Hello, World!"),
    ("reason of a refusal", "not before noon"),
    ("value and picture (C1, C2)", PICTURE_BASE64),
    ("null (C17)", "(no output)"),
    ("what was cut (C7)", "was cut to 16384"),
];

/// Installs the agents, drives each, and prints what works.
pub fn run() -> Result<()> {
    ensure!(npm::is_there(), "the agents come from npm, which is not here");
    let home = npm::install("agents", PACKAGES)?;
    cargo(&["build", "--package", "toolwright-cli"])?;
    let program = crate::target().join("debug/toolwright");
    let mut table = Table::new();
    for agent in &AGENTS {
        for transport in [Transport::Stdio, Transport::Http] {
            let seen = served(agent, &home, &program, transport)?;
            for (row, ((name, _), works)) in SERVED.iter().zip(seen).enumerate() {
                let row = (transport, row, *name);
                table.entry(row).or_default().insert(agent.name, works);
            }
        }
        if agent.hooks.is_some() {
            for (row, (name, works)) in hooked(agent, &home, &program)?.into_iter().enumerate() {
                table.entry((Transport::Hook, row, name)).or_default().insert(agent.name, works);
            }
        }
    }
    print(&table);
    let failed = table.values().flat_map(BTreeMap::values).filter(|works| !**works).count();
    ensure!(failed == 0, "{failed} of the cells are not as they should be");
    Ok(())
}

/// Lets an agent list and call the tools of a server, and looks for each result in what its model is sent.
fn served(agent: &Agent, home: &Path, program: &Path, transport: Transport) -> Result<Vec<bool>> {
    let scratch = tempfile::tempdir()?;
    let folder = scratch.path();
    std::fs::write(folder.join("tools.yaml"), TOOLS)?;
    std::fs::write(folder.join("dot.png"), PICTURE)?;
    let mut see = json!({"path": "dot.png"});
    if agent.adds_an_argument {
        see["wait_for_previous"] = json!(true);
    }
    let model = ScriptedModel::start(
        folder,
        &json!([
            {"tool": "greet", "arguments": {"who": "World"}},
            {"tool": "publish", "arguments": {"what": "it"}},
            {"tool": "see", "arguments": see},
            {"tool": "nothing", "arguments": {}},
            {"tool": "long", "arguments": {}},
        ]),
    )?;
    (agent.configure)(folder, model.port)?;
    // opencode starts servers in the root of a repository, and elsewhere not in this folder.
    check(Command::new("git").args(["init", "--quiet"]).current_dir(folder))?;
    let mut install = Command::new(program);
    install.args(["mcp", "install", "--client", agent.name, "--name", "tw", "--write"]);
    let mut server = None;
    match transport {
        Transport::Stdio | Transport::Hook => drop(install.arg("tools.yaml")),
        Transport::Http => {
            let (running, address) = listening(program, folder)?;
            server = Some(running);
            install.args(["--url", &address]);
        }
    }
    check(install.current_dir(folder).env("HOME", folder).env_remove("XDG_CONFIG_HOME"))?;
    agent.run(home, folder, model.port, false)?;
    drop(server);
    let requests = model.requests()?;
    let said = |text: &str| requests.iter().any(|request| request.contains(text));
    let seen = SERVED.iter().map(|(_, text)| said(text)).collect::<Vec<_>>();
    if seen.contains(&false) {
        keep(agent, &requests)?;
    }
    Ok(seen)
}

/// `toolwright serve` over HTTP, and its address.
fn listening(program: &Path, folder: &Path) -> Result<(KilledOnDrop, String)> {
    let mut command = Command::new(program);
    command.args(["serve", "tools.yaml", "--http", "127.0.0.1:0"]).current_dir(folder).env("HOME", folder);
    let mut server = KilledOnDrop(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?);
    let mut address = String::new();
    BufReader::new(server.0.stdout.take().context("no output")?).read_line(&mut address)?;
    ensure!(address.starts_with("http://"), "`serve` printed {address:?}");
    Ok((server, address.trim().to_owned()))
}

/// Lets an agent run commands with our rules about them, and looks at what was run.
fn hooked(agent: &Agent, home: &Path, program: &Path) -> Result<Vec<(&'static str, bool)>> {
    let scratch = tempfile::tempdir()?;
    let folder = scratch.path();
    std::fs::write(folder.join("policy.yaml"), HOOK_POLICY)?;
    let touch = |file: &str| {
        let (tool, parameter) = agent.shell;
        json!({"tool": tool, "arguments": {parameter: format!("touch {file}")}})
    };
    let drive = |files: &[&str]| -> Result<Vec<String>> {
        let model = ScriptedModel::start(folder, &files.iter().map(|file| touch(file)).collect::<Value>())?;
        (agent.configure)(folder, model.port)?;
        agent.run(home, folder, model.port, true)?;
        model.requests()
    };
    let mut install = Command::new(program);
    install.args(["hook", "install", "--client", agent.name, "--policy", "policy.yaml", "--write"]);
    check(install.current_dir(folder).env("HOME", folder))?;
    let requests = drive(&["allowed", "denied", "plain"])?;
    let there = |file: &str| folder.join(file).exists();
    let recorded = std::fs::read_dir(folder.join(".local/share/toolwright/runs"))
        .is_ok_and(|runs| runs.flatten().any(|run| run.path().extension().is_some_and(|end| end == "jsonl")));
    let mut seen = vec![
        ("an allowed command runs", there("allowed")),
        ("a denied one does not", !there("denied")),
        ("a changed one runs changed", there("changed") && !there("plain")),
        ("the model reads the reason", requests.iter().any(|request| request.contains("no touching"))),
        ("the session is recorded", recorded),
    ];
    // The same settings with a program that crashes.
    let settings = folder.join(agent.hooks.unwrap_or_default());
    let crashing = folder.join("crash");
    std::fs::write(&crashing, "#!/bin/sh\nkill -SEGV $$\n")?;
    check(Command::new("chmod").arg("755").arg(&crashing))?;
    let text = std::fs::read_to_string(&settings)?;
    let program = std::fs::canonicalize(program)?;
    let crashing = text.replace(&*program.to_string_lossy(), &crashing.to_string_lossy());
    ensure!(text != crashing, "the settings do not name {}", program.display());
    std::fs::write(&settings, crashing)?;
    drive(&["allowed_again"])?;
    seen.push(("a crashed hook denies", !there("allowed_again")));
    if seen.iter().any(|(_, works)| !works) {
        keep(agent, &requests)?;
    }
    Ok(seen)
}

/// Keeps what a model was sent, so that a failure can be looked into.
fn keep(agent: &Agent, requests: &[String]) -> Result<()> {
    let path = crate::target().join(format!("clients-{}.jsonl", agent.name));
    std::fs::write(&path, requests.join("\n"))?;
    eprintln!("{}: its requests are in {}", agent.name, path.display());
    Ok(())
}

fn print(table: &Table) {
    let names: Vec<&str> = AGENTS.iter().map(|agent| agent.name).collect();
    println!("\n| | {} |\n| --- |{}", names.join(" | "), " --- |".repeat(names.len()));
    for ((way, _, capability), cells) in table {
        let cell = |name: &&str| match cells.get(name) {
            Some(true) => "y",
            Some(false) => "**no**",
            None => "-",
        };
        println!("| {way:?}: {capability} | {} |", names.iter().map(cell).collect::<Vec<_>>().join(" | "));
    }
}

/// The folder with the scripts of peers.
fn script(name: &str) -> Result<PathBuf> {
    let path = crate::root().join("xtask/peers").join(name);
    if path.is_file() { Ok(path) } else { bail!("{} is missing", path.display()) }
}
