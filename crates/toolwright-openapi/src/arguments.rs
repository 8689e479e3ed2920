//! From the parameters of an operation to the arguments of a tool: flat, legal, each name once.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Map, Value, json};

use crate::names::{self, unique};
use crate::pointer;
use crate::schema::{Converted, Schemas, flag};
use crate::style::ParameterStyle;

/// The most parameters of one operation.
const MAX_PARAMETERS: usize = 500;

/// Headers that are not arguments: they describe the body, prove who asks, or belong to the connection.
const NOT_ARGUMENTS: [&str; 15] = [
    "accept",
    "content-type",
    "authorization",
    "cookie",
    "host",
    "connection",
    "content-length",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Where a parameter stands in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterLocation {
    Path,
    Query,
    Header,
    Cookie,
}

impl ParameterLocation {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "path" => ParameterLocation::Path,
            "query" => ParameterLocation::Query,
            "header" => ParameterLocation::Header,
            "cookie" => ParameterLocation::Cookie,
            _ => return None,
        })
    }

    fn word(self) -> &'static str {
        match self {
            ParameterLocation::Path => "path",
            ParameterLocation::Query => "query",
            ParameterLocation::Header => "header",
            ParameterLocation::Cookie => "cookie",
        }
    }

    fn default_style(self) -> ParameterStyle {
        match self {
            ParameterLocation::Path | ParameterLocation::Header => ParameterStyle::Simple,
            ParameterLocation::Query | ParameterLocation::Cookie => ParameterStyle::Form,
        }
    }
}

/// One parameter, and the argument that holds its value.
#[derive(Debug, Clone)]
pub(crate) struct ApiParameter {
    pub(crate) argument: String,
    pub(crate) name: String,
    pub(crate) place: ParameterLocation,
    pub(crate) style: ParameterStyle,
    pub(crate) explode: bool,
    pub(crate) reserved: bool,
    /// Its value is written as JSON.
    pub(crate) json: bool,
}

/// The arguments of a tool while they are put together.
#[derive(Debug, Default)]
pub(crate) struct ArgumentList {
    pub(crate) taken: HashSet<String>,
    pub(crate) properties: Map<String, Value>,
    pub(crate) required: Vec<String>,
    pub(crate) references: BTreeSet<String>,
    /// Those that are paths of the workspace.
    pub(crate) paths: Vec<String>,
}

impl ArgumentList {
    pub(crate) fn add(&mut self, name: &str, converted: Converted, required: bool) {
        self.references.extend(converted.references);
        self.properties.insert(name.to_owned(), converted.schema);
        if required {
            self.required.push(name.to_owned());
        }
    }

    /// The schema of all of them.
    pub(crate) fn schema(self, schemas: &mut Schemas<'_>) -> Result<Value, String> {
        let definitions = schemas.definitions(&self.references)?;
        let mut schema = Map::new();
        schema.insert("type".into(), json!("object"));
        schema.insert("properties".into(), self.properties.into());
        if !self.required.is_empty() {
            schema.insert("required".into(), json!(self.required));
        }
        schema.insert("additionalProperties".into(), Value::Bool(false));
        if !definitions.is_empty() {
            schema.insert("$defs".into(), definitions.into());
        }
        Ok(schema.into())
    }
}

/// The parameters of an operation and of its path, each as an argument. `secret` says which ones are sent to
/// authenticate.
pub(crate) fn parameters(
    root: &Value,
    (item, operation): (&Value, &Value),
    path: &str,
    secret: &dyn Fn(&str, &str) -> bool,
    schemas: &mut Schemas<'_>,
    arguments: &mut ArgumentList,
) -> Result<Vec<ApiParameter>, String> {
    let mut found: Vec<&Value> = Vec::new();
    let list = |of: &'_ Value| of.get("parameters").and_then(Value::as_array).cloned().unwrap_or_default();
    let (own, shared) = (list(operation), list(item));
    if own.len() + shared.len() > MAX_PARAMETERS {
        return Err(format!("it has more than {MAX_PARAMETERS} parameters"));
    }
    let own: Vec<&Value> =
        own.iter().map(|one| pointer::resolved(root, one).map(|_| one)).collect::<Result<_, _>>()?;
    let identity = |one: &Value| {
        let one = pointer::resolved(root, one).ok()?;
        Some((one.get("name")?.as_str()?.to_owned(), one.get("in")?.as_str()?.to_owned()))
    };
    found.extend(shared.iter().filter(|one| !own.iter().any(|other| identity(other) == identity(one))));
    found.extend(own);
    let mut made = Vec::new();
    let mut read: Vec<(&Value, String, ParameterLocation)> = Vec::new();
    for one in found {
        let one = pointer::resolved(root, one)?;
        let text = |key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default();
        let (name, place) = (text("name"), text("in"));
        let Some(place) = ParameterLocation::of(place).filter(|_| !name.is_empty()) else {
            return Err(format!("a parameter `{name}` is in `{place}`, which does not hold parameters"));
        };
        let skipped = place == ParameterLocation::Header
            && NOT_ARGUMENTS.iter().any(|known| name.eq_ignore_ascii_case(known));
        let in_path = place != ParameterLocation::Path || path.contains(&format!("{{{name}}}"));
        if !skipped && in_path && !secret(place.word(), name) {
            read.push((one, name.to_owned(), place));
        }
    }
    // The path comes first for people, whatever the order of the document.
    read.sort_by_key(|(_, _, place)| *place != ParameterLocation::Path);
    for (one, name, place) in read {
        let argument = argument_name(&mut arguments.taken, &name, place.word());
        let content = one.get("content").and_then(Value::as_object).and_then(|all| all.values().next());
        let schema = content.and_then(|content| content.get("schema")).or_else(|| one.get("schema"));
        let mut converted = schemas.convert(schema.unwrap_or(&json!({})))?;
        describe(&mut converted, one);
        let style = one.get("style").and_then(Value::as_str);
        let style = match style {
            None => place.default_style(),
            Some(word) => ParameterStyle::of(word)
                .ok_or_else(|| format!("the style `{word}` of `{name}` is unknown"))?,
        };
        let explode = one.get("explode").and_then(Value::as_bool).unwrap_or(style == ParameterStyle::Form);
        let required = place == ParameterLocation::Path || flag(one, "required");
        arguments.add(&argument, converted, required);
        let reserved = place == ParameterLocation::Query && flag(one, "allowReserved");
        made.push(ApiParameter { argument, name, place, style, explode, reserved, json: content.is_some() });
    }
    // A path may name what no parameter describes.
    for name in placeholders(path) {
        if !made.iter().any(|known| known.place == ParameterLocation::Path && known.name == name) {
            let argument = argument_name(&mut arguments.taken, name, "path");
            let schema = json!({"type": "string"});
            arguments.add(&argument, Converted { schema, references: BTreeSet::new() }, true);
            let (name, place, style) = (name.to_owned(), ParameterLocation::Path, ParameterStyle::Simple);
            made.push(ApiParameter {
                argument,
                name,
                place,
                style,
                explode: false,
                reserved: false,
                json: false,
            });
        }
    }
    Ok(made)
}

/// The names in braces of a path.
pub(crate) fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}

/// The name of an argument: the parameter's own, with its place behind it where that is taken.
pub(crate) fn argument_name(taken: &mut HashSet<String>, name: &str, place: &str) -> String {
    let own = match names::legal(name) {
        own if own.is_empty() => place.to_owned(),
        own => own,
    };
    match taken.contains(&own) {
        true => unique(taken, names::legal(&format!("{own}_{place}")), name),
        false => unique(taken, own, name),
    }
}

/// A description beside the schema wins over the one inside.
pub(crate) fn describe(converted: &mut Converted, of: &Value) {
    let text = of.get("description").and_then(Value::as_str).map(str::trim).unwrap_or_default();
    if let (false, Some(members)) = (text.is_empty(), converted.schema.as_object_mut()) {
        members.insert("description".into(), toolwright_core::text::clip(text, 600).into());
    }
    if flag(of, "deprecated")
        && let Some(members) = converted.schema.as_object_mut()
    {
        members.insert("deprecated".into(), Value::Bool(true));
    }
}
