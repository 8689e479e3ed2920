//! A server with one of each thing a server can have, for trying clients and for the tests.
//!
//! `cargo run -p toolwright-mcp --example everything` serves it on stdio; with `-- --http 127.0.0.1:3111`
//! over HTTP.

mod asking;
mod jobs;
mod shelf;

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use toolwright_core::{
    CancelToken, Content, Media, MediaSource, State, ToolContext, ToolDef, ToolError, ToolOutput, ToolSpec,
    Toolset, tool,
};
use toolwright_mcp::{HttpOptions, Server};
use toolwright_runtime::Run;

use crate::shelf::Shelf;

/// A red dot.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

fn pixel() -> Content {
    Content::Image(Media {
        source: MediaSource::Data(PIXEL.to_owned()),
        mime_type: "image/png".to_owned(),
        name: None,
        detail: None,
    })
}

/// Answers with a text.
#[tool(read_only)]
async fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Answers with a picture.
#[tool(read_only)]
async fn test_image_content() -> Content {
    pixel()
}

/// Answers with a sound.
#[tool(read_only)]
async fn test_audio_content() -> Content {
    Content::audio("audio/wav", b"RIFF")
}

/// Answers with everything at once.
#[tool(read_only)]
async fn test_multiple_content_types() -> ToolOutput {
    ToolOutput::text("Multiple content types test:")
        .with(Content::image("image/png", b"\x89PNG\r\n\x1a\n"))
        .with(Content::document("application/pdf", "a.pdf", b"%PDF"))
        .with(Content::Video(Media::from_bytes("video/mp4", b"mp4")))
        .with(Content::link("file:///srv/a.txt", "a.txt"))
        .with_structured(json!({"blocks": 5}))
        .with_metadata("pages", 1)
}

/// Answers with a text that has an address.
#[tool(read_only)]
async fn test_embedded_resource() -> Content {
    Content::document("text/plain", "test://embedded-resource", b"This is an embedded resource content.")
}

/// Announces another list of tools, or of prompts.
#[tool(read_only)]
async fn test_trigger_tool_change(changes: State<Announcer>) -> &'static str {
    changes.tell(|changes| changes.tools());
    "announced"
}

/// Adds a prompt, or takes it away again.
#[tool(read_only)]
async fn test_trigger_prompt_change(changes: State<Announcer>) -> &'static str {
    changes.shelf.more.fetch_xor(true, Ordering::AcqRel);
    changes.tell(|changes| changes.prompts());
    "changed"
}

/// What tools that change something need to say so.
#[derive(Default)]
struct Announcer {
    shelf: Shelf,
    changes: std::sync::OnceLock<toolwright_mcp::Changes>,
}

impl Announcer {
    fn tell(&self, what: impl FnOnce(&toolwright_mcp::Changes)) {
        if let Some(changes) = self.changes.get() {
            what(changes);
        }
    }
}

/// Tools whose schemas say more than most.
fn schemas() -> Vec<ToolDef> {
    let mut rich = ToolSpec::new("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features");
    rich.parameters = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"}
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false
    });
    let mut mirrored = ToolSpec::new("test_x_mcp_header", "Repeats one of its arguments in a header.");
    mirrored.parameters = json!({
        "type": "object",
        "properties": {"region": {"type": "string", "description": "Which region.", "x-mcp-header": "Region"}},
        "required": ["region"]
    });
    vec![
        ToolDef::dynamic(rich, |_, arguments| async move { arguments.to_string() }),
        ToolDef::dynamic(mirrored, |_, arguments| async move { arguments.to_string() }),
    ]
}

/// Fails.
#[tool(read_only)]
async fn test_error_handling() -> Result<String, ToolError> {
    Err(ToolError::new("This tool intentionally returns an error for testing").hint("there is no way out"))
}

/// Says how far it is.
#[tool(read_only)]
async fn test_tool_with_progress(context: &ToolContext) -> &'static str {
    for done in [0.0, 50.0, 50.0, 100.0] {
        context.progress(done, Some(100.0), format!("{done} of 100"));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    "done"
}

/// Adds two numbers.
#[tool(read_only)]
async fn add(
    /// First number.
    x: i64,
    /// Second number.
    y: i64,
) -> i64 {
    x + y
}

/// Says it back, as a text of the wanted length at least.
#[tool(read_only)]
async fn echo(
    /// What to say.
    text: String,
    /// How many times.
    #[tool(default = 1)]
    times: usize,
) -> String {
    text.repeat(times)
}

/// Waits. Writes a file when it begins, and one when it is stopped before the end.
#[tool(read_only)]
async fn wait(
    /// How long.
    seconds: f64,
    /// The file for the end.
    witness: Option<String>,
    /// The file for the beginning.
    begun: Option<String>,
) -> &'static str {
    struct Witness(Option<String>);
    impl Drop for Witness {
        fn drop(&mut self) {
            if let Some(path) = self.0.take() {
                let _ = std::fs::write(path, "stopped");
            }
        }
    }
    let mut stopped = Witness(witness);
    if let Some(path) = begun {
        let _ = std::fs::write(path, "begun");
    }
    tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 3600.0))).await;
    stopped.0 = None;
    "waited"
}

/// Breaks the run.
#[tool(read_only)]
async fn break_down() -> Result<String, ToolError> {
    Err(ToolError::fatal("a secret reason"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut tools = Toolset::new();
    let simple = [
        test_simple_text(),
        test_image_content(),
        test_audio_content(),
        test_multiple_content_types(),
        test_error_handling(),
        test_tool_with_progress(),
        add().with_output_schema(json!({"type": "integer"})),
        echo(),
        wait(),
        break_down(),
        test_embedded_resource(),
        test_trigger_tool_change(),
        test_trigger_prompt_change(),
    ];
    for tool in simple.into_iter().chain(asking::tools()).chain(jobs::tools()).chain(schemas()) {
        tools = tools.with(tool)?;
    }
    // Enough tools to need several pages.
    let more: usize =
        std::env::var("EVERYTHING_MORE_TOOLS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for index in 0..more {
        let spec = ToolSpec::new(format!("more_{index:04}"), "One of many.");
        tools = tools.with(ToolDef::dynamic(spec, |_, _| async { "ok" }))?;
    }
    let announcer = std::sync::Arc::new(Announcer::default());
    let run = Run::builder(tools).shared_state(announcer.clone()).max_output(0).build()?;
    let shelf = announcer.shelf.clone();
    let server = Server::new(run.dispatch())
        .resources(shelf.clone())
        .prompts(shelf.clone())
        .completions(shelf)
        .drain(Duration::from_secs(2))
        .on_log(|text| {
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "{text}");
        });
    let server = jobs::support(server);
    let _ = announcer.changes.set(server.changes());
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--http", address] => {
            let mut options = HttpOptions::default();
            options.token = std::env::var("EVERYTHING_TOKEN").ok().map(toolwright_core::Secret::new);
            let listening = server.listen(address.parse()?, options).await?;
            // The conformance suite reads the address from here.
            let mut out = std::io::stdout().lock();
            std::io::Write::write_fmt(&mut out, format_args!("http://{}/mcp\n", listening.address()))?;
            drop(out);
            let stop = CancelToken::new();
            let on_signal = stop.clone();
            tokio::spawn(async move {
                let _ = tokio::signal::ctrl_c().await;
                on_signal.cancel();
            });
            listening.run(stop).await;
        }
        _ => server.serve_stdio().await?,
    }
    Ok(())
}
