//! The JSON of hooks: events in, answers out. Claude Code and Codex share one contract; where an agent does
//! not support a part of it, the next stricter answer takes its place.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::args::HookClient;

/// When an agent asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum HookEvent {
    /// Before a call.
    PreToolUse,
    /// Before the agent would ask its user about a call.
    PermissionRequest,
    /// After a call.
    PostToolUse,
    /// After a call that failed.
    PostToolUseFailure,
    /// The session is over.
    SessionEnd,
    /// Anything else; it is ignored.
    #[serde(other)]
    Other,
}

/// One event of an agent.
#[derive(Clone, Debug, Deserialize)]
pub struct HookInput {
    #[serde(rename = "hook_event_name")]
    pub event: HookEvent,
    pub session_id: String,
    #[serde(default)]
    pub cwd: Option<String>,
    #[serde(default)]
    pub tool_name: String,
    #[serde(default)]
    pub tool_input: Value,
    /// The id of the call; some agents leave it out when they ask for permission.
    #[serde(default)]
    pub tool_use_id: Option<String>,
    #[serde(default)]
    pub tool_response: Value,
    #[serde(default)]
    pub error: Option<String>,
}

impl HookInput {
    /// Reads an event, or says what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        if let Some(key) = toolwright::tool::schema::repeated_key(text) {
            return Err(format!("the key `{}` is there twice", toolwright_core::text::clip(&key, 100)));
        }
        let input: HookInput = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let about_a_call = !matches!(input.event, HookEvent::SessionEnd | HookEvent::Other);
        if about_a_call && input.tool_name.is_empty() {
            return Err("`tool_name` is missing".to_owned());
        }
        Ok(input)
    }
}

/// What the rules come to for one call.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The call is made, with these arguments in place of its own.
    Allow { changed: Option<Value> },
    /// The agent's user decides.
    Ask { reason: String, changed: Option<Value> },
    /// The call is not made; with `end`, the session ends too.
    Deny { reason: String, end: bool },
}

/// The way out, for an agent that cannot ask its user for a hook.
const CANNOT_ASK: &str =
    "Codex cannot ask on behalf of a hook; allow such calls with a rule (`decision: approve`)";

/// The answer to an event; `None` when nothing is to be printed.
pub fn answer(client: HookClient, event: HookEvent, verdict: &Verdict) -> Option<Value> {
    match (event, client) {
        (HookEvent::PreToolUse, HookClient::ClaudeCode) => Some(for_claude_code(verdict)),
        (HookEvent::PreToolUse, HookClient::Codex) => for_codex(verdict),
        (HookEvent::PermissionRequest, client) => permission(client, verdict),
        _ => None,
    }
}

/// `PreToolUse` with one of the decisions.
fn decided(decision: &str, reason: Option<&str>, changed: Option<&Value>) -> Map<String, Value> {
    let mut output = Map::from_iter([
        ("hookEventName".to_owned(), json!("PreToolUse")),
        ("permissionDecision".to_owned(), json!(decision)),
    ]);
    if let Some(reason) = reason {
        output.insert("permissionDecisionReason".to_owned(), json!(reason));
    }
    if let Some(changed) = changed {
        output.insert("updatedInput".to_owned(), changed.clone());
    }
    output
}

fn for_claude_code(verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Allow { changed } => {
            json!({"hookSpecificOutput": decided("allow", None, changed.as_ref())})
        }
        Verdict::Ask { reason, changed } => {
            json!({"hookSpecificOutput": decided("ask", Some(reason), changed.as_ref())})
        }
        Verdict::Deny { reason, end: false } => {
            json!({"hookSpecificOutput": decided("deny", Some(reason), None)})
        }
        Verdict::Deny { reason, end: true } => json!({
            "continue": false, "stopReason": reason,
            "hookSpecificOutput": decided("deny", Some(reason), None)
        }),
    }
}

/// Codex takes `allow` with other arguments alone, and no `ask`: an answer that it does not know stops
/// nothing.
fn for_codex(verdict: &Verdict) -> Option<Value> {
    let output = match verdict {
        Verdict::Allow { changed: None } => return None,
        Verdict::Allow { changed } => decided("allow", None, changed.as_ref()),
        Verdict::Ask { reason, .. } => decided("deny", Some(&format!("{reason}. {CANNOT_ASK}")), None),
        Verdict::Deny { reason, .. } => decided("deny", Some(reason), None),
    };
    Some(json!({"hookSpecificOutput": output}))
}

/// What the agent would ask its user: an answer of the rules takes the user's place, and none leaves the
/// question to the user.
fn permission(client: HookClient, verdict: &Verdict) -> Option<Value> {
    let decision = match verdict {
        Verdict::Ask { .. } => return None,
        Verdict::Allow { changed: None } => json!({"behavior": "allow"}),
        Verdict::Allow { changed: Some(changed) } => match client {
            HookClient::ClaudeCode => json!({"behavior": "allow", "updatedInput": changed}),
            // It was asked before with the same rules, and takes no other arguments any more.
            HookClient::Codex => {
                json!({"behavior": "deny", "message": "the rules want other arguments for this call"})
            }
        },
        Verdict::Deny { reason, .. } => json!({"behavior": "deny", "message": reason}),
    };
    Some(json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every verdict, as each agent is given it.
    #[test]
    fn each_agent_is_answered_in_its_own_words() {
        let changed = json!({"command": "ls -l"});
        let allow = Verdict::Allow { changed: None };
        let change = Verdict::Allow { changed: Some(changed.clone()) };
        let ask = Verdict::Ask { reason: "runs code".to_owned(), changed: None };
        let deny = Verdict::Deny { reason: "no".to_owned(), end: false };
        let end = Verdict::Deny { reason: "over".to_owned(), end: true };
        let pre = |fields: Value| {
            let mut output = json!({"hookEventName": "PreToolUse"});
            output.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            json!({"hookSpecificOutput": output})
        };
        let decision = |word: &str| json!({"permissionDecision": word});
        let because = |word: &str, reason: &str| json!({"permissionDecision": word, "permissionDecisionReason": reason});
        let with_change = json!({"permissionDecision": "allow", "updatedInput": changed});
        let claude = |verdict| answer(HookClient::ClaudeCode, HookEvent::PreToolUse, verdict);
        assert_eq!(claude(&allow), Some(pre(decision("allow"))));
        assert_eq!(claude(&change), Some(pre(with_change.clone())));
        assert_eq!(claude(&ask), Some(pre(because("ask", "runs code"))));
        assert_eq!(claude(&deny), Some(pre(because("deny", "no"))));
        let ended = claude(&end).unwrap();
        assert_eq!((&ended["continue"], &ended["stopReason"]), (&json!(false), &json!("over")));
        assert_eq!(ended["hookSpecificOutput"]["permissionDecision"], "deny");
        let codex = |verdict| answer(HookClient::Codex, HookEvent::PreToolUse, verdict);
        assert_eq!(codex(&allow), None);
        assert_eq!(codex(&change), Some(pre(with_change)));
        assert_eq!(codex(&ask), Some(pre(because("deny", &format!("runs code. {CANNOT_ASK}")))));
        assert_eq!(codex(&deny), Some(pre(because("deny", "no"))));
        assert_eq!(codex(&end), Some(pre(because("deny", "over"))));
        let permission = |client, verdict| {
            let answer = answer(client, HookEvent::PermissionRequest, verdict)?;
            Some(answer["hookSpecificOutput"]["decision"]["behavior"].as_str().unwrap().to_owned())
        };
        for client in [HookClient::ClaudeCode, HookClient::Codex] {
            assert_eq!(permission(client, &allow).as_deref(), Some("allow"));
            assert_eq!(permission(client, &ask), None);
            assert_eq!(permission(client, &deny).as_deref(), Some("deny"));
        }
        assert_eq!(permission(HookClient::ClaudeCode, &change).as_deref(), Some("allow"));
        assert_eq!(permission(HookClient::Codex, &change).as_deref(), Some("deny"));
    }

    #[test]
    fn events_are_read_and_what_is_none_is_refused() {
        let whole = r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t","cwd":"/w","model":"m","turn_id":"1"}"#;
        let input = HookInput::read(whole).unwrap();
        assert_eq!((input.event, input.tool_name.as_str()), (HookEvent::PreToolUse, "Bash"));
        let other = HookInput::read(r#"{"session_id":"s","hook_event_name":"Notification"}"#).unwrap();
        assert_eq!(other.event, HookEvent::Other);
        for (bad, part) in [
            ("", "EOF"),
            ("[]", "invalid"),
            (r#"{"hook_event_name":"PreToolUse","tool_name":"Bash"}"#, "session_id"),
            (r#"{"session_id":"s","hook_event_name":"PreToolUse"}"#, "tool_name"),
            (
                r#"{"session_id":"s","session_id":"t","hook_event_name":"PreToolUse","tool_name":"x"}"#,
                "twice",
            ),
        ] {
            let why = HookInput::read(bad).unwrap_err();
            assert!(why.contains(part), "{bad}: {why}");
        }
    }
}
