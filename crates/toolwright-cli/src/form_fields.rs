//! The fields of a form that a server or a model has a person fill in: what is said of each, and what is
//! typed as its value.
//!
//! A form is a JSON Schema of an object of plain values, as MCP's elicitation has it. Whoever made it may
//! have written anything, so everything of it is shown escaped, and an answer is taken when it fits the
//! form's own schema.

use serde_json::{Map, Value, json};
use toolwright::tool::schema::Schema;
use toolwright_core::text::clip;

use crate::prompt::printable;

/// The most that is said of one field, in bytes.
const MOST_SAID: usize = 2000;

/// One field of a form.
#[derive(Debug, Clone)]
pub struct Field {
    pub name: String,
    schema: Value,
    choices: Vec<Choice>,
    required: bool,
    /// What the schema refers to.
    definitions: Option<Value>,
}

/// One of the values a field takes, and what people call it.
#[derive(Debug, Clone, PartialEq)]
struct Choice {
    value: Value,
    title: String,
}

impl Field {
    /// The fields of a form, in its order.
    pub fn all(form: &Value) -> Vec<Field> {
        let required: Vec<&str> = form
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let fields = form.get("properties").and_then(Value::as_object).into_iter().flatten();
        let field = |(name, schema): (&String, &Value)| Field {
            name: name.clone(),
            choices: choices(if is_list(schema) { schema.get("items").unwrap_or(schema) } else { schema }),
            required: required.contains(&name.as_str()),
            schema: schema.clone(),
            definitions: form.get("$defs").cloned(),
        };
        fields.map(field).collect()
    }

    /// What it is called.
    pub fn title(&self) -> String {
        let title = self.schema.get("title").and_then(Value::as_str).unwrap_or(&self.name);
        clip(&printable(title).replace('\n', " "), 100)
    }

    /// What is said of it beside its name: what it is for, what it can be, and what it is when nothing is
    /// typed.
    pub fn about(&self) -> String {
        let mut about = String::new();
        if let Some(text) = self.schema.get("description").and_then(Value::as_str) {
            about.push_str(&format!(" ({})", printable(text)));
        }
        if !self.choices.is_empty() {
            let titles: Vec<&str> = self.choices.iter().map(|choice| choice.title.as_str()).collect();
            about.push_str(&format!(" [{}]", printable(&titles.join(", "))));
        } else if kind(&self.schema) == "boolean" {
            about.push_str(" [yes, no]");
        }
        if is_list(&self.schema) {
            about.push_str(", several with commas between");
        }
        match self.schema.get("default") {
            Some(default) => about.push_str(&format!(" = {}", printable(&self.shown(default)))),
            None if self.required => about.push_str(", needed"),
            None => {}
        }
        clip(&about, MOST_SAID)
    }

    /// A value as people call it.
    fn shown(&self, value: &Value) -> String {
        match (self.choices.iter().find(|choice| choice.value == *value), value) {
            (Some(choice), _) => choice.title.clone(),
            (None, Value::Bool(yes)) => if *yes { "yes" } else { "no" }.to_owned(),
            (None, Value::Array(values)) => {
                values.iter().map(|value| self.shown(value)).collect::<Vec<_>>().join(", ")
            }
            (None, value) => value.to_string(),
        }
    }

    /// What was typed as the value: `None` when the field is left out; an error says what does not fit. Two
    /// quotation marks are the empty text.
    pub fn read(&self, typed: &str) -> Result<Option<Value>, String> {
        if typed.is_empty() {
            return match (self.schema.get("default"), self.required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, true) => Err("an answer is needed here".to_owned()),
                (None, false) => Ok(None),
            };
        }
        let value = if is_list(&self.schema) {
            let of = self.schema.get("items").unwrap_or(&Value::Null);
            let items: Result<Vec<Value>, String> =
                typed.split(',').map(|item| self.one(kind(of), item.trim())).collect();
            items?.into()
        } else {
            self.one(kind(&self.schema), typed)?
        };
        match self.problem(&value) {
            Some(problem) => Err(format!("that does not fit here: {problem}")),
            None => Ok(Some(value)),
        }
    }

    /// One value of that type.
    fn one(&self, kind: &str, typed: &str) -> Result<Value, String> {
        if !self.choices.is_empty() {
            let read: Option<Value> = serde_json::from_str(typed).ok();
            let is_called = |choice: &&Choice| {
                choice.value.as_str() == Some(typed)
                    || choice.title.eq_ignore_ascii_case(typed)
                    || read.as_ref() == Some(&choice.value)
            };
            let chosen = self.choices.iter().find(is_called).map(|choice| choice.value.clone());
            return chosen.ok_or_else(|| {
                format!("that does not fit here: `{}` is not among the choices", clip(&printable(typed), 100))
            });
        }
        let number = |what: &str| {
            let number = serde_json::from_str::<Value>(typed).ok().filter(Value::is_number);
            number.ok_or_else(|| format!("that does not fit here: {what} is wanted"))
        };
        match kind {
            "boolean" => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err("that does not fit here: yes or no is wanted".to_owned()),
            },
            "integer" => number("a whole number"),
            "number" => number("a number"),
            "object" => {
                serde_json::from_str(typed).map_err(|error| format!("that does not fit here: {error}"))
            }
            _ if typed == "\"\"" => Ok("".into()),
            _ => Ok(typed.into()),
        }
    }

    /// What the form itself has against a value.
    fn problem(&self, value: &Value) -> Option<String> {
        let mut form = json!({"type": "object", "properties": {&self.name: self.schema}});
        if let (Value::Object(members), Some(definitions)) = (&mut form, &self.definitions) {
            members.insert("$defs".to_owned(), definitions.clone());
        }
        let filled = Map::from_iter([(self.name.clone(), value.clone())]);
        // A form that cannot be checked is for who asked to check.
        let problems = Schema::compile_any(&form).ok()?.problems(&filled.into());
        problems.first().map(|problem| clip(&printable(problem), 500))
    }
}

/// The type of a field, where null may be another.
fn kind(schema: &Value) -> &str {
    fn plain(schema: &Value) -> Option<&str> {
        match schema.get("type")? {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
            kind => kind.as_str().filter(|kind| *kind != "null"),
        }
    }
    let mut either = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    plain(schema).or_else(|| either.find_map(plain)).unwrap_or("string")
}

fn is_list(schema: &Value) -> bool {
    kind(schema) == "array"
}

/// The values a field takes: an `enum`, with names or without, or a list of constants with titles.
fn choices(schema: &Value) -> Vec<Choice> {
    let list = |key: &str| schema.get(key).and_then(Value::as_array);
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(values) = list("enum") {
        let names = list("enumNames");
        let name =
            |at: usize| names.and_then(|names| names.get(at)).and_then(Value::as_str).map(str::to_owned);
        let choice = |(at, value): (usize, &Value)| Choice {
            value: value.clone(),
            title: name(at).unwrap_or_else(|| plain(value)),
        };
        return values.iter().enumerate().map(choice).collect();
    }
    let constants = list("oneOf").or_else(|| list("anyOf")).into_iter().flatten();
    let choice = |constant: &Value| {
        let value = constant.get("const")?.clone();
        let title =
            constant.get("title").and_then(Value::as_str).map_or_else(|| plain(&value), str::to_owned);
        Some(Choice { value, title })
    };
    constants.filter_map(choice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: Value, required: &[&str]) -> Vec<Field> {
        Field::all(&json!({"type": "object", "properties": properties, "required": required}))
    }

    #[test]
    fn what_is_typed_becomes_a_value_of_the_fields_type() {
        let fields = form(
            json!({
                "name": {"type": "string", "minLength": 2},
                "age": {"type": "integer", "minimum": 0},
                "share": {"type": "number"},
                "sure": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "maybe": {"anyOf": [{"type": "null"}, {"type": "integer"}]}
            }),
            &[],
        );
        let read = |at: usize, typed: &str| fields[at].read(typed);
        assert_eq!(read(0, "Ada"), Ok(Some(json!("Ada"))));
        assert!(read(0, "A").unwrap_err().contains("name"));
        assert!(read(0, "\"\"").is_err(), "the empty text is too short here");
        assert_eq!(read(1, "36"), Ok(Some(json!(36))));
        for wrong in ["old", "-1", "3.5", "\"3\"", "[1]"] {
            assert!(read(1, wrong).unwrap_err().starts_with("that does not fit here"), "{wrong}");
        }
        assert_eq!(read(2, "0.5"), Ok(Some(json!(0.5))));
        assert_eq!((read(3, "Yes"), read(3, "n")), (Ok(Some(json!(true))), Ok(Some(json!(false)))));
        assert!(read(3, "perhaps").is_err());
        assert_eq!(read(4, "a, b"), Ok(Some(json!(["a", "b"]))));
        assert_eq!(read(5, "3"), Ok(Some(json!(3))));
    }

    #[test]
    fn nothing_typed_takes_the_default_or_leaves_the_field_out_unless_it_is_needed() {
        let fields = form(
            json!({"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string", "default": "x"}}),
            &["a", "c"],
        );
        assert!(fields[0].read("").unwrap_err().contains("needed"));
        assert_eq!(fields[1].read(""), Ok(None));
        assert_eq!(fields[2].read(""), Ok(Some(json!("x"))));
        let said: Vec<String> = fields.iter().map(Field::about).collect();
        assert_eq!(said, [", needed", "", " = \"x\""]);
    }

    #[test]
    fn choices_are_known_by_their_value_and_by_their_title() {
        let titled = json!([{"const": "#f00", "title": "Red"}, {"const": "#00f", "title": "Blue"}]);
        let fields = form(
            json!({
                "plain": {"type": "string", "enum": ["red", "blue"], "default": "blue"},
                "named": {"type": "string", "enum": ["r", "b"], "enumNames": ["Red", "Blue"]},
                "titled": {"type": "string", "oneOf": titled},
                "several": {"type": "array", "items": {"anyOf": titled}, "maxItems": 1}
            }),
            &[],
        );
        let read = |at: usize, typed: &str| fields[at].read(typed);
        assert_eq!(fields[0].about(), " [red, blue] = blue");
        assert_eq!(read(0, "red"), Ok(Some(json!("red"))));
        assert!(read(0, "green").unwrap_err().contains("`green` is not among the choices"));
        assert_eq!((read(1, "Red"), read(1, "b")), (Ok(Some(json!("r"))), Ok(Some(json!("b")))));
        assert_eq!((read(2, "blue"), read(2, "#f00")), (Ok(Some(json!("#00f"))), Ok(Some(json!("#f00")))));
        assert_eq!(read(3, "Red"), Ok(Some(json!(["#f00"]))));
        assert!(read(3, "Red, Blue").is_err(), "one is the most");
    }

    #[test]
    fn what_a_form_says_cannot_play_with_the_terminal() {
        let fields =
            form(json!({"a\u{1b}[2J": {"description": "b\u{1b}]0;x\u{7}", "enum": ["\u{202e}"]}}), &[]);
        let shown = format!("{}{}", fields[0].title(), fields[0].about());
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{shown:?}");
    }
}
