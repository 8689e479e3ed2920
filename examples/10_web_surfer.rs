//! A tool with a model and a memory of its own: it surfs in a real browser, answers, and takes follow-up
//! questions. Each instance remembers what it was asked, and has tabs of its own.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use toolwright::browser::{BrowserOptions, browser_tools};
use toolwright::content::Message;
use toolwright::run::Agent;
use toolwright::sandbox::{Network, ProcessSandbox, SandboxPolicy, launcher};
use toolwright::testing::{Reply, ScriptedModel};
use toolwright::tool::ToolDef;
use toolwright::{Run, ToolContext, ToolError, json};

const INSTRUCTIONS: &str = "You are a helpful assistant that can use a browser to answer questions. Search, follow links and \
                            go back as you need. Questions about earlier searches can be answered from what you know.";

/// What the surfer remembers.
#[derive(Default, Serialize, Deserialize)]
struct Surfer {
    messages: Vec<Message>,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Question {
    /// Message to the web surfer: a prompt to do research, or a question about previous research.
    input: String,
    /// Clear memory of previous searches.
    #[serde(default)]
    clear_history: bool,
}

/// The tool; its memory is that of `instance`.
fn web_surfer(instance: &'static str) -> Result<ToolDef, ToolError> {
    let browser = browser_tools(&BrowserOptions::new().instance(instance))?;
    let surfer = Arc::new(Agent::new("surfer", "Uses the web.").tools(browser));
    let about =
        "Uses the web to research a topic. Questions can prompt new searches or follow up on previous ones.";
    Ok(ToolDef::typed("web_surfer", about, move |context: ToolContext, question: Question| {
        let surfer = surfer.clone();
        async move {
            let memory = context.store_as::<Surfer>(instance);
            let mut messages = memory.update(|memory| {
                if question.clear_history {
                    memory.messages.clear();
                }
                memory.messages.clone()
            });
            if messages.is_empty() {
                messages.push(Message::system(INSTRUCTIONS));
            }
            messages.push(Message::user(question.input));
            let outcome = surfer.run_within(&context, messages).await?;
            memory.update(|memory| memory.messages.clone_from(&outcome.messages));
            Ok::<_, ToolError>(outcome.completion())
        }
    }))
}

/// A library with a search form, so that there is something to surf.
async fn library(listener: TcpListener) -> std::io::Result<()> {
    loop {
        let (mut stream, _) = listener.accept().await?;
        let mut request = vec![0; 8192];
        let length = stream.read(&mut request).await?;
        let request = String::from_utf8_lossy(request.get(..length).unwrap_or_default()).into_owned();
        let body = match request.starts_with("GET /?q=tides ") {
            true => "<title>Tides</title><p>The tides come from the moon, and less so from the sun.</p>",
            false => "<title>Library</title><form><label>Search <input name=q></label></form>",
        };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}", body.len());
        stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n{body}").as_bytes()).await?;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The launcher of the sandbox is this program, started again.
    launcher::main_if_launcher();
    tokio::runtime::Runtime::new()?.block_on(work())
}

async fn work() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let host = listener.local_addr()?.to_string();
    tokio::spawn(library(listener));
    // The browser runs in the sandbox, and reaches what the sandbox may reach.
    let policy = SandboxPolicy { network: Network::Allow(vec![host.clone()]), ..SandboxPolicy::private() };
    let sandbox = Arc::new(ProcessSandbox::open(policy).await?);
    // The model of the run is also the surfer's; here each says what the script says next.
    let search = json!([
        {"do": "fill", "ref": "i1", "text": "tides"},
        {"do": "press", "ref": "i1", "text": "Enter"},
    ]);
    let model = Arc::new(ScriptedModel::new([
        Reply::call("web_surfer", json!({"input": "What makes the tides?"})),
        Reply::call("browser_open", json!({"url": format!("http://{host}/")})),
        Reply::call("browser_act", json!({"steps": search})).expecting("Search [i1"),
        Reply::text("The moon.").expecting("The tides come from the moon"),
        Reply::call("web_surfer", json!({"input": "And what else?"})).expecting("The moon."),
        Reply::call("browser_find", json!({"text": "sun"})).expecting("And what else?"),
        Reply::text("The sun, less so.").expecting("less so from the sun"),
        Reply::call("web_surfer", json!({"input": "What did I ask?", "clear_history": true})),
        Reply::text("Nothing yet."),
        Reply::text("The moon and the sun."),
    ]));
    let run =
        Run::builder(web_surfer("research")?).sandbox("default", sandbox).model(model.clone()).build()?;
    let outcome = run.ask(&*model, "Why tides?").await?;
    for message in &outcome.messages {
        if let Message::Tool(result) = message {
            println!("the surfer says: {}", result.to_text());
        }
    }
    println!("{}", outcome.completion());
    Ok(())
}
