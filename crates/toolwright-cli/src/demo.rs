//! The built-in tools and the demo model: enough to see everything work without a key, a server or a file.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::PathBuf;

use toolwright::{
    Annotations, BoxFuture, Content, DeltaSink, Model, ModelDelta, ModelError, ModelReply, ModelRequest,
    Reply, ScriptedModel, ToolContext, ToolDef, ToolError, ToolOutput, Toolset, ToolsetError, tool,
};

use crate::args::RecordArgs;
use crate::runs;
use crate::runs::record::make;
use crate::saved::{self, Readers};

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

/// Makes the folder the demo works in, with its draft and its file of tools as they are at the beginning, and goes
/// there. Gives the file of tools. The folder stays, so that the run can be looked at and replayed; the next demo uses it
/// again. A record that was asked for stays where the person is.
pub fn stage(record: &mut RecordArgs) -> anyhow::Result<PathBuf> {
    if let Some(path) = &mut record.transcript {
        *path = std::path::absolute(&path)?;
    }
    let own = runs::data().map(|data| data.join("demo")).filter(|folder| make(folder).is_ok());
    let folder = match own {
        Some(folder) => folder,
        None => runs::scratch("demo")?,
    };
    saved::replace(&folder.join("draft.md"), DRAFT.as_bytes(), Readers::AsUsual)?;
    let file = folder.join("toolwright.yaml");
    saved::replace(&file, TOOLS.as_bytes(), Readers::AsUsual)?;
    std::env::set_current_dir(&folder)?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match home.and_then(|home| folder.strip_prefix(home).ok().map(PathBuf::from)) {
        Some(rest) => eprintln!("the demo works in ~/{}", rest.display()),
        None => eprintln!("the demo works in {}", folder.display()),
    }
    Ok(file)
}

/// The model that answers when there is no other: always the same little story, at the pace of a reader.
pub fn model() -> Demo {
    use serde_json::json;
    let reply =
        |text: &str, tool: &str, arguments| Reply { text: text.to_owned(), ..Reply::call(tool, arguments) };
    let replies = [
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
        Reply::text(
            "Done: the draft is read and corrected, and takes eight seconds to read. Every call was validated, put \
             to the rules and recorded, and what ran was bounded and sandboxed. I am a script, so I say this whatever you \
             ask; `toolwright doctor` shows how to reach a real model.",
        ),
    ];
    Demo(ScriptedModel::repeating(replies).named(NAME))
}

/// The demo's model. To a terminal it speaks word by word.
pub struct Demo(ScriptedModel);

impl Model for Demo {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn generate<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        self.0.generate(request)
    }

    fn generate_streaming<'a>(
        &'a self,
        request: ModelRequest<'a>,
        sink: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let pause = std::time::Duration::from_millis(if std::io::stdout().is_terminal() { 35 } else { 0 });
        Box::pin(async move {
            let reply = self.0.generate(request).await?;
            for word in reply.message.text().split_inclusive(' ') {
                sink(ModelDelta::Text(word));
                tokio::time::sleep(pause).await;
            }
            Ok(reply)
        })
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
