//! A run with the desktop tools in a process sandbox.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use image::RgbImage;
use serde_json::{Value, json};
use toolwright_core::{Content, Sandbox as _, ToolCall, ToolResult};
use toolwright_desktop::{DesktopOptions, desktop_tools};
use toolwright_runtime::{Run, RunBuilder};
use toolwright_sandbox::{ProcessSandbox, SandboxPolicy};

pub type Work = Pin<Box<dyn Future<Output = ()>>>;

pub struct Case {
    pub name: &'static str,
    pub run: fn() -> Work,
}

/// Cases of async functions, named after them.
#[macro_export]
macro_rules! cases {
    ($module:literal: $($name:ident),* $(,)?) => {
        vec![$($crate::desk::Case {
            name: concat!($module, "::", stringify!($name)),
            run: || Box::pin($name()),
        }),*]
    };
}

/// Why the tests cannot run here.
pub fn missing() -> Option<String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let has = |name: &str| path.split(':').any(|folder| std::path::Path::new(folder).join(name).exists());
    let programs = ["Xvfb", "dbus-daemon", "openbox", "mousepad", "galculator", "xterm"];
    let missing = programs.into_iter().find(|name| !has(name))?;
    Some(format!("no {missing} here (`cargo xtask test` installs it)"))
}

pub fn block_on(work: Work) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(work);
}

/// A run, and its last call.
pub struct Desk {
    pub run: Run,
    pub sandbox: Arc<ProcessSandbox>,
    last: std::cell::Cell<u32>,
}

impl Desk {
    pub async fn new() -> Desk {
        Desk::with(&DesktopOptions::new(), |builder| builder).await
    }

    pub async fn with(options: &DesktopOptions, change: impl FnOnce(RunBuilder) -> RunBuilder) -> Desk {
        let sandbox = Arc::new(ProcessSandbox::open(SandboxPolicy::private()).await.unwrap());
        let builder = Run::builder(desktop_tools(options).unwrap()).sandbox("default", sandbox.clone());
        Desk { run: change(builder).build().unwrap(), sandbox, last: std::cell::Cell::new(0) }
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        self.last.set(self.last.get() + 1);
        self.run.call(ToolCall::new(self.last.get().to_string(), tool, arguments)).await.unwrap()
    }

    /// A call of `computer` that succeeds.
    pub async fn act(&self, arguments: Value) -> ToolResult {
        let result = self.call("computer", arguments.clone()).await;
        assert!(result.error.is_none(), "{arguments}: {:?}", result.error);
        result
    }

    pub async fn text(&self, arguments: Value) -> String {
        let result = self.act(arguments).await;
        let texts = result.content.iter().filter_map(|block| match block {
            Content::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The message of a call that fails, with its hint.
    pub async fn error(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await;
        let error = result.error.unwrap_or_else(|| panic!("{tool} succeeded"));
        format!("{} | {}", error.message, error.hint.unwrap_or_default())
    }

    pub async fn start(&self, command: &str) -> ToolResult {
        let result = self.call("desktop_start", json!({"command": command})).await;
        assert!(result.error.is_none(), "{command}: {:?}", result.error);
        result
    }

    /// A file of the sandbox, once it is there and holds something else than `before`.
    pub async fn file(&self, path: &str, before: &str) -> String {
        for _ in 0..200 {
            if let Ok(text) = self.sandbox.read_text(path).await
                && text != before
            {
                return text;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("{path} did not change");
    }
}

/// The picture of a result. It is kept in `$TOOLWRIGHT_SCREENSHOTS` under a name, for people to look at.
pub fn picture(result: &ToolResult, name: &str) -> RgbImage {
    let media = result.content.iter().find_map(|block| match block {
        Content::Image(media) => Some(media.bytes().unwrap()),
        _ => None,
    });
    let bytes = media.expect("a picture");
    if let Ok(folder) = std::env::var("TOOLWRIGHT_SCREENSHOTS") {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(format!("{folder}/{name}.png"), &bytes).unwrap();
    }
    image::load_from_memory(&bytes).unwrap().to_rgb8()
}
