//! A server with one tool for each thing a tool can do, for trying clients and for the tests.
//!
//! `cargo run -p toolwright-mcp --example everything` serves it on stdio.

use std::time::Duration;

use serde_json::json;
use toolwright_core::{Content, Media, ToolContext, ToolDef, ToolError, ToolOutput, ToolSpec, Toolset, tool};
use toolwright_mcp::Server;
use toolwright_runtime::Run;

/// Answers with a text.
#[tool(read_only)]
async fn test_simple_text() -> &'static str {
    "This is a simple text response for testing."
}

/// Answers with a picture.
#[tool(read_only)]
async fn test_image_content() -> Content {
    Content::image("image/png", b"\x89PNG\r\n\x1a\n")
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

/// Waits. Writes a file when it is stopped before the end.
#[tool(read_only)]
async fn wait(
    /// How long.
    seconds: f64,
    /// The file.
    witness: Option<String>,
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
    for tool in [
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
    ] {
        tools = tools.with(tool)?;
    }
    // Enough tools to need several pages.
    let more: usize =
        std::env::var("EVERYTHING_MORE_TOOLS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for index in 0..more {
        let spec = ToolSpec::new(format!("more_{index:04}"), "One of many.");
        tools = tools.with(ToolDef::dynamic(spec, |_, _| async { "ok" }))?;
    }
    let run = Run::builder(tools).max_output(0).build()?;
    let server = Server::new(run.dispatch()).drain(Duration::from_secs(2)).on_log(|text| {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "{text}");
    });
    server.serve_stdio().await?;
    Ok(())
}
