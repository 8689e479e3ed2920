//! The built-in tools and the demo model: enough to see everything work without a key, a server or a file.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use toolwright::content::{AssistantMessage, Content, Message, ToolCall};
use toolwright::model::{DeltaSink, Model, ModelDelta, ModelError, ModelReply, ModelRequest, Usage};
use toolwright::testing::Reply;
use toolwright::tool::{Annotations, ToolDef, ToolsetError};
use toolwright::{ToolContext, ToolError, ToolOutput, Toolset, tool};

use crate::args::{RecordArgs, SandboxArgs};
use crate::console::Console;
use crate::runs;
use crate::runs::record::make;
use crate::write_file::{self, FileAccess};

/// The built-in tools.
pub fn tools() -> Result<Toolset, ToolsetError> {
    [add(), word_count(), remember(), chart(), countdown()]
        .into_iter()
        .try_fold(Toolset::new(), |set, tool| set.with_from(tool.with_category("demo"), "the program"))
}

/// Adds two numbers.
#[tool(read_only)]
async fn add(
    /// First number.
    x: i64,
    /// Second number.
    y: i64,
) -> Result<i64, ToolError> {
    x.checked_add(y).ok_or_else(|| ToolError::invalid("the sum is too large"))
}

/// Counts words, and says which are the most frequent.
#[tool(read_only)]
fn word_count(
    /// The text to look at.
    text: String,
    /// How many of the most frequent words to list.
    #[tool(default = 3, min = 0, max = 100)]
    top: usize,
) -> BTreeMap<String, serde_json::Value> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in words {
        *counts.entry(word.to_lowercase()).or_default() += 1;
    }
    let total: u64 = counts.values().sum();
    let mut ranked: Vec<(String, u64)> = counts.into_iter().collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    ranked.truncate(top);
    BTreeMap::from([("words".to_owned(), total.into()), ("top".to_owned(), serde_json::json!(ranked))])
}

/// Keeps notes for as long as the run lasts, and reads them back.
#[tool]
async fn remember(
    context: &ToolContext,
    /// A note to keep; leave it out to only read.
    note: Option<String>,
) -> Vec<String> {
    context.store::<Vec<String>>().update(|notes| {
        notes.extend(note);
        notes.clone()
    })
}

/// Draws a bar chart as a PNG picture.
#[tool(read_only)]
async fn chart(
    /// The heights of the bars, left to right.
    #[tool(min_items = 1, max_items = 100)]
    values: Vec<f64>,
) -> Result<ToolOutput, ToolError> {
    let highest = values.iter().copied().fold(0.0, f64::max);
    if highest == 0.0 || values.iter().any(|value| *value < 0.0) {
        return Err(ToolError::invalid("the heights must not be negative, and one must be above 0"));
    }
    let picture =
        bars(&values, highest).map_err(|error| ToolError::new(format!("it cannot be drawn: {error}")))?;
    Ok(ToolOutput::text(format!("a chart of {} bars", values.len()))
        .with(Content::image("image/png", &picture))
        .with_metadata("highest", highest))
}

/// Blue bars on nothing, a hundred pixels high.
fn bars(values: &[f64], highest: f64) -> Result<Vec<u8>, png::EncodingError> {
    const HEIGHT: u32 = 100;
    let bar = |value: f64, row: u32, column: u32| {
        let inside =
            (2..18).contains(&column) && f64::from(HEIGHT - row) <= value / highest * f64::from(HEIGHT);
        if inside { [0x33, 0x66, 0xcc, 0xff] } else { [0; 4] }
    };
    let rows = (0..HEIGHT).flat_map(|row| values.iter().map(move |value| (row, *value)));
    let pixels: Vec<u8> =
        rows.flat_map(|(row, value)| (0..20).flat_map(move |column| bar(value, row, column))).collect();
    let mut bytes = Vec::new();
    let width = u32::try_from(values.len() * 20).unwrap_or(u32::MAX);
    let mut encoder = png::Encoder::new(&mut bytes, width, HEIGHT);
    encoder.set_color(png::ColorType::Rgba);
    encoder.write_header()?.write_image_data(&pixels)?;
    Ok(bytes)
}

/// Waits, counting down aloud. Good for trying time-outs and Ctrl-C.
#[tool(read_only, timeout = "1h")]
async fn countdown(
    context: &ToolContext,
    /// How many seconds to wait.
    #[tool(min = 0, max = 3600)]
    seconds: u32,
) -> Result<String, ToolError> {
    for second in 0..seconds {
        context.progress(f64::from(second), Some(f64::from(seconds)), format!("{} s left", seconds - second));
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    Ok("done".to_owned())
}

/// The files of the demo.
const DRAFT: &str = include_str!("demo/draft.md");
const TOOLS: &str = include_str!("demo/toolwright.yaml");

/// The name of the demo's model.
pub const NAME: &str = "scripted/demo";

/// Puts the draft into the demo's folder, as it is at the beginning of the story.
pub fn put_draft(folder: &Path) -> anyhow::Result<()> {
    write_file::replace(&folder.join("draft.md"), DRAFT.as_bytes(), FileAccess::Inherit)
}

/// Makes the folder the demo works in, with its draft and its file of tools as they are at the beginning, and
/// goes there. Gives the file of tools. The folder stays, so that the run can be looked at and replayed; the
/// next demo uses it again. The paths that were given are those of the folder where the person is.
pub fn stage(
    console: &Console,
    record: &mut RecordArgs,
    policy: &mut Option<PathBuf>,
    sandbox: &mut SandboxArgs,
) -> anyhow::Result<PathBuf> {
    let given = record.transcript.iter_mut().chain(policy).chain(&mut sandbox.read).chain(&mut sandbox.write);
    for path in given {
        *path = std::path::absolute(&path)?;
    }
    let own = runs::data().map(|data| data.join("demo")).filter(|folder| make(folder).is_ok());
    let folder = match own {
        Some(folder) => folder,
        None => runs::scratch("demo")?,
    };
    put_draft(&folder)?;
    let file = folder.join("toolwright.yaml");
    write_file::replace(&file, TOOLS.as_bytes(), FileAccess::Inherit)?;
    std::env::set_current_dir(&folder)?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match home.and_then(|home| folder.strip_prefix(home).ok().map(PathBuf::from)) {
        Some(rest) => console.say(format_args!("the demo works in ~/{}", rest.display())),
        None => console.say(format_args!("the demo works in {}", folder.display())),
    }
    Ok(file)
}

/// What the demo's model calls, and what it says to that.
fn story() -> [Reply; 5] {
    use serde_json::json;
    let reply =
        |text: &str, tool: &str, arguments| Reply { text: text.to_owned(), ..Reply::call(tool, arguments) };
    [
        reply("I read the draft.", "read_file", json!({"path": "draft.md"})),
        reply(
            "There is a slip of the pen in its last line. I correct it.",
            "edit_file",
            json!({"path": "draft.md", "old_string": "teh", "new_string": "the"}),
        ),
        reply(
            "Now a tool that is written in YAML. I leave out its argument, to show what a model is told then.",
            "reading_time",
            json!({}),
        ),
        reply("The error says what is missing. Again, with it.", "reading_time", json!({"path": "draft.md"})),
        reply(
            "Publishing changes something outside, so you are asked.",
            "publish",
            json!({"path": "draft.md"}),
        ),
    ]
}

/// What it says when the story is told.
const DONE: &str = "Done: the draft is read and corrected, and takes eight seconds to read. Every call was validated, put \
     to the rules and recorded, and what ran was bounded and sandboxed. I am a script, so I say this whatever you \
     ask; `toolwright doctor` shows how to reach a real model.";

/// What it says to every further input.
const NEXT: &str = "My story is told, and a script knows no other. What to try now:

- `/exit` leaves; then `toolwright runs show` prints what happened here, and `toolwright view` shows it in a browser.
- `toolwright doctor` says which models are available here. With a key in its usual variable, or a local Ollama or \
llama.cpp server, `toolwright chat` talks to a real one.
- `toolwright init` writes a file of tools to start from.
- `/clear` begins anew, and so does the story.
";

/// The model that answers when there is no other: always the same little story, at the pace of a reader.
pub struct Demo {
    /// Between two words.
    pause: std::time::Duration,
}

impl Demo {
    /// At the pace of a reader on a terminal, at once elsewhere.
    pub fn new(console: &Console) -> Self {
        let millis = if console.stdout().is_terminal() { 35 } else { 0 };
        Demo { pause: std::time::Duration::from_millis(millis) }
    }

    /// The next piece of the story. The conversation says how far it is, so that it goes on after a stop and
    /// goes back with the conversation.
    fn reply(messages: &[Message]) -> ModelReply {
        let answers = || {
            messages.iter().filter_map(|message| match message {
                Message::Assistant(answer) => Some(answer),
                _ => None,
            })
        };
        let told = answers().filter(|answer| !answer.tool_calls.is_empty()).count();
        let message = match story().into_iter().nth(told) {
            Some(reply) => {
                let calls = reply
                    .calls
                    .into_iter()
                    .map(|call| ToolCall::new(format!("call_{}", told + 1), call.tool, call.arguments));
                let mut message = AssistantMessage::calls(calls);
                message.content.push(Content::text(reply.text));
                message
            }
            None => {
                let over = answers().any(|answer| answer.text() == DONE);
                AssistantMessage {
                    content: vec![Content::text(if over { NEXT } else { DONE })],
                    ..AssistantMessage::default()
                }
            }
        };
        message.into()
    }
}

impl Model for Demo {
    fn name(&self) -> &str {
        NAME
    }

    /// A script is free.
    fn cost(&self, _: &Usage) -> Option<f64> {
        Some(0.0)
    }

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        Ok(Demo::reply(request.messages))
    }

    async fn generate_streaming(
        &self,
        request: ModelRequest<'_>,
        sink: DeltaSink<'_>,
    ) -> Result<ModelReply, ModelError> {
        let pause = self.pause;
        let reply = Demo::reply(request.messages);
        for word in reply.message.text().split_inclusive(' ') {
            sink(ModelDelta::Text(word));
            tokio::time::sleep(pause).await;
        }
        Ok(reply)
    }
}

/// What `toolwright check` says of the built-in tools: nothing, when all is well.
pub fn problems(tool: &ToolDef) -> Vec<String> {
    let mut problems = Vec::new();
    if tool.spec().description.is_empty() {
        problems.push(format!("tool `{}` has no description", tool.spec().name));
    }
    let Annotations { read_only, destructive, .. } = &tool.spec().annotations;
    if *read_only == Some(true) && *destructive == Some(true) {
        problems.push(format!("tool `{}` says it changes nothing and that it destroys", tool.spec().name));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text without what a screen changes: spaces, line ends, marks of code.
    fn words(text: &str) -> String {
        text.chars().filter(|c| !c.is_whitespace() && *c != '`').collect()
    }

    /// The recording that the README shows is one of today's demo; `cargo xtask pictures` takes it again.
    #[test]
    fn the_recording_tells_this_story() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures/chat.svg");
        let svg = std::fs::read_to_string(path).unwrap_or_default();
        let shown: String =
            svg.split('<').filter_map(|part| part.split_once('>')).map(|(_, text)| text).collect();
        let shown = words(&shown);
        for text in story().iter().map(|reply| reply.text.as_str()).chain([DONE]) {
            assert!(shown.contains(&words(text)), "docs/pictures/chat.svg does not show {text:?}");
        }
    }
}
