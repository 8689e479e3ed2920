//! How the value of a parameter is written: the styles of OpenAPI 3 and the collection formats of Swagger 2.

use serde_json::Value;

/// A style, as the tables of the specification have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterStyle {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    /// `tsv` of Swagger 2.
    TabDelimited,
    DeepObject,
}

impl ParameterStyle {
    pub(crate) fn of(word: &str) -> Option<Self> {
        Some(match word {
            "simple" => ParameterStyle::Simple,
            "label" => ParameterStyle::Label,
            "matrix" => ParameterStyle::Matrix,
            "form" => ParameterStyle::Form,
            "spaceDelimited" => ParameterStyle::SpaceDelimited,
            "pipeDelimited" => ParameterStyle::PipeDelimited,
            "tabDelimited" => ParameterStyle::TabDelimited,
            "deepObject" => ParameterStyle::DeepObject,
            _ => return None,
        })
    }

    /// What stands between the items of one value.
    fn separator(self) -> &'static str {
        match self {
            ParameterStyle::SpaceDelimited => "%20",
            ParameterStyle::PipeDelimited => "%7C",
            ParameterStyle::TabDelimited => "%09",
            _ => ",",
        }
    }
}

/// Which characters are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    /// All but the unreserved ones.
    Strict,
    /// Reserved ones stay too, but those that would end the value.
    Reserved,
    /// As forms have it: a space is `+`.
    Form,
    /// Headers are sent as they are.
    Nothing,
}

impl Escape {
    pub(crate) fn apply(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for byte in text.bytes() {
            let plain = match self {
                Escape::Nothing => return text.to_owned(),
                Escape::Strict => byte.is_ascii_alphanumeric() || b"-._~".contains(&byte),
                Escape::Reserved => byte.is_ascii_alphanumeric() || b"-._~:/?@!$'()*,;=".contains(&byte),
                Escape::Form => byte.is_ascii_alphanumeric() || b"-._*".contains(&byte),
            };
            match byte {
                byte if plain => out.push(char::from(byte)),
                b' ' if self == Escape::Form => out.push('+'),
                byte => out.push_str(&format!("%{byte:02X}")),
            }
        }
        out
    }
}

/// A scalar as text; a nested value as JSON.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A value in a path or a header.
pub(crate) fn in_place(
    name: &str,
    value: &Value,
    style: ParameterStyle,
    explode: bool,
    escape: Escape,
) -> String {
    let text = |value: &Value| escape.apply(&plain(value));
    let name = escape.apply(name);
    let joined = |pairs: &[(String, String)], equals: &str, between: &str| {
        pairs.iter().map(|(key, value)| format!("{key}{equals}{value}")).collect::<Vec<_>>().join(between)
    };
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            match (style, explode) {
                (ParameterStyle::Label, true) => format!(".{}", items.join(".")),
                (ParameterStyle::Label, false) => format!(".{}", items.join(",")),
                (ParameterStyle::Matrix, true) => {
                    items.iter().map(|item| format!(";{name}={item}")).collect()
                }
                (ParameterStyle::Matrix, false) => format!(";{name}={}", items.join(",")),
                (style, _) => items.join(style.separator()),
            }
        }
        Value::Object(members) => {
            let pairs: Vec<(String, String)> =
                members.iter().map(|(key, value)| (escape.apply(key), text(value))).collect();
            match (style, explode) {
                (ParameterStyle::Label, true) => format!(".{}", joined(&pairs, "=", ".")),
                (ParameterStyle::Label, false) => format!(".{}", joined(&pairs, ",", ",")),
                (ParameterStyle::Matrix, true) => format!(";{}", joined(&pairs, "=", ";")),
                (ParameterStyle::Matrix, false) => format!(";{name}={}", joined(&pairs, ",", ",")),
                (_, true) => joined(&pairs, "=", ","),
                (_, false) => joined(&pairs, ",", ","),
            }
        }
        scalar => match (style, text(scalar)) {
            (ParameterStyle::Label, text) => format!(".{text}"),
            (ParameterStyle::Matrix, text) if text.is_empty() => format!(";{name}"),
            (ParameterStyle::Matrix, text) => format!(";{name}={text}"),
            (_, text) => text,
        },
    }
}

/// A value of a query, a cookie or a form, as pairs that are escaped already.
pub(crate) fn pairs(
    name: &str,
    value: &Value,
    style: ParameterStyle,
    explode: bool,
    escape: Escape,
) -> Vec<(String, String)> {
    let key = |name: &str| match escape {
        Escape::Form => Escape::Form.apply(name),
        _ => Escape::Strict.apply(name),
    };
    let text = |value: &Value| escape.apply(&plain(value));
    if style == ParameterStyle::DeepObject && (value.is_object() || value.is_array()) {
        let mut found = Vec::new();
        deep(name, value, &mut |name, value| found.push((key(name), text(value))));
        return found;
    }
    match value {
        Value::Array(items) if explode => items.iter().map(|item| (key(name), text(item))).collect(),
        Value::Object(members) if explode => {
            members.iter().map(|(member, value)| (key(member), text(value))).collect()
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            vec![(key(name), items.join(style.separator()))]
        }
        Value::Object(members) => {
            let words: Vec<String> =
                members.iter().flat_map(|(member, value)| [escape.apply(member), text(value)]).collect();
            vec![(key(name), words.join(style.separator()))]
        }
        scalar => vec![(key(name), text(scalar))],
    }
}

/// `a[b][c]=1`. The specification leaves nested values and arrays open: scalars of an array are `a[]=1`, as
/// PHP, Rails and Stripe read them, and other items are numbered.
fn deep(name: &str, value: &Value, found: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| deep(&format!("{name}[{key}]"), value, found));
        }
        Value::Array(items) => {
            let nested = items.iter().any(|item| item.is_object() || item.is_array());
            for (index, item) in items.iter().enumerate() {
                match nested {
                    true => deep(&format!("{name}[{index}]"), item, found),
                    false => found(&format!("{name}[]"), item),
                }
            }
        }
        scalar => found(name, scalar),
    }
}
