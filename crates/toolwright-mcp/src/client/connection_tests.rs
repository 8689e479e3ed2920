//! Which call pays for a server's questions, and what may be dropped when.

use std::sync::atomic::AtomicUsize;

use serde_json::json;
use toolwright_core::{
    ApprovalRequest, Approver, AskPurpose, AssistantMessage, BoxFuture, CallInfo, CallNote, Decision,
    Dispatch, DynModel, Form, FormReply, Invocation, Model, ModelError, ModelReply, ModelRequest, Origin,
    Person, RunScope, ToolCall, ToolContext, ToolError, ToolOutput, ToolResult, ToolSpec, Toolset,
};

use super::*;
use crate::client::answers::Sampling;
use crate::client::calls::{CallOrigin, Paying};

/// Ends the session when it goes, as the last clone of a client does.
struct Ends(Arc<ServerConnection>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A connection on which somebody waits, and progress goes to what holds the session alone.
fn waiting() -> Arc<ServerConnection> {
    let connection =
        Arc::new(ServerConnection::new(Out::Lines(mpsc::channel(1).0), &ClientOptions::default()));
    let ends = Ends(connection.clone());
    let progress: OnProgress = Arc::new(move |_, _, _| {
        let _ = &ends;
    });
    connection.requests.add(1, CallOrigin::default(), Some(progress));
    connection
}

/// Does this in a thread of its own: one that waits for itself never comes back.
fn comes_back(what: impl FnOnce(&Arc<ServerConnection>) + Send + 'static) {
    let (done, back) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let connection = waiting();
        what(&connection);
        let _ = done.send(connection.requests.len());
    });
    assert_eq!(back.recv_timeout(Duration::from_secs(60)), Ok(0));
}

fn over() -> McpError {
    McpError::new(McpErrorKind::Closed, "over")
}

#[test]
fn last_owner_of_a_session_may_be_dropped_while_it_closes() {
    comes_back(|connection| connection.close(over()));
    comes_back(|connection| connection.end());
}

#[test]
fn last_owner_of_a_session_may_be_dropped_with_an_answer() {
    comes_back(|connection| connection.answer(1, Err(over())));
}

#[test]
fn last_owner_of_a_session_may_be_dropped_with_a_cancelled_call() {
    comes_back(|connection| {
        drop(Waiting { connection, id: 1, method: Method::CallTool, sent: false, done: false });
    });
}

/// The host of calls that counts what a model is asked.
#[derive(Default)]
struct Purse {
    scope: RunScope,
    asked: AtomicUsize,
}

impl Dispatch for Purse {
    fn scope(&self) -> &RunScope {
        &self.scope
    }

    fn specs(&self) -> Vec<ToolSpec> {
        Vec::new()
    }

    fn fresh_specs(&self) -> BoxFuture<'_, Result<Vec<ToolSpec>, ToolError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn call<'a>(&'a self, _: ToolCall, _: Origin) -> BoxFuture<'a, Result<ToolResult, ToolError>> {
        Box::pin(async { Err(ToolError::new("none")) })
    }

    fn invoke<'a>(
        &'a self,
        _: &'a ToolContext,
        _: Invocation<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async { Err(ToolError::new("none")) })
    }

    fn ask<'a>(
        &'a self,
        _: AskPurpose<'a>,
        _: &'a DynModel,
        _: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<Result<ModelReply, ModelError>, ToolError>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(Ok(AssistantMessage::default().into())) })
    }

    fn converse<'a>(
        &'a self,
        _: &'a ToolContext,
        _: &'a DynModel,
        _: &'a Toolset,
        _: Vec<toolwright_core::Message>,
        _: u64,
    ) -> BoxFuture<'a, Result<Vec<toolwright_core::Message>, ToolError>> {
        Box::pin(async { Err(ToolError::new("none")) })
    }

    fn note(&self, _: &ToolContext, _: CallNote) {}
}

impl Model for Purse {
    fn name(&self) -> &str {
        "test/purse"
    }

    async fn generate(&self, _: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        Ok(AssistantMessage::default().into())
    }
}

impl Approver for Purse {
    fn name(&self) -> &str {
        "purse"
    }

    async fn decide(&self, _: &ApprovalRequest<'_>) -> Decision {
        Decision::Approve
    }
}

#[tokio::test]
async fn call_that_the_server_works_on_pays_and_not_the_latest() {
    let call = |purse: &Arc<Purse>| ToolContext::new(purse.clone(), CallInfo::default());
    let (earlier, latest): (Arc<Purse>, Arc<Purse>) = Default::default();
    let mut options = ClientOptions::default();
    let anybody: Arc<Purse> = Arc::default();
    options.answers.sampling = Some(Sampling::new(anybody.clone(), anybody));
    let (out, mut lines) = mpsc::channel(8);
    let connection = Arc::new(ServerConnection::new(Out::Lines(out), &options));
    let _paying = (Paying::begin(&connection, &call(&earlier)), Paying::begin(&connection, &call(&latest)));
    let whose = CallOrigin { caller: None, payer: Some(call(&earlier)) };
    let paid = || [&earlier, &latest].map(|purse| purse.asked.load(Ordering::Relaxed));
    let message = json!({"role": "user", "content": {"type": "text", "text": "hi"}});
    let params = json!({"messages": [message]});
    // In place of a result, which is that of a certain call.
    let asked = [("sampling/createMessage", &params)];
    assert!(connection.answer_all(&whose, &asked).await.is_ok_and(|answers| answers[0].is_ok()));
    assert_eq!(paid(), [1, 0]);
    // On the stream that answers a certain call.
    let _waiting = connection.requests.add(7, whose, None);
    let question = |id| RpcMessage::Request {
        id: Id::Number(id),
        method: "sampling/createMessage".to_owned(),
        params: params.clone(),
    };
    connection.take(question(1), Some(7));
    assert!(lines.recv().await.is_some());
    assert_eq!(paid(), [2, 0]);
    // Over pipes nobody knows.
    connection.take(question(2), None);
    assert!(lines.recv().await.is_some());
    assert_eq!(paid(), [2, 1]);
}

/// A person who never answers: says when the question is there, and when nobody waits any more.
struct Pondering {
    asked: CancelToken,
    left: CancelToken,
}

impl Person for Pondering {
    async fn answer(&self, _: &Form) -> FormReply {
        self.asked.cancel();
        let left = self.left.clone().drop_guard();
        let _left = left;
        std::future::pending().await
    }
}

#[tokio::test]
async fn question_that_the_server_cancels_is_not_answered() {
    let (asked, left) = (CancelToken::new(), CancelToken::new());
    let mut options = ClientOptions::default();
    options.answers.person = Some(Arc::new(Pondering { asked: asked.clone(), left: left.clone() }));
    let (out, mut lines) = mpsc::channel(8);
    let connection = Arc::new(ServerConnection::new(Out::Lines(out), &options));
    let params = json!({"message": "?", "requestedSchema": {"type": "object"}});
    let id = Id::Text("q".to_owned());
    connection.take(RpcMessage::Request { id, method: "elicitation/create".to_owned(), params }, None);
    let take_back = |id: Value| {
        let method = "notifications/cancelled".to_owned();
        connection.take(RpcMessage::Notification { method, params: json!({"requestId": id}) }, None);
    };
    tokio::time::timeout(Duration::from_secs(60), asked.cancelled()).await.expect("somebody is asked");
    take_back(json!("another"));
    tokio::task::yield_now().await;
    assert!(!left.is_cancelled());
    take_back(json!("q"));
    tokio::time::timeout(Duration::from_secs(60), left.cancelled()).await.expect("nobody waits");
    while !connection.questions.is_idle() {
        tokio::task::yield_now().await;
    }
    assert!(lines.try_recv().is_err());
}
