//! Which operations of a document become tools, and under which names.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use toolwright_core::text::clip;
use toolwright_core::{Annotations, ErrorKind, PathParameters, Patterns, ToolError, ToolSpec};

use crate::arguments::{self, ArgumentList};
use crate::body;
use crate::document::ApiDocument;
use crate::names::{legal, unique};
use crate::operation::ApiOperation;
use crate::pointer;
use crate::schema::{Schemas, flag};
use crate::security::{self, SecurityKind, SecurityScheme};
use crate::server;

/// The most operations of a document.
const MAX_OPERATIONS: usize = 20_000;

/// The longest description of a tool, in bytes.
const MAX_DESCRIPTION: usize = 2_000;

const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// Which operations are wanted, and where the API is. An empty list wants all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// The address of the server, in the place of the document's.
    pub base_url: Option<String>,
    /// One of these tags.
    pub tags: Vec<String>,
    /// One of these methods.
    pub methods: Vec<String>,
    /// Patterns of paths; `!` takes away.
    pub paths: Vec<String>,
    /// Patterns of names of tools or `operationId`s; `!` takes away.
    pub operations: Vec<String>,
}

/// The operations of a document.
#[derive(Debug, Clone)]
pub struct ImportedApi {
    /// What the API is called.
    pub title: String,
    /// Where it is.
    pub base_url: String,
    /// The operations, in the order of the document.
    pub operations: Vec<ApiOperation>,
    /// Those that cannot be tools.
    pub left_out: Vec<LeftOutOperation>,
    /// The ways to prove who asks.
    pub schemes: Vec<SecurityScheme>,
}

/// An operation that cannot be a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutOperation {
    /// Its method and path.
    pub operation: String,
    /// The reason.
    pub reason: String,
}

pub(crate) fn import(document: &ApiDocument, options: &ImportOptions) -> Result<ImportedApi, ToolError> {
    let root = &document.root;
    let base = base_url(root, options);
    let schemes = Arc::new(security::schemes(root));
    let filter = OperationFilter::new(options);
    let mut reader = Reader {
        root,
        base: &base,
        schemes: &schemes,
        filter,
        schemas: Schemas::new(root, document.is_draft_2020),
        taken: HashSet::new(),
        left_out: Vec::new(),
        operations: Vec::new(),
    };
    for (path, item) in root.get("paths").and_then(Value::as_object).into_iter().flatten() {
        if path.starts_with("x-") {
            continue;
        }
        let item = match pointer::resolved(root, item) {
            Ok(item) => item,
            Err(reason) => {
                reader.left_out.push(LeftOutOperation { operation: path.clone(), reason });
                continue;
            }
        };
        let described = item.as_object().into_iter().flatten();
        for (method, operation) in described.filter(|(key, _)| METHODS.contains(&key.as_str())) {
            reader.read(path, method, item, operation);
            if reader.operations.len() + reader.left_out.len() > MAX_OPERATIONS {
                let message = format!("the document has more than {MAX_OPERATIONS} operations");
                let hint = "take fewer of them, with `tags`, `methods`, `paths` or `operations`";
                return Err(ToolError::of(ErrorKind::Limit, message).hint(hint));
            }
        }
    }
    let Reader { operations, left_out, .. } = reader;
    // Without an address nothing can be called, whatever else is right.
    let base_url = match (&base, operations.iter().any(|one| !one.base.is_empty())) {
        (Ok(base), _) => base.clone(),
        (Err(_), true) => String::new(),
        (Err(reason), false) => {
            let hint = "set `base_url` to the address of the API";
            return Err(ToolError::invalid(format!("the document names no server: {reason}")).hint(hint));
        }
    };
    let title = document.title().to_owned();
    Ok(ImportedApi { title, base_url, operations, left_out, schemes: schemes.to_vec() })
}

fn base_url(root: &Value, options: &ImportOptions) -> Result<String, String> {
    match (&options.base_url, server::first(root)) {
        (Some(url), _) => server::checked(url),
        (None, Some(url)) => server::checked(&url),
        (None, None) => Err("`servers` is missing".to_owned()),
    }
}

/// Which operations are wanted.
struct OperationFilter {
    tags: Vec<String>,
    methods: Vec<String>,
    paths: Option<Patterns>,
    operations: Option<Patterns>,
}

impl OperationFilter {
    fn new(options: &ImportOptions) -> Self {
        let patterns = |list: &[String]| (!list.is_empty()).then(|| Patterns::new(list));
        OperationFilter {
            tags: options.tags.clone(),
            methods: options.methods.iter().map(|method| method.to_ascii_lowercase()).collect(),
            paths: patterns(&options.paths),
            operations: patterns(&options.operations),
        }
    }

    fn wants(&self, path: &str, method: &str, tags: &[String], names: [&str; 2]) -> bool {
        let listed =
            |list: &[String], found: &dyn Fn(&String) -> bool| list.is_empty() || list.iter().any(found);
        listed(&self.tags, &|tag| tags.contains(tag))
            && listed(&self.methods, &|wanted| wanted == method)
            && self.paths.as_ref().is_none_or(|patterns| patterns.matches(path))
            && self.operations.as_ref().is_none_or(|patterns| names.iter().any(|name| patterns.matches(name)))
    }
}

struct Reader<'d> {
    root: &'d Value,
    base: &'d Result<String, String>,
    schemes: &'d Arc<Vec<SecurityScheme>>,
    filter: OperationFilter,
    schemas: Schemas<'d>,
    taken: HashSet<String>,
    left_out: Vec<LeftOutOperation>,
    operations: Vec<ApiOperation>,
}

impl Reader<'_> {
    fn read(&mut self, path: &str, method: &str, item: &Value, operation: &Value) {
        let shown = format!("{} {path}", method.to_ascii_uppercase());
        let extension = |key: &str| {
            ["x-toolwright", "x-speakeasy-mcp"].into_iter().find_map(|of| operation.get(of)?.get(key))
        };
        let own = operation.get("operationId").and_then(Value::as_str).unwrap_or_default();
        let named = extension("name").and_then(Value::as_str).unwrap_or(own);
        let name = [named, own, &format!("{method}_{path}"), &format!("{method}_root")]
            .into_iter()
            .map(legal)
            .find(|name| !name.is_empty())
            .unwrap_or_default();
        // The name is taken also when the operation is not wanted, so that a filter renames nothing.
        let name = unique(&mut self.taken, name, &shown);
        let tags: Vec<String> = operation
            .get("tags")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        let disabled = extension("disabled").and_then(Value::as_bool).unwrap_or(false);
        if disabled || !self.filter.wants(path, method, &tags, [&name, own]) {
            return;
        }
        match self.operation(path, method, item, operation, name, tags) {
            Ok(made) => self.operations.push(made),
            Err(reason) => self.left_out.push(LeftOutOperation { operation: shown, reason }),
        }
    }

    fn operation(
        &mut self,
        path: &str,
        method: &str,
        item: &Value,
        operation: &Value,
        name: String,
        tags: Vec<String>,
    ) -> Result<ApiOperation, String> {
        let own_server = server::first(operation).or_else(|| server::first(item));
        let base = match own_server.map(|url| server::checked(&url)) {
            Some(Ok(own)) => own,
            // One that is relative, or filled in by the caller, is where the API is.
            Some(Err(_)) | None => self.base.clone()?,
        };
        // Behind `#` some documents tell operations of one path apart.
        let path = path.split('#').next().unwrap_or_default();
        if !path.starts_with('/') && !path.is_empty() {
            return Err(format!("the path `{path}` does not begin with `/`"));
        }
        let (root, schemes) = (self.root, self.schemes.clone());
        let secret = |place: &str, parameter: &str| {
            schemes.iter().any(|scheme| match &scheme.kind {
                SecurityKind::Header(name) => place == "header" && name.eq_ignore_ascii_case(parameter),
                SecurityKind::Query(name) => place == "query" && name == parameter,
                SecurityKind::Cookie(name) => place == "cookie" && name == parameter,
                _ => false,
            })
        };
        let mut arguments = ArgumentList::default();
        let schemas = &mut self.schemas;
        let parameters =
            arguments::parameters(root, (item, operation), path, &secret, schemas, &mut arguments)?;
        let body = body::body(root, operation, schemas, &mut arguments)?;
        let paths = std::mem::take(&mut arguments.paths);
        let mut spec = ToolSpec::new(name, description(item, operation, method, path));
        spec.parameters = arguments.schema(schemas)?;
        spec.paths = PathParameters::named(paths);
        spec.annotations = annotations(operation, method);
        Ok(ApiOperation {
            spec,
            method: method.to_ascii_uppercase(),
            path: path.to_owned(),
            base,
            accept: accept(root, operation),
            parameters,
            body,
            security: security::alternatives(operation, root),
            schemes: self.schemes.clone(),
            tags,
        })
    }
}

fn description(item: &Value, operation: &Value, method: &str, path: &str) -> String {
    let text = |key: &str| {
        let own = operation.get(key).or_else(|| item.get(key)).and_then(Value::as_str);
        own.map(str::trim).filter(|text| !text.is_empty())
    };
    let mut parts: Vec<&str> = Vec::new();
    let (summary, long) = (text("summary"), text("description"));
    parts.extend(summary.filter(|summary| !long.is_some_and(|long| long.starts_with(summary))));
    let clipped = long.map(|long| clip(long, MAX_DESCRIPTION));
    parts.extend(clipped.as_deref());
    if flag(operation, "deprecated") {
        parts.push("Deprecated.");
    }
    let request = format!("{} {path}", method.to_ascii_uppercase());
    parts.push(&request);
    parts.join("\n\n")
}

fn annotations(operation: &Value, method: &str) -> Annotations {
    let reads = matches!(method, "get" | "head" | "options");
    let title = operation.get("summary").and_then(Value::as_str).map(str::trim);
    Annotations {
        title: title.filter(|title| !title.is_empty()).map(|title| clip(title, 200)),
        read_only: Some(reads),
        destructive: (!reads).then_some(method == "delete"),
        idempotent: matches!(method, "put" | "delete").then_some(true),
        open_world: Some(true),
    }
}

/// What the request accepts: JSON where the operation can answer with it.
fn accept(root: &Value, operation: &Value) -> String {
    let responses = operation.get("responses").and_then(Value::as_object).into_iter().flatten();
    let good = responses.filter(|(status, _)| status.starts_with('2') || *status == "default");
    let mut kinds: Vec<String> = Vec::new();
    for (_, response) in good {
        let Ok(response) = pointer::resolved(root, response) else { continue };
        let content = response.get("content").and_then(Value::as_object).into_iter().flatten();
        kinds.extend(content.map(|(kind, _)| kind.clone()));
    }
    let is_header = |kind: &&String| kind.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    let json = kinds.iter().find(|kind| kind.contains("json"));
    json.or(kinds.first())
        .filter(is_header)
        .map_or_else(|| "application/json, */*;q=0.5".to_owned(), Clone::clone)
}
