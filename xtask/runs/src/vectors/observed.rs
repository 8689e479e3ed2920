//! Observed behaviour of Inspect and MARSYS, run through the integration tests that know how to map each
//! record.
//!
//! The tests of the runtime and of the standard tools hold one runner for each kind of record. They read the
//! file named in
//! `TOOLWRIGHT_VECTORS`, and write a line for each record they checked. What they did not check is looked up
//! in `testdata/SYSTEM/*coverage.json`: different on purpose, or covered by a test with other data, counts as
//! skipped; a record that cannot be mapped has failed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::Value;
use toolwright_testkit::accounts::Accounts;

use super::Tally;

/// The tests that have runners: the package, and what their names contain.
const RUNNERS: [(&str, &str); 2] = [("toolwright-runtime", "vectors::"), ("toolwright-tools", "")];

/// Runs files of records of one system.
pub fn run(system: &str, files: &[PathBuf]) -> Result<Tally> {
    let accounts = accounts(system)?;
    let mut tally = Tally::default();
    let mut skipped = BTreeMap::<String, usize>::new();
    for file in files {
        let file = file.canonicalize().with_context(|| file.display().to_string())?;
        let records: Vec<Value> = toolwright_testkit::vectors::load(&file)?;
        let outcomes = outcomes(system, &file)?;
        for (index, record) in records.iter().enumerate() {
            let Some(id) = record["id"].as_str() else {
                tally.fail(&format!("record {index}"), "an `id`", "none");
                continue;
            };
            let settled = accounts.iter().find(|accounts| accounts.is_settled(id));
            match (outcomes.get(id), settled) {
                (Some(None), _) => tally.pass(),
                (Some(Some(failure)), _) => tally.failures.push(failure.clone()),
                (None, Some(accounts)) => {
                    tally.skip();
                    let reason = accounts.explanation(id).unwrap_or_default();
                    let kind = reason.split(':').next().filter(|kind| reason.len() > kind.len());
                    *skipped.entry(kind.unwrap_or("covered by a named test").to_owned()).or_default() += 1;
                }
                (None, None) => {
                    let reason = accounts.iter().find_map(|accounts| accounts.explanation(id));
                    let reason = reason.unwrap_or_else(|| "there is no way to run it".to_owned());
                    tally.fail(id, "a way to run it", reason);
                }
            }
        }
    }
    for (reason, count) in skipped {
        println!("skipped: {count} {reason}");
    }
    Ok(tally)
}

/// The accounts of a system's records, one file for each family of tests.
fn accounts(system: &str) -> Result<Vec<Accounts>> {
    let folder = crate::root().join("testdata").join(system);
    let mut all = Vec::new();
    for name in ["coverage", "tools_coverage", "sandbox_coverage"] {
        let path = folder.join(format!("{name}.json"));
        if path.exists() {
            all.push(Accounts::load(&path)?);
        }
    }
    Ok(all)
}

/// What the runners found for each record: `None` if it did what was observed, else what differs. A record
/// that several runners or backends check must pass everywhere.
fn outcomes(system: &str, file: &Path) -> Result<BTreeMap<String, Option<String>>> {
    let folder = tempfile::tempdir()?;
    let report = folder.path().join("report.jsonl");
    for (package, filter) in RUNNERS {
        let mut command = Command::new(env!("CARGO"));
        command.args(["test", "--quiet", "--package", package, "--test", "it", "--", filter]);
        command.env("TOOLWRIGHT_VECTORS", file).env("TOOLWRIGHT_VECTORS_SYSTEM", system);
        command.env("TOOLWRIGHT_VECTORS_REPORT", &report).current_dir(crate::root());
        // A runner that panics over a record leaves the others of its group unchecked; the report shows
        // which.
        let status = command.stdout(Stdio::null()).status().with_context(|| format!("{command:?}"))?;
        if !status.success() {
            eprintln!("a runner of {package} stopped early ({status})");
        }
    }
    let text = std::fs::read_to_string(&report).unwrap_or_default();
    let mut outcomes = BTreeMap::<String, Option<String>>::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line)?;
        let (Some(id), failure) = (line["id"].as_str(), line["failure"].as_str()) else { continue };
        let outcome = outcomes.entry(id.to_owned()).or_default();
        if outcome.is_none() {
            *outcome = failure.map(str::to_owned);
        }
    }
    Ok(outcomes)
}
