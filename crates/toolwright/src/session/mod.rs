//! A session: an opened file, with its MCP servers, its models and its sandboxes.
//!
//! [`ToolFile::parse`](crate::file::ToolFile::parse) reads a file, [`Session::builder`] says what is used of
//! it and with what, [`open`](SessionBuilder::open) starts what that needs, and [`run`](Session::run) makes
//! runs. Opening works on any runtime of tokio, and ends what it has started when its future is dropped.

mod open;
#[cfg(feature = "python")]
mod python;
#[cfg(feature = "sandbox")]
mod sandboxes;
#[cfg(feature = "mcp")]
mod servers;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use toolwright_core::{Secret, Toolset};
use toolwright_lang::{CurrentTools, Loaded};
use toolwright_runtime::{Policy, Run, RunBuilder};

use crate::file::ToolFile;

pub use self::open::{Connect, SessionBuilder};
#[cfg(feature = "sandbox")]
pub use self::sandboxes::Sandboxing;

/// Who makes the calls of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A model. The policy decides about its calls.
    Model,
    /// A person, who has decided by typing the call. The calls of models inside of it are decided about by
    /// the policy.
    Person,
}

/// An opened file.
///
/// ```
/// use toolwright::content::ToolCall;
/// use toolwright::file::{Caller, Session, ToolFile};
/// use toolwright::lang::Source;
/// use toolwright::json;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let text = "
/// tools:
///   - name: greet
///     do: {eval: Hello!}
/// policy:
///   - {tools: greet, decision: reject, reason: no greetings}
/// ";
/// let file = ToolFile::parse(Source::text("greet.yaml", text))?;
/// let session = Session::builder(file).open().await?;
/// let greet = || ToolCall::new("1", "greet", json!({}));
///
/// let refused = session.run(Caller::Model).build()?.call(greet()).await?;
/// assert_eq!(refused.error.unwrap().message, "no greetings");
/// let typed = session.run(Caller::Person).build()?.call(greet()).await?;
/// assert_eq!(typed.to_text(), "Hello!");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Session {
    file: Arc<ToolFile>,
    loaded: Loaded,
    policies: Vec<Arc<Policy>>,
    mandatory: Option<Arc<Policy>>,
    assume_yes: bool,
    /// How the models are found that rules name.
    models: Option<open::ModelFinder>,
    #[cfg(feature = "sandbox")]
    sandboxes: sandboxes::Sandboxes,
    #[cfg(feature = "mcp")]
    listeners: servers::Listeners,
}

impl Session {
    /// Begins to open a file.
    pub fn builder(file: impl Into<Arc<ToolFile>>) -> SessionBuilder {
        SessionBuilder::new(file.into())
    }

    /// The file as it was parsed.
    pub fn file(&self) -> &Arc<ToolFile> {
        &self.file
    }

    /// The content of the file: tools, prompts, chat, batch program, data.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// The shared tools of the file.
    pub fn tools(&self) -> &Toolset {
        self.loaded.tools()
    }

    /// The values of secret variables, to be kept out of records.
    pub fn secrets(&self) -> Vec<Secret> {
        self.loaded.secrets()
    }

    /// A run with all tools of the file.
    pub fn run(&self, caller: Caller) -> RunBuilder {
        self.run_matching(caller, &["*"])
    }

    /// A run with the tools of the file whose names match. Tools that MCP servers bring later are among them.
    pub fn run_matching<S: AsRef<str>>(&self, caller: Caller, patterns: &[S]) -> RunBuilder {
        let tools = self.loaded.tools().clone().filtered(patterns);
        self.governed(caller, following(self.loaded.current_tools(patterns), tools))
    }

    /// A run with the tools of the chat whose names match; with those of the file if it has no chat.
    pub fn run_chat<S: AsRef<str>>(&self, caller: Caller, patterns: &[S]) -> RunBuilder {
        let Some(chat) = self.loaded.chat() else { return self.run_matching(caller, patterns) };
        let tools = chat.tools.clone().filtered(patterns);
        self.governed(caller, following(self.loaded.current_chat_tools(patterns), tools))
    }

    /// A run with other tools, under the policy and the limits of the file and in its sandboxes.
    pub fn run_with(&self, caller: Caller, tools: Toolset) -> RunBuilder {
        self.governed(caller, Run::builder(tools))
    }

    /// Is called when an MCP server has listed its tools again, because they changed or it was started again.
    #[cfg(feature = "mcp")]
    pub fn on_listed(&self, listener: impl Fn() + Send + Sync + 'static) {
        self.listeners.add(listener);
    }

    fn governed(&self, caller: Caller, mut builder: RunBuilder) -> RunBuilder {
        let limits = self.file.limits();
        builder = builder.limits(limits.limits.clone()).hide(self.loaded.hidden_secrets());
        if let Some(calls) = limits.max_parallel {
            builder = builder.max_parallel(calls);
        }
        if let Some(bytes) = limits.max_output {
            builder = builder.max_output(bytes);
        }
        builder = self.policies.iter().fold(builder, |builder, policy| builder.policy(policy.clone()));
        if let Some(policy) = &self.mandatory {
            builder = builder.mandatory_policy(policy);
        }
        if self.assume_yes {
            builder = builder.assume_yes();
        }
        if let Some(models) = self.models.clone() {
            builder = builder.reviewers(move |name| (models.0)(name));
        }
        #[cfg(feature = "sandbox")]
        {
            builder = self.sandboxes.give(builder);
        }
        match caller {
            Caller::Model => builder,
            Caller::Person => builder.started_by_person(),
        }
    }
}

/// A run with the tools of a file as they are at any time, if servers can change them.
fn following(current: Option<CurrentTools>, tools: Toolset) -> RunBuilder {
    match current {
        Some(current) => Run::builder(tools).tools_from(current),
        None => Run::builder(tools),
    }
}

/// Why a file was not opened that was found and not named: [`ToolFile::trust`] was not called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct UntrustedFile;

impl std::fmt::Display for UntrustedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the file was found and is not trusted")
    }
}

impl std::error::Error for UntrustedFile {}
