//! Arguments of a call as what a script reads: stdin, flags or variables.

use serde_json::{Map, Value};
use toolwright_core::{ExecRequest, ToolError};

use crate::argc::identifier;
use crate::definition::{ArgumentStyle, ScriptDefinition, ScriptParameter};

/// The most a counted flag is repeated.
const MAX_REPEATED: u64 = 100;
/// A shell function in the environment, which bash takes over: it stands in for the program `argc`.
const ARGC_FUNCTION: (&str, &str) = ("BASH_FUNC_argc%%", "() { printf '%s' \"$TOOLWRIGHT_ARGC\"; }");
/// Where that function finds its answer.
const ARGC_ANSWER: &str = "TOOLWRIGHT_ARGC";

/// The command of a call.
pub(crate) fn request(
    command: &[String],
    definition: &ScriptDefinition,
    arguments: &Value,
) -> Result<ExecRequest, ToolError> {
    let empty = Map::new();
    let given = arguments.as_object().unwrap_or(&empty);
    let mut request = ExecRequest::new(command.iter().cloned());
    // What a script does may have effects; it runs once.
    request.timeout_retry = false;
    match definition.arguments {
        ArgumentStyle::Json => request.input = Some(arguments.to_string().into_bytes()),
        ArgumentStyle::ArgvJson => request.command.push(arguments.to_string()),
        ArgumentStyle::Env => {
            for parameter in &definition.parameters {
                if let Some(value) = value_of(parameter, given) {
                    request.env.insert(variable(parameter), text(value));
                }
            }
        }
        ArgumentStyle::Flags => {
            request.command.extend(words(definition, given));
            if let Some(calls_main) = definition.argc {
                request.env.insert(ARGC_FUNCTION.0.to_owned(), ARGC_FUNCTION.1.to_owned());
                request.env.insert(ARGC_ANSWER.to_owned(), argc_answer(definition, given, calls_main));
            }
        }
    }
    let texts = request.command.iter().chain(request.env.values());
    if texts.into_iter().any(|text| text.contains('\0')) {
        return Err(ToolError::invalid("an argument contains a NUL byte, which no script can be given"));
    }
    Ok(request)
}

fn value_of<'v>(parameter: &'v ScriptParameter, given: &'v Map<String, Value>) -> Option<&'v Value> {
    given.get(&parameter.name).or(parameter.default.as_ref()).filter(|value| !value.is_null())
}

fn variable(parameter: &ScriptParameter) -> String {
    format!("argc_{}", identifier(&parameter.name))
}

/// A value as one word.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The values of a parameter, each as one word.
fn values(parameter: &ScriptParameter, value: &Value) -> Vec<String> {
    match (value, parameter.separator) {
        (Value::Array(items), Some(separator)) if !items.is_empty() => {
            vec![items.iter().map(text).collect::<Vec<_>>().join(&separator.to_string())]
        }
        (Value::Array(items), _) => items.iter().map(text).collect(),
        (value, _) => vec![text(value)],
    }
}

/// How often a switch is given.
fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| u64::from(value.as_bool() == Some(true))).min(MAX_REPEATED)
}

/// The flags and positional arguments. What was not given is left to the script.
fn words(definition: &ScriptDefinition, given: &Map<String, Value>) -> Vec<String> {
    let (mut words, mut positional) = (Vec::new(), Vec::new());
    for parameter in &definition.parameters {
        let Some(value) = given.get(&parameter.name).filter(|value| !value.is_null()) else { continue };
        match &parameter.flag {
            None => positional.extend(values(parameter, value)),
            Some(flag) if parameter.switch => {
                words.extend((0..count(value)).map(|_| flag.clone()));
            }
            Some(flag) if parameter.spread => {
                words.push(flag.clone());
                words.extend(values(parameter, value));
            }
            Some(flag) => {
                for value in values(parameter, value) {
                    // A value must not be taken for a flag.
                    match value.starts_with('-') && flag.starts_with("--") {
                        true => words.push(format!("{flag}={value}")),
                        false => words.extend([flag.clone(), value]),
                    }
                }
            }
        }
    }
    if positional.iter().any(|value| value.starts_with('-')) {
        words.push("--".to_owned());
    }
    words.extend(positional);
    words
}

/// What `argc --argc-eval` prints: assignments, and the call of `main`.
fn argc_answer(definition: &ScriptDefinition, given: &Map<String, Value>, calls_main: bool) -> String {
    let (mut lines, mut positional) = (Vec::new(), Vec::new());
    for parameter in &definition.parameters {
        let Some(value) = value_of(parameter, given) else { continue };
        let name = variable(parameter);
        if parameter.switch {
            let count = count(value);
            if count > 0 {
                lines.push(format!("{name}={count}"));
            }
            continue;
        }
        let quoted_values = || match value {
            Value::Array(items) => items.iter().map(|item| quoted(&text(item))).collect(),
            value => vec![quoted(&text(value))],
        };
        let all: Vec<String> = quoted_values();
        lines.push(match value {
            Value::Array(_) => format!("{name}=( {} )", all.join(" ")),
            _ => format!("{name}={}", all.join(" ")),
        });
        if parameter.flag.is_none() {
            positional.extend(all);
        }
    }
    let words: Vec<String> = words(definition, given).iter().map(|word| quoted(word)).collect();
    lines.push(format!("argc__args=( \"$0\" {} )", words.join(" ")));
    lines.push(format!("argc__positionals=( {} )", positional.join(" ")));
    if calls_main {
        lines.push(format!("argc__fn=main\nmain {}", positional.join(" ")));
    }
    lines.join("\n")
}

/// A word that no shell reads anything in.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition() -> ScriptDefinition {
        let text = "# @describe D\n# @option --foo-bar! F\n# @option --tags* T\n# @option --joined*, J\n# @option --pair <A> <B> P\n# @option --sort[=a|b]\n# @flag --force F\n# @flag -v --verbose* V\n# @arg files* F\nmain() {\n:\n}\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";
        crate::argc::read("x", text).unwrap().unwrap()
    }

    #[test]
    fn flags_are_words_and_values_are_no_flags() {
        let arguments = json!({
            "foo_bar": "-x y", "tags": ["a", "b"], "joined": ["c", "d"], "pair": ["e", "f"], "force": true, "verbose": 2,
            "files": ["--f", "g"],
        });
        let request = request(&["x.sh".to_owned()], &definition(), &arguments).unwrap();
        let expected = [
            "x.sh",
            "--foo-bar=-x y",
            "--tags",
            "a",
            "--tags",
            "b",
            "--joined",
            "c,d",
            "--pair",
            "e",
            "f",
            "--force",
            "--verbose",
            "--verbose",
            "--",
            "--f",
            "g",
        ];
        assert_eq!(request.command, expected);
        let answer = &request.env[ARGC_ANSWER];
        for line in [
            "argc_foo_bar='-x y'",
            "argc_tags=( 'a' 'b' )",
            "argc_sort='a'",
            "argc_force=1",
            "argc_verbose=2",
            "main '--f' 'g'",
        ] {
            assert!(answer.lines().any(|found| found == line), "{line}: {answer}");
        }
    }

    #[test]
    fn quotes_and_commands_in_values_are_text() {
        let request =
            request(&["x".to_owned()], &definition(), &json!({"foo_bar": "a'$(id)`id`\"\n;"})).unwrap();
        assert!(request.env[ARGC_ANSWER].contains("argc_foo_bar='a'\\''$(id)`id`\"\n;'"));
        assert!(super::request(&["x".to_owned()], &definition(), &json!({"foo_bar": "a\0"})).is_err());
    }

    #[test]
    fn json_and_variables_carry_everything() {
        let mut definition = definition();
        let arguments = json!({"foo_bar": "a", "tags": ["b"]});
        definition.arguments = ArgumentStyle::Json;
        let found = request(&["x".to_owned()], &definition, &arguments).unwrap();
        assert_eq!(found.input.as_deref(), Some(arguments.to_string().as_bytes()));
        definition.arguments = ArgumentStyle::ArgvJson;
        assert_eq!(
            request(&["x".to_owned()], &definition, &arguments).unwrap().command[1],
            arguments.to_string()
        );
        definition.arguments = ArgumentStyle::Env;
        let found = request(&["x".to_owned()], &definition, &arguments).unwrap().env;
        assert_eq!(
            (&*found["argc_foo_bar"], &*found["argc_tags"], &*found["argc_sort"]),
            ("a", "[\"b\"]", "a")
        );
    }
}
