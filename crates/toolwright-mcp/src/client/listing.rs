//! What a server offers, page by page, with every list bounded.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::Ordering;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use toolwright_core::text;

use super::Client;
use super::connection::{Ask, Whose};
use crate::bridge;
use crate::error::{McpError, McpErrorKind};
use crate::protocol::{PARAMETER_HEADER, ToolDefinition};
use crate::server::{
    Prompt, PromptMessage, PromptResult, Resource, ResourceContents, ResourceTemplate, Role,
};

/// The most entries a server may list: tools, resources or prompts.
pub const MAX_TOOLS: usize = 10_000;

/// The most pages a list may have.
const MAX_PAGES: usize = 1_000;

/// The most a list may hold in all its pages, in bytes of JSON. Each page alone may be as long as a message.
const MAX_LIST: usize = 64 * 1024 * 1024;

/// The longest definition of a tool, in bytes of JSON.
const MAX_DEFINITION: usize = 1024 * 1024;

/// The most headers one tool may ask for.
const MAX_HEADERS: usize = 32;

impl Client {
    /// Lists the tools, page by page. Definitions that cannot be used are left out and named.
    pub async fn list_tools(&self) -> Result<Listing, McpError> {
        let (mut listing, mut tasked) = (Listing::default(), HashSet::new());
        let each = |tool: Value, size| {
            if tool.pointer("/execution/taskSupport").and_then(Value::as_str) == Some("required") {
                tasked.extend(tool.get("name").and_then(Value::as_str).map(str::to_owned));
            }
            listing.take(tool, size);
        };
        self.list_all("tools/list", "tools", each).await?;
        *self.tasked.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = tasked;
        *self.mirrored.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
            Mirrored::of(&listing.tools);
        Ok(listing)
    }

    /// Has [`tools_changed`](Self::tools_changed) say so.
    pub(crate) fn note_tools_changed(&self) {
        self.connection.tools_changed.store(true, Ordering::Release);
    }

    /// Lists the resources.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, McpError> {
        self.list_typed("resources/list", "resources").await
    }

    /// Lists the patterns of addresses of resources.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, McpError> {
        self.list_typed("resources/templates/list", "resourceTemplates").await
    }

    /// Reads a resource.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<ResourceContents>, McpError> {
        let ask = Ask::new("resources/read", json!({"uri": uri}), self.options.request_timeout);
        let mut result = self.ask_in_rounds(&Whose::default(), ask).await?;
        typed(result.get_mut("contents").map(Value::take).unwrap_or_default(), "its content")
    }

    /// Lists the prompts.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, McpError> {
        self.list_typed("prompts/list", "prompts").await
    }

    /// Gets a prompt, filled in.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<PromptResult, McpError> {
        let params = json!({"name": name, "arguments": arguments});
        let ask = Ask::new("prompts/get", params, self.options.request_timeout);
        let mut result = self.ask_in_rounds(&Whose::default(), ask).await?;
        let messages: Vec<Value> =
            typed(result.get_mut("messages").map(Value::take).unwrap_or_default(), "its prompt")?;
        let messages = messages.into_iter().take(MAX_TOOLS).map(|mut message| {
            let role = match message.get("role").and_then(Value::as_str) {
                Some("assistant") => Role::Assistant,
                _ => Role::User,
            };
            let content = message.get_mut("content").map(Value::take).unwrap_or_default();
            PromptMessage { role, content: bridge::read_block(content) }
        });
        Ok(PromptResult {
            description: result.get("description").and_then(Value::as_str).map(str::to_owned),
            messages: messages.collect(),
        })
    }

    async fn list_typed<T: DeserializeOwned>(&self, method: &str, key: &str) -> Result<Vec<T>, McpError> {
        let mut entries = Vec::new();
        let each = |mut entry: Value, _| {
            tidy(&mut entry);
            match serde_json::from_value(entry) {
                Ok(entry) => entries.push(entry),
                Err(error) => self.connection.log(&format!("one of the {key} is left out: {error}")),
            }
        };
        self.list_all(method, key, each).await?;
        Ok(entries)
    }

    /// Hands on every entry of a list with its size. All its pages have the time of one request.
    async fn list_all(
        &self,
        method: &str,
        key: &str,
        each: impl FnMut(Value, usize),
    ) -> Result<(), McpError> {
        let time = self.options.request_timeout;
        tokio::select! {
            biased;
            listed = self.list_pages(method, key, each) => listed,
            () = self.connection.run_out(time) => Err(McpError::new(
                McpErrorKind::Timeout,
                format!("the server did not answer `{method}` within {time:?}"),
            )),
        }
    }

    /// Goes through a list page by page: what is not used is not kept until the last page is there.
    async fn list_pages(
        &self,
        method: &str,
        key: &str,
        mut each: impl FnMut(Value, usize),
    ) -> Result<(), McpError> {
        let (mut entries, mut bytes) = (0_usize, 0_usize);
        let mut seen_cursors: BTreeSet<String> = BTreeSet::new();
        let mut cursor: Option<String> = None;
        loop {
            let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let mut page = self.request(Ask::new(method, params, self.options.request_timeout)).await?;
            let Some(Value::Array(more)) = page.get_mut(key).map(Value::take) else {
                return Err(McpError::new(McpErrorKind::Protocol, format!("the list of {key} is not one")));
            };
            entries += more.len();
            if entries > MAX_TOOLS {
                let message = format!("the server lists more than {MAX_TOOLS} {key}");
                return Err(McpError::new(McpErrorKind::Limit, message));
            }
            let next = page.get("nextCursor").and_then(Value::as_str);
            bytes += next.map_or(0, str::len);
            for entry in more {
                let size = entry.to_string().len();
                bytes += size;
                if bytes <= MAX_LIST {
                    each(entry, size);
                }
            }
            if bytes > MAX_LIST {
                let most = MAX_LIST / (1024 * 1024);
                let message = format!("the list of {key} is larger than {most} MiB");
                return Err(McpError::new(McpErrorKind::Limit, message));
            }
            let Some(next) = next else { return Ok(()) };
            if seen_cursors.len() >= MAX_PAGES || !seen_cursors.insert(next.to_owned()) {
                let pages = seen_cursors.len() + 1;
                let message = format!("the list of {key} does not end after {pages} pages");
                return Err(McpError::new(McpErrorKind::Limit, message));
            }
            cursor = Some(next.to_owned());
        }
    }
}

/// Makes an entry what it is meant to be: `null` is read as what is not there, a size of 10.0 as one of 10, and of
/// -1 as none.
fn tidy(entry: &mut Value) {
    match entry {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            if let Some(size) = members.get("size").filter(|size| !size.is_u64()) {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
                let whole =
                    size.as_f64().filter(|size| *size >= 0.0 && size.fract() == 0.0).map(|size| size as u64);
                match whole {
                    Some(whole) => members.insert("size".to_owned(), whole.into()),
                    None => members.remove("size"),
                };
            }
            members.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn typed<T: DeserializeOwned>(value: Value, what: &str) -> Result<T, McpError> {
    serde_json::from_value(value)
        .map_err(|error| McpError::new(McpErrorKind::Protocol, format!("{what} is not one: {error}")))
}

/// The tools of a server.
#[derive(Debug, Default)]
pub struct Listing {
    /// The usable ones, in the server's order.
    pub tools: Vec<ToolDefinition>,
    /// The others: a name, cut and escaped, and why it cannot be used.
    pub left_out: Vec<(String, String)>,
}

impl Listing {
    fn take(&mut self, tool: Value, size: usize) {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or("a tool without a name");
        let name = toolwright_core::text::visible(&text::clip(name, 200));
        let problem = if size > MAX_DEFINITION {
            Some(format!("its definition is larger than {MAX_DEFINITION} bytes"))
        } else {
            match serde_json::from_value::<ToolDefinition>(tool) {
                Err(error) => Some(format!("its definition is not one: {error}")),
                Ok(tool) if self.tools.iter().any(|known| known.name == tool.name) => {
                    Some("another tool has the same name".to_owned())
                }
                Ok(tool) => match mirrored(&tool) {
                    Ok(_) => {
                        self.tools.push(tool);
                        None
                    }
                    Err(problem) => Some(problem),
                },
            }
        };
        self.left_out.extend(problem.map(|problem| (name, problem)));
    }
}

/// Which arguments are repeated in headers, by tool: the argument, and what follows `Mcp-Param-`.
#[derive(Debug, Default)]
pub(super) struct Mirrored(HashMap<String, Vec<(String, String)>>);

impl Mirrored {
    fn of(tools: &[ToolDefinition]) -> Self {
        let with_headers = tools.iter().filter_map(|tool| {
            let headers = mirrored(tool).ok().filter(|headers| !headers.is_empty())?;
            Some((tool.name.clone(), headers))
        });
        Mirrored(with_headers.collect())
    }

    /// The headers of a call. Arguments that are missing or null have none.
    pub(super) fn headers(&self, tool: &str, arguments: &Value) -> Vec<(String, String)> {
        let Some(headers) = self.0.get(tool) else { return Vec::new() };
        let value = |name: &str| match arguments.get(name)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        headers.iter().filter_map(|(name, header)| Some((header.clone(), value(name)?))).collect()
    }
}

/// The arguments a tool wants repeated in headers; an error when it says so in a way that cannot be followed.
fn mirrored(tool: &ToolDefinition) -> Result<Vec<(String, String)>, String> {
    let mut found: Vec<(String, String)> = Vec::new();
    let Some(properties) = tool.input_schema.get("properties").and_then(Value::as_object) else {
        return Ok(found);
    };
    for (name, schema) in properties {
        let Some(header) = schema.get(PARAMETER_HEADER) else { continue };
        let header = header.as_str().unwrap_or_default();
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if header.is_empty() || header.len() > 100 || !header.bytes().all(token) {
            return Err(format!(
                "the header for `{}` has no valid name",
                toolwright_core::text::visible(name)
            ));
        }
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        if !matches!(kind, "string" | "integer" | "boolean") {
            return Err(format!("`{}` cannot be repeated in a header", toolwright_core::text::visible(name)));
        }
        if found.iter().any(|(_, known)| known.eq_ignore_ascii_case(header)) || found.len() >= MAX_HEADERS {
            return Err(format!("the header `{header}` is asked for twice, or there are too many"));
        }
        found.push((name.clone(), header.to_owned()));
    }
    Ok(found)
}
