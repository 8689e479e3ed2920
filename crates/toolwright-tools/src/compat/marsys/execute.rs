//! `python_execute` and `shell_execute`: a run with everything that is known of how it ended, and with the
//! pictures a Python program shows.

use std::collections::BTreeMap;
use std::time::Instant;

use schemars::JsonSchema;
use serde::Serialize;
use toolwright_core::schema::output_schema_of;
use toolwright_core::{
    Content, ExecRequest, RootedPath, Structured, ToolContext, ToolDef, ToolError, ToolOutput, tool,
};

use super::picture::{self, Picture, PictureOptions};
use super::place;
use super::python::{self, PythonProgram, Ran};
use crate::options::{Call, Options, within_time};
use crate::paths;
use crate::shell::{command_view, no_nul, program_view, run_by_shell, seconds, within};

/// The longest name of a session.
const LONGEST_NAME: usize = 100;

/// How a run ended.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Outcome")]
struct RunReport {
    success: bool,
    stdout: String,
    stderr: String,
    /// Minus the number of the signal when a signal ended it.
    exit_code: i32,
    /// The same, for a command of the shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    return_code: Option<i32>,
    /// Never: that is an error, which carries what was printed.
    timed_out: bool,
    /// Never, likewise.
    truncated: bool,
    /// Nothing, likewise.
    error: (),
    duration_ms: f64,
    /// The folder it ran in.
    cwd: String,
    language: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// The files of the pictures that were shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    images: Option<Vec<String>>,
    /// How many pictures were shown beyond those that are given.
    #[serde(skip_serializing_if = "is_zero")]
    images_left_out: u64,
    /// Python ended, and the variables of the session are gone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    session_ended: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The tool `python_execute`: the result is an object, also when the program fails, followed by the pictures.
// A program may go on where the one before it ended, so its calls do not run beside each other.
#[tool(
    description = "Run a Python program. The result has its output, its errors and its exit code. With a `session_id` the next \
                   program of that session goes on with its variables. `display(figure)` and `display_image(path)` show \
                   pictures, at most four.",
    category = "shell",
    sandboxed,
    parallel = false,
    viewer = program_view,
    finish = finish_python
)]
pub(crate) async fn python_execute(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The Python program to run. Print what you want to see.
    #[tool(alias = "script")]
    code: String,
    /// What the program reads from its standard input.
    stdin: Option<String>,
    /// Stop it after so many seconds.
    #[tool(default = 30.0)]
    timeout: f64,
    /// Variables of the environment to set.
    #[tool(default)]
    env: BTreeMap<String, String>,
    #[tool(
        description = "Programs of the same session share their variables, imports and functions: any name. Left out, nothing \
                       is kept."
    )]
    session_id: Option<String>,
) -> Result<ToolOutput, ToolError> {
    no_nul("code", &code)?;
    if session_id.as_ref().is_some_and(|name| name.len() > LONGEST_NAME) {
        return Err(ToolError::invalid(format!("`session_id` is longer than {LONGEST_NAME} bytes")));
    }
    let call = &Call::new(context, options);
    let start = Instant::now();
    let program = PythonProgram::new(code, stdin, env);
    let time = call.time(seconds(timeout)?);
    let ran = call.while_wanted(python::run(call, session_id.as_deref(), program, time)).await?;
    told(call, ran, session_id.is_some(), start).await
}

fn finish_python(tool: ToolDef, options: &Options) -> ToolDef {
    within_time(tool, options).with_output_schema(output_schema_of::<RunReport>())
}

async fn told(call: &Call<'_>, ran: Ran, in_session: bool, start: Instant) -> Result<ToolOutput, ToolError> {
    let outcome = RunReport {
        success: ran.code == 0,
        stdout: ran.stdout,
        stderr: ran.stderr,
        exit_code: ran.code,
        return_code: None,
        timed_out: false,
        truncated: false,
        error: (),
        duration_ms: start.elapsed().as_secs_f64() * 1000.0,
        cwd: ran.folder,
        language: "python",
        command: None,
        images: Some(ran.pictures.clone()),
        images_left_out: ran.left_out,
        session_ended: in_session && ran.ended,
    };
    let output = ToolOutput::serialize(&outcome)?;
    if ran.pictures.is_empty() {
        return Ok(output);
    }
    let value = output.value();
    let mut blocks = output.content;
    for path in ran.pictures {
        match show(call, &path).await {
            Ok(picture) => blocks.extend(picture.content),
            // The program is done; an unreadable picture of its does not undo that.
            Err(error) => blocks.push(Content::text(format!("{path} cannot be shown: {error}"))),
        }
    }
    Ok(ToolOutput::blocks(blocks).with_structured(value))
}

async fn show(call: &Call<'_>, path: &str) -> Result<ToolOutput, ToolError> {
    let bytes = paths::read(call, path).await?;
    let picture = Picture::of(path, &bytes).ok_or_else(|| ToolError::new("it is not a picture"))??;
    let look = PictureOptions { most_pixels: picture::MOST_PIXELS, vendor: "generic".to_owned(), low: false };
    picture.show(path.to_owned(), bytes, look).await
}

/// Run a command of the shell. The result has its output, its errors and its exit code.
#[tool(category = "shell", sandboxed, viewer = command_view, finish = run_by_shell)]
pub(crate) async fn shell_execute(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The command to run.
    #[tool(alias = "cmd")]
    command: String,
    /// Stop it after so many seconds.
    #[tool(default = 30.0)]
    timeout: f64,
    /// Variables to set.
    #[tool(default)]
    env: BTreeMap<String, String>,
    /// The folder to run it in.
    working_dir: Option<RootedPath>,
    /// The shell that runs it.
    #[tool(default = "bash")]
    shell: String,
) -> Result<Structured<RunReport>, ToolError> {
    no_nul("command", &command)?;
    let call = &Call::new(context, options);
    let request = call.request([shell.as_str(), "-c", &command]);
    run(call, set_up(request, timeout, env, working_dir)?, command).await
}

/// The tool `shell_execute_streaming`: the result is the lines that were printed; who watches sees them as
/// they come.
#[tool(
    description = "Run a command of the shell and tell its output line by line.",
    category = "shell",
    sandboxed,
    viewer = command_view,
    finish = finish_streaming
)]
pub(crate) async fn shell_execute_streaming(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The command to run.
    #[tool(alias = "cmd")]
    command: String,
    /// Stop it after so many seconds.
    #[tool(default = 30.0)]
    timeout: f64,
    /// Variables to set.
    #[tool(default)]
    env: BTreeMap<String, String>,
    /// The folder to run it in.
    working_dir: Option<RootedPath>,
) -> Result<ToolOutput, ToolError> {
    no_nul("command", &command)?;
    let call = &Call::new(context, options);
    let request = call.request(["bash", "-c", &command]);
    let result = call.run(set_up(request, timeout, env, working_dir)?).await?;
    let lines: Vec<&str> = result.stdout.lines().map(str::trim_end).collect();
    let output = ToolOutput::serialize(&lines)?;
    Ok(match result.success() {
        true => output,
        false => output.with_metadata("exit_code", result.code).with_metadata("stderr", result.stderr),
    })
}

fn finish_streaming(tool: ToolDef, options: &Options) -> ToolDef {
    run_by_shell(tool, options).with_output_schema(output_schema_of::<Vec<String>>())
}

/// A command with its time, its variables and its folder.
fn set_up(
    mut request: ExecRequest,
    timeout: f64,
    env: BTreeMap<String, String>,
    folder: Option<RootedPath>,
) -> Result<ExecRequest, ToolError> {
    request.cwd = folder.as_deref().map(place).transpose()?;
    within(&mut request, timeout)?;
    request.env.extend(env);
    Ok(request)
}

async fn run(
    call: &Call<'_>,
    request: ExecRequest,
    command: String,
) -> Result<Structured<RunReport>, ToolError> {
    let cwd = call.folder(request.cwd.as_deref()).await?;
    let start = Instant::now();
    let result = call.run(request).await?;
    let duration_ms = start.elapsed().as_secs_f64() * 1000.0;
    Ok(Structured(RunReport {
        success: result.success(),
        exit_code: result.code,
        return_code: Some(result.code),
        timed_out: false,
        truncated: false,
        error: (),
        stdout: result.stdout,
        stderr: result.stderr,
        duration_ms,
        cwd,
        language: "shell",
        command: Some(command),
        images: None,
        images_left_out: 0,
        session_ended: false,
    }))
}
