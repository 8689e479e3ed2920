//! `toolwright doctor`: what works here, and how to get the rest.

use std::io::Write as _;

use toolwright::model::vendor::VENDORS;

use crate::console::Console;
use crate::{lines, models, runs, toolbox};

/// One thing that was looked at.
#[derive(serde::Serialize)]
struct Finding {
    what: &'static str,
    works: bool,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

pub async fn run(console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    let mut findings =
        vec![tools()?, sandbox().await, changes().await, terminal(console), transcripts(), keys()];
    findings.extend(models::locals().iter().map(server));
    findings.push(answers());
    let mut out = console.stdout();
    if json {
        console.line(serde_json::to_string_pretty(&findings)?)?;
        return Ok(());
    }
    writeln!(
        out,
        "toolwright {} on {} {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    )?;
    let columns = lines::columns(&out);
    for finding in &findings {
        let mark = if finding.works { "ok     " } else { "missing" };
        let mut told = format!("{mark} {:<18} {}", finding.what, finding.found);
        if let Some(columns) = columns {
            told = lines::wrapped(&told, columns, 27);
        }
        if let Some(fix) = &finding.fix {
            let fix = format!("{:27}{fix}", "");
            told = format!(
                "{told}\n{}",
                columns.map_or(fix.clone(), |columns| lines::wrapped(&fix, columns, 0))
            );
        }
        writeln!(out, "{told}")?;
    }
    Ok(())
}

fn tools() -> anyhow::Result<Finding> {
    let count = toolbox::all()?.len();
    Ok(Finding { what: "tools", works: true, found: format!("{count} built in"), fix: None })
}

/// Tries every protection of the sandbox.
async fn sandbox() -> Finding {
    let reports = toolwright::sandbox::probe().await;
    let required = |layer| toolwright::sandbox::Layer::DEFAULT_REQUIRED.contains(layer);
    let missing: Vec<_> = reports.iter().filter(|report| !report.available).collect();
    let names: Vec<&str> = missing.iter().map(|report| report.layer.as_str()).collect();
    let on = reports.len() - missing.len();
    let mut found = match names.as_slice() {
        [] => format!("all {on} layers"),
        names => format!("{on} of {} layers; without {}", reports.len(), names.join(", ")),
    };
    let needed = missing.iter().find(|report| required(&report.layer));
    let fix = needed.map(|report| {
        let reason = report.reason.as_deref().unwrap_or("the kernel does not give it");
        let why = format!("{}: {reason}", report.layer);
        match toolwright::sandbox::remedy(reason) {
            Some(command) => {
                found.push_str(&format!("; {why}"));
                command
            }
            None => why,
        }
    });
    Finding { what: "sandbox", works: fix.is_none(), found, fix }
}

/// Tries whether what calls change is committed at their end.
async fn changes() -> Finding {
    let (works, found) = match toolwright::sandbox::probe_staging().await {
        Ok(()) => (true, "committed at the end of each call, from an overlay".to_owned()),
        Err(error) => (false, format!("live: calls write to folders themselves; {}", error.message())),
    };
    let fix = (!works).then(|| {
        "allow overlayfs in user namespaces (Linux 5.11 or newer), with HOME or /tmp on ext4, XFS, Btrfs or tmpfs"
            .to_owned()
    });
    Finding { what: "changes", works, found, fix }
}

fn terminal(console: &Console) -> Finding {
    let works = console.has_person();
    let found = if works {
        "somebody can be asked for approval"
    } else {
        "not a terminal: calls that need approval are refused"
    };
    let fix = (!works).then(|| "run it in a terminal, or give rules with --policy".to_owned());
    Finding { what: "approvals", works, found: found.to_owned(), fix }
}

fn transcripts() -> Finding {
    let what = "recorded runs";
    let fix = Some("set HOME, XDG_DATA_HOME or TOOLWRIGHT_RUNS to a folder that can be written".to_owned());
    let Some(folder) = runs::folder() else {
        return Finding { what, works: false, found: "there is no folder for them".to_owned(), fix };
    };
    match runs::record::make(&folder) {
        Ok(()) => {
            let found =
                format!("{} in {}; `toolwright view` shows them", runs::list().len(), folder.display());
            Finding { what, works: true, found, fix: None }
        }
        Err(error) => {
            let found = format!("{} cannot be written: {error}", folder.display());
            Finding { what, works: false, found, fix }
        }
    }
}

fn keys() -> Finding {
    let names = VENDORS.iter().flat_map(|vendor| vendor.key_variables.iter().copied());
    let mut set: Vec<&str> =
        names.filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())).collect();
    set.dedup();
    if set.is_empty() {
        let fix = Some("set ANTHROPIC_API_KEY, OPENAI_API_KEY or another vendor's; not needed for the demo model or a local server".to_owned());
        return Finding { what: "model keys", works: false, found: "no vendor's key is set".to_owned(), fix };
    }
    Finding { what: "model keys", works: true, found: set.join(", "), fix: None }
}

/// Which model answers when none is named.
fn answers() -> Finding {
    let chosen = models::wished()
        .or_else(|| models::by_key().map(|(_, name)| name))
        .or_else(|| models::by_server().map(|(_, model)| model.model));
    let fix = "set a key, or start a local server: `ollama serve`, or `llama-server -m MODEL.gguf --jinja`";
    Finding {
        what: "a real model",
        works: chosen.is_some(),
        found: chosen.clone().unwrap_or_else(|| "none; the built-in demo answers, a script".to_owned()),
        fix: chosen.is_none().then(|| fix.to_owned()),
    }
}

/// Looks for a local model server; nothing is sent.
fn server(local: &models::Local) -> Finding {
    let works = models::listens(&local.address).is_some();
    let found = format!("{} listens on {}", if works { "something" } else { "nothing" }, local.address);
    Finding { what: local.what, works, found, fix: None }
}
