//! Paths as types: [`WorkspacePath`] marks a parameter whose value is put into one plain form before anybody
//! decides about a call, so that a rule about a path holds however a model spells it.
//!
//! The mark travels in the schema of the Rust type. It is taken out again before a model sees the schema, and
//! kept beside it as the tool's [`PathParameters`].

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

/// The keyword of a schema that marks a path, before it is taken out.
const MARK: &str = "x-toolwright-path";

/// A path in the workspace of a sandbox, in its plain form: without `.`, `..` after a name, doubled and
/// trailing slashes.
///
/// A parameter of this type is canonicalised before rules and people decide about the call, and the tool gets
/// what they saw. Models see an ordinary string.
///
/// ```
/// use toolwright_core::{ToolSpec, WorkspacePath, tool};
///
/// /// Counts the bytes of a file.
/// #[tool(read_only, sandboxed)]
/// async fn size_of(
///     /// The file.
///     path: WorkspacePath,
/// ) -> String {
///     path.to_string()
/// }
///
/// assert_eq!(size_of().spec().paths.names().collect::<Vec<_>>(), ["path"]);
/// assert_eq!(size_of().spec().parameters["properties"]["path"]["type"], "string");
/// assert_eq!(WorkspacePath::new("./a//../b/").as_str(), "b");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct WorkspacePath(String);

/// A path where the workspace is the root of all paths: `/a` and `a` are one file. A path that leads out of
/// it stays as it is written, for the tool to refuse.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct RootedPath(String);

/// How a path is put into its plain form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathForm {
    Workspace,
    Rooted,
}

impl PathForm {
    fn word(self) -> &'static str {
        match self {
            PathForm::Workspace => "workspace",
            PathForm::Rooted => "rooted",
        }
    }

    fn of_mark(mark: &Value) -> Option<Self> {
        let all = [PathForm::Workspace, PathForm::Rooted];
        all.into_iter().find(|form| mark.as_str() == Some(form.word()))
    }

    fn plain(self, path: &str) -> String {
        match self {
            PathForm::Workspace => plain(path),
            PathForm::Rooted => rooted(path).unwrap_or_else(|| path.to_owned()),
        }
    }
}

/// Without `.`, `..` after a name, doubled and trailing slashes. The path is read as text: where a name is a
/// link, `link/../x` is `x`.
fn plain(path: &str) -> String {
    let start = if path.starts_with('/') { "/" } else { "" };
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
        match (name, names.last()) {
            ("..", None) if !start.is_empty() => {}
            ("..", Some(last)) if *last != ".." => _ = names.pop(),
            _ => names.push(name),
        }
    }
    match (start, names.as_slice()) {
        ("", []) if !path.is_empty() => ".".to_owned(),
        _ => format!("{start}{}", names.join("/")),
    }
}

/// The path from the root of the workspace, `.` for the root itself; `None` when it leads out.
fn rooted(path: &str) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => _ = names.pop()?,
            name => names.push(name),
        }
    }
    Some(if names.is_empty() { ".".to_owned() } else { names.join("/") })
}

macro_rules! path_type {
    ($name:ident, $form:expr) => {
        impl $name {
            /// The path in its plain form.
            pub fn new(path: &str) -> Self {
                $name($form.plain(path))
            }

            /// The path as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The path as owned text.
            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<std::path::Path> for $name {
            fn as_ref(&self) -> &std::path::Path {
                self.0.as_ref()
            }
        }

        impl From<&str> for $name {
            fn from(path: &str) -> Self {
                $name::new(path)
            }
        }

        impl From<String> for $name {
            fn from(path: String) -> Self {
                $name::new(&path)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer).map($name::from)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", MARK: $form.word()})
            }
        }
    };
}
path_type!(WorkspacePath, PathForm::Workspace);
path_type!(RootedPath, PathForm::Rooted);

/// Which of a tool's arguments are paths, however deep they lie.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PathParameters {
    /// The schema of the parameters with its marks; `None` when nothing in it is a path.
    marked: Option<Arc<Value>>,
}

impl PathParameters {
    /// Parameters of these names are [`WorkspacePath`]s, for a tool whose schema is given as data.
    ///
    /// ```
    /// use toolwright_core::PathParameters;
    ///
    /// let paths = PathParameters::named(["source", "target"]);
    /// let mut arguments = serde_json::json!({"source": "a/./b", "note": "a/./b"});
    /// paths.make_plain(&mut arguments);
    /// assert_eq!(arguments, serde_json::json!({"source": "a/b", "note": "a/./b"}));
    /// ```
    pub fn named<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        let mark = json!({MARK: PathForm::Workspace.word()});
        let marked: Map<String, Value> = names.into_iter().map(|name| (name.into(), mark.clone())).collect();
        PathParameters { marked: (!marked.is_empty()).then(|| Arc::new(json!({"properties": marked}))) }
    }

    /// Takes the marks out of a schema.
    pub(crate) fn taken_from(schema: &mut Value) -> Self {
        let marked = schema.clone();
        let found = strip_marks(schema);
        PathParameters { marked: found.then(|| Arc::new(marked)) }
    }

    /// The parameters that are paths or hold some.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let all = self.marked.iter().filter_map(|marked| marked.get("properties")?.as_object());
        all.flatten().filter(|(_, schema)| holds_mark(schema)).map(|(name, _)| name.as_str())
    }

    /// True when no argument is a path.
    pub fn is_empty(&self) -> bool {
        self.marked.is_none()
    }

    /// Puts the paths among checked arguments, which are not too deep, into their plain form.
    pub fn make_plain(&self, arguments: &mut Value) {
        if let Some(marked) = &self.marked {
            Walk { root: marked }.visit(vec![&**marked], arguments);
        }
    }
}

/// Takes the marks out; true when there was one.
fn strip_marks(schema: &mut Value) -> bool {
    match schema {
        Value::Object(map) => {
            let here = map.shift_remove(MARK).is_some();
            map.values_mut().fold(here, |found, inner| strip_marks(inner) | found)
        }
        Value::Array(items) => items.iter_mut().fold(false, |found, inner| strip_marks(inner) | found),
        _ => false,
    }
}

fn holds_mark(schema: &Value) -> bool {
    match schema {
        // Where a reference leads is not followed: it may lead to a path, and says so rather once too often.
        Value::Object(map) => {
            map.contains_key(MARK) || map.contains_key("$ref") || map.values().any(holds_mark)
        }
        Value::Array(items) => items.iter().any(holds_mark),
        _ => false,
    }
}

/// A walk through a value along the schemas that describe it.
struct Walk<'a> {
    root: &'a Value,
}

impl<'a> Walk<'a> {
    /// All schemas of one value are followed together and each of them once, so that the work is bounded by
    /// the sizes of the value and of the schema, and references may lead to themselves.
    fn visit(&self, schemas: Vec<&'a Value>, value: &mut Value) {
        let all = self.alternatives(schemas);
        match value {
            Value::String(path) => {
                if let Some(form) = all.iter().find_map(|schema| PathForm::of_mark(schema.get(MARK)?)) {
                    *path = form.plain(path);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    let inner = all.iter().filter_map(|schema| {
                        let own = schema.get("properties").and_then(|all| all.get(name));
                        own.or_else(|| schema.get("additionalProperties"))
                    });
                    self.visit_inner(inner.collect(), member);
                }
            }
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    let inner = all.iter().filter_map(|schema| {
                        let own = schema.get("prefixItems").and_then(|first| first.get(at));
                        own.or_else(|| schema.get("items"))
                    });
                    self.visit_inner(inner.collect(), item);
                }
            }
            _ => {}
        }
    }

    fn visit_inner(&self, schemas: Vec<&'a Value>, value: &mut Value) {
        if !schemas.is_empty() {
            self.visit(schemas, value);
        }
    }

    /// The schemas, and all that they refer to or choose between.
    fn alternatives(&self, mut todo: Vec<&'a Value>) -> Vec<&'a Map<String, Value>> {
        let mut all: Vec<&Map<String, Value>> = Vec::new();
        while let Some(schema) = todo.pop() {
            let Some(schema) = schema.as_object() else { continue };
            if all.iter().any(|known| std::ptr::eq(*known, schema)) {
                continue;
            }
            all.push(schema);
            let target = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
            todo.extend(target.and_then(|pointer| self.root.pointer(pointer)));
            let choices = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|keyword| schema.get(keyword));
            todo.extend(choices.filter_map(Value::as_array).flatten());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    #[test]
    fn a_path_has_one_plain_form() {
        for (path, wanted) in [
            ("a/b", "a/b"),
            ("./a//b/.", "a/b"),
            ("a/../b/", "b"),
            ("a/../../b", "../b"),
            ("../../b", "../../b"),
            ("/../a", "/a"),
            ("//a/./b/..", "/a"),
            ("/", "/"),
            ("a/..", "."),
            (".", "."),
            ("", ""),
            ("a\\..\\b", "a\\..\\b"),
        ] {
            assert_eq!(WorkspacePath::new(path).as_str(), wanted, "{path}");
        }
        for (path, wanted) in
            [("/a.txt", "a.txt"), ("/data/../a", "a"), ("", "."), ("/..", "/.."), ("..", "..")]
        {
            assert_eq!(RootedPath::new(path).as_str(), wanted, "{path}");
        }
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Arguments {
        /// A file.
        path: WorkspacePath,
        other: Option<WorkspacePath>,
        many: Vec<WorkspacePath>,
        by_name: std::collections::BTreeMap<String, WorkspacePath>,
        tree: Option<Box<Tree>>,
        rooted: Option<RootedPath>,
        text: String,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Tree {
        path: WorkspacePath,
        #[serde(default)]
        children: Vec<Tree>,
    }

    #[test]
    fn paths_are_made_plain_however_deep_they_lie_and_nothing_else_is() {
        let (parameters, paths) = schema::parameters_and_paths::<Arguments>();
        let messy = "./a//b/../c";
        let mut arguments = json!({
            "path": messy, "other": messy, "many": [messy, messy], "by_name": {"x": messy}, "text": messy,
            "tree": {"path": messy, "children": [{"path": messy, "children": [{"path": messy}]}]},
            "rooted": "/./a//b/../c",
        });
        assert!(schema::Schema::compile(&parameters).unwrap().problems(&arguments).is_empty());
        paths.make_plain(&mut arguments);
        let clean = "a/c";
        let wanted = json!({
            "path": clean, "other": clean, "many": [clean, clean], "by_name": {"x": clean}, "text": messy,
            "tree": {"path": clean, "children": [{"path": clean, "children": [{"path": clean}]}]},
            "rooted": clean,
        });
        assert_eq!(arguments, wanted);
        assert_eq!(paths.names().collect::<Vec<_>>(), ["path", "other", "many", "by_name", "tree", "rooted"]);
    }

    #[test]
    fn models_see_ordinary_text() {
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Plain {
            /// A file.
            path: String,
            other: Option<String>,
        }
        #[derive(Deserialize, JsonSchema)]
        #[expect(dead_code, reason = "only its schema is used")]
        struct Marked {
            /// A file.
            path: WorkspacePath,
            other: Option<WorkspacePath>,
        }
        let (marked, plain) = (schema::parameters_of::<Marked>(), schema::parameters_of::<Plain>());
        assert_eq!(marked.to_string(), plain.to_string());
    }

    #[test]
    fn many_ways_through_a_recursive_schema_are_gone_once() {
        let branch = json!({"properties": {"child": {"$ref": "#"}, "path": {MARK: "workspace"}}});
        let marked = json!({"$ref": "#", "anyOf": [branch.clone(), branch.clone(), branch]});
        let paths = PathParameters { marked: Some(Arc::new(marked)) };
        let nested = |path: &str| (0..90).fold(json!({"path": path}), |inner, _| json!({"child": inner}));
        let mut arguments = nested("./a/../b");
        paths.make_plain(&mut arguments);
        assert_eq!(arguments, nested("b"));
    }
}
