//! What a server offers, page by page, with every list bounded.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toolwright_core::text;
use toolwright_util::lock;

use super::Client;
use super::calls::CallOrigin;
use super::requests::Ask;
use crate::bridge;
use crate::error::{McpError, McpErrorKind};
use crate::protocol::{
    ClientRequest, GetPromptParams, PARAMETER_HEADER, PageOf, PageParams, Prompt, PromptAnswer, Resource,
    ResourceContents, ResourceTemplate, TaskMode, ToolDefinition, UriParams,
};
use crate::server::{PromptMessage, PromptResult};
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
            if TaskMode::of(&tool) == Some(TaskMode::Required) {
                tasked.extend(tool.get("name").and_then(Value::as_str).map(str::to_owned));
            }
            listing.take(tool, size);
        };
        self.list_all(ClientRequest::ListTools, "tools", each).await?;
        *lock(&self.tasked) = tasked;
        *lock(&self.header_arguments) = HeaderArguments::of(&listing.tools);
        Ok(listing)
    }

    /// Has [`tools_changed`](Self::tools_changed) say so.
    pub(crate) fn note_tools_changed(&self) {
        self.connection.set_tools_changed(true);
    }

    /// Lists the resources.
    pub async fn list_resources(&self) -> Result<Vec<Resource>, McpError> {
        self.list_typed(ClientRequest::ListResources, "resources").await
    }

    /// Lists the patterns of addresses of resources.
    pub async fn list_resource_templates(&self) -> Result<Vec<ResourceTemplate>, McpError> {
        self.list_typed(ClientRequest::ListTemplates, "resourceTemplates").await
    }

    /// Reads a resource.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<ResourceContents>, McpError> {
        let params = UriParams { uri: uri.to_owned(), ..UriParams::default() };
        let mut result = self.read(ClientRequest::ReadResource(params)).await?;
        typed(result.get_mut("contents").map(Value::take).unwrap_or_default(), "its content")
    }

    async fn read(&self, mut request: ClientRequest) -> Result<Value, McpError> {
        let time = self.options.request_timeout;
        self.ask_in_rounds(&CallOrigin::default(), &mut request, time, None, Vec::new()).await
    }

    /// Lists the prompts.
    pub async fn list_prompts(&self) -> Result<Vec<Prompt>, McpError> {
        self.list_typed(ClientRequest::ListPrompts, "prompts").await
    }

    /// Gets a prompt, filled in.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<PromptResult, McpError> {
        let params = GetPromptParams { name: name.to_owned(), arguments, ..GetPromptParams::default() };
        let answer = PromptAnswer::read(self.read(ClientRequest::GetPrompt(params)).await?)
            .ok_or_else(|| McpError::new(McpErrorKind::Protocol, "its prompt has no list of messages"))?;
        let messages = answer.messages.into_iter().take(MAX_TOOLS).map(|(role, content)| {
            let content = bridge::read_block(content);
            PromptMessage { role, content }
        });
        Ok(PromptResult { description: answer.description, messages: messages.collect() })
    }

    async fn list_typed<T: DeserializeOwned>(
        &self,
        request: fn(PageParams) -> ClientRequest,
        key: &str,
    ) -> Result<Vec<T>, McpError> {
        let mut entries = Vec::new();
        let each = |mut entry: Value, _| {
            tidy(&mut entry);
            match serde_json::from_value(entry) {
                Ok(entry) => entries.push(entry),
                Err(error) => self.connection.log(&format!("one of the {key} is left out: {error}")),
            }
        };
        self.list_all(request, key, each).await?;
        Ok(entries)
    }

    /// Hands on every entry of a list with its size. All its pages have the time of one request.
    async fn list_all(
        &self,
        request: fn(PageParams) -> ClientRequest,
        key: &str,
        each: impl FnMut(Value, usize),
    ) -> Result<(), McpError> {
        let time = self.options.request_timeout;
        tokio::select! {
            biased;
            listed = self.list_pages(request, key, each) => listed,
            () = self.connection.run_out(time) => Err(McpError::new(
                McpErrorKind::Timeout,
                format!("the server did not list its {key} within {time:?}"),
            )),
        }
    }

    /// Goes through a list page by page: what is not used is not kept until the last page is there.
    async fn list_pages(
        &self,
        request: fn(PageParams) -> ClientRequest,
        key: &str,
        mut each: impl FnMut(Value, usize),
    ) -> Result<(), McpError> {
        let (mut entries, mut bytes) = (0_usize, 0_usize);
        let mut seen_cursors: BTreeSet<String> = BTreeSet::new();
        let mut cursor: Option<String> = None;
        loop {
            let request = request(PageParams { cursor: cursor.take() });
            let page = self.request(Ask::new(&request, self.options.request_timeout)).await?;
            let Some(PageOf { entries: more, next_cursor: next }) = PageOf::read(page, key) else {
                let message = format!("the answer has no list of {key}");
                return Err(McpError::new(McpErrorKind::Protocol, message));
            };
            entries += more.len();
            if entries > MAX_TOOLS {
                let message = format!("the server lists more than {MAX_TOOLS} {key}");
                return Err(McpError::new(McpErrorKind::Limit, message));
            }
            bytes += next.as_ref().map_or(0, String::len);
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
            if seen_cursors.len() >= MAX_PAGES || !seen_cursors.insert(next.clone()) {
                let pages = seen_cursors.len() + 1;
                let message = format!("the list of {key} does not end after {pages} pages");
                return Err(McpError::new(McpErrorKind::Limit, message));
            }
            cursor = Some(next);
        }
    }
}

/// Normalises an entry: `null` counts as absent, a size of 10.0 as one of 10, and of -1 as none.
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
        .map_err(|error| McpError::new(McpErrorKind::Protocol, format!("{what} is malformed: {error}")))
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
                Err(error) => Some(format!("its definition is malformed: {error}")),
                Ok(tool) if self.tools.iter().any(|known| known.name == tool.name) => {
                    Some("another tool has the same name".to_owned())
                }
                Ok(tool) => match header_arguments(&tool) {
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
pub(super) struct HeaderArguments(HashMap<String, Vec<(String, String)>>);

impl HeaderArguments {
    fn of(tools: &[ToolDefinition]) -> Self {
        let with_headers = tools.iter().filter_map(|tool| {
            let headers = header_arguments(tool).ok().filter(|headers| !headers.is_empty())?;
            Some((tool.name.clone(), headers))
        });
        HeaderArguments(with_headers.collect())
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
fn header_arguments(tool: &ToolDefinition) -> Result<Vec<(String, String)>, String> {
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
