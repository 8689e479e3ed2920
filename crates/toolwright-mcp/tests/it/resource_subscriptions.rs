//! Files that clients watch: changes are reported in either era, and only of offered files.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};
use toolwright_core::Toolset;
use toolwright_mcp::{FileResources, Server};
use toolwright_runtime::Run;

use crate::http::meta;
use crate::support::PATIENCE;

/// A client that writes and reads lines.
struct Lines {
    input: WriteHalf<DuplexStream>,
    output: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Lines {
    fn of(server: Server) -> Lines {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (input, output) = tokio::io::split(theirs);
        tokio::spawn(async move { server.serve(input, output).await });
        let (read, write) = tokio::io::split(ours);
        Lines { input: write, output: BufReader::new(read).lines() }
    }

    async fn say(&mut self, message: Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await.expect("a line in time");
        serde_json::from_str(&line.unwrap().expect("no end")).unwrap()
    }

    async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }
}

fn folder() -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("a.md", "A"), ("b.md", "B"), (".env", "KEY=hunter2")] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let run = Run::builder(Toolset::new()).build().unwrap();
    let resources = FileResources::new(folder.path(), ["*.md"]).unwrap();
    (folder, Server::new(run.dispatch()).resources(resources))
}

fn updated(uri: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})
}

#[tokio::test]
async fn a_session_is_told_of_the_files_it_watches_and_of_no_others() {
    let (folder, server) = folder();
    let mut client = Lines::of(server);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}});
    let greeting = client.ask(1, "initialize", hello).await;
    assert_eq!(
        greeting["result"]["capabilities"]["resources"],
        json!({"listChanged": false, "subscribe": true})
    );
    for uri in ["file:///a.md", "file:///a.md", "file:///b.md"] {
        assert_eq!(client.ask(2, "resources/subscribe", json!({"uri": uri})).await["result"], json!({}));
    }
    for uri in ["file:///.env", "file:///../a.md", "file:///none.md", "http://localhost/", ""] {
        let refused = client.ask(3, "resources/subscribe", json!({"uri": uri})).await;
        assert_eq!(refused["error"]["code"], -32002, "{uri}: {refused}");
    }
    client.ask(4, "resources/unsubscribe", json!({"uri": "file:///b.md"})).await;
    std::fs::write(folder.path().join("b.md"), "changed too, but nobody asked").unwrap();
    std::fs::write(folder.path().join("a.md"), "another text").unwrap();
    assert_eq!(client.hear().await, updated("file:///a.md"));
    // Going away is a change, and so is coming back.
    std::fs::remove_file(folder.path().join("a.md")).unwrap();
    assert_eq!(client.hear().await, updated("file:///a.md"));
    std::fs::write(folder.path().join("a.md"), "back").unwrap();
    assert_eq!(client.hear().await, updated("file:///a.md"));
    client.ask(5, "resources/unsubscribe", json!({"uri": "file:///a.md"})).await;
}

#[tokio::test]
async fn who_listens_without_a_session_is_told_of_files_too() {
    let (folder, server) = folder();
    let mut client = Lines::of(server);
    let wanted =
        json!({"resourceSubscriptions": ["file:///a.md", "file:///.env"], "resourcesListChanged": true});
    let params = json!({"notifications": wanted, "_meta": meta()});
    client.say(json!({"jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": params})).await;
    let accepted = client.hear().await;
    // What is promised is what can be watched.
    assert_eq!(accepted["params"]["notifications"], json!({"resourceSubscriptions": ["file:///a.md"]}));
    std::fs::write(folder.path().join("a.md"), "another text").unwrap();
    let told = client.hear().await;
    assert_eq!((&told["method"], &told["params"]["uri"]), (&updated("")["method"], &json!("file:///a.md")));
}
