//! Who answers what the MCP servers of a file ask: the person, and the model the file names for it.
//!
//! Servers are started while the file is read, before anybody knows its rules and how the person is asked. So both are
//! looked up when a question comes.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;
use toolwright::mcp::{Answers, ElicitReply, Elicitation, Elicitor, Sampling};
use toolwright::{
    ApprovalRequest, Approver, BoxFuture, Decision, Model, ModelError, ModelErrorKind, ModelReply,
    ModelRequest, Policy, Run, ToolCall, ToolDef, ToolSpec, Toolset, Usage as TokenUsage,
};

use crate::console::Console;
use crate::models::{self, Named};
use crate::prompt::{Terminal, printable};

/// Where the person is whom servers ask.
#[derive(Clone, Default)]
enum Person {
    /// At the terminal, if there is one.
    #[default]
    Terminal,
    /// At the chat, which has the terminal to itself.
    Chat(Arc<dyn Approver>, Arc<dyn Elicitor>),
    /// At the MCP client whose call it is.
    Client,
}

static PERSON: Mutex<Person> = Mutex::new(Person::Terminal);

/// Has everything that servers ask from now on asked in the chat.
pub fn ask_in_chat(approver: impl Approver + 'static, elicitor: impl Elicitor + 'static) {
    set_person(Person::Chat(Arc::new(approver), Arc::new(elicitor)));
}

/// Has everything that servers ask from now on passed on to the MCP client whose call they work on.
pub fn ask_the_client() {
    set_person(Person::Client);
}

fn set_person(person: Person) {
    *PERSON.lock().unwrap_or_else(PoisonError::into_inner) = person;
}

fn person() -> Person {
    PERSON.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// What a file that is being read will say.
#[derive(Clone)]
pub struct Later {
    console: Console,
    pub models: Arc<OnceLock<Named>>,
    /// Its policy, as it stands there.
    pub policy: Arc<OnceLock<Value>>,
}

impl Later {
    pub fn new(console: &Console) -> Self {
        Later { console: console.clone(), models: Arc::default(), policy: Arc::default() }
    }

    /// Who answers a server of the file: the person where there is one, and a model where the file names one.
    pub fn answers(&self, sampling: Option<&str>) -> Answers {
        let mut answers = Answers::default();
        match person() {
            Person::Client => answers.passed_on = true,
            // Whether it is the chat's is known when a question comes.
            Person::Terminal | Person::Chat(..) if self.console.has_person() => {
                answers.elicitor = Some(Arc::new(Asked(self.console.clone())));
            }
            Person::Terminal | Person::Chat(..) => {}
        }
        answers.sampling = sampling.map(|model| {
            let model = Lent { name: model.to_owned(), later: self.clone(), opened: OnceLock::new() };
            Sampling::new(Arc::new(model), Arc::new(Rules(self.clone())))
        });
        answers
    }
}

/// Asks the person, at the terminal or wherever they are.
struct Asked(Console);

impl Elicitor for Asked {
    fn elicit<'a>(&'a self, request: &'a Elicitation) -> BoxFuture<'a, ElicitReply> {
        Box::pin(async move {
            match person() {
                Person::Chat(_, elicitor) => elicitor.elicit(request).await,
                Person::Terminal | Person::Client => match Terminal::of(&self.0) {
                    Some(terminal) => terminal.elicit(request).await,
                    None => ElicitReply::Cancel,
                },
            }
        })
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

/// Makes a call that does nothing, under these rules. A person decides what they leave open, where there is one.
async fn allowed(console: &Console, policy: Policy, call: &ToolCall) -> anyhow::Result<()> {
    let mut spec = ToolSpec::new(call.name.clone(), "What an MCP server asks.");
    spec.parameters = serde_json::json!({"type": "object"});
    let tools = Toolset::new().with(ToolDef::dynamic(spec, |_, _| async { "allowed" }))?;
    let builder = Run::builder(tools).policy(policy);
    let builder = match (person(), Terminal::of(console)) {
        (Person::Chat(approver, _), _) => builder.approver(Through(approver)),
        (Person::Terminal | Person::Client, Some(terminal)) => builder.approver(terminal),
        (Person::Terminal | Person::Client, None) => builder,
    };
    match builder.build()?.call(call.clone()).await?.error {
        None => Ok(()),
        Some(error) => anyhow::bail!(error.message),
    }
}

struct Through(Arc<dyn Approver>);

impl Approver for Through {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest<'a>) -> BoxFuture<'a, Decision> {
        self.0.decide(request)
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
