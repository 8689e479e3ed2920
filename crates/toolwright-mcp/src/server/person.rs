//! The person at the MCP client: asked through the client, and notified in its log.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolwright_core::{
    ApprovalRequest, Choice, Decision, Form, FormBody, FormReply, Notice, Person, canonical_json, text,
};

use super::peer::{Peer, Question, key_of};
use crate::protocol::LogLevel;

/// The person at whichever client made the call. A client that cannot ask anybody refuses calls that need
/// approval, and cancels forms.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientPerson {
    top_level: TopLevel,
}

/// What the client's own calls need.
#[derive(Debug, Clone, Copy, Default)]
enum TopLevel {
    /// Approval, where the policy asks for it: a model made them.
    #[default]
    Asked,
    /// Nothing: a person made them.
    Approved,
}

impl ClientPerson {
    /// The person who picks prompts: a picked prompt needs no further approval; the calls inside its flow do.
    pub fn picking_prompts() -> Self {
        ClientPerson { top_level: TopLevel::Approved }
    }

    async fn decide(&self, request: &ApprovalRequest<'_>) -> Decision {
        if request.depth == 0 && matches!(self.top_level, TopLevel::Approved) {
            return Decision::Approve;
        }
        let call = request.call;
        let because = request.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let refused =
            |why: &str| Decision::reject(format!("`{}` needs approval{because}, and {why}", call.name));
        let Some(peer) = Peer::of_requester(&request.requester) else {
            return refused("no MCP client made the call that could be asked");
        };
        if !request.offers(Choice::Approve) {
            return refused("the policy does not let the client's user grant it");
        }
        let arguments = canonical_json(&call.arguments);
        let shown = shown_arguments(&call.arguments);
        let reason = request.reason.as_ref().map(|reason| format!("\nReason: {reason}")).unwrap_or_default();
        let message = format!("Allow `{}`?\nArguments: {shown}{reason}", call.name);
        // An empty form: accepting it is the answer. A box to tick would be missed, and the call refused.
        let question = Question::elicit(message, json!({"type": "object", "properties": {}}));
        if !peer.can_answer(&question) {
            return refused(
                "the client cannot ask its user; allow the call with `--policy FILE` or `policy:`",
            );
        }
        let key = key_of("approve", &format!("{}\n{arguments}", call.name));
        match peer.ask(&key, question).await {
            Ok(reply) if reply.is_accepted() => Decision::Approve,
            // Some clients answer by themselves, without a user.
            Ok(reply) => Decision::reject(format!(
                "the client answered `{}` when asked whether to allow `{}`; where no user can be asked, allow the \
                 call with `--policy FILE` or `policy:`",
                reply.action(),
                call.name
            )),
            Err(error) => Decision::reject(error.message().to_owned()),
        }
    }

    async fn fill_in(form: &Form) -> FormReply {
        let Some(peer) = Peer::of_requester(&form.requester) else { return FormReply::Cancelled };
        let question = match &form.body {
            FormBody::Page(url) => {
                Question::open_page(form.message.clone(), url.clone(), &key_of("page", url))
            }
            _ => Question::elicit(form.message.clone(), form.schema()),
        };
        // The key is that of the content: the call is made again with the answer, and asks the same.
        match peer.ask(&question.key(), question).await {
            Err(_) => FormReply::Cancelled,
            Ok(reply) => match reply.accepted() {
                Some(content) => FormReply::Accepted(content.clone()),
                None => FormReply::Declined,
            },
        }
    }
}

impl Person for ClientPerson {
    fn name(&self) -> &str {
        "client"
    }

    async fn approve(&self, request: &ApprovalRequest<'_>) -> Decision {
        self.decide(request).await
    }

    async fn answer(&self, form: &Form) -> FormReply {
        Self::fill_in(form).await
    }

    async fn notify(&self, notice: &Notice) {
        if let Some(peer) = Peer::of_requester(&notice.requester) {
            peer.log(LogLevel::Notice, format!("{}: {}", notice.title, notice.message));
        }
    }
}

/// Every argument by itself: a long one cannot push another out of sight.
fn shown_arguments(arguments: &Value) -> String {
    let Value::Object(arguments) = arguments else { return shown(&arguments.to_string()) };
    if arguments.is_empty() {
        return "no arguments".to_owned();
    }
    let one = |(name, value): (&String, &Value)| {
        format!("\n- {}: {}", text::visible(&text::clip(name, 100)), shown(&value.to_string()))
    };
    arguments.iter().map(one).collect()
}

/// A text with nothing invisible in it. Of a long one the beginning and the end are shown, how much is
/// between, and a hash of the whole: the end of a command may be what it is about.
fn shown(value: &str) -> String {
    const WHOLE: usize = 2000;
    const HEAD: usize = 1000;
    const TAIL: usize = 500;
    if value.len() <= WHOLE {
        return text::visible(value);
    }
    let (head, tail) = (text::head(value, HEAD), text::tail(value, TAIL));
    let between = value.len() - head.len() - tail.len();
    let hash: String =
        Sha256::digest(value.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!(
        "{} [{between} of {} bytes are not shown; sha256 {hash}] {}",
        text::visible(head),
        value.len(),
        text::visible(tail)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_argument_is_shown_and_what_is_between_is_told() {
        assert_eq!(shown_arguments(&json!({})), "no arguments");
        assert_eq!(shown_arguments(&json!({"a": 1, "b": "x\u{202e}"})), "\n- a: 1\n- b: \"x\\u{202e}\"");
        let with = |between: &str| {
            shown_arguments(
                &json!({"command": format!("echo {}{between}; rm -rf ~", "x".repeat(5000)), "z": "seen"}),
            )
        };
        let (one, other) = (with("a"), with("b"));
        assert!(one.contains("echo xxx") && one.contains("; rm -rf ~\"\n- z: \"seen\""), "{one}");
        assert!(one.contains(" [3518 of 5018 bytes are not shown; sha256 ") && one.len() < 2000, "{one}");
        // The part that is not shown makes a difference too.
        assert_ne!(one, other);
    }
}
