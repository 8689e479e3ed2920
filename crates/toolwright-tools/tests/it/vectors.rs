//! What the standard tools of other systems were seen to do, against what ours do.
//!
//! Every observed record is accounted for in a `*_coverage.json` beside it: run here from its data, covered
//! by a named test, different on purpose, or the business of a later part. The first matching entry counts.

mod inspect;
mod llm_workers;
mod marsys;
mod marsys_pages;
mod marsys_tools;
mod sandbox;

use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use serde::Deserialize;
use serde_json::Value;
use toolwright_testkit::accounts::Accounts;
use toolwright_testkit::vectors::{Tally, load};

use crate::support::Case;

/// The systems and their files.
const FILES: [&str; 4] = ["inspect/tools", "inspect/sandbox", "llm_workers/fs", "marsys/tools"];

#[derive(Deserialize, Clone)]
pub(crate) struct Vector {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) area: String,
    #[serde(default)]
    pub(crate) tool: String,
    #[serde(default, alias = "input")]
    pub(crate) given: Value,
    #[serde(default, alias = "output", alias = "expect")]
    pub(crate) observed: Value,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn file(name: &str) -> PathBuf {
    root().join(format!("testdata/{name}.json"))
}

/// Whether `cargo xtask vectors` asks for the records of a file of its own. It names the file, the system the
/// records are of, and a file for the results.
pub(crate) fn is_asked() -> bool {
    std::env::var_os("TOOLWRIGHT_VECTORS").is_some()
}

/// A tally, which reports to `cargo xtask vectors` if that asks.
pub(crate) fn tally() -> Tally {
    let report = std::env::var_os("TOOLWRIGHT_VECTORS_REPORT").map(PathBuf::from);
    Tally { report, ..Tally::default() }
}

/// The records that are run from their data.
pub(crate) fn to_run(name: &str) -> Vec<Vector> {
    let accounts = accounts(name);
    let mut all: Vec<Vector> = match std::env::var_os("TOOLWRIGHT_VECTORS") {
        // A record of another shape is missing in the report, and so fails there.
        Some(asked) => {
            let system = std::env::var("TOOLWRIGHT_VECTORS_SYSTEM").unwrap_or_default();
            let all: Vec<Value> = load(Path::new(&asked)).unwrap_or_default();
            let is_asked = name.split('/').next() == Some(&system);
            all.into_iter().filter(|_| is_asked).filter_map(|one| serde_json::from_value(one).ok()).collect()
        }
        None => load(&file(name)).unwrap(),
    };
    all.retain(|vector| accounts.is_run(&vector.id));
    all
}

fn accounts(name: &str) -> Accounts {
    Accounts::load(&file(&format!("{name}_coverage"))).unwrap()
}

pub(crate) fn finish(tally: &Tally) {
    if is_asked() {
        return;
    }
    assert!(tally.failures.is_empty(), "{}\n{}", tally.failures.join("\n"), tally.closing_line());
    assert!(tally.passed > 0, "nothing was run");
}

pub(crate) fn cases() -> Vec<Case> {
    let inspect = [inspect::cases(), sandbox::cases()];
    let marsys = [marsys::cases(), marsys_pages::cases(), marsys_tools::cases()];
    // A runner that finds no record of its own has nothing to prove.
    match std::env::var("TOOLWRIGHT_VECTORS_SYSTEM").as_deref() {
        Ok("inspect") => inspect.into_iter().flatten().collect(),
        Ok("marsys") => marsys.into_iter().flatten().collect(),
        _ => inspect.into_iter().chain(marsys).flatten().chain(llm_workers::cases()).collect(),
    }
}

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &'static str| {
        Trial::test(format!("vectors::{name}::every_record_is_accounted_for"), move || {
            check_accounts(name);
            Ok::<(), Failed>(())
        })
    };
    FILES.into_iter().map(trial).collect()
}

fn check_accounts(name: &str) {
    let all: Vec<Vector> = load(&file(name)).unwrap();
    let ids: Vec<&str> = all.iter().map(|vector| vector.id.as_str()).collect();
    let (sources, page) = (root().join("crates/toolwright-tools"), root().join("docs/divergences.md"));
    let problems = accounts(name).problems(&ids, &sources, &page).unwrap();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
