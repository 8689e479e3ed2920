//! Conversations as files: our own sessions and those of llm-workers, which have the same form, and Markdown.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use toolwright::content::{AssistantMessage, Content, Message, ToolCall, ToolResult};
use toolwright::events::Redactor;
use toolwright::lang::read_data;
use toolwright::tool::{ErrorInfo, ErrorKind};

use super::blocks::{self, Blocks};
use crate::report::Usage;
use crate::runs;
use crate::write_file::{self, FileAccess};

/// How the names of sessions end.
pub const ENDING: &str = ".chat.yaml";

/// The largest session that is read.
const MOST: u64 = 64 << 20;

/// Where the session of the last chat in this folder is: among the user's data, because a tool that may write
/// in the folder could change what a person resumes. `None` where there is no folder for data.
pub fn last() -> Option<PathBuf> {
    let folder = std::env::current_dir().ok()?;
    let folder = folder.canonicalize().unwrap_or(folder);
    let hash = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    let name: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Some(runs::data()?.join("chats").join(name + ENDING))
}

/// A conversation and the file of tools it used.
pub struct SavedChat {
    pub script_name: Option<String>,
    pub messages: Vec<Message>,
}

impl SavedChat {
    /// Reads a session.
    pub fn load(path: &Path) -> anyhow::Result<SavedChat> {
        let shown = path.display();
        let found =
            std::fs::metadata(path).map_err(|error| Usage::new(format!("cannot read `{shown}`: {error}")))?;
        if !found.is_file() {
            // A pipe might never end.
            return Err(Usage::new(format!("`{shown}` is not a session: it is not a regular file")).into());
        }
        let size = found.len();
        if size > MOST {
            return Err(Usage::new(format!("`{shown}` has {size} bytes, and {MOST} are read at most")).into());
        }
        let text = std::fs::read_to_string(path)
            .map_err(|error| Usage::new(format!("cannot read `{shown}`: {error}")))?;
        // As PyYAML reads it, which wrote those of llm-workers: `y` and `8123e45` are texts without quotes
        // there.
        let value = read_data(&shown.to_string(), &text)
            .map_err(|error| Usage::new(format!("`{shown}` is not a session:\n{error}")))?;
        let Some(list) = value.get("messages").and_then(Value::as_array) else {
            return Err(
                Usage::new(format!("`{shown}` is not a session: it has no list of `messages`")).into()
            );
        };
        let mut messages = Vec::new();
        for (number, entry) in list.iter().enumerate() {
            let message = read(entry)
                .with_context(|| format!("message {} of `{shown}`", number + 1))
                .map_err(|error| Usage::new(format!("{error:#}")))?;
            messages.extend(message);
        }
        let script_name = value.get("script_name").and_then(Value::as_str).map(str::to_owned);
        Ok(SavedChat { script_name, messages })
    }

    /// Writes a session without secrets, for its owner only; it may hold what tools read.
    pub fn save(&self, path: &Path, redactor: &Redactor) -> anyhow::Result<()> {
        let mut messages: Vec<Value> = self.messages.iter().filter_map(written).collect();
        messages.iter_mut().for_each(|message| redactor.redact(message));
        let value = json!({"script_name": self.script_name, "messages": messages});
        let text = serde_saphyr::to_string(&value).context("the session cannot be written as YAML")?;
        write_file::replace(path, text.as_bytes(), FileAccess::Owner)
    }
}

fn read(entry: &Value) -> anyhow::Result<Option<Message>> {
    let kind = entry.get("type").and_then(Value::as_str).context("it has no `type`")?;
    let said = |calls: &[ToolCall]| blocks::read(entry.get("content"), calls);
    Ok(Some(match kind {
        "human" => Message::User { content: said(&[]).content },
        "ai" | "AIMessageChunk" => {
            let calls = entry.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
            let calls = calls.map(|call| {
                let text = |key: &str| call.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                ToolCall::new(
                    text("id"),
                    text("name"),
                    call.get("args").cloned().unwrap_or_else(|| json!({})),
                )
            });
            let tool_calls: Vec<ToolCall> = calls.collect();
            let Blocks { content, calls_after } = said(&tool_calls);
            let confidential = entry.get("confidential").and_then(Value::as_bool).unwrap_or_default();
            Message::Assistant(AssistantMessage {
                content,
                tool_calls,
                calls_after: list(entry, "calls_after").unwrap_or(calls_after),
                fail_fast: list(entry, "fail_fast").unwrap_or_default(),
                confidential,
            })
        }
        "tool" | "ToolMessageChunk" => {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
            let call = ToolCall::new(text("tool_call_id"), text("name"), json!({}));
            let mut result = ToolResult::text(&call, "");
            result.content = said(&[]).content;
            if text("status") == "error" {
                let kind = serde_json::from_value(json!(text("error_type"))).unwrap_or(ErrorKind::Unknown);
                let message = if text("error").is_empty() { "the call failed" } else { text("error") };
                result.error = Some(ErrorInfo { kind, message: message.to_owned(), hint: None });
            }
            Message::Tool(result)
        }
        // The instructions come from the file of tools, each time anew.
        "system" => return Ok(None),
        other => anyhow::bail!("unknown message type `{other}`; the types are human, ai, tool and system"),
    }))
}

/// A list that only our own sessions have.
fn list<T: DeserializeOwned>(entry: &Value, key: &str) -> Option<Vec<T>> {
    entry.get(key).and_then(|value| serde_json::from_value(value.clone()).ok())
}

fn written(message: &Message) -> Option<Value> {
    let blocks = |content: &[Content]| match content {
        [] => Value::String(String::new()),
        [Content::Text { text, .. }] => Value::String(text.clone()),
        blocks => serde_json::to_value(blocks).unwrap_or_default(),
    };
    let mut map = Map::new();
    match message {
        Message::System { .. } => return None,
        Message::User { content } => {
            map.insert("type".to_owned(), "human".into());
            map.insert("content".to_owned(), blocks(content));
        }
        Message::Assistant(answer) => {
            map.insert("type".to_owned(), "ai".into());
            map.insert("content".to_owned(), blocks(&answer.content));
            let calls = answer.tool_calls.iter();
            let calls = calls.map(
                |call| json!({"name": call.name, "args": call.arguments, "id": call.id, "type": "tool_call"}),
            );
            map.insert("tool_calls".to_owned(), calls.collect());
            // What llm-workers does not know it leaves alone.
            if !answer.calls_after.is_empty() {
                map.insert("calls_after".to_owned(), json!(answer.calls_after));
            }
            if !answer.fail_fast.is_empty() {
                map.insert("fail_fast".to_owned(), json!(answer.fail_fast));
            }
            if answer.confidential {
                map.insert("confidential".to_owned(), true.into());
            }
        }
        Message::Tool(result) => {
            map.insert("type".to_owned(), "tool".into());
            map.insert("content".to_owned(), blocks(&result.content));
            map.insert("tool_call_id".to_owned(), (*result.call_id).into());
            map.insert("name".to_owned(), (*result.name).into());
            map.insert("status".to_owned(), if result.is_error() { "error" } else { "success" }.into());
            if let Some(error) = &result.error {
                map.insert("error_type".to_owned(), error.kind.as_str().into());
                map.insert("error".to_owned(), error.message.clone().into());
            }
        }
    }
    Some(Value::Object(map))
}

/// The conversation as Markdown: what was said and called; results are left out. All that a model says to one
/// input stands under one heading.
pub fn markdown(messages: &[Message]) -> String {
    let mut turns: Vec<Vec<String>> = Vec::new();
    let (mut number, mut answering) = (0, false);
    for message in messages {
        match message {
            Message::User { .. } => {
                number += 1;
                answering = false;
                turns.push(vec![format!("# User #{number}"), message.text()]);
            }
            Message::Assistant(answer) => {
                if !std::mem::replace(&mut answering, true) {
                    turns.push(vec![format!("# Assistant #{number}")]);
                }
                let said = Some(answer.text()).filter(|text| !text.is_empty());
                if let Some(turn) = turns.last_mut() {
                    turn.extend(said);
                    turn.extend(answer.tool_calls.iter().map(called));
                }
            }
            Message::System { .. } | Message::Tool(_) => {}
        }
    }
    let turns: Vec<String> = turns.iter().map(|turn| turn.join("\n\n")).collect();
    turns.join("\n\n---\n\n") + "\n"
}

/// A call as Markdown: a single text as it is, other arguments as YAML.
fn called(call: &ToolCall) -> String {
    let arguments = call.arguments.as_object().map(|map| map.values().collect::<Vec<_>>());
    let body = match arguments.as_deref() {
        Some([Value::String(text)]) => text.clone(),
        _ => serde_saphyr::to_string(&call.arguments).unwrap_or_default().trim_end().to_owned(),
    };
    // A fence that the text itself does not hold.
    let fence = if body.contains("```") { "~~~~" } else { "```" };
    format!("Calling `{}`:\n\n{fence}\n{body}\n{fence}", call.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_of_llm_workers_is_read_and_ours_comes_back_the_same() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.chat.yaml");
        let theirs = "\
script_name: find.yaml
messages:
- {type: human, content: Find it, additional_kwargs: {}, example: false}
- type: AIMessageChunk
  content: [{type: text, text: Looking, index: 0}]
  tool_calls: [{name: read_file, args: {path: a.txt}, id: call_1, type: tool_call}]
  usage_metadata: {input_tokens: 5, output_tokens: 2, total_tokens: 7}
- {type: tool, content: 'hello', tool_call_id: call_1, name: read_file, status: success}
- {type: ai, content: Found., tool_calls: []}
";
        std::fs::write(&path, theirs)?;
        let session = SavedChat::load(&path)?;
        assert_eq!((session.messages.len(), session.script_name.as_deref()), (4, Some("find.yaml")));
        assert_eq!(session.messages.get(1).map(Message::text).as_deref(), Some("Looking"));
        session.save(&path, &Redactor::default())?;
        assert_eq!(SavedChat::load(&path)?.messages, session.messages);
        insta::assert_snapshot!(markdown(&session.messages));
        Ok(())
    }

    #[test]
    fn what_a_model_says_to_one_input_has_one_heading() {
        let calls = |text: &str, number: &str| {
            let mut answer =
                AssistantMessage::calls(vec![ToolCall::new(number, "add", json!({"x": 1, "y": 2}))]);
            answer.content.extend((!text.is_empty()).then(|| Content::text(text)));
            Message::Assistant(answer)
        };
        let result = Message::Tool(ToolResult::text(&ToolCall::new("1", "add", json!({})), "3"));
        let said = |text: &str| Message::assistant(text);
        let messages = [
            Message::user("Add."),
            calls("", "1"),
            result.clone(),
            calls("Again.", "2"),
            result,
            said("Three."),
            Message::user("Thanks."),
            said("You are welcome."),
        ];
        insta::assert_snapshot!(markdown(&messages));
    }

    /// As llm-workers writes it: PyYAML leaves texts without quotes that it does not take for anything else.
    #[test]
    fn no_message_of_llm_workers_is_emptied_or_changed() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.chat.yaml");
        let said = [
            "y",
            "n",
            "8123e45",
            "6.02e23",
            "0o14",
            "1e3",
            "12e03",
            "+.5",
            "'yes'",
            "'1.5'",
            "'ls\u{2028}    x'",
        ];
        let messages: String =
            said.iter().map(|text| format!("- content: {text}\n  type: human\n")).collect();
        let call = "- content: ''\n  type: ai\n  tool_calls:\n  - name: lucky\n    args:\n      person: 8123e45\n    id: t1\n";
        std::fs::write(&path, format!("script_name: s.yaml\nmessages:\n{messages}{call}"))?;
        let session = SavedChat::load(&path)?;
        let want = said.map(|text| text.trim_matches('\'').replace("    ", ""));
        let read: Vec<String> = session.messages.iter().map(Message::text).collect();
        assert_eq!(read, [&want[..], &[String::new()]].concat());
        let Some(Message::Assistant(answer)) = session.messages.last() else { anyhow::bail!("no call") };
        assert_eq!(answer.tool_calls, [ToolCall::new("t1", "lucky", json!({"person": "8123e45"}))]);
        session.save(&path, &Redactor::default())?;
        assert_eq!(SavedChat::load(&path)?.messages, session.messages);
        Ok(())
    }

    #[test]
    fn thoughts_and_calls_keep_their_order() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.chat.yaml");
        let thought = |text: &str| Content::Reasoning {
            text: text.to_owned(),
            opaque: json!({"from": "anthropic", "block": {"type": "thinking", "signature": "y"}}),
        };
        let messages = vec![Message::Assistant(AssistantMessage {
            content: vec![thought("first"), Content::text("x"), thought("then")],
            tool_calls: vec![ToolCall::new("1", "a", json!({})), ToolCall::new("2", "a", json!({}))],
            calls_after: vec![1, 3],
            fail_fast: vec!["a".to_owned()],
            confidential: false,
        })];
        SavedChat { script_name: None, messages: messages.clone() }.save(&path, &Redactor::default())?;
        assert_eq!(SavedChat::load(&path)?.messages, messages);
        Ok(())
    }

    #[test]
    fn what_is_no_session_is_refused_with_the_reason() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("b.yaml");
        for (text, reason) in [
            ("messages: 1", "no list of `messages`"),
            ("messages: [{content: x}]", "message 1"),
            ("messages: [{type: robot, content: x}]", "unknown message type `robot`"),
            ("{", "is not a session"),
        ] {
            std::fs::write(&path, text)?;
            let error = SavedChat::load(&path).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(reason), "{error}");
        }
        Ok(())
    }
}
