//! Operations of an OpenAPI document as tools: requests over the one way to dial, secrets for the host of the
//! API and no other, answers as output.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolwright_core::text::clip;
use toolwright_core::{
    Content, ErrorKind, Patterns, Secret, Tool, ToolContext, ToolError, ToolOutput, ToolPolicy, ToolSpec,
    Toolset,
};
use toolwright_net::reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use toolwright_net::reqwest::{Method, Url};
use toolwright_net::{ApiExchange, ExchangeReply, PageClient, PageError, Proxies, Reach};
use toolwright_openapi::{
    ApiOperation, ApiRequest, ImportedApi, PageCursor, PartContent, RequestBody, find, items, multipart,
    next_page,
};

use crate::file::Environment;

/// The longest to wait for a connection, and for the next byte.
const CONNECT: Duration = Duration::from_secs(10);
const READ: Duration = Duration::from_secs(60);

/// The most bytes of an answer, and of all pages of one call.
const MAX_BODY: usize = 16 << 20;

/// The most bytes of a body that an error shows.
const MAX_ERROR: usize = 2_000;

/// How often a request is made when the server asks to come back later, and the longest pause.
const TRIES: u32 = 3;
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// How an API is called.
#[derive(Debug)]
pub(crate) struct ApiSettings {
    /// Variables that hold secrets, by the scheme they are for.
    pub(crate) auth: BTreeMap<String, String>,
    pub(crate) headers: BTreeMap<String, String>,
    /// Where connections may go; without it what the run opens, or the public internet.
    pub(crate) reach: Option<Reach>,
    pub(crate) pages: u32,
    pub(crate) timeout: Duration,
    pub(crate) max_output: Option<usize>,
    /// What of an answer is the result, by the names of tools.
    pub(crate) select: Vec<(Patterns, String)>,
}

/// What the tools of one document share.
pub(crate) struct ApiClient {
    settings: ApiSettings,
    environment: Environment,
    http: PageClient,
    /// The host of the API: secrets go nowhere else.
    origin: String,
}

impl ApiClient {
    /// The operations as tools, and those that cannot be tools with the reasons.
    pub(crate) fn tools(
        api: ImportedApi,
        settings: ApiSettings,
        environment: Environment,
        proxies: Proxies,
    ) -> Result<(Toolset, Vec<(String, String)>), ToolError> {
        for (name, value) in &settings.headers {
            if HeaderName::from_bytes(name.as_bytes()).is_err() || HeaderValue::from_str(value).is_err() {
                return Err(ToolError::invalid(format!("`{name}` cannot be sent as a header")));
            }
        }
        let origin = origin_of(&api.base_url);
        let http = PageClient::new(proxies, CONNECT, READ);
        let client = Arc::new(ApiClient { settings, environment, http, origin });
        let mut left_out: Vec<(String, String)> =
            api.left_out.into_iter().map(|one| (one.operation, one.reason)).collect();
        let mut tools = Toolset::new();
        for operation in api.operations {
            let name = operation.spec().name.to_string();
            // One operation whose schema is not usable does not take the others away.
            match tools.clone().with(ApiTool::new(&client, operation)) {
                Ok(grown) => tools = grown,
                Err(error) => left_out.push((name, error.to_string())),
            }
        }
        Ok((tools, left_out))
    }

    fn secret(&self, scheme: &str) -> Option<Secret> {
        let value = self.environment.get(self.settings.auth.get(scheme)?)?;
        (!value.is_empty()).then(|| Secret::new(value))
    }

    /// The text without the secrets that were sent, which some servers repeat in their errors.
    fn without_secrets(&self, text: String) -> String {
        let secrets = self.settings.auth.keys().filter_map(|scheme| self.secret(scheme));
        secrets
            .filter(|secret| secret.expose().len() > 3)
            .fold(text, |text, secret| text.replace(secret.expose(), "[secret]"))
    }
}

fn origin_of(url: &str) -> String {
    Url::parse(url).map(|url| url.origin().ascii_serialization()).unwrap_or_default()
}

/// One operation.
struct ApiTool {
    client: Arc<ApiClient>,
    operation: ApiOperation,
    policy: ToolPolicy,
    select: Option<String>,
}

impl ApiTool {
    fn new(client: &Arc<ApiClient>, operation: ApiOperation) -> Self {
        let mut policy = ToolPolicy::default();
        policy.timeout = Some(client.settings.timeout);
        policy.max_output = client.settings.max_output;
        policy.category = operation.tags().first().map(|tag| Arc::from(tag.as_str()));
        let name = &operation.spec().name;
        let select = client.settings.select.iter().find(|(patterns, _)| patterns.matches(name));
        let select = select.map(|(_, pointer)| pointer.clone());
        ApiTool { client: client.clone(), operation, policy, select }
    }

    async fn run(&self, context: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let mut reply = self.send(context, self.operation.request(&arguments)?, None).await?;
        let pages = self.client.settings.pages;
        let Some(mut whole) = json_of(&reply).filter(|_| pages > 1) else {
            return self.output(reply);
        };
        let (mut arguments, mut size, mut page) = (arguments, reply.body.len(), whole.clone());
        let mut url = reply.url.clone();
        let mut note = None;
        for read in 1.. {
            let link = reply.headers.get("link").and_then(|value| value.to_str().ok());
            let Some(next) = next_page(&self.operation, &arguments, &url, link, &page) else { break };
            if read == pages {
                note = Some(format!("there are more than {pages} pages; ask for the next one yourself"));
                break;
            }
            reply = match next {
                PageCursor::Url(next) => {
                    let request = self.operation.request(&arguments)?;
                    self.send(context, request, Some(next)).await?
                }
                PageCursor::Arguments(next) => {
                    arguments = next;
                    self.send(context, self.operation.request(&arguments)?, None).await?
                }
            };
            url.clone_from(&reply.url);
            size += reply.body.len();
            let Some(mut next) = json_of(&reply) else { break };
            page = next.clone();
            let found = items(&mut next).map(std::mem::take).unwrap_or_default();
            let (Some(list), false, true) = (items(&mut whole), found.is_empty(), size <= MAX_BODY) else {
                break;
            };
            list.extend(found);
        }
        let output = self.selected(whole)?;
        Ok(match note {
            Some(note) => output.with_note(note),
            None => output,
        })
    }

    /// Sends a request, and again when the server asks for that and nothing can be done twice by it.
    async fn send(
        &self,
        context: &ToolContext,
        mut request: ApiRequest,
        address: Option<String>,
    ) -> Result<ApiReply, ToolError> {
        let client = &self.client;
        let paged = address.is_some();
        if let Some(address) = address {
            request.url = address;
        }
        let home = origin_of(&request.url) == client.origin;
        let mut authorised = true;
        if home {
            // The address of a next page may hold a key of the query already.
            let before = request.url.clone();
            authorised = self.operation.authorise(&mut request, &|scheme| client.secret(scheme));
            if paged && before.contains('?') {
                request.url = before;
            }
        }
        let wrong = |what: &str| ToolError::invalid(format!("the request cannot be sent: {what}"));
        let url = Url::parse(&request.url).map_err(|_| wrong("its address is not one"))?;
        let mut headers = HeaderMap::new();
        let own = client.settings.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        for (name, value) in own.chain(request.headers) {
            let key =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong(&format!("header `{name}`")))?;
            let value =
                HeaderValue::from_bytes(value.as_bytes()).map_err(|_| wrong(&format!("header `{name}`")))?;
            headers.insert(key, value);
        }
        let body = match request.body {
            RequestBody::Empty => None,
            RequestBody::Bytes { content_type, bytes } => Some((content_type, bytes)),
            RequestBody::File { content_type, path } => {
                Some((content_type, context.sandbox()?.read_file(&path).await?))
            }
            RequestBody::Multipart(mut parts) => {
                for part in &mut parts {
                    if let PartContent::File(path) = &part.content {
                        let bytes = context.sandbox()?.read_file(path).await?;
                        part.content = PartContent::FileBytes(path.clone(), bytes);
                    }
                }
                Some(multipart(&parts))
            }
        };
        let body = match body {
            Some((content_type, bytes)) => {
                let kind = HeaderValue::from_str(&content_type).map_err(|_| wrong("the type of its body"))?;
                headers.insert("content-type", kind);
                Some(bytes)
            }
            None => None,
        };
        let method = Method::from_bytes(request.method.as_bytes()).map_err(|_| wrong("its method"))?;
        let of_run = || context.state::<Reach>().map(|reach| Reach::clone(&reach)).ok();
        let reach = client.settings.reach.clone().or_else(of_run).unwrap_or(Reach::Public);
        let mut tries = 1;
        let reply = loop {
            let exchange = ApiExchange {
                reach: &reach,
                method: method.clone(),
                url: url.clone(),
                headers: headers.clone(),
                body: body.clone(),
                most: MAX_BODY,
            };
            let reply = client.http.exchange(exchange).await.map_err(|error| unreachable(&url, error))?;
            match again(&reply).filter(|_| self.operation.is_idempotent() && tries < TRIES) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => break reply,
            }
            tries += 1;
        };
        let ExchangeReply { status, headers, body } = reply;
        let reply = ApiReply { status, headers, body, url: url.to_string() };
        if (200..300).contains(&status) { Ok(reply) } else { Err(self.failed(&reply, authorised)) }
    }

    /// The error of a status other than 2xx, with what the server wrote.
    fn failed(&self, reply: &ApiReply, authorised: bool) -> ToolError {
        let ApiReply { status, headers, body, .. } = reply;
        let text = self.client.without_secrets(String::from_utf8_lossy(body).into_owned());
        let text = text.trim();
        let mut message = format!("{} {} answered {status}", self.operation.method(), self.operation.path());
        if let Some(to) = headers.get("location").and_then(|value| value.to_str().ok()) {
            message.push_str(&format!(", a redirect to {}, which is not followed", clip(to, 200)));
        }
        if !text.is_empty() {
            message.push_str(&format!(": {}", clip(text, MAX_ERROR)));
        }
        let kind = match status {
            401 | 403 => ErrorKind::Permission,
            408 | 504 => ErrorKind::Timeout,
            429 => ErrorKind::Limit,
            _ => ErrorKind::Unknown,
        };
        let error = ToolError::of(kind, message);
        let schemes: Vec<&str> = self.operation.security().map(|scheme| scheme.name.as_str()).collect();
        match (status, authorised, schemes.as_slice()) {
            (401 | 403, false, [first, ..]) => error.hint(format!(
                "no secret was sent: set `auth: {{{first}: NAME_OF_A_VARIABLE}}` and the variable (schemes: {})",
                schemes.join(", ")
            )),
            _ => error,
        }
    }

    fn output(&self, reply: ApiReply) -> Result<ToolOutput, ToolError> {
        if reply.body.is_empty() {
            return Ok(ToolOutput::text(format!("done ({})", reply.status)));
        }
        if let Some(value) = json_of(&reply) {
            return self.selected(value);
        }
        let kind = reply.kind();
        let plain = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        Ok(match plain.split('/').next().unwrap_or_default() {
            "image" if plain != "image/svg+xml" => ToolOutput::block(Content::image(plain, &reply.body)),
            "audio" => ToolOutput::block(Content::audio(plain, &reply.body)),
            "video" => ToolOutput::block(Content::video(plain, &reply.body)),
            _ => match String::from_utf8(reply.body) {
                Ok(text) => ToolOutput::text(self.client.without_secrets(text)),
                Err(bytes) => {
                    let kind = if plain.is_empty() { "application/octet-stream".to_owned() } else { plain };
                    ToolOutput::block(Content::document(kind, "answer", bytes.as_bytes()))
                }
            },
        })
    }

    /// The part of a JSON answer that is the result.
    fn selected(&self, value: Value) -> Result<ToolOutput, ToolError> {
        let value = match &self.select {
            None => value,
            Some(pointer) => match find(&value, pointer) {
                Some(found) => found.clone(),
                None => {
                    let message = format!("the answer has nothing at `{pointer}`, which `select` names");
                    return Err(ToolError::new(message).with_partial(ToolOutput::json(value)));
                }
            },
        };
        let text = value.to_string();
        let clean = self.client.without_secrets(text.clone());
        match clean == text {
            true => Ok(ToolOutput::json(value)),
            false => Ok(ToolOutput::text(clean)),
        }
    }
}

/// The reply to a request.
struct ApiReply {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    url: String,
}

impl ApiReply {
    fn kind(&self) -> String {
        let kind = self.headers.get("content-type").and_then(|value| value.to_str().ok());
        kind.unwrap_or_default().to_owned()
    }
}

/// The body as JSON, where the server says it is or says nothing.
fn json_of(reply: &ApiReply) -> Option<Value> {
    let kind = reply.kind().to_ascii_lowercase();
    (kind.is_empty() || kind.contains("json")).then(|| serde_json::from_slice(&reply.body).ok()).flatten()
}

/// How long the server wants to wait before the next try.
fn again(reply: &ExchangeReply) -> Option<Duration> {
    if !matches!(reply.status, 429 | 503) {
        return None;
    }
    let seconds: u64 = reply.headers.get("retry-after")?.to_str().ok()?.trim().parse().ok()?;
    let pause = Duration::from_secs(seconds);
    (pause <= MAX_PAUSE).then_some(pause)
}

fn unreachable(url: &Url, error: PageError) -> ToolError {
    let host = url.host_str().unwrap_or_default().to_owned();
    match error {
        PageError::Refused(reason) => ToolError::of(ErrorKind::Permission, reason)
            .hint("a private or other host is opened by `openapi: {FILE: {network: [HOST:PORT]}}`"),
        PageError::TooLong(most) => {
            ToolError::of(ErrorKind::OutputLimit, format!("{host} answered with more than {most} bytes"))
        }
        error => ToolError::new(format!("cannot reach {host}: {error}")).with_source(error),
    }
}

impl Tool for ApiTool {
    fn spec(&self) -> &ToolSpec {
        self.operation.spec()
    }

    fn policy(&self) -> &ToolPolicy {
        &self.policy
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        self.run(context, arguments).await
    }
}
