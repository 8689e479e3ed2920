//! argc's comment tags: `@describe`, `@option`, `@flag`, `@arg`, `@env`.

use serde_json::{Value, json};

use crate::comments::comment;
use crate::definition::{ArgumentStyle, ScriptDefinition, ScriptParameter};

/// Reads the tags of a script; `None` when it has none.
pub(crate) fn read(name: &str, text: &str) -> Option<Result<ScriptDefinition, String>> {
    let mut definition = ScriptDefinition::new(name);
    let (mut tags, mut problem): (Vec<(String, String, usize)>, _) = (Vec::new(), None);
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        let Some(text) = comment(line) else {
            open = false;
            continue;
        };
        match text.strip_prefix('@') {
            Some(tag) => {
                let (tag, rest) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
                tags.push((tag.to_owned(), rest.trim().to_owned(), at + 1));
                open = true;
            }
            // Further lines belong to the text of the tag.
            None if open => {
                if let Some((_, rest, _)) = tags.last_mut() {
                    rest.push('\n');
                    rest.push_str(text);
                }
            }
            None => {}
        }
    }
    let known = |tag: &str| ["describe", "option", "flag", "arg"].contains(&tag);
    if !tags.iter().any(|(tag, ..)| known(tag)) {
        return None;
    }
    for (tag, rest, line) in tags {
        let read = match tag.as_str() {
            "describe" => {
                definition.description = rest.trim().to_owned();
                Ok(None)
            }
            "option" => option(&rest).map(Some),
            "flag" => flag(&rest).map(Some),
            "arg" => positional(&rest).map(Some),
            "env" => {
                variable(&rest, &mut definition);
                Ok(None)
            }
            "cmd" => Err("a script with `@cmd` is several programs; give each a file of its own".to_owned()),
            _ => Ok(None),
        };
        match read {
            Ok(Some(parameter)) if definition.parameters.iter().any(|one| one.name == parameter.name) => {
                problem.get_or_insert(format!("line {line}: `{}` comes twice", parameter.name));
            }
            Ok(Some(parameter)) => definition.parameters.push(parameter),
            Ok(None) => {}
            Err(error) => {
                problem.get_or_insert(format!("line {line}: {error}"));
            }
        }
    }
    definition.arguments = ArgumentStyle::Flags;
    if text.contains("--argc-eval") {
        definition.argc = Some(has_main(text));
    }
    Some(problem.map_or(Ok(definition), Err))
}

/// A variable that must be set, or has a default.
fn variable(text: &str, definition: &mut ScriptDefinition) {
    let Ok((name, rest)) = name(text) else { return };
    let Ok((modifiers, _)) = modifiers(rest) else { return };
    // That one is ours.
    if name == "LLM_OUTPUT" {
        return;
    }
    match modifiers.default {
        Some(value) => definition.default_env.push((name.to_owned(), value)),
        None if modifiers.required => definition.required_env.push(name.to_owned()),
        None => {}
    }
}

/// Whether the script defines the function `main`, which argc calls.
fn has_main(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("function ").map_or(line, str::trim_start);
        line.strip_prefix("main").is_some_and(|rest| {
            let rest = rest.trim_start();
            rest.starts_with("()") || rest.starts_with('{')
        })
    })
}

/// What stands behind a name: `!`, `*`, `+`, `~`, a separator, choices, a default.
struct Modifiers {
    required: bool,
    many: bool,
    /// All that is left of the command line.
    rest: bool,
    separator: Option<char>,
    choices: Vec<String>,
    default: Option<String>,
}

fn option(text: &str) -> Result<ScriptParameter, String> {
    let rest = behind_short_flag(text);
    let dashes = rest.len() - rest.trim_start_matches(['-', '+']).len();
    let (name, rest) = name(rest.get(dashes..).unwrap_or_default())?;
    let flag = format!("{}{name}", rest_of_dashes(dashes));
    let (modifiers, rest) = modifiers(rest)?;
    let (notation, description) = notation(rest);
    Ok(parameter(name, Some(flag), modifiers, notation, description))
}

fn positional(text: &str) -> Result<ScriptParameter, String> {
    let (name, rest) = name(text)?;
    let (modifiers, rest) = modifiers(rest)?;
    let (notation, description) = notation(rest);
    Ok(parameter(name, None, modifiers, notation, description))
}

fn flag(text: &str) -> Result<ScriptParameter, String> {
    let rest = behind_short_flag(text);
    let dashes = rest.len() - rest.trim_start_matches(['-', '+']).len();
    let (name, rest) = name(rest.get(dashes..).unwrap_or_default())?;
    let many = rest.starts_with('*');
    let description = rest.trim_start_matches('*').trim();
    let schema = match many {
        true => described(json!({"type": "integer", "minimum": 0, "maximum": 100}), description),
        false => described(json!({"type": "boolean"}), description),
    };
    let mut parameter = ScriptParameter::new(&identifier(name), schema);
    parameter.flag = Some(format!("{}{name}", rest_of_dashes(dashes)));
    parameter.switch = true;
    Ok(parameter)
}

/// `-n --name`: the long name counts.
fn behind_short_flag(text: &str) -> &str {
    match text.split_once(char::is_whitespace) {
        Some((short, rest))
            if short.len() == 2 && short.starts_with('-') && rest.trim_start().starts_with('-') =>
        {
            rest.trim_start()
        }
        _ => text,
    }
}

fn rest_of_dashes(count: usize) -> &'static str {
    if count <= 1 { "-" } else { "--" }
}

fn name(text: &str) -> Result<(&str, &str), String> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.:".contains(c))).unwrap_or(text.len());
    match text.split_at_checked(end) {
        Some((name, rest)) if !name.is_empty() => Ok((name, rest)),
        _ => Err(format!("there is no name in `{}`", toolwright_core::text::clip(text, 60))),
    }
}

fn modifiers(text: &str) -> Result<(Modifiers, &str), String> {
    let mut found = Modifiers {
        required: false,
        many: false,
        rest: false,
        separator: None,
        choices: Vec::new(),
        default: None,
    };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        match first {
            '!' => found.required = true,
            '*' => found.many = true,
            '~' => {
                found.many = true;
                found.rest = true;
            }
            '+' => {
                found.many = true;
                found.required = true;
            }
            ',' | ':' | '|' if found.many => found.separator = Some(first),
            '[' => {
                let (choices, after) = after.split_once(']').ok_or("`[` is not closed")?;
                let (choices, has_default) = match choices.strip_prefix('=') {
                    Some(choices) => (choices, true),
                    None => (choices.strip_prefix('?').unwrap_or(choices), false),
                };
                // Choices of a shell function are known only when the script runs.
                if !choices.starts_with('`') {
                    found.choices = choices.split('|').map(|choice| unquoted(choice).to_owned()).collect();
                }
                if has_default {
                    found.default = found.choices.first().cloned();
                }
                rest = after;
                continue;
            }
            '=' => {
                let (value, after) = default(after);
                if !value.starts_with('`') {
                    found.default = Some(unquoted(value).to_owned());
                }
                rest = after;
                continue;
            }
            _ => break,
        }
        rest = after;
    }
    Ok((found, rest))
}

/// The value behind `=`, in quotes or up to a blank.
fn default(text: &str) -> (&str, &str) {
    let quote = text.chars().next().filter(|first| "\"'`".contains(*first));
    let end = match quote {
        Some(quote) => text.get(1..).and_then(|rest| rest.find(quote)).map(|end| end + 2),
        None => text.find(char::is_whitespace),
    };
    text.split_at_checked(end.unwrap_or(text.len())).unwrap_or((text, ""))
}

fn unquoted(text: &str) -> &str {
    ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(text)
}

/// What `<INT>` and its like say: the first word, how many there are, and whether one takes several values.
#[derive(Default)]
struct Notation<'t> {
    first: Option<&'t str>,
    count: usize,
    many: bool,
}

fn notation(text: &str) -> (Notation<'_>, &str) {
    let (mut rest, mut found) = (text.trim_start(), Notation::default());
    // `$$` and `$NAME` bind the option to a variable too.
    if rest.starts_with('$') {
        rest = rest.split_once(char::is_whitespace).map_or("", |(_, rest)| rest).trim_start();
    }
    while let Some((inside, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        found.count += 1;
        found.many |= inside.ends_with(['*', '+']);
        found.first = found.first.or(Some(inside.trim_end_matches(['*', '+', '?'])));
        rest = after.trim_start();
    }
    (found, rest)
}

fn parameter(
    name: &str,
    flag: Option<String>,
    modifiers: Modifiers,
    notation: Notation<'_>,
    description: &str,
) -> ScriptParameter {
    let kind = match notation.first.map(str::to_ascii_uppercase).as_deref() {
        Some("INT" | "INTEGER") => "integer",
        Some("NUM" | "NUMBER" | "FLOAT") => "number",
        _ => "string",
    };
    let mut schema = json!({"type": kind});
    if !modifiers.choices.is_empty()
        && let Some(members) = schema.as_object_mut()
    {
        members
            .insert("enum".to_owned(), modifiers.choices.iter().map(|choice| typed(kind, choice)).collect());
    }
    let default = modifiers.default.as_deref().map(|value| typed(kind, value));
    let several = notation.many || notation.count > 1;
    let (schema, default) = match modifiers.many || several {
        true => {
            let mut list = json!({"type": "array", "items": schema});
            if let Some(members) = list.as_object_mut() {
                if modifiers.required {
                    members.insert("minItems".to_owned(), 1.into());
                }
                if several && !notation.many && !modifiers.many {
                    members.insert("minItems".to_owned(), notation.count.into());
                    members.insert("maxItems".to_owned(), notation.count.into());
                }
            }
            (list, default.map(|value| json!([value])))
        }
        false => (schema, default),
    };
    let mut parameter = ScriptParameter::new(&identifier(name), described(schema, description));
    parameter.flag = flag;
    parameter.required = modifiers.required && default.is_none();
    parameter.separator = modifiers.separator;
    parameter.spread = several || modifiers.rest;
    parameter.default = default;
    parameter
}

fn typed(kind: &str, value: &str) -> Value {
    let number = match kind {
        "integer" => value.parse::<i64>().ok().map(Value::from),
        "number" => value.parse::<f64>().ok().map(Value::from),
        _ => None,
    };
    number.unwrap_or_else(|| value.into())
}

fn described(mut schema: Value, description: &str) -> Value {
    if let (Some(members), false) = (schema.as_object_mut(), description.trim().is_empty()) {
        members.insert("description".to_owned(), description.trim().into());
    }
    schema
}

/// The name of a variable for an option.
pub(crate) fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> ScriptParameter {
        let text = format!("#!/bin/bash\n# @describe Works.\n# {line}\n");
        read("x", &text).unwrap().unwrap().parameters.remove(0)
    }

    #[test]
    fn options_are_read_with_their_modifiers() {
        let text = |text: &str| json!({"type": "string", "description": text});
        for (line, schema, required, default) in [
            ("@option --city! The city", text("The city"), true, None),
            ("@option --city <CITY>  The city", text("The city"), false, None),
            ("@option -c --city The city", text("The city"), false, None),
            ("@option --days! <INT> Days", json!({"type": "integer", "description": "Days"}), true, None),
            ("@option --ratio=0.5 <NUM>", json!({"type": "number"}), false, Some(json!(0.5))),
            ("@option --name=\"a b\" Name", text("Name"), false, Some(json!("a b"))),
            (
                "@option --sort[a|b] S",
                json!({"type": "string", "enum": ["a", "b"], "description": "S"}),
                false,
                None,
            ),
            ("@option --sort[=a|b]", json!({"type": "string", "enum": ["a", "b"]}), false, Some(json!("a"))),
            ("@option --sort![a|b]", json!({"type": "string", "enum": ["a", "b"]}), true, None),
            (
                "@option --tags* <T> T",
                json!({"type": "array", "items": {"type": "string"}, "description": "T"}),
                false,
                None,
            ),
            (
                "@option --tags+,",
                json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
                true,
                None,
            ),
            ("@option --n[`_choices`]", json!({"type": "string"}), false, None),
            ("@option --n=`_default`", json!({"type": "string"}), false, None),
            ("@flag --force Force it", json!({"type": "boolean", "description": "Force it"}), false, None),
            ("@option --bound $BOUND <X> Text", text("Text"), false, None),
            ("@arg file! The file", text("The file"), true, None),
            ("@arg files~", json!({"type": "array", "items": {"type": "string"}}), false, None),
        ] {
            let found = one(line);
            assert_eq!((found.schema, found.required, found.default), (schema, required, default), "{line}");
        }
        let pair = one("@option --pair <FILE> <FILE> P");
        assert!(pair.spread && pair.schema["minItems"] == 2 && pair.schema["maxItems"] == 2);
        let many = one("@option --command <CMD> <ARG+>");
        assert!(many.spread && many.schema["type"] == "array" && many.schema.get("maxItems").is_none());
        let found = one("@option --foo-bar X");
        assert_eq!((found.name.as_str(), found.flag.as_deref()), ("foo_bar", Some("--foo-bar")));
        assert_eq!(one("@option --tags*, T").separator, Some(','));
    }

    #[test]
    fn texts_go_on_and_mistakes_have_a_line() {
        let text = "#!/bin/sh\n# @describe One.\n#\n# Two.\n# @env KEY! The key\n# @env MOST=3 At most\n# @env LLM_OUTPUT=/dev/stdout Out\nmain() {\n:\n}\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";
        let found = read("x", text).unwrap().unwrap();
        assert_eq!(found.description, "One.\n\nTwo.");
        assert_eq!((found.required_env, found.argc), (vec!["KEY".to_owned()], Some(true)));
        assert_eq!(found.default_env, [("MOST".to_owned(), "3".to_owned())]);
        let wrong = |text: &str| read("x", text).unwrap().unwrap_err();
        assert_eq!(wrong("# @option --a\n# @option --a\n"), "line 2: `a` comes twice");
        assert!(wrong("# @option\n").starts_with("line 1: there is no name"));
        assert!(wrong("# @option --a[x\n").contains("not closed"));
        assert!(wrong("# @describe D\n# @cmd Sub\n").contains("several programs"));
        assert!(read("x", "# @author me\necho\n").is_none());
    }
}
