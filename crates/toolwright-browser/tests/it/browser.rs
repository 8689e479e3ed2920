//! A run with browser tools in a process sandbox that may reach the test's own server.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use toolwright_browser::{BrowserOptions, browser_tools};
use toolwright_core::{Content, ToolCall, ToolResult, Toolset};
use toolwright_runtime::{Run, RunBuilder};
use toolwright_sandbox::{Network, ProcessSandbox, SandboxPolicy};

use crate::server::Server;

pub type Work = Pin<Box<dyn Future<Output = ()>>>;

pub struct Case {
    pub name: &'static str,
    pub run: fn() -> Work,
}

/// Cases of async functions, named after them.
#[macro_export]
macro_rules! cases {
    ($module:literal: $($name:ident),* $(,)?) => {
        vec![$($crate::browser::Case {
            name: concat!($module, "::", stringify!($name)),
            run: || Box::pin($name()),
        }),*]
    };
}

/// Why the tests cannot run here.
pub fn missing() -> Option<&'static str> {
    let names = ["chromium-headless-shell", "chromium", "google-chrome"];
    let has = |name: &&str| {
        std::env::var("PATH")
            .unwrap_or_default()
            .split(':')
            .any(|folder| std::path::Path::new(folder).join(name).exists())
    };
    (!names.iter().any(has)).then_some("no Chromium here (`cargo xtask test` installs it)")
}

pub fn block_on(work: Work) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(work);
}

/// A run, and its last result.
pub struct Surfer {
    pub run: Run,
    pub sandbox: Arc<ProcessSandbox>,
    last: std::cell::Cell<u32>,
}

impl Surfer {
    /// A run that may reach the server, and nothing else.
    pub async fn new(server: &Server) -> Surfer {
        Surfer::with(server, browser_tools(&BrowserOptions::new()).unwrap(), |builder| builder).await
    }

    pub async fn with(
        server: &Server,
        tools: Toolset,
        change: impl FnOnce(RunBuilder) -> RunBuilder,
    ) -> Surfer {
        let hosts = vec![format!("127.0.0.1:{}", server.port), format!("localhost:{}", server.port)];
        let policy = SandboxPolicy { network: Network::Allow(hosts), ..SandboxPolicy::private() };
        let sandbox = Arc::new(ProcessSandbox::open(policy).await.unwrap());
        let builder = Run::builder(tools).sandbox("default", sandbox.clone());
        Surfer { run: change(builder).build().unwrap(), sandbox, last: std::cell::Cell::new(0) }
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.last.set(self.last.get() + 1);
        self.run.call(ToolCall::new(self.last.get().to_string(), tool, arguments)).await.unwrap()
    }

    /// The text of a call that succeeds.
    pub async fn text(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        assert!(result.error.is_none(), "{tool}: {:?}", result.error);
        result.to_text()
    }

    /// The message of a call that fails, with its hint.
    pub async fn error(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        let error = result.error.unwrap_or_else(|| panic!("{tool} succeeded: {:?}", result.content));
        format!("{} | {}", error.message, error.hint.unwrap_or_default())
    }

    pub async fn open(&self, server: &Server, path: &str) -> String {
        self.text("browser_open", serde_json::json!({"url": server.url(path)})).await
    }

    /// Steps that succeed.
    pub async fn act(&self, steps: Value) -> String {
        self.text("browser_act", serde_json::json!({"steps": steps})).await
    }
}

/// The reference of the control whose line has this text, for example `b7`.
pub fn reference(text: &str, name: &str) -> String {
    let found = text.match_indices('[').find_map(|(at, _)| {
        let inside = text[at + 1..].split(']').next()?;
        let (reference, rest) = inside.split_once(' ').unwrap_or((inside, ""));
        let is_reference = reference.len() > 1 && reference[1..].chars().all(|c| c.is_ascii_digit());
        (is_reference && rest.contains(name)).then(|| reference.to_owned())
    });
    found.unwrap_or_else(|| panic!("no control `{name}` in:\n{text}"))
}

pub fn picture(result: &ToolResult) -> Vec<u8> {
    let media = result.content.iter().find_map(|block| match block {
        Content::Image(media) => Some(media.bytes().unwrap()),
        _ => None,
    });
    media.expect("a picture")
}
