//! One verdict for a whole shell text, from a rule that knows single commands.

use crate::grammar::{ShellPart, parts};

/// What a rule says about a command, from the most lenient to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShellVerdict {
    /// Run it.
    Approve,
    /// A person decides.
    Ask,
    /// Do not run it.
    Reject,
}

/// The verdict about a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The strictest verdict about any part of the text.
    pub verdict: ShellVerdict,
    /// The part that decided, in words for a person; `None` when everything is approved.
    pub reason: Option<String>,
}

/// Judges every part of `text` by `rule`, which returns `None` for a part it says nothing about. Nothing is
/// approved unless every part is.
///
/// Besides the parts, the rule is asked about the text as a whole and about each wrapper around a command:
/// there only a stricter verdict counts, so `reject` of `sudo *` or of `*secret*` holds, and `approve` of `sh
/// *` approves nothing that the shell would start.
pub fn judge(text: &str, rule: impl Fn(&str) -> Option<ShellVerdict>) -> Judgement {
    let mut judgement = Judgement { verdict: ShellVerdict::Approve, reason: None };
    if let Some(verdict) = rule(text) {
        judgement.at_least(verdict, || format!("`{}` as a whole", shortened(text)));
    }
    match parts(text) {
        Ok(parts) => parts.iter().for_each(|part| judgement.with_part(part, &rule)),
        Err(unreadable) => judgement.at_least(ShellVerdict::Ask, || unreadable.to_string()),
    }
    judgement
}

impl Judgement {
    fn with_part(&mut self, part: &ShellPart, rule: &impl Fn(&str) -> Option<ShellVerdict>) {
        for wrapper in &part.wrappers {
            if let Some(verdict) = rule(wrapper) {
                self.at_least(verdict, || format!("`{}`", shortened(wrapper)));
            }
        }
        match rule(&part.text) {
            Some(verdict) => self.at_least(verdict, || format!("`{}`", shortened(&part.text))),
            None => {
                self.at_least(ShellVerdict::Ask, || format!("no rule is about `{}`", shortened(&part.text)))
            }
        }
        if let Some(why) = &part.opaque {
            self.at_least(ShellVerdict::Ask, || format!("`{}`: {why}", shortened(&part.text)));
        }
    }

    fn at_least(&mut self, verdict: ShellVerdict, reason: impl FnOnce() -> String) {
        if verdict > self.verdict {
            (self.verdict, self.reason) = (verdict, Some(reason()));
        }
    }
}

/// The beginning of a text, for a reason that is one line long.
fn shortened(text: &str) -> String {
    const MOST: usize = 120;
    let mut short: String = text.chars().take(MOST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
