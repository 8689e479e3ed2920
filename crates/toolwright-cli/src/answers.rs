//! The answers to the MCP servers of a file: from the person, and from the model the file names for it.
//!
//! Servers are started while the file is read, before its rules are known. So those are looked up when a
//! question comes.

use std::sync::{Arc, OnceLock};

use serde_json::Value;
use toolwright::mcp::{Answers, Sampling};
use toolwright::{
    ApprovalRequest, Approver, BoxFuture, Decision, Model, ModelError, ModelErrorKind, ModelReply,
    ModelRequest, Policy, Run, ToolCall, ToolDef, ToolSpec, Toolset, Usage as TokenUsage,
};

use crate::console::Console;
use crate::models::{self, Named};
use crate::prompt::printable;

/// Whom the servers of a file ask.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The person at the console, if there is one.
    Console,
    /// The MCP client whose call the server works on.
    Client,
}

/// What a file that is being read will say.
#[derive(Clone)]
pub struct Later {
    console: Console,
    asked: Asked,
    pub models: Arc<OnceLock<Named>>,
    /// Its policy, as it stands there.
    pub policy: Arc<OnceLock<Value>>,
}

impl Later {
    pub fn new(console: &Console, asked: Asked) -> Self {
        Later { console: console.clone(), asked, models: Arc::default(), policy: Arc::default() }
    }

    /// Who answers a server of the file: the person where there is one, and a model where the file names one.
    pub fn answers(&self, sampling: Option<&str>) -> Answers {
        let mut answers = Answers::default();
        match self.asked {
            Asked::Client => answers.passed_on = true,
            Asked::Console => answers.person = self.console.person(),
        }
        answers.sampling = sampling.map(|model| {
            let model = Lent { name: model.to_owned(), later: self.clone(), opened: OnceLock::new() };
            Sampling::new(Arc::new(model), Arc::new(Rules(self.clone())))
        });
        answers
    }
}

/// Has the rules of the file decide, as about a call.
struct Rules(Later);

impl Approver for Rules {
    fn name(&self) -> &str {
        "rules"
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(async move {
            let policy = match self.0.policy.get() {
                Some(policy) => Policy::from_value(policy.clone()).map_err(anyhow::Error::from),
                None => Ok(Policy::cautious()),
            };
            let decided = match policy {
                Ok(policy) => allowed(&self.0.console, policy, request.call).await,
                Err(error) => Err(error),
            };
            match decided {
                Ok(()) => Decision::Approve,
                Err(error) => Decision::reject(error.to_string()),
            }
        })
    }
}

/// Makes a call that does nothing, under these rules. A person decides what they leave open, where there is
/// one.
async fn allowed(console: &Console, policy: Policy, call: &ToolCall) -> anyhow::Result<()> {
    let mut spec = ToolSpec::new(call.name.clone(), "What an MCP server asks.");
    spec.parameters = serde_json::json!({"type": "object"});
    let tools = Toolset::new().with(ToolDef::dynamic(spec, |_, _| async { "allowed" }))?;
    let builder = Run::builder(tools).policy(policy);
    let builder = match console.person() {
        Some(person) => builder.approver(person),
        None => builder,
    };
    match builder.build()?.call(call.clone()).await?.error {
        None => Ok(()),
        Some(error) => anyhow::bail!(error.message),
    }
}

/// A model by its name in the file, opened when it is first asked.
struct Lent {
    name: String,
    later: Later,
    opened: OnceLock<Result<Box<dyn Model>, String>>,
}

impl Lent {
    fn model(&self) -> Result<&dyn Model, ModelError> {
        let opened = self.opened.get_or_init(|| {
            let none = Named::new();
            let opened =
                models::open(&self.later.console, &self.name, self.later.models.get().unwrap_or(&none));
            opened.map_err(|error| {
                self.later.console.notice(&printable(&format!(
                    "the model `{}`, which an MCP server may ask, cannot be used: {error:#}",
                    self.name
                )));
                format!("{error:#}")
            })
        });
        let model = opened.as_ref().map(|model| &**model);
        model.map_err(|error| ModelError::new(ModelErrorKind::Request, error.clone()))
    }
}

impl Model for Lent {
    fn name(&self) -> &str {
        &self.name
    }

    fn cost(&self, usage: &TokenUsage) -> Option<f64> {
        // One that cannot be opened says so when it is asked.
        self.model().map_or(Some(0.0), |model| model.cost(usage))
    }

    fn generate<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move { self.model()?.generate(request).await })
    }
}
