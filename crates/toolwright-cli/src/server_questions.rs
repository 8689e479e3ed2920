//! The answers to the MCP servers of a file: from the person, and from the model the file names for it.

use std::sync::{Arc, OnceLock};

use toolwright::Policy;
use toolwright::approval::{ApprovalRequest, Approver, Decision, RuleDecision, strictest_ruling};
use toolwright::mcp::{Answers, Sampling};
use toolwright::model::{
    DynModel, Model, ModelError, ModelErrorKind, ModelReply, ModelRequest, Usage as TokenUsage,
};
use toolwright::tool::ToolSpec;

use crate::console::Console;
use crate::models::{self, Named};
use crate::prompt::printable;

/// Whom the servers of a file ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionRoute {
    /// The person at the console, if there is one.
    Console,
    /// The MCP client whose call the server works on.
    Client,
}

/// The answers to the servers of a file.
#[derive(Clone)]
pub struct FileAnswers {
    pub console: Console,
    pub asked: QuestionRoute,
    pub models: Named,
    /// The rules there are, of which the strictest decides; cautious ones where there are none.
    pub policies: Vec<Arc<Policy>>,
    /// Those of the machine, which nothing loosens.
    pub managed: Option<Arc<Policy>>,
}

impl FileAnswers {
    /// Who answers a server of the file: the person where there is one, and a model where the file names one.
    pub fn to(&self, sampling: Option<&str>) -> Answers {
        let mut answers = Answers::default();
        match self.asked {
            QuestionRoute::Client => answers.passed_on = true,
            QuestionRoute::Console => answers.person = self.console.person(),
        }
        answers.sampling = sampling.map(|model| {
            let policies = match self.policies.as_slice() {
                [] => vec![Arc::new(Policy::cautious())],
                policies => policies.to_vec(),
            };
            let (console, models) = (self.console.clone(), self.models.clone());
            let model = SamplingModel { console, name: model.to_owned(), models, opened: OnceLock::new() };
            Sampling::new(
                Arc::new(model),
                Arc::new(FileRules {
                    console: self.console.clone(),
                    policies,
                    managed: self.managed.clone(),
                }),
            )
        });
        answers
    }
}

/// Has the rules of the file decide, as about a call. A person decides what they leave open, where there is
/// one.
struct FileRules {
    console: Console,
    policies: Vec<Arc<Policy>>,
    managed: Option<Arc<Policy>>,
}

impl Approver for FileRules {
    fn name(&self) -> &str {
        "rules"
    }

    async fn decide(&self, request: &ApprovalRequest<'_>) -> Decision {
        let spec = ToolSpec::new(request.call.name.clone(), "");
        let policies = self.policies.iter().cloned();
        let ruling = strictest_ruling(policies, self.managed.as_deref(), request.call, &spec);
        let Some(ruling) = ruling else {
            return Decision::reject("no rule is about this call");
        };
        let reason = |otherwise: &str| ruling.reason.clone().unwrap_or_else(|| otherwise.to_owned());
        match ruling.decision {
            RuleDecision::Approve | RuleDecision::Modify => Decision::Approve,
            RuleDecision::Reject | RuleDecision::Terminate => {
                Decision::reject(reason("the policy does not allow this call"))
            }
            // A request of a server is not reviewed by a model.
            RuleDecision::Ask | RuleDecision::Review => match self.console.person() {
                Some(person) => person.approve(request).await,
                None => Decision::reject(format!(
                    "`{}` needs approval, and there is nobody to ask",
                    request.call.name
                )),
            },
        }
    }
}

/// A model by its name in the file, opened when it is first asked.
struct SamplingModel {
    console: Console,
    name: String,
    models: Named,
    opened: OnceLock<Result<Box<DynModel>, String>>,
}

impl SamplingModel {
    fn model(&self) -> Result<&DynModel, ModelError> {
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

impl Model for SamplingModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn cost(&self, usage: &TokenUsage) -> Option<f64> {
        // One that cannot be opened says so when it is asked.
        self.model().map_or(Some(0.0), |model| model.cost(usage))
    }

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        self.model()?.generate(request).await
    }
}
