//! Who answers what the MCP servers of a file ask: the person, and the model the file names for it.
//!
//! How the person is asked is looked up when a question comes.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use toolwright::mcp::{Answers, ElicitReply, Elicitation, Elicitor, Sampling};
use toolwright::{
    ApprovalRequest, Approver, BoxFuture, Decision, Model, ModelError, ModelErrorKind, ModelReply,
    ModelRequest, Policy, RuleDecision, ToolSpec, Usage as TokenUsage,
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

/// Who answers the servers of a file.
#[derive(Clone)]
pub struct FileAnswers {
    pub console: Console,
    pub models: Named,
    /// The rules of the file; cautious ones decide where it has none.
    pub policy: Option<Arc<Policy>>,
}

impl FileAnswers {
    /// Who answers a server of the file: the person where there is one, and a model where the file names one.
    pub fn to(&self, sampling: Option<&str>) -> Answers {
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
            let policy = self.policy.clone().unwrap_or_else(|| Arc::new(Policy::cautious()));
            let (console, models) = (self.console.clone(), self.models.clone());
            let model = Lent { console, name: model.to_owned(), models, opened: OnceLock::new() };
            Sampling::new(Arc::new(model), Arc::new(Rules { console: self.console.clone(), policy }))
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

/// Has the rules of the file decide, as about a call. A person decides what they leave open, where there is
/// one.
struct Rules {
    console: Console,
    policy: Arc<Policy>,
}

impl Approver for Rules {
    fn name(&self) -> &str {
        "rules"
    }

    fn decide<'a>(&'a self, request: &'a ApprovalRequest<'a>) -> BoxFuture<'a, Decision> {
        let spec = ToolSpec::new(request.call.name.clone(), "");
        let ruling = self.policy.decide(request.call, &spec);
        let reason = |otherwise: &str| ruling.reason.clone().unwrap_or_else(|| otherwise.to_owned());
        let decision = match ruling.decision {
            RuleDecision::Approve | RuleDecision::Modify => Decision::Approve,
            RuleDecision::Reject | RuleDecision::Terminate => {
                Decision::reject(reason("the policy does not allow this call"))
            }
            RuleDecision::Ask => match person() {
                Person::Chat(approver, _) => {
                    return Box::pin(async move { approver.decide(request).await });
                }
                Person::Terminal | Person::Client => match Terminal::of(&self.console) {
                    Some(terminal) => return Box::pin(async move { terminal.decide(request).await }),
                    None => Decision::reject(format!(
                        "`{}` needs approval, and there is nobody to ask",
                        request.call.name
                    )),
                },
            },
        };
        Box::pin(async move { decision })
    }
}

/// A model by its name in the file, opened when it is first asked.
struct Lent {
    console: Console,
    name: String,
    models: Named,
    opened: OnceLock<Result<Box<dyn Model>, String>>,
}

impl Lent {
    fn model(&self) -> Result<&dyn Model, ModelError> {
        let opened = self.opened.get_or_init(|| {
            let opened = models::open(&self.console, &self.name, &self.models);
            opened.map_err(|error| {
                self.console.notice(&printable(&format!(
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
