//! Getting a call ready: its arguments are read, checked and put into one form, and the call is described,
//! all once.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ToolError;
use crate::path::PathParameters;
use crate::schema::{Schema, Strictness};

/// The arguments of a call as they were sent, with the schema that they are checked against. The way to a
/// [`Prepared`] call is [`check`](Self::check).
#[derive(Debug)]
pub struct Arguments<'a> {
    value: Value,
    schema: &'a Schema,
    paths: Option<&'a PathParameters>,
    strictness: Strictness,
}

impl<'a> Arguments<'a> {
    /// Arguments that are to fit a schema.
    pub fn new(value: Value, schema: &'a Schema, strictness: Strictness) -> Self {
        Arguments { value, schema, paths: None, strictness }
    }

    /// The same arguments, of which these are paths.
    #[must_use]
    pub fn with_paths(self, paths: &'a PathParameters) -> Self {
        Arguments { paths: Some(paths), ..self }
    }

    /// The arguments as they were sent.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Applies a tool's own rules about what fits, before the schema is asked.
    pub fn read(mut self, read: impl Fn(Value) -> Result<Value, ToolError>) -> Result<Self, ToolError> {
        // JSON text for a list or an object plainly means that; the tool's own rules need not know.
        self.value = if holds_json_text(&self.value) {
            read(self.value.clone()).or_else(|refused| {
                let fitted = self.schema.validate(self.value, self.strictness).map_err(|_| refused)?;
                read(fitted)
            })?
        } else {
            read(self.value)?
        };
        Ok(self)
    }

    /// Checks them against the schema, and puts paths into their plain form.
    pub fn check(self) -> Result<Prepared, ToolError> {
        let mut arguments = self.schema.validate(self.value, self.strictness)?;
        if let Some(paths) = self.paths {
            paths.make_plain(&mut arguments);
        }
        Ok(Prepared { arguments, description: None })
    }
}

fn holds_json_text(arguments: &Value) -> bool {
    let texts = arguments.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str());
    texts.into_iter().any(|text| text.trim_start().starts_with(['[', '{']))
}

/// A call that is ready to be decided about and made.
#[derive(Debug, PartialEq)]
#[non_exhaustive]
pub struct Prepared {
    /// The checked arguments, as rules and people see them and the tool gets them.
    pub arguments: Value,
    /// The description of the call for people; `None` when the tool has nothing to say, so that such a call
    /// allocates nothing.
    pub description: Option<Box<CallDescription>>,
}

impl Prepared {
    /// Changes the description for people.
    pub fn describe(&mut self, change: impl FnOnce(&mut CallDescription)) {
        change(self.description.get_or_insert_default());
    }

    /// The line shown while the call runs, if the tool has one.
    pub fn hint(&self) -> Option<&str> {
        self.description.as_ref()?.hint.as_deref()
    }

    /// True when the tool wants a person to confirm this very call.
    pub fn wants_confirmation(&self) -> bool {
        self.description.as_ref().is_some_and(|description| description.confirm)
    }
}

/// The description of a call for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallDescription {
    /// The line shown while it runs; empty text shows nothing, `None` leaves it to the program.
    pub hint: Option<String>,
    /// What it does, as the object of "may it ...?".
    pub action: Option<String>,
    /// Whether a person must confirm this very call. The tool policy's
    /// [`require_confirmation`](crate::ToolPolicy::require_confirmation) overrules it.
    pub confirm: bool,
    /// What an approver sees.
    pub view: CallView,
    /// Why the call cannot be shown. It is then refused where somebody would be asked.
    pub view_error: Option<String>,
}

/// A call as an approver sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallView {
    /// What surrounds the call, for example the page it acts on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<ViewContent>,
    /// The call itself; `None` shows the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<ViewContent>,
}

/// One part of a [`CallView`]. `{{name}}` in the content stands for the argument of that name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViewContent {
    /// A heading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// How to read the content.
    pub format: ViewFormat,
    /// The content.
    pub content: String,
}

/// How the content of a view is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViewFormat {
    /// As it stands.
    Text,
    /// As markdown.
    Markdown,
}

impl CallView {
    /// A view of the call as markdown under a title.
    pub fn markdown(title: impl Into<String>, content: impl Into<String>) -> Self {
        let call =
            ViewContent { title: Some(title.into()), format: ViewFormat::Markdown, content: content.into() };
        CallView { context: None, call: Some(call) }
    }

    /// A view of the call as plain text.
    pub fn text(content: impl Into<String>) -> Self {
        let call = ViewContent { title: None, format: ViewFormat::Text, content: content.into() };
        CallView { context: None, call: Some(call) }
    }

    /// The same view with `{{name}}` replaced by the call's arguments; unknown names stay.
    #[must_use]
    pub fn substitute(mut self, arguments: &Value) -> Self {
        for part in [&mut self.context, &mut self.call].into_iter().flatten() {
            part.content = substitute(&part.content, arguments);
        }
        self
    }
}

fn substitute(content: &str, arguments: &Value) -> String {
    let mut out = String::with_capacity(content.len());
    let mut rest = content;
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let Some((name, tail)) = after.split_once("}}") else {
            out.push_str("{{");
            rest = after;
            continue;
        };
        match arguments.get(name.trim()) {
            Some(Value::String(text)) => out.push_str(text),
            Some(value) => out.push_str(&value.to_string()),
            None => out.push_str(&format!("{{{{{name}}}}}")),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn placeholders_in_a_view_stand_for_arguments() {
        let view = CallView::text("run {{cmd}} {{other}} {{n}} {{")
            .substitute(&serde_json::json!({"cmd": "ls", "n": 2}));
        assert_eq!(view.call.unwrap().content, "run ls {{other}} 2 {{");
    }

    #[test]
    fn a_tools_own_rules_come_before_the_schema_and_get_json_text_as_what_it_means() {
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}, "l": {"type": "array"}}});
        let schema = Schema::compile(&schema).unwrap();
        let prepare = |value: Value| {
            let arguments = Arguments::new(value, &schema, Strictness::Lenient);
            let double = |mut value: Value| {
                if value.get("l").is_some_and(|list| !list.is_array()) {
                    return Err(ToolError::invalid("`l` is not a list"));
                }
                if let Some(n) = value.get("n").and_then(Value::as_i64) {
                    value["n"] = json!(n * 2);
                }
                Ok(value)
            };
            arguments.read(double)?.check().map(|prepared| prepared.arguments)
        };
        assert_eq!(prepare(json!({"n": 2})).unwrap(), json!({"n": 4}));
        assert_eq!(prepare(json!({"n": 2, "l": "[1]"})).unwrap(), json!({"n": 4, "l": [1]}));
        assert_eq!(prepare(json!({"l": "[1"})).unwrap_err().message(), "`l` is not a list");
        assert!(prepare(json!({"n": "x"})).is_err());
    }
}
