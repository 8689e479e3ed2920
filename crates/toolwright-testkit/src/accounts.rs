//! Accounts of observed records: each is run from its data, covered by a named test, different on purpose, or
//! the business of a later part. The first matching entry counts.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use serde::Deserialize;
use toolwright_core::glob_match;

use crate::vectors::{VectorError, load};

/// What became of the records of a vector file.
#[derive(Debug, Clone)]
pub struct Accounts {
    entries: Vec<AccountEntry>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountEntry {
    /// A pattern over ids.
    #[serde(rename = "match")]
    pattern: String,
    status: AccountStatus,
    /// The test that covers it, or why it is not covered.
    by: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AccountStatus {
    /// Run from its data.
    Run,
    /// Covered by a test of that name.
    Covered,
    /// Different on purpose; the page of differences says why.
    Different,
    /// The business of a part that does not exist yet.
    Later,
}

impl Accounts {
    /// Reads a file of accounts: a list of `match`, `status` and `by`.
    pub fn load(path: &Path) -> Result<Accounts, VectorError> {
        Ok(Accounts { entries: load(path)? })
    }

    fn entry(&self, id: &str) -> Option<(usize, &AccountEntry)> {
        self.entries.iter().enumerate().find(|(_, entry)| glob_match(&entry.pattern, id))
    }

    /// What became of a record, as a sentence; `None` for one that is run from its data, or that no entry
    /// matches.
    pub fn explanation(&self, id: &str) -> Option<String> {
        let (_, AccountEntry { status, by, .. }) = self.entry(id)?;
        match status {
            AccountStatus::Run => None,
            AccountStatus::Covered => Some(format!("covered by the test `{by}`")),
            AccountStatus::Different => Some(format!("different on purpose: {by}")),
            AccountStatus::Later => Some(format!("not supported: {by}")),
        }
    }

    /// Whether a record is different on purpose, or covered by a test.
    pub fn is_settled(&self, id: &str) -> bool {
        self.entry(id).is_some_and(|(_, entry)| {
            matches!(entry.status, AccountStatus::Covered | AccountStatus::Different)
        })
    }

    /// Whether a record is run from its data.
    pub fn is_run(&self, id: &str) -> bool {
        self.entry(id).is_some_and(|(_, entry)| entry.status == AccountStatus::Run)
    }

    /// What is wrong with the accounts of these records: one that is missing, an entry without a record, a
    /// test that is in no source below `sources`, a difference that `page` does not state.
    pub fn problems(&self, ids: &[&str], sources: &Path, page: &Path) -> io::Result<Vec<String>> {
        let mut problems = Vec::new();
        let mut used = BTreeSet::new();
        for id in ids {
            match self.entry(id) {
                Some((index, _)) => drop(used.insert(index)),
                None => problems.push(format!("{id} is not accounted for")),
            }
        }
        let mut code = String::new();
        read_sources(sources, &mut code)?;
        let page = std::fs::read_to_string(page)?;
        for (index, AccountEntry { pattern, status, by }) in self.entries.iter().enumerate() {
            if !used.contains(&index) {
                problems.push(format!("{pattern} matches nothing"));
            }
            match status {
                AccountStatus::Covered if !code.contains(&format!("fn {by}(")) => {
                    problems.push(format!("{pattern}: there is no test {by}"));
                }
                AccountStatus::Different if !page.contains(by) => {
                    problems.push(format!("{pattern}: the page of differences does not say {by:?}"));
                }
                _ => {}
            }
        }
        Ok(problems)
    }
}

fn read_sources(folder: &Path, all: &mut String) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_sources(&path, all)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            all.push_str(&std::fs::read_to_string(path)?);
        }
    }
    Ok(())
}
