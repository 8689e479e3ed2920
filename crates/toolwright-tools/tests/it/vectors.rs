//! What the standard tools of other systems were seen to do, against what ours do.
//!
//! Every observed record is accounted for in a `*_coverage.json` beside it: run here from its data, covered by a named
//! test, different on purpose, or the business of a later part. The first matching entry counts.

mod inspect;
mod llm_workers;
mod marsys;
mod marsys_tools;
mod sandbox;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use serde::Deserialize;
use serde_json::Value;
use toolwright_core::glob_match;
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Coverage {
    #[serde(rename = "match")]
    pattern: String,
    status: Status,
    by: String,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Status {
    Run,
    Covered,
    Different,
    Later,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn file(name: &str) -> PathBuf {
    root().join(format!("testdata/{name}.json"))
}

/// The records that are run from their data.
pub(crate) fn to_run(name: &str) -> Vec<Vector> {
    let coverage = coverage(name);
    let mut all: Vec<Vector> = load(&file(name)).unwrap();
    all.retain(|vector| status(&coverage, &vector.id).is_some_and(|(_, entry)| entry.status == Status::Run));
    all
}

fn coverage(name: &str) -> Vec<Coverage> {
    load(&file(&format!("{name}_coverage"))).unwrap()
}

fn status<'a>(coverage: &'a [Coverage], id: &str) -> Option<(usize, &'a Coverage)> {
    coverage.iter().enumerate().find(|(_, entry)| glob_match(&entry.pattern, id))
}

pub(crate) fn finish(tally: &Tally) {
    assert!(tally.failures.is_empty(), "{}\n{}", tally.failures.join("\n"), tally.closing_line());
    assert!(tally.passed > 0, "nothing was run");
}

pub(crate) fn cases() -> Vec<Case> {
    [inspect::cases(), llm_workers::cases(), marsys::cases(), marsys_tools::cases(), sandbox::cases()]
        .into_iter()
        .flatten()
        .collect()
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
    let coverage = coverage(name);
    let mut used = BTreeSet::new();
    for vector in load::<Vector>(&file(name)).unwrap() {
        let (index, _) =
            status(&coverage, &vector.id).unwrap_or_else(|| panic!("{} is not accounted for", vector.id));
        used.insert(index);
    }
    let sources = sources(&root().join("crates/toolwright-tools"));
    let page = std::fs::read_to_string(root().join("docs/divergences.md")).unwrap();
    for (index, entry) in coverage.iter().enumerate() {
        assert!(used.contains(&index), "{} matches nothing", entry.pattern);
        match entry.status {
            Status::Covered => {
                assert!(sources.contains(&format!("fn {}(", entry.by)), "there is no test {}", entry.by);
            }
            Status::Different => {
                assert!(page.contains(&entry.by), "docs/divergences.md does not say {:?}", entry.by);
            }
            Status::Run | Status::Later => {}
        }
    }
}

fn sources(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            all.push_str(&sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            all.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
    all
}
