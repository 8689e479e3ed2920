//! A server behind a server: what the one behind asks reaches the client of the one in front, whichever eras
//! they speak.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolwright_core::{CancelToken, DynPerson, Form, FormReply, Person, ToolSource as _};
use toolwright_mcp::{Answers, Client, HttpOptions, HttpTarget, McpServer, Server, Target};
use toolwright_runtime::{Policy, Run};

use crate::http::serve;
use crate::http_client::options;
use crate::support::{PATIENCE, everything, server};

/// A person who calls themselves the same everywhere, and remembers what they were asked.
#[derive(Clone, Default)]
struct Ada(Arc<Mutex<Vec<String>>>);

impl Person for Ada {
    async fn answer(&self, form: &Form) -> FormReply {
        self.0.lock().unwrap().push(form.message.clone());
        let fields = form.schema()["properties"].as_object().cloned().unwrap_or_default();
        let value = |kind: &str| if kind == "boolean" { json!(true) } else { json!("Ada") };
        let content = fields
            .into_iter()
            .map(|(name, field)| (name, value(field["type"].as_str().unwrap_or_default())))
            .collect();
        FormReply::Accepted(content)
    }
}

/// A server that offers the tools of another one, and passes on what it asks.
async fn in_front(behind: McpServer) -> Server {
    let tools = behind.tools().await.unwrap();
    let run = Run::builder(tools).policy(Policy::approve_all()).build().unwrap();
    Server::new(run.dispatch())
}

fn behind(target: impl Into<Target>) -> McpServer {
    let mut answers = Answers::default();
    answers.passed_on = true;
    McpServer::builder("behind", target).timeout(PATIENCE).answers(answers).build()
}

/// A client of that server, over pipes with a session, or over HTTP without one.
async fn client(server: &Server, with_session: bool, person: Option<Ada>) -> Client {
    let mut options = options();
    let mut answers = Answers::default();
    answers.person = person.map(|person| Arc::new(person) as Arc<DynPerson>);
    options.answers = answers;
    if with_session {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(theirs);
        let server = server.clone();
        tokio::spawn(async move { server.serve(input, output).await });
        let (input, output) = tokio::io::split(ours);
        return Client::connect(input, output, options).await.unwrap();
    }
    let http = server.listen("127.0.0.1:0".parse().unwrap(), HttpOptions::default()).await.unwrap();
    let url = format!("http://{}/mcp", http.address());
    tokio::spawn(http.run(CancelToken::new()));
    let client = Client::dial(&HttpTarget::new(url), options).await.unwrap();
    assert_eq!(client.info().version, "2026-07-28");
    client
}

#[tokio::test]
async fn questions_find_their_way_between_all_eras() {
    let far = serve(None).await;
    for (stateless_behind, with_session) in [(false, true), (false, false), (true, true), (true, false)] {
        let target: Target = match stateless_behind {
            true => HttpTarget::new(far.url()).into(),
            false => everything().into(),
        };
        let front = in_front(behind(target)).await;
        let person = Ada::default();
        let client = client(&front, with_session, Some(person.clone())).await;
        client.list_tools().await.unwrap();
        let call = async |name: &str, arguments| client.call_tool(name, arguments, PATIENCE, None).await;
        let where_from = format!("stateless behind: {stateless_behind}, with session: {with_session}");
        let twice = call("test_input_required_result_multi_round", json!({})).await.unwrap();
        assert_eq!(twice.to_text(), r#"{"name":"Ada"} and {"color":"Ada"}"#, "{where_from}");
        let once = call("test_elicitation", json!({"message": "Who?"})).await.unwrap();
        assert!(once.to_text().contains(r#""username":"Ada""#), "{where_from}: {}", once.to_text());
        let asked = person.0.lock().unwrap().clone();
        assert_eq!(asked.len(), 3, "each question is asked once: {where_from}: {asked:?}");
        assert_eq!(asked[2], "The server `behind` asks: Who?");
        client.close().await;
    }
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_declines() {
    let front = in_front(behind(everything())).await;
    for with_session in [true, false] {
        let client = client(&front, with_session, None).await;
        let told = client.call_tool("test_elicitation", json!({"message": "Who?"}), PATIENCE, None).await;
        assert!(told.unwrap().to_text().contains(r#""action":"decline""#));
        client.close().await;
    }
}

#[tokio::test]
async fn nobody_reads_what_may_be_meant_for_another() {
    // It asks once it has two calls, and does not say for which.
    let script = r#"
init
tools 2
read -r one; read -r two
say '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Your PIN?","requestedSchema":{"type":"object","properties":{"pin":{"type":"string"}}}}}'
read -r reply
case "$reply" in *'"action":"decline"'*) said=declined;; *) said=answered;; esac
answer 3 "{\"content\":[{\"type\":\"text\",\"text\":\"$said\"}]}"
answer 4 "{\"content\":[{\"type\":\"text\",\"text\":\"$said\"}]}"
forever
"#;
    let both = async |same_client: bool| {
        let mut answers = Answers::default();
        answers.passed_on = true;
        let front = in_front(server(script).answers(answers).build()).await;
        let (one, other) = (Ada::default(), Ada::default());
        let first = client(&front, true, Some(one.clone())).await;
        let second = client(&front, true, Some(other.clone())).await;
        let another = if same_client { &first } else { &second };
        let (said, too) = tokio::join!(
            first.call_tool("add", json!({}), PATIENCE, None),
            another.call_tool("add", json!({}), PATIENCE, None)
        );
        let asked = one.0.lock().unwrap().len() + other.0.lock().unwrap().len();
        (said.unwrap().to_text(), too.unwrap().to_text(), asked)
    };
    assert_eq!(both(false).await, ("declined".into(), "declined".into(), 0));
    // Of one client's calls it does not matter which: the same person is asked.
    assert_eq!(both(true).await, ("answered".into(), "answered".into(), 1));
}
