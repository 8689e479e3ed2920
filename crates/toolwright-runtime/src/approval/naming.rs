//! Which calls a rule names: patterns over the names of tools, and over whole calls.
//!
//! A pattern never becomes wider than it was written: what cannot be read for certain is refused when the policy loads.

use serde_json::Value;
use toolwright_core::{ToolCall, glob_match};

use super::call_text::call_text;
use super::matching::{Aliases, ordered, plain};

/// Patterns over calls. Those with a leading `!` take calls away; only such patterns means "all but these".
#[derive(Debug)]
pub(super) struct Naming {
    wanted: Vec<Pattern>,
    unwanted: Vec<Pattern>,
}

#[derive(Debug)]
enum Pattern {
    Name(String),
    /// The start of a whole call, as in `add(x=1`.
    Call(String),
}

impl Pattern {
    /// The pattern over names.
    fn tool(&self) -> &str {
        match self {
            Pattern::Name(name) => name,
            Pattern::Call(call) => call.split('(').next().unwrap_or(call),
        }
    }

    fn is_about(&self, tool: &str) -> bool {
        glob_match(self.tool(), tool)
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
                call if call.contains('(') => Pattern::Call(format!("{call}*")),
                name => Pattern::Name(name.to_owned()),
            });
        }
        if wanted.is_empty() {
            wanted.push(Pattern::Name("*".to_owned()));
        }
        Ok(Naming { wanted, unwanted })
    }

    /// True when calls of this tool can be meant.
    pub(super) fn is_about(&self, tool: &str) -> bool {
        let taken = |pattern: &Pattern| matches!(pattern, Pattern::Name(name) if glob_match(name, tool));
        self.wanted.iter().any(|pattern| pattern.is_about(tool)) && !self.unwanted.iter().any(taken)
    }

    /// The patterns that are about none of these tools.
    pub(super) fn about_none<'a>(&'a self, tools: &'a [&str]) -> impl Iterator<Item = &'a str> {
        let patterns = self.wanted.iter().chain(&self.unwanted);
        patterns.filter(|pattern| !tools.iter().any(|tool| pattern.is_about(tool))).map(Pattern::tool)
    }

    pub(super) fn matches(&self, call: &ToolCall, schema: &Value, aliases: &Aliases) -> bool {
        let mut texts = None;
        let mut any = |patterns: &[Pattern]| {
            patterns.iter().any(|pattern| match pattern {
                Pattern::Name(name) => glob_match(name, &call.name),
                Pattern::Call(start) => texts
                    .get_or_insert_with(|| ways_to_write(call, schema, aliases))
                    .iter()
                    .any(|text| glob_match(start, text)),
            })
        };
        any(&self.wanted) && !any(&self.unwanted)
    }
}

/// The ways a call is written: with its numbers as they came, with whole numbers as such, with what it leaves out, and
/// with the other names of its parameters. The arguments stand in the order in which the call has them.
fn ways_to_write(call: &ToolCall, schema: &Value, aliases: &Aliases) -> Vec<String> {
    let written = |write: fn(&Value) -> Value| {
        let arguments = match &call.arguments {
            Value::Object(given) => given.iter().map(|(name, value)| (name.clone(), write(value))).collect(),
            other => write(other),
        };
        ToolCall { arguments, ..call.clone() }
    };
    let mut way = written(plain);
    let mut ways = vec![call_text(&written(ordered)), call_text(&way)];
    for (alias, parameter) in aliases {
        if let Some(given) = way.arguments.as_object().filter(|given| given.contains_key(&**parameter)) {
            let named = |name: &String| if **name == **parameter { alias.to_string() } else { name.clone() };
            let arguments = given.iter().map(|(name, value)| (named(name), value.clone())).collect();
            ways.push(call_text(&ToolCall { arguments, ..call.clone() }));
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
        ways.push(call_text(&way));
    }
    ways.dedup();
    ways
}

/// The patterns of one text: commas stand between them, but also between the arguments of a call. Nothing comes after
/// a call, since nobody could say where it ends.
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
            Naming::new(&patterns).unwrap().matches(&ToolCall::new("1", "pay", arguments), &schema, &[])
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
