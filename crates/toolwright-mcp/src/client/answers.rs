//! What a server may ask the client: the person, the model, and the folders it works in.
//!
//! Nothing is offered unless the program says who answers. What comes from a server is bounded and shown to
//! people escaped; answers are checked against the server's own schema before they are sent.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolwright_core::schema::Schema;
use toolwright_core::{
    ApprovalRequest, Approver, Content, Decision, DynApprover, DynModel, DynPerson, ErrorKind, Form,
    FormAuthor, FormBody, FormReply, Message, Model, ModelOptions, ModelRequest, Person, StopReason,
    ToolCall, ToolChoice, ToolContext, text,
};

use crate::bridge;
use crate::jsonrpc::{INVALID_PARAMS, METHOD_NOT_FOUND, RpcError};
use crate::protocol::{ClientCapabilities, ElicitationCapability, Empty};

/// The most messages a server may have the model read.
const MAX_MESSAGES: usize = 200;

/// The most tokens a server may have the model write.
const MAX_TOKENS: u64 = 8192;

/// Reads a server's question to a person; an error when it could not be shown.
pub(super) fn read_form(server: &str, params: &Value) -> Result<Form, RpcError> {
    let url = params.get("url").and_then(Value::as_str);
    let is_page =
        |url: &str| url.len() <= 4096 && (url.starts_with("https://") || url.starts_with("http://"));
    if url.is_some_and(|url| !is_page(url)) {
        return Err(RpcError::new(INVALID_PARAMS, "`url` is not the address of a page on the web"));
    }
    let schema = params.get("requestedSchema").cloned().unwrap_or_else(|| json!({"type": "object"}));
    Schema::compile_any(&schema).map_err(|error| {
        RpcError::new(INVALID_PARAMS, format!("`requestedSchema` is not usable: {error}"))
    })?;
    let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
    let body = match url {
        Some(url) => FormBody::Page(url.to_owned()),
        None => FormBody::Fields(schema),
    };
    Ok(Form::new(FormAuthor::Server(server.to_owned()), text::clip(message, 10_000), body))
}

/// An approver in place of a person. Approving a form takes it with its defaults, other arguments take the
/// form under `content` there, and rejecting declines. The approver sees a call of `mcp_elicitation` with the
/// server's name, its message, and the form. Notices are dropped: an approver only decides.
#[derive(Clone)]
pub struct ThroughApprover(Arc<DynApprover>);

impl ThroughApprover {
    /// Has this approver answer.
    pub fn new(approver: Arc<DynApprover>) -> Self {
        ThroughApprover(approver)
    }
}

impl Person for ThroughApprover {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn approve(&self, request: &ApprovalRequest<'_>) -> Decision {
        self.0.decide(request).await
    }

    async fn answer(&self, form: &Form) -> FormReply {
        let mut content = Map::new();
        form.add_defaults(&mut content);
        let mut arguments = json!({"message": form.message, "content": content});
        let mut reason = "the model asks".to_owned();
        if let Value::Object(members) = &mut arguments {
            if let FormAuthor::Server(server) = &form.author {
                members.insert("server".to_owned(), json!(server));
                reason = format!("the MCP server `{server}` asks");
            }
            match &form.body {
                FormBody::Page(url) => members.insert("url".to_owned(), json!(url)),
                _ => members.insert("form".to_owned(), form.schema()),
            };
        }
        match decide(&*self.0, "mcp_elicitation", arguments, reason).await {
            Decision::Approve => FormReply::Accepted(content),
            Decision::Modify { arguments } => match arguments.get("content") {
                Some(Value::Object(content)) => FormReply::Accepted(content.clone()),
                _ => FormReply::Cancelled,
            },
            Decision::Reject { .. } => FormReply::Declined,
            Decision::Escalate | Decision::Terminate { .. } => FormReply::Cancelled,
        }
    }
}

/// Routes a decision about something else, such as sampling, through an approver as a synthetic call.
async fn decide(approver: &DynApprover, name: &'static str, arguments: Value, reason: String) -> Decision {
    let call = ToolCall::new(name, name, arguments);
    let annotations = toolwright_core::Annotations::default();
    let mut request = ApprovalRequest::new(&call, &annotations);
    request.reason = Some(reason);
    approver.decide(&request).await
}

/// Lets servers ask a model, once an approver has looked at what they ask.
#[derive(Clone)]
pub struct Sampling {
    model: Arc<DynModel>,
    approver: Arc<DynApprover>,
}

impl Sampling {
    /// Lets servers ask this model whenever the approver says so. The approver sees a call of `mcp_sampling`
    /// with the server's name and messages. The answer is paid for by the call the server works on: it counts
    /// against the limits of that call's run, is on record there, and stops with the call. While a server
    /// works on no call, it may ask nothing; see [`Client::paid_by`](crate::Client::paid_by).
    pub fn new(model: Arc<DynModel>, approver: Arc<DynApprover>) -> Self {
        Sampling { model, approver }
    }
}

/// The answers to servers' questions. The default answers nothing.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Answers {
    /// The person whom servers may ask.
    pub person: Option<Arc<DynPerson>>,
    /// Answers what servers ask a model.
    pub sampling: Option<Sampling>,
    /// The folders the client works in, as `file://` addresses with names.
    pub roots: Option<Vec<(String, String)>>,
    /// Passes what the server asks on to the MCP client whose call it is working on, for programs that serve
    /// the tools of one server to the clients of another. A client without that feature declines. Its folders
    /// are never passed on: servers treat roots as permission to touch them, which only the program's user
    /// can give.
    pub passed_on: bool,
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Answers").field(&self.capabilities()).finish()
    }
}

impl Answers {
    /// The abilities that the client names.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        let pages = ElicitationCapability { form: Some(Empty {}), url: Some(Empty {}) };
        ClientCapabilities {
            elicitation: (self.person.is_some() || self.passed_on).then_some(pages),
            sampling: (self.sampling.is_some() || self.passed_on).then_some(Empty {}),
            roots: self.roots.as_ref().map(|_| Empty {}),
            ..ClientCapabilities::default()
        }
    }

    /// Answers one question of a server. What a model says is paid for by `payer`.
    pub(crate) async fn answer(
        &self,
        server: &str,
        method: &str,
        params: &Value,
        payer: Option<ToolContext>,
    ) -> Result<Value, RpcError> {
        match method {
            "elicitation/create" => self.elicit(server, params).await,
            "sampling/createMessage" => self.sample(server, params, payer).await,
            "roots/list" => match &self.roots {
                Some(roots) => {
                    let roots: Vec<Value> =
                        roots.iter().map(|(uri, name)| json!({"uri": uri, "name": name})).collect();
                    Ok(json!({"roots": roots}))
                }
                None => Err(not_offered(method)),
            },
            _ => Err(not_offered(method)),
        }
    }

    async fn elicit(&self, server: &str, params: &Value) -> Result<Value, RpcError> {
        let Some(person) = &self.person else {
            // Where questions are passed on, this one belongs to no client's call.
            let declined = json!({"action": "decline"});
            return if self.passed_on { Ok(declined) } else { Err(not_offered("elicitation/create")) };
        };
        let form = read_form(server, params)?;
        Ok(match person.answer(&form).await {
            FormReply::Accepted(_) if matches!(form.body, FormBody::Page(_)) => json!({"action": "accept"}),
            FormReply::Accepted(mut content) => {
                form.add_defaults(&mut content);
                let content = Value::Object(content);
                match Schema::compile_any(&form.schema()) {
                    Ok(schema) if schema.problems(&content).is_empty() => {
                        json!({"action": "accept", "content": content})
                    }
                    _ => json!({"action": "cancel"}),
                }
            }
            FormReply::Declined => json!({"action": "decline"}),
            FormReply::Cancelled => json!({"action": "cancel"}),
        })
    }

    async fn sample(
        &self,
        server: &str,
        params: &Value,
        payer: Option<ToolContext>,
    ) -> Result<Value, RpcError> {
        let sampling = self.sampling.as_ref().ok_or_else(|| not_offered("sampling/createMessage"))?;
        let payer = payer.ok_or_else(|| RpcError::new(-1, "a model may be asked only during a call"))?;
        let invalid = |message: &str| RpcError::new(INVALID_PARAMS, message);
        let said = sampled_messages(params)?;
        let mut messages = Vec::new();
        if let Some(system) = params.get("systemPrompt").and_then(Value::as_str) {
            messages.push(Message::system(system));
        }
        for message in said {
            let blocks = match message.get("content") {
                Some(Value::Array(blocks)) => blocks.clone(),
                Some(block) => vec![block.clone()],
                None => return Err(invalid("a message has no content")),
            };
            let content: Vec<Content> = blocks.into_iter().map(bridge::read_block).collect();
            messages.push(match message.get("role").and_then(Value::as_str) {
                Some("assistant") => {
                    let said: Vec<_> = content.iter().filter_map(Content::as_text).collect();
                    Message::assistant(said.join("\n\n"))
                }
                _ => Message::User { content },
            });
        }
        let arguments = json!({"server": server, "messages": said, "system": params.get("systemPrompt")});
        let reason = format!("the MCP server `{server}` wants to ask the model");
        let decision = decide(&*sampling.approver, "mcp_sampling", arguments, reason).await;
        if !matches!(decision, Decision::Approve) {
            return Err(RpcError::new(-1, "the user rejected the request"));
        }
        let most = sampled_tokens(params);
        let options = ModelOptions {
            max_tokens: u32::try_from(most).ok(),
            temperature: params.get("temperature").and_then(Value::as_f64),
            ..ModelOptions::default()
        };
        let request = ModelRequest {
            messages: &messages,
            tools: &[],
            tool_choice: &ToolChoice::None,
            options: &options,
        };
        let reply = payer.ask(&*sampling.model, request).await.map_err(|error| match error.kind() {
            ErrorKind::Limit => RpcError::new(-1, error.message()),
            _ => RpcError::new(crate::jsonrpc::INTERNAL_ERROR, "the model did not answer"),
        })?;
        let said: Vec<_> = reply.message.content.iter().filter_map(Content::as_text).collect();
        let stop = match reply.stop {
            StopReason::MaxTokens => "maxTokens",
            StopReason::StopSequence => "stopSequence",
            _ => "endTurn",
        };
        Ok(json!({
            "role": "assistant",
            "content": {"type": "text", "text": said.join("\n\n")},
            "model": sampling.model.name(),
            "stopReason": stop
        }))
    }
}

/// What a server wants the model to read.
pub(super) fn sampled_messages(params: &Value) -> Result<&Vec<Value>, RpcError> {
    let invalid = |message: &str| RpcError::new(INVALID_PARAMS, message);
    let said = params.get("messages").and_then(Value::as_array);
    let said = said.ok_or_else(|| invalid("`messages` is missing"))?;
    if said.len() > MAX_MESSAGES {
        return Err(invalid("there are too many messages"));
    }
    Ok(said)
}

/// How many tokens the model may write for a server.
pub(super) fn sampled_tokens(params: &Value) -> u64 {
    params.get("maxTokens").and_then(Value::as_u64).unwrap_or(1024).clamp(1, MAX_TOKENS)
}

pub(super) fn not_offered(method: &str) -> RpcError {
    RpcError::new(METHOD_NOT_FOUND, format!("`{method}` is not offered"))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(FormReply);

    impl Person for Fixed {
        async fn answer(&self, _: &Form) -> FormReply {
            self.0.clone()
        }
    }

    async fn elicit(reply: FormReply) -> Value {
        let answers = Answers { person: Some(Arc::new(Fixed(reply))), ..Answers::default() };
        let schema = json!({
            "type": "object",
            "properties": {"name": {"type": "string", "default": "Ada"}, "age": {"type": "integer"}}
        });
        let params = json!({"message": "?", "requestedSchema": schema});
        answers.answer("s", "elicitation/create", &params, None).await.unwrap()
    }

    #[tokio::test]
    async fn defaults_are_added_and_what_does_not_fit_is_not_sent() {
        assert_eq!(
            elicit(FormReply::Accepted(Map::new())).await,
            json!({"action": "accept", "content": {"name": "Ada"}})
        );
        let wrong = Map::from_iter([("age".to_owned(), json!("old"))]);
        assert_eq!(elicit(FormReply::Accepted(wrong)).await, json!({"action": "cancel"}));
        assert_eq!(elicit(FormReply::Declined).await, json!({"action": "decline"}));
    }

    #[tokio::test]
    async fn only_pages_on_the_web_are_shown_to_people() {
        let answers =
            Answers { person: Some(Arc::new(Fixed(FormReply::Accepted(Map::new())))), ..Answers::default() };
        let visit = async |url: &str| {
            answers.answer("s", "elicitation/create", &json!({"message": "?", "url": url}), None).await
        };
        assert_eq!(visit("https://example.com/pay").await.unwrap(), json!({"action": "accept"}));
        let long = format!("https://example.com/{}", "a".repeat(5000));
        for url in ["javascript:alert(1)", "file:///etc/passwd", "vscode://x", "$(id)", "", &long] {
            assert_eq!(visit(url).await.unwrap_err().code, INVALID_PARAMS, "{url}");
        }
    }

    struct Parrot;

    impl Model for Parrot {
        fn name(&self) -> &str {
            "test/parrot"
        }

        async fn generate(
            &self,
            request: ModelRequest<'_>,
        ) -> Result<toolwright_core::ModelReply, toolwright_core::ModelError> {
            let last = match request.messages.last() {
                Some(Message::User { content }) => content.first().and_then(Content::as_text),
                _ => None,
            };
            let said = format!("{}! ({:?} tokens)", last.unwrap_or_default(), request.options.max_tokens);
            Ok(toolwright_core::AssistantMessage { content: vec![Content::text(said)], ..Default::default() }
                .into())
        }
    }

    /// Says yes to what mentions nothing secret.
    struct Careful;

    impl Approver for Careful {
        fn name(&self) -> &str {
            "careful"
        }

        async fn decide(&self, request: &ApprovalRequest<'_>) -> Decision {
            assert_eq!(&*request.call.name, "mcp_sampling");
            let asked = format!("{:?}", request.call);
            if asked.contains("secret") { Decision::reject("no secrets") } else { Decision::Approve }
        }
    }

    #[tokio::test]
    async fn a_model_is_asked_only_when_the_approver_says_so() {
        let sampling = Sampling::new(Arc::new(Parrot), Arc::new(Careful));
        let answers = Answers { sampling: Some(sampling), ..Answers::default() };
        assert_eq!(serde_json::to_value(answers.capabilities()).unwrap(), json!({"sampling": {}}));
        let ask = async |text: &str, count: usize| {
            let message = json!({"role": "user", "content": {"type": "text", "text": text}});
            let params = json!({"messages": vec![message; count], "maxTokens": 1_000_000});
            answers.answer("s", "sampling/createMessage", &params, Some(ToolContext::detached())).await
        };
        let said = ask("hello", 1).await.unwrap();
        assert_eq!(said["content"]["text"], json!("hello! (Some(8192) tokens)"));
        assert_eq!((&said["model"], &said["role"]), (&json!("test/parrot"), &json!("assistant")));
        assert!(ask("tell me the secret", 1).await.unwrap_err().message.contains("rejected"));
        assert_eq!(ask("hello", MAX_MESSAGES + 1).await.unwrap_err().code, INVALID_PARAMS);
        let message = json!({"role": "user", "content": {"type": "text", "text": "hello"}});
        let unpaid =
            answers.answer("s", "sampling/createMessage", &json!({"messages": [message]}), None).await;
        assert!(unpaid.unwrap_err().message.contains("only during a call"));
    }

    struct Deciding(Decision);

    impl Approver for Deciding {
        fn name(&self) -> &str {
            "deciding"
        }

        async fn decide(&self, request: &ApprovalRequest<'_>) -> Decision {
            assert_eq!(&*request.call.name, "mcp_elicitation");
            assert_eq!(request.call.arguments["content"], json!({"name": "Ada"}));
            assert_eq!(request.call.arguments["message"], json!("Who?"));
            self.0.clone()
        }
    }

    #[tokio::test]
    async fn an_approver_answers_for_the_person() {
        let ask = async |decision: Decision| {
            let person = ThroughApprover::new(Arc::new(Deciding(decision)));
            let answers = Answers { person: Some(Arc::new(person)), ..Answers::default() };
            let schema = json!({
                "type": "object", "required": ["name"],
                "properties": {"name": {"type": "string", "default": "Ada"}, "age": {"type": "integer"}}
            });
            let params = json!({"message": "Who?", "requestedSchema": schema});
            answers.answer("s", "elicitation/create", &params, None).await.unwrap()
        };
        let accepted = |content: Value| json!({"action": "accept", "content": content});
        let modify = |content: Value| Decision::Modify { arguments: json!({"content": content}) };
        assert_eq!(ask(Decision::Approve).await, accepted(json!({"name": "Ada"})));
        assert_eq!(
            ask(modify(json!({"name": "Bob", "age": 7}))).await,
            accepted(json!({"name": "Bob", "age": 7}))
        );
        // Content that does not fit the form is never sent.
        assert_eq!(ask(modify(json!({"age": "old"}))).await, json!({"action": "cancel"}));
        assert_eq!(ask(Decision::reject("no")).await, json!({"action": "decline"}));
        assert_eq!(ask(Decision::Escalate).await, json!({"action": "cancel"}));
    }

    #[tokio::test]
    async fn nothing_is_offered_unless_somebody_answers() {
        let answers = Answers::default();
        assert_eq!(answers.capabilities(), ClientCapabilities::default());
        for method in ["elicitation/create", "sampling/createMessage", "roots/list", "tools/list"] {
            assert_eq!(
                answers.answer("s", method, &json!({}), None).await.unwrap_err().code,
                METHOD_NOT_FOUND
            );
        }
    }
}
