//! `toolwright sandbox explain`: what a policy gives.

use serde_json::Value;
use toolwright::file::SandboxKind;
use toolwright::sandbox::{Explanation, explain};

use crate::args::{SandboxArgs, SandboxCommand, SandboxWhat};
use crate::console::Console;
use crate::opening::ParsedFile;
use crate::report::{Failed, Usage};
use crate::{files, sandboxes};

pub async fn run(what: &SandboxCommand, console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    let SandboxWhat::Explain { file, name, sandbox } = &what.what;
    let parsed = ParsedFile::of(console, files::choose(console, file.clone()).as_ref()).await?;
    let mut asked = sandboxes::of(sandbox, &parsed.file);
    if let Some(name) = name {
        let found = asked.named.iter().find(|(known, _)| known == name);
        let Some((_, section)) = found else {
            let names: Vec<_> = asked.named.iter().map(|(known, _)| known.as_str()).collect();
            let error = Usage::new(format!("the file has no sandbox `{name}`"));
            return Err(match names.as_slice() {
                [] => error.hint("describe it under `sandboxes`"),
                _ => error.hint(format!("there are: {}", names.join(", "))),
            }
            .into());
        };
        asked.section = section.clone();
    }
    let explanation = explanation(&asked).await?;
    let mut out = console.stdout();
    if json {
        console.line(serde_json::to_string_pretty(&explanation)?)?;
    } else {
        print(&mut out, &explanation)?;
    }
    match &explanation.refused {
        None => Ok(()),
        Some(why) => anyhow::bail!("this sandbox is not available here: {why}"),
    }
}

async fn explanation(args: &SandboxArgs) -> anyhow::Result<Explanation> {
    if args.kind() != SandboxKind::Process {
        let error = Usage::new(
            "only the `process` sandbox can be explained: what a container sees is up to its image, and `local` sees everything",
        );
        return Err(error.into());
    }
    let plan = sandboxes::plan(args)?;
    Ok(explain(&plan.policy).await.map_err(|error| Failed(error.info()))?)
}

fn print(out: &mut impl std::io::Write, explanation: &Explanation) -> anyhow::Result<()> {
    writeln!(out, "files")?;
    for entry in &explanation.view {
        writeln!(out, "  {:<12} {}", word(&entry.access)?, entry.path.display())?;
    }
    let why = explanation.live_because.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    writeln!(out, "changes\n  {}{why}", word(&explanation.changes)?)?;
    writeln!(out, "network\n  {}", word(&explanation.network)?)?;
    let env =
        if explanation.env.is_empty() { "nothing of yours".to_owned() } else { explanation.env.join(", ") };
    writeln!(out, "environment\n  {env}")?;
    writeln!(out, "limits")?;
    if let Ok(Value::Object(limits)) = serde_json::to_value(&explanation.limits) {
        for (name, value) in limits.iter().filter(|(_, value)| !value.is_null()) {
            writeln!(out, "  {name:<15} {}", amount(name, value))?;
        }
    }
    writeln!(out, "layers")?;
    for report in &explanation.layers {
        let mark = if report.available { "on " } else { "off" };
        let reason = report.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        writeln!(out, "  {mark} {}{reason}", report.layer)?;
    }
    Ok(())
}

/// A limit as a person reads it: sizes in units, numbers as they are.
fn amount(name: &str, value: &Value) -> String {
    let sizes = ["memory", "file_size", "scratch"];
    match value.as_u64().filter(|_| sizes.contains(&name)) {
        Some(bytes) if bytes >= 1 << 30 && bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        Some(bytes) if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        _ => value.to_string(),
    }
}

/// The wire name of a value.
fn word(value: &impl serde::Serialize) -> anyhow::Result<String> {
    Ok(match serde_json::to_value(value)? {
        Value::String(word) => word,
        other => other.to_string(),
    })
}
