//! Which calls a rule names: patterns over the names of tools, and over whole calls.
//!
//! A pattern never becomes wider than it was written: what cannot be read for certain is refused when the
//! policy loads.

use std::sync::Arc;

use serde_json::Value;
use toolwright_core::{ToolCall, glob_match};

use super::call_text::{Writing, call_text};
use super::matching::{Aliases, ordered, plain};

/// Patterns over calls. Those with a leading `!` take calls away; only such patterns means "all but these".
#[derive(Debug, Clone)]
pub(super) struct Naming {
    wanted: Vec<CallPattern>,
    unwanted: Vec<CallPattern>,
    writings: Writings,
}

#[derive(Debug, Clone)]
enum CallPattern {
    Name(String),
    /// The start of a whole call, as in `add(x=1`.
    Call(String),
}

/// In which writings of a call a pattern over whole calls must fit.
#[derive(Debug, Clone, Copy)]
enum Writings {
    /// Any of these.
    Any(&'static [Writing]),
    /// All of these.
    All(&'static [Writing]),
}

impl CallPattern {
    /// The pattern over names.
    fn tool(&self) -> &str {
        match self {
            CallPattern::Name(name) => name,
            CallPattern::Call(call) => call.split('(').next().unwrap_or(call),
        }
    }

    /// A `*` may reach from the name into the arguments, as in `*rm -rf*`.
    fn is_about(&self, tool: &str) -> bool {
        let CallPattern::Call(call) = self else { return glob_match(self.tool(), tool) };
        let mut stars = call.match_indices('*').filter_map(|(at, _)| call.get(..=at));
        glob_match(self.tool(), tool) || stars.any(|start| glob_match(start, tool))
    }
}

impl Naming {
    pub(super) fn new(texts: &[String]) -> Result<Self, String> {
        if texts.is_empty() {
            return Err("`tools` is empty, so the rule is about nothing".to_owned());
        }
        let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
        for text in texts {
            let text = text.trim();
            let (list, pattern) = match text.strip_prefix('!') {
                Some(rest) => (&mut unwanted, rest.trim_start()),
                None => (&mut wanted, text),
            };
            list.push(match pattern {
                "" => return Err("a pattern of `tools` is empty; `*` means every tool".to_owned()),
                call if call.contains('(') => CallPattern::Call(format!("{call}*")),
                name => CallPattern::Name(name.to_owned()),
            });
        }
        if wanted.is_empty() {
            wanted.push(CallPattern::Name("*".to_owned()));
        }
        Ok(Naming { wanted, unwanted, writings: Writings::Any(&[Writing::Ours]) })
    }

    /// The patterns of an entry of an `approvers:` file, read as Inspect does: commas part them, each is the
    /// start of a whole call in Inspect's own writing. There a value's quotes are bare, so that it can
    /// pretend to be more than one argument. An entry that lets a call pass is therefore about no more than
    /// what also fits with quotes escaped, its calls are not cut at their commas, and what reads as a name is
    /// a name. Any other entry is about what fits in any writing, ours among them.
    pub(super) fn of_approver(texts: &[String], lets_pass: bool) -> Result<Self, String> {
        let mut wanted = Vec::new();
        for text in texts {
            let parts = match lets_pass {
                true => split(text)?,
                false => text.split(',').map(|part| part.trim().to_owned()).collect(),
            };
            for part in parts.into_iter().filter(|part| !part.is_empty()) {
                if part.starts_with('!') {
                    return Err(format!(
                        "`{part}`: nothing is taken away in `approvers`; write an entry for it before this one"
                    ));
                }
                let name = part.chars().all(|c| c.is_alphanumeric() || "_-.:/*?[]!".contains(c));
                let pattern = format!("{part}*");
                wanted.push(if lets_pass && name {
                    CallPattern::Name(pattern)
                } else {
                    CallPattern::Call(pattern)
                });
            }
        }
        if wanted.is_empty() {
            return Err("`tools` is empty, so the entry is about nothing".to_owned());
        }
        let writings = match lets_pass {
            true => Writings::All(&[Writing::Inspect, Writing::Python]),
            false => Writings::Any(&[Writing::Inspect, Writing::Python, Writing::Ours]),
        };
        Ok(Naming { wanted, unwanted: Vec::new(), writings })
    }

    /// True when calls of a tool with these names can be meant.
    pub(super) fn is_about(&self, names: ToolNames<'_>) -> bool {
        let taken = |pattern: &CallPattern| matches!(pattern, CallPattern::Name(name) if names.all().any(|tool| glob_match(name, tool)));
        names.all().any(|tool| self.wanted.iter().any(|pattern| pattern.is_about(tool)))
            && !self.unwanted.iter().any(taken)
    }

    /// Whether every pattern is the name of one tool.
    pub(super) fn names_tools(&self) -> bool {
        self.wanted.iter().all(|pattern| !pattern.tool().contains(['*', '?', '[']))
    }

    /// The patterns that are about none of these tools.
    pub(super) fn about_none<'a>(&'a self, tools: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let patterns = self.wanted.iter().chain(&self.unwanted);
        patterns.filter(|pattern| !tools.iter().any(|tool| pattern.is_about(tool))).map(CallPattern::tool)
    }

    /// Whether a call is named, by any name its tool has or had. What a rule that lets calls pass takes away
    /// is taken away under every name; what another takes away, under the name the tool had first.
    pub(super) fn matches(
        &self,
        call: &ToolCall,
        names: ToolNames<'_>,
        schema: &Value,
        aliases: &Aliases,
        lets_pass: bool,
    ) -> bool {
        let mut texts: Vec<(&str, Vec<Vec<String>>)> = Vec::new();
        let mut any = |patterns: &[CallPattern], name: &str| {
            patterns.iter().any(|pattern| match pattern {
                CallPattern::Name(pattern) => glob_match(pattern, name),
                CallPattern::Call(start) => {
                    if !texts.iter().any(|(known, _)| *known == name) {
                        let named = ToolCall { name: name.into(), ..call.clone() };
                        let known = names.all().find(|known| *known == name).unwrap_or_default();
                        texts.push((known, self.texts(&named, schema, aliases)));
                    }
                    let mut ways =
                        texts.iter().filter(|(known, _)| *known == name).flat_map(|(_, ways)| ways);
                    ways.any(|texts| self.fits(start, texts))
                }
            })
        };
        if !names.all().any(|name| any(&self.wanted, name)) {
            return false;
        }
        match lets_pass {
            true => !names.all().any(|name| any(&self.unwanted, name)),
            false => !any(&self.unwanted, names.first()),
        }
    }

    /// Whether it depends on the arguments whether calls of a tool with these names are meant.
    pub(super) fn looks_at_arguments(&self, names: ToolNames<'_>) -> bool {
        let depends = |pattern: &CallPattern| match pattern {
            CallPattern::Name(_) => false,
            // Such a pattern ends with `*`: where it fits the beginning of a call, it fits every call.
            CallPattern::Call(call) => {
                names.all().any(|name| pattern.is_about(name) && !glob_match(call, &format!("{name}(")))
            }
        };
        let by_name =
            |pattern: &CallPattern| !depends(pattern) && names.all().any(|name| pattern.is_about(name));
        let wanted = !self.wanted.iter().any(by_name) && self.wanted.iter().any(depends);
        wanted || self.unwanted.iter().any(depends)
    }

    /// What the patterns over whole calls say of a text argument, as globs.
    pub(super) fn text_globs(&self) -> impl Iterator<Item = &str> {
        self.wanted.iter().filter_map(|pattern| match pattern {
            CallPattern::Name(_) => None,
            CallPattern::Call(call) => Some(call.split_once("='").map_or(call.as_str(), |(_, text)| text)),
        })
    }

    /// Each way to put the call, in each of the writings.
    fn texts(&self, call: &ToolCall, schema: &Value, aliases: &Aliases) -> Vec<Vec<String>> {
        let (Writings::Any(writings) | Writings::All(writings)) = self.writings;
        let ways = ways_to_put(call, schema, aliases).into_iter();
        ways.map(|way| writings.iter().map(|writing| writing.text(&way)).collect()).collect()
    }

    fn fits(&self, start: &str, texts: &[String]) -> bool {
        match self.writings {
            Writings::Any(_) => texts.iter().any(|text| glob_match(start, text)),
            Writings::All(_) => texts.iter().all(|text| glob_match(start, text)),
        }
    }
}

/// The names of a tool: the one it has, and those it had before it was renamed.
#[derive(Debug, Clone, Copy)]
pub(super) struct ToolNames<'a> {
    pub(super) now: &'a str,
    pub(super) before: &'a [Arc<str>],
}

impl<'a> ToolNames<'a> {
    pub(super) fn all(self) -> impl Iterator<Item = &'a str> {
        std::iter::once(self.now).chain(self.before.iter().map(|name| &**name))
    }

    fn first(self) -> &'a str {
        self.before.first().map_or(self.now, |name| name)
    }
}

/// The ways a call is put: with its numbers as they came, with whole numbers as such, with what it leaves
/// out, and with the other names of its parameters. The arguments stand in the order in which the call has
/// them.
fn ways_to_put(call: &ToolCall, schema: &Value, aliases: &Aliases) -> Vec<ToolCall> {
    let written = |write: fn(&Value) -> Value| {
        let arguments = match &call.arguments {
            Value::Object(given) => given.iter().map(|(name, value)| (name.clone(), write(value))).collect(),
            other => write(other),
        };
        ToolCall { arguments, ..call.clone() }
    };
    let mut way = written(plain);
    let mut ways = vec![written(ordered), way.clone()];
    for (alias, parameter) in aliases {
        if let Some(given) = way.arguments.as_object().filter(|given| given.contains_key(&**parameter)) {
            let named = |name: &String| if **name == **parameter { alias.to_string() } else { name.clone() };
            let arguments = given.iter().map(|(name, value)| (named(name), value.clone())).collect();
            ways.push(ToolCall { arguments, ..call.clone() });
        }
    }
    if let (Value::Object(given), Some(declared)) =
        (&mut way.arguments, schema.get("properties").and_then(Value::as_object))
    {
        let mut all = serde_json::Map::new();
        for (name, schema) in declared {
            all.extend(
                given
                    .shift_remove(name)
                    .or_else(|| schema.get("default").map(plain))
                    .map(|value| (name.clone(), value)),
            );
        }
        all.append(given);
        *given = all;
        ways.push(way);
    }
    ways.dedup_by(|way, last| call_text(way) == call_text(last));
    ways
}

/// The patterns of one text: commas stand between them, but also between the arguments of a call. Nothing
/// comes after a call, since nobody could say where it ends.
pub(super) fn split(text: &str) -> Result<Vec<String>, String> {
    let Some((before, arguments)) = text.split_once('(') else {
        return Ok(text.split(',').map(|part| part.trim().to_owned()).collect());
    };
    if goes_on(arguments) {
        return Err(format!("write the patterns of `{text}` as a list: a comma may also stand in a call"));
    }
    let (names, name) = before.rsplit_once(',').map_or((None, before), |(names, name)| (Some(names), name));
    let names = names.into_iter().flat_map(|names| names.split(',')).map(|part| part.trim().to_owned());
    Ok(names.chain([format!("{}({}", name.trim_start(), arguments.trim_end())]).collect())
}

/// True when the call whose arguments these are is closed, and a comma follows.
fn goes_on(arguments: &str) -> bool {
    let (mut depth, mut quoted) = (1_usize, false);
    let mut rest = arguments.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' if quoted => {
                rest.next();
            }
            '\'' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return rest.as_str().trim_start().starts_with(',');
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn commas_part_names_and_not_arguments() {
        assert_eq!(split("a, b*").unwrap(), ["a", "b*"]);
        assert_eq!(split("pay(to='me', amount=1.0").unwrap(), ["pay(to='me', amount=1.0"]);
        assert_eq!(split(" a, !pay(to='me', x=f(1)) ").unwrap(), ["a", "!pay(to='me', x=f(1))"]);
        assert_eq!(split("pay(to='a), b'").unwrap(), ["pay(to='a), b'"]);
        assert!(split("pay(to='me'), add").unwrap_err().contains("as a list"));
        assert_eq!(split("add,").unwrap(), ["add", ""]);
    }

    #[test]
    fn patterns_name_calls_and_take_them_away() {
        let schema = json!({"properties": {"to": {}, "amount": {}, "force": {"default": true}}});
        let names = |patterns: &[&str], arguments: Value| {
            let patterns: Vec<String> = patterns.iter().map(|&text| text.to_owned()).collect();
            let names = ToolNames { now: "pay", before: &[] };
            let call = ToolCall::new("1", "pay", arguments);
            Naming::new(&patterns).unwrap().matches(&call, names, &schema, &[], true)
        };
        let evil = json!({"to": "evil", "amount": 5.0});
        assert!(!names(&["*", "!pay(to='evil'"], evil.clone()));
        assert!(names(&["*", "!pay(to='evil'"], json!({"to": "me"})));
        assert!(!names(&["!pay(to='evil'"], evil.clone()) && names(&["!pay(to='evil'"], json!({"to": "me"})));
        assert!(!names(&["add(x=1", "!sub"], evil.clone()), "a name taken away wants no others");
        assert!(
            names(&["pay(to='evil', amount=5)"], evil.clone()) && names(&["pay(*amount=5.0"], evil.clone())
        );
        assert!(names(&["pay(*force=true"], evil.clone()));
        assert!(!names(&["pay(*force=true"], json!({"force": false})));
        for bad in ["", " ", "!"] {
            assert!(Naming::new(&[bad.to_owned()]).unwrap_err().contains("empty"));
        }
    }
}
