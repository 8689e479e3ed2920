//! Rules about what calls changed in folders, decided before it is applied. The command is not looked at: a
//! shell, a build tool and a server are judged alike.

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::Value;
use toolwright_core::{FileChange, StagedEffect, glob_match};

use super::naming::{Naming, ToolNames};
use super::rule::{every_tool, one_or_many};

/// What a rule decides about an effect, from mildest to strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectDecision {
    /// Apply it.
    #[serde(alias = "approve", alias = "allow")]
    Commit,
    /// Let the approver decide; where nobody can be asked, it is set aside.
    Ask,
    /// Drop it.
    #[serde(alias = "reject", alias = "deny")]
    Discard,
}

/// A rule about effects, told from other rules by its key `effects`. All that it names must hold.
///
/// ```
/// use toolwright_runtime::Policy;
///
/// let policy = Policy::from_yaml(r#"
/// - effects: { deletes: { above: 20 } }
///   decision: ask
///   examples:
///     match: [{ deletes: 21 }]
///     no_match: [{ deletes: 20 }]
/// - effects: { outside: "src/**" }
///   decision: discard
///   examples:
///     match: [{ changed: [src/a.rs, Cargo.toml] }]
///     no_match: [{ changed: [src/a.rs] }]
/// "#)?;
/// assert_eq!(policy.effect_rules().len(), 2);
/// # Ok::<(), toolwright_runtime::PolicyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EffectRule {
    /// Patterns over the names of the tools whose effects it is about.
    #[serde(default = "every_tool", deserialize_with = "one_or_many")]
    pub tools: Vec<String>,
    /// Which effects.
    pub effects: EffectMatch,
    /// What to do.
    pub decision: EffectDecision,
    /// The reason, for the model and for the person who decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Effects that must, and must not, match; checked when the policy loads.
    #[serde(default, skip_serializing_if = "EffectExamples::is_empty")]
    pub examples: EffectExamples,
}

/// Which effects a rule is about; an empty one is about every change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EffectMatch {
    /// More files than this are removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletes: Option<Above>,
    /// The added and changed files have more bytes than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Above>,
    /// A path that none of these patterns matches is changed.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "patterns")]
    pub outside: Vec<String>,
    /// A path that one of these patterns matches is changed; a rule that commits, all paths are.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "patterns")]
    pub touches: Vec<String>,
    /// A file can be executed that could not, or was not there, before (or, with `false`, none).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executable: Option<bool>,
    /// A file that programs outside obey is changed (or, with `false`, none).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected: Option<bool>,
}

/// A count or a number of bytes that is exceeded, as `{above: 20}` or `{above: 50MB}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Above {
    /// The number that is still allowed.
    #[serde(deserialize_with = "amount")]
    pub above: u64,
}

/// Effects that prove a rule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EffectExamples {
    /// Effects the rule is about.
    #[serde(rename = "match")]
    pub matching: Vec<EffectExample>,
    /// Effects it is not about.
    pub no_match: Vec<EffectExample>,
}

impl EffectExamples {
    fn is_empty(&self) -> bool {
        self.matching.is_empty() && self.no_match.is_empty()
    }
}

/// An effect as an example: paths relative to the folder, and counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EffectExample {
    /// The tool, where the rule names no single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Paths that are added or changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Paths that are removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// How many files are removed, where their names do not matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletes: Option<u64>,
    /// How many bytes are written.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "some_amount")]
    pub bytes: Option<u64>,
    /// Paths that can be executed, and could not before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub executable: Vec<String>,
    /// Paths that programs outside obey.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<String>,
}

fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let list = match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list
            .into_iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| D::Error::custom("a pattern is text")))
            .collect::<Result<_, _>>()?,
        _ => return Err(D::Error::custom("a pattern, or a list of patterns")),
    };
    match list.iter().any(|pattern| pattern.is_empty() || pattern.starts_with('/')) || list.is_empty() {
        true => Err(D::Error::custom("a pattern is a path relative to the folder, as `src/**`")),
        false => Ok(list),
    }
}

fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let value = Value::deserialize(deserializer)?;
    read_amount(&value).ok_or_else(|| {
        D::Error::custom(format!("expected a number, or one with kB, MB, GB, KiB, MiB or GiB, got {value}"))
    })
}

fn some_amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    amount(deserializer).map(Some)
}

fn read_amount(value: &Value) -> Option<u64> {
    let Value::String(text) = value else { return value.as_u64() };
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let factor: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// Whether a path, relative to its folder, fits a pattern: `*` stays within a part of the path, and `**`
/// stands for any number of parts.
pub(super) fn path_match(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    // For each pattern part, which lengths of the path the parts before it can have matched.
    let mut reached = vec![false; path.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for part in pattern {
        let mut next = vec![false; path.len() + 1];
        for (at, _) in reached.iter().enumerate().filter(|(_, reached)| **reached) {
            if part == "**" {
                next.iter_mut().skip(at).for_each(|one| *one = true);
            } else if path.get(at).is_some_and(|name| glob_match(part, name))
                && let Some(one) = next.get_mut(at + 1)
            {
                *one = true;
            }
        }
        reached = next;
    }
    reached.last().copied().unwrap_or_default()
}

/// A rule that is ready to judge.
#[derive(Debug, Clone)]
pub(super) struct CompiledEffectRule {
    naming: Naming,
    pub(super) rule: EffectRule,
}

impl CompiledEffectRule {
    /// Compiles a rule and tries its examples; the error says what is wrong.
    pub(super) fn new(rule: EffectRule) -> Result<Self, String> {
        if rule.tools.iter().any(|tool| tool.contains('(')) {
            return Err("a rule about effects names tools, not calls".to_owned());
        }
        let compiled = CompiledEffectRule { naming: Naming::new(&rule.tools)?, rule };
        let examples = &compiled.rule.examples;
        for (examples, wanted) in [(&examples.matching, true), (&examples.no_match, false)] {
            for example in examples {
                let staged = example.staged();
                let tool = example.tool.as_deref().unwrap_or("example");
                let names = ToolNames { now: tool, before: &[] };
                let named = example.tool.is_none() || compiled.naming.is_about(names);
                if (named && compiled.holds(&staged)) != wanted {
                    let verb = if wanted { "does not match" } else { "matches" };
                    let example = serde_json::to_string(example).unwrap_or_default();
                    return Err(format!("the rule {verb} its example {example}"));
                }
            }
        }
        Ok(compiled)
    }

    pub(super) fn matches(&self, staged: &StagedEffect, tool: &str) -> bool {
        self.naming.is_about(ToolNames { now: tool, before: &[] }) && self.holds(staged)
    }

    /// Whether the rule is about this effect. What is not listed is taken for whatever makes the rule
    /// stricter.
    fn holds(&self, staged: &StagedEffect) -> bool {
        let EffectMatch { deletes, bytes, outside, touches, executable, protected } = &self.rule.effects;
        let commits = self.rule.decision == EffectDecision::Commit;
        let unlisted = staged.more > 0;
        let any = |test: &dyn Fn(&str) -> bool| paths(staged).any(|path| test(&path));
        let fits = |patterns: &[String], path: &str| patterns.iter().any(|one| path_match(one, path));
        let above = |limit: &Option<Above>, actual: u64| limit.is_none_or(|limit| actual > limit.above);
        let says = |wanted: &Option<bool>, actual: bool, stricter: bool| {
            wanted.is_none_or(|wanted| if unlisted { stricter } else { wanted == actual })
        };
        above(deletes, staged.deletes)
            && above(bytes, staged.bytes)
            && (outside.is_empty() || any(&|path| !fits(outside, path)) || (unlisted && !commits))
            && (touches.is_empty()
                || match commits {
                    true => !unlisted && !any(&|path| !fits(touches, path)),
                    false => unlisted || any(&|path| fits(touches, path)),
                })
            && says(executable, changes(staged).any(|change| change.executable), !commits)
            && says(protected, !staged.protected.is_empty(), !commits)
    }

    /// Whether the rule speaks of the protected files, so that it can have them changed.
    pub(super) fn covers_protected(&self) -> bool {
        let EffectMatch { touches, protected, .. } = &self.rule.effects;
        !touches.is_empty() || *protected == Some(true)
    }
}

fn changes(staged: &StagedEffect) -> impl Iterator<Item = &FileChange> {
    staged.changes.iter().chain(&staged.protected)
}

/// The paths that are changed, relative to their folders; those that files were moved from among them.
fn paths(staged: &StagedEffect) -> impl Iterator<Item = String> {
    let all = changes(staged).flat_map(|change| [Some(&change.path), change.from.as_ref()]).flatten();
    all.map(|path| relative(staged, path))
}

/// A path relative to the innermost folder that it lies in.
pub(super) fn relative(staged: &StagedEffect, path: &str) -> String {
    let inside = |folder: &String| path.strip_prefix(folder.as_str())?.strip_prefix('/');
    let shortest = staged.folders.iter().filter_map(inside).min_by_key(|rest| rest.len());
    shortest.unwrap_or(path).trim_end_matches('/').to_owned()
}

impl EffectExample {
    fn staged(&self) -> StagedEffect {
        let mut staged = StagedEffect::default();
        let change = |path: &String, removed: bool| {
            let kind = match removed {
                true => toolwright_core::ChangeKind::Removed,
                false => toolwright_core::ChangeKind::Changed,
            };
            let mut change = FileChange::new(path.clone(), kind);
            change.executable = self.executable.contains(path);
            change
        };
        let run_only = self.executable.iter().filter(|path| !self.changed.contains(path));
        staged.changes.extend(self.changed.iter().chain(run_only).map(|path| change(path, false)));
        staged.changes.extend(self.removed.iter().map(|path| change(path, true)));
        staged.protected.extend(self.protected.iter().map(|path| change(path, false)));
        staged.deletes = self.deletes.unwrap_or(self.removed.len() as u64);
        staged.bytes = self.bytes.unwrap_or_default();
        staged
    }
}

/// The most files that are removed without a question, where no rule says otherwise.
const MAX_DELETES: u64 = 20;

/// Folders in which programs are built or installed; new executables belong there.
const BUILD_FOLDERS: [&str; 18] = [
    "target",
    "build",
    "dist",
    "out",
    "node_modules",
    ".venv",
    "venv",
    "env",
    "__pycache__",
    "obj",
    ".tox",
    ".nox",
    ".next",
    ".gradle",
    "_build",
    "vendor",
    ".cache",
    ".cargo",
];

/// Why somebody is asked about an effect that no rule is about; the second says that it is for the protected
/// files alone.
pub(super) fn default_reason(staged: &StagedEffect) -> Option<(String, bool)> {
    let mut reasons = Vec::new();
    if staged.deletes > MAX_DELETES {
        reasons.push(format!("{} files would be removed", staged.deletes));
    } else if staged.deletes_most {
        reasons.push(format!("{} files would be removed, more than half of the folder", staged.deletes));
    }
    let is_built = |path: &str| {
        relative(staged, path).split('/').any(|part| {
            BUILD_FOLDERS.contains(&part) || part.starts_with("cmake-build-") || part.ends_with(".egg-info")
        })
    };
    let runs = staged.changes.iter().filter(|change| change.executable && !is_built(&change.path));
    let runs: Vec<String> = runs.take(3).map(|change| relative(staged, &change.path)).collect();
    if !runs.is_empty() {
        reasons.push(format!("new programs outside of build folders: {}", runs.join(", ")));
    }
    if staged.more > 0 {
        reasons.push(format!("{} changes are more than can be looked at", staged.more));
    }
    let only_protected = reasons.is_empty() && !staged.ask;
    if !staged.protected.is_empty() {
        let named: Vec<String> =
            staged.protected.iter().take(3).map(|change| relative(staged, &change.path)).collect();
        reasons.push(format!("programs outside obey {}", named.join(", ")));
    }
    if reasons.is_empty() && staged.ask {
        reasons.push("`changes` of the sandbox is `ask`".to_owned());
    }
    (!reasons.is_empty()).then(|| (reasons.join("; "), only_protected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_over_paths_stay_within_a_part_unless_doubled() {
        for (pattern, path, wanted) in [
            ("src/**", "src/a/b.rs", true),
            ("src/**", "src", true),
            ("src/**", "srcs/a", false),
            ("**/*.lock", "yarn.lock", true),
            ("**/*.lock", "a/b/Cargo.lock", true),
            ("**/*.lock", "a/b/Cargo.locks", false),
            ("*.rs", "a.rs", true),
            ("*.rs", "src/a.rs", false),
            (".git/**", ".git/hooks/x", true),
            ("a/**/z", "a/z", true),
            ("a/**/z", "a/b/c/z", true),
            ("a/**/z", "a/b/c/y", false),
            ("**", "anything/at/all", true),
            ("a/*/c", "a/b/c", true),
            ("a/*/c", "a/b/b/c", false),
        ] {
            assert_eq!(path_match(pattern, path), wanted, "{pattern} {path}");
        }
    }

    #[test]
    fn amounts_have_units() {
        for (text, wanted) in [
            (serde_json::json!("50MB"), Some(50_000_000)),
            (serde_json::json!("1 GiB"), Some(1 << 30)),
            (serde_json::json!(7), Some(7)),
            (serde_json::json!("7 b"), Some(7)),
            (serde_json::json!("7 m"), None),
            (serde_json::json!(-1), None),
            (serde_json::json!("99999999999GB"), None),
        ] {
            assert_eq!(read_amount(&text), wanted, "{text}");
        }
    }
}
