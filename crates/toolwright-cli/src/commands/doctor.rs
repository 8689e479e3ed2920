//! `toolwright doctor`: what works here, and how to get the rest.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;
use toolwright::vendor::VENDORS;

use crate::toolbox;

/// One thing that was looked at.
#[derive(serde::Serialize)]
struct Finding {
    what: &'static str,
    works: bool,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

pub async fn run(json: bool) -> anyhow::Result<()> {
    let mut findings = vec![tools()?, sandbox().await, terminal(), transcripts(), keys()];
    findings.extend([server("llama.cpp server", 8080).await, server("Ollama server", 11434).await]);
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string_pretty(&findings)?)?;
        return Ok(());
    }
    writeln!(
        out,
        "toolwright {} on {} {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    )?;
    for finding in &findings {
        let mark = if finding.works { "ok     " } else { "missing" };
        writeln!(out, "{mark} {:<18} {}", finding.what, finding.found)?;
        if let Some(fix) = &finding.fix {
            writeln!(out, "        {:<18} {fix}", "")?;
        }
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
    let found = match names.as_slice() {
        [] => format!("all {on} layers"),
        names => format!("{on} of {} layers; without {}", reports.len(), names.join(", ")),
    };
    let needed = missing.iter().find(|report| required(&report.layer));
    let fix = needed.map(|report| {
        let reason = report.reason.as_deref().unwrap_or("the kernel does not give it");
        format!("{}: {reason}", report.layer)
    });
    Finding { what: "sandbox", works: fix.is_none(), found, fix }
}

fn terminal() -> Finding {
    let works = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let found = if works {
        "somebody can be asked for approval"
    } else {
        "not a terminal: calls that need approval are refused"
    };
    let fix = (!works).then(|| "run it in a terminal, or give rules with --policy".to_owned());
    Finding { what: "approvals", works, found: found.to_owned(), fix }
}

fn transcripts() -> Finding {
    let path = std::env::temp_dir().join(format!("toolwright-doctor-{}", std::process::id()));
    let written = std::fs::write(&path, "{}\n");
    let removed = std::fs::remove_file(&path);
    match written.and(removed) {
        Ok(()) => {
            Finding { what: "transcripts", works: true, found: "files can be written".to_owned(), fix: None }
        }
        Err(error) => Finding {
            what: "transcripts",
            works: false,
            found: format!("the temporary folder cannot be written: {error}"),
            fix: Some("set TMPDIR to a folder that can".to_owned()),
        },
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

/// Looks for a local model server; nothing is sent.
async fn server(what: &'static str, port: u16) -> Finding {
    let address = ("127.0.0.1", port);
    let connect =
        tokio::time::timeout(Duration::from_millis(300), tokio::net::TcpStream::connect(address)).await;
    let works = matches!(connect, Ok(Ok(_)));
    let found = if works {
        format!("something listens on port {port}")
    } else {
        format!("nothing listens on port {port}")
    };
    Finding { what, works, found, fix: None }
}
