//! `cargo xtask tidy`: house rules that no compiler checks, as a ratchet.
//!
//! `xtask/tidy.toml` holds how many offences each part of the repository still has. A number may only go
//! down: more is an error, and so is fewer until `cargo xtask tidy --write` has lowered the number.

mod rules;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
pub use rules::names;
use rules::{Findings, RULES};

use crate::source;

/// The first lines of the file of numbers.
const HEAD: &str = "\
# How many offences against the house rules are left (`cargo xtask tidy`). Numbers may only go down;
# `cargo xtask tidy --write` lowers them. `names` needs a reason for each type name in more than two modules.
";

/// How many offences are allowed: for each rule, by part of the repository or by type name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Allowed {
    counts: BTreeMap<String, BTreeMap<String, usize>>,
    /// Why a type name may be in several modules.
    reasons: BTreeMap<String, String>,
}

/// Checks the house rules; with `write`, lowers the numbers first.
pub fn run(write: bool) -> Result<()> {
    let path = crate::root().join("xtask/tidy.toml");
    let findings = rules::find(&source::rust()?, &source::pages()?);
    let mut allowed = match std::fs::read_to_string(&path) {
        Ok(text) => Allowed::read(&text).with_context(|| path.display().to_string())?,
        // The first numbers are today's.
        Err(_) if write => Allowed::of(&findings),
        Err(error) => return Err(error).context("xtask/tidy.toml"),
    };
    if write {
        allowed.lower(&findings);
        std::fs::write(&path, allowed.text())?;
    }
    let problems = allowed.problems(&findings);
    if problems.is_empty() { Ok(()) } else { bail!("house rules:\n{}", problems.join("\n")) }
}

impl Allowed {
    fn of(findings: &Findings) -> Allowed {
        let counts = findings.iter().map(|(rule, parts)| {
            (rule.to_string(), parts.iter().map(|(part, places)| (part.clone(), places.len())).collect())
        });
        Allowed { counts: counts.collect(), reasons: BTreeMap::new() }
    }

    fn read(text: &str) -> Result<Allowed> {
        let table: toml::Table = text.parse()?;
        let mut allowed = Allowed::default();
        for (rule, entries) in &table {
            if !RULES.iter().any(|(name, _)| name == rule) {
                bail!("`{rule}` is not a rule");
            }
            for (part, entry) in entries.as_table().context("not a table")? {
                let count = entry.get("modules").unwrap_or(entry).as_integer();
                let count = count.and_then(|count| usize::try_from(count).ok());
                let count = count.with_context(|| format!("{rule}.{part}: not a number"))?;
                allowed.counts.entry(rule.clone()).or_default().insert(part.clone(), count);
                if let Some(reason) = entry.get("reason").and_then(toml::Value::as_str) {
                    allowed.reasons.insert(part.clone(), reason.to_owned());
                }
            }
        }
        Ok(allowed)
    }

    fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (rule, about) in RULES {
            let Some(parts) = self.counts.get(*rule).filter(|parts| !parts.is_empty()) else { continue };
            let _ = write!(text, "\n# {about}\n[{rule}]\n");
            for (part, count) in parts {
                let reason = self.reasons.get(part).map(String::as_str).unwrap_or_default();
                let _ = if *rule == "names" {
                    writeln!(text, "{part} = {{ modules = {count}, reason = {reason:?} }}")
                } else {
                    writeln!(text, "{part} = {count}")
                };
            }
        }
        text
    }

    /// Lowers each number to what was found. None is raised.
    fn lower(&mut self, findings: &Findings) {
        for (rule, parts) in &mut self.counts {
            let found = |part: &str| {
                findings.get(rule.as_str()).and_then(|parts| parts.get(part)).map_or(0, Vec::len)
            };
            for (part, count) in parts.iter_mut() {
                *count = found(part).min(*count);
            }
            parts.retain(|_, count| *count > 0);
        }
        self.reasons.retain(|name, _| self.counts.get("names").is_some_and(|names| names.contains_key(name)));
    }

    fn problems(&self, findings: &Findings) -> Vec<String> {
        let mut problems = Vec::new();
        for (rule, about) in RULES {
            let none = (BTreeMap::new(), BTreeMap::new());
            let found = findings.get(rule).unwrap_or(&none.0);
            let allowed = self.counts.get(*rule).unwrap_or(&none.1);
            for (part, places) in found {
                let most = allowed.get(part).copied().unwrap_or(0);
                if places.len() > most {
                    let list = places.join("\n    ");
                    problems.push(format!(
                        "  {rule}: {part} has {}, at most {most} ({about})\n    {list}",
                        places.len()
                    ));
                }
            }
            for (part, most) in allowed {
                let count = found.get(part).map_or(0, Vec::len);
                if count < *most {
                    problems.push(format!(
                        "  {rule}: {part} is down to {count} from {most}; run `cargo xtask tidy --write`"
                    ));
                }
                if *rule == "names" && self.reasons.get(part).is_none_or(|reason| reason.trim().is_empty()) {
                    problems.push(format!("  names: `{part}` needs a `reason` in xtask/tidy.toml"));
                }
            }
        }
        problems
    }
}

/// A file and a line, as a terminal can open it.
fn place(path: &Path, line: usize) -> String {
    format!("{}:{line}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(rule: &'static str, part: &str, count: usize) -> Findings {
        let places = (1..=count).map(|line| format!("a.rs:{line}")).collect();
        Findings::from([(rule, BTreeMap::from([(part.to_owned(), places)]))])
    }

    #[test]
    fn numbers_may_only_go_down() {
        let allowed = Allowed::read("[width]\ncore = 2\n").unwrap();
        assert_eq!(allowed.problems(&findings("width", "core", 2)), Vec::<String>::new());
        let more = allowed.problems(&findings("width", "core", 3)).concat();
        assert!(more.contains("core has 3, at most 2") && more.contains("a.rs:3"), "{more}");
        let fewer = allowed.problems(&findings("width", "core", 1)).concat();
        assert!(fewer.contains("down to 1 from 2"), "{fewer}");
        let other = allowed.problems(&findings("width", "lang", 1)).concat();
        assert!(other.contains("lang has 1, at most 0") && other.contains("core is down to 0"), "{other}");
    }

    #[test]
    fn lowering_never_raises() {
        let mut allowed = Allowed::read("[width]\ncore = 2\nlang = 1\n").unwrap();
        allowed.lower(&findings("width", "core", 5));
        assert_eq!(allowed.counts["width"], BTreeMap::from([("core".to_owned(), 2)]));
        allowed.lower(&findings("width", "core", 1));
        assert_eq!(allowed.counts["width"], BTreeMap::from([("core".to_owned(), 1)]));
    }

    #[test]
    fn what_is_written_is_read() {
        let text = "[names]\nKind = { modules = 3, reason = \"a \\\"kind\\\"\" }\n[headers]\ncore = 4\n";
        let allowed = Allowed::read(text).unwrap();
        assert_eq!(allowed.reasons["Kind"], "a \"kind\"");
        assert_eq!(Allowed::read(&allowed.text()).unwrap(), allowed);
    }

    #[test]
    fn a_name_needs_a_reason_and_a_rule_must_exist() {
        let allowed = Allowed::read("[names]\nKind = { modules = 3 }\n").unwrap();
        let problems = allowed.problems(&findings("names", "Kind", 3)).concat();
        assert!(problems.contains("`Kind` needs a `reason`"), "{problems}");
        assert!(Allowed::read("[nothing]\n").is_err());
    }
}
