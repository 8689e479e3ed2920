//! One operation of an API: the definition models receive, and the request of a call.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolwright_core::{Secret, ToolError, ToolSpec};

use crate::arguments::{ApiParameter, ParameterLocation};
use crate::body::BodyPlan;
use crate::request::{ApiRequest, RequestBody};
use crate::security::{SecurityKind, SecurityScheme};
use crate::server;
use crate::style::{Escape, in_place, pairs};

/// One operation of an API.
#[derive(Debug, Clone)]
pub struct ApiOperation {
    pub(crate) spec: ToolSpec,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) base: String,
    pub(crate) accept: String,
    pub(crate) parameters: Vec<ApiParameter>,
    pub(crate) body: Option<BodyPlan>,
    pub(crate) security: Vec<Vec<String>>,
    pub(crate) schemes: Arc<Vec<SecurityScheme>>,
    pub(crate) tags: Vec<String>,
}

impl ApiOperation {
    /// The definition models receive.
    pub fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// The method, in capitals.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The path, with its parameters in braces.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The tags of the document.
    pub fn tags(&self) -> &[String] {
        &self.tags
    }

    /// The scheme, host and port that the request goes to.
    pub fn origin(&self) -> &str {
        server::origin(&self.base)
    }

    /// Whether a call can be made again without harm.
    pub fn is_idempotent(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE")
    }

    /// The security schemes that may be needed, in the document's order, each once.
    pub fn security(&self) -> impl Iterator<Item = &SecurityScheme> {
        let named =
            |scheme: &&SecurityScheme| self.security.iter().flatten().any(|name| *name == scheme.name);
        self.schemes.iter().filter(named)
    }

    /// Whether an argument stands in the query.
    pub(crate) fn query_argument(&self, names: &[&str]) -> Option<&str> {
        let in_query = self.parameters.iter().filter(|one| one.place == ParameterLocation::Query);
        let mut in_query =
            in_query.filter(|one| names.iter().any(|name| one.name.eq_ignore_ascii_case(name)));
        in_query.next().map(|one| one.argument.as_str())
    }

    /// The request for these arguments, which fit the schema. It holds no secret.
    pub fn request(&self, arguments: &Value) -> Result<ApiRequest, ToolError> {
        let empty = Map::new();
        let arguments = arguments.as_object().unwrap_or(&empty);
        let mut path = self.path.clone();
        let (mut query, mut headers, mut cookies) = (Vec::new(), Vec::new(), Vec::new());
        headers.push(("accept".to_owned(), self.accept.clone()));
        for parameter in &self.parameters {
            let given = arguments.get(&parameter.argument).filter(|value| !value.is_null());
            let Some(value) = given else {
                if parameter.place == ParameterLocation::Path {
                    return Err(ToolError::invalid(format!("`{}` must be given", parameter.argument)));
                }
                continue;
            };
            let text;
            let value = match parameter.json {
                true => {
                    text = Value::String(value.to_string());
                    &text
                }
                false => value,
            };
            let ApiParameter { name, style, explode, .. } = parameter;
            match parameter.place {
                ParameterLocation::Path => {
                    let text = in_place(name, value, *style, *explode, Escape::Strict);
                    if text.is_empty() {
                        let message =
                            format!("`{}` stands in the path and must not be empty", parameter.argument);
                        return Err(ToolError::invalid(message));
                    }
                    path = path.replace(&format!("{{{name}}}"), &text);
                }
                ParameterLocation::Query => {
                    let escape = if parameter.reserved { Escape::Reserved } else { Escape::Strict };
                    query.extend(pairs(name, value, *style, *explode, escape));
                }
                ParameterLocation::Cookie => {
                    cookies.extend(pairs(name, value, *style, *explode, Escape::Strict))
                }
                ParameterLocation::Header => {
                    let text = in_place(name, value, *style, *explode, Escape::Nothing);
                    if text.chars().any(char::is_control) {
                        let message = format!("`{}` is a header and must be one line", parameter.argument);
                        return Err(ToolError::invalid(message));
                    }
                    headers.push((name.clone(), text));
                }
            }
        }
        let (path, fixed) = match path.split_once('?') {
            Some((path, fixed)) => (path.to_owned(), Some(fixed.to_owned())),
            None => (path, None),
        };
        // A segment of dots would lead to another operation, also when it is escaped.
        let dots = |segment: &str| {
            let plain = segment.to_ascii_lowercase().replace("%2e", ".");
            plain == "." || plain == ".."
        };
        if path.split('/').any(dots) {
            return Err(ToolError::invalid("a value of the path must not be `.` or `..`"));
        }
        let body = match &self.body {
            Some(body) => body.write(arguments)?,
            None => RequestBody::Empty,
        };
        let url = format!("{}{path}", self.base);
        let mut request = ApiRequest { method: self.method.clone(), url, headers, body };
        if let Some(fixed) = fixed.filter(|fixed| !fixed.is_empty()) {
            request.url.push('?');
            request.url.push_str(&fixed);
        }
        query.iter().for_each(|(name, value)| request.add_query(name, value));
        cookies.iter().for_each(|(name, value)| request.add_cookie(name, value));
        Ok(request)
    }

    /// Adds the secrets of the first alternative of which all are there. `secret` finds them by the name of
    /// their scheme. False when the operation needs some and no alternative is complete.
    pub fn authorise(&self, request: &mut ApiRequest, secret: &dyn Fn(&str) -> Option<Secret>) -> bool {
        let scheme = |name: &String| -> Option<(&SecurityKind, Secret)> {
            let scheme = self.schemes.iter().find(|scheme| scheme.name == *name)?;
            Some((&scheme.kind, secret(name)?))
        };
        // With a secret at hand an operation that may do without is asked with it.
        let mut alternatives: Vec<&Vec<String>> = self.security.iter().collect();
        alternatives.sort_by_key(|names| names.is_empty());
        for names in alternatives {
            let Some(found) = names.iter().map(scheme).collect::<Option<Vec<_>>>() else { continue };
            let before = request.clone();
            if found.iter().all(|(kind, secret)| kind.apply(request, secret)) {
                return true;
            }
            *request = before;
        }
        self.security.is_empty()
    }
}
