//! `python_execute` and `shell_execute`: a run with everything that is known of how it ended.

use std::collections::BTreeMap;
use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{ExecRequest, Json, ToolDef, ToolError, ToolOutput};

use crate::options::{Call, Options, define};
use crate::shell::{code_tool, half_a_minute, no_nul, within};

#[derive(Deserialize, JsonSchema)]
struct PythonExecute {
    /// The Python program to run. Print what you want to see.
    code: String,
    /// What the program reads from its standard input.
    stdin: Option<String>,
    /// Stop it after so many seconds.
    #[serde(default = "half_a_minute")]
    timeout: f64,
    /// Variables to set.
    #[serde(default)]
    env: BTreeMap<String, String>,
}

#[derive(Deserialize, JsonSchema)]
struct ShellExecute {
    /// The command to run.
    command: String,
    /// Stop it after so many seconds.
    #[serde(default = "half_a_minute")]
    timeout: f64,
    /// Variables to set.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The folder to run it in.
    working_dir: Option<String>,
    /// The shell that runs it.
    #[serde(default = "bash")]
    shell: String,
}

fn bash() -> String {
    "bash".to_owned()
}

/// How a run ended.
#[derive(Serialize, JsonSchema)]
struct Outcome {
    success: bool,
    stdout: String,
    stderr: String,
    /// Minus the number of the signal when a signal ended it.
    exit_code: i32,
    duration_ms: f64,
    language: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

/// The tool `python_execute`: the result is an object, also when the program fails.
pub(crate) fn python_execute(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "python_execute",
        "Run a Python program. The result has its output, its errors and its exit code.",
        |call: Call, PythonExecute { code, stdin, timeout, env }| async move {
            no_nul("code", &code)?;
            // The program itself comes by standard input unless something else is to be read there.
            let request = match stdin {
                None => call.request(["python3", "-"]).input(code),
                Some(stdin) => call.request(["python3", "-c", &code]).input(stdin),
            };
            run(&call, request, timeout, env, "python", None).await
        },
    );
    code_tool(tool, "python", "code", &[("script", "code")])
}

/// The tool `shell_execute`: the result is an object, also when the command fails.
pub(crate) fn shell_execute(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "shell_execute",
        "Run a command of the shell. The result has its output, its errors and its exit code.",
        |call: Call, ShellExecute { command, timeout, env, working_dir, shell }| async move {
            no_nul("command", &command)?;
            let mut request = call.request([shell.as_str(), "-c", &command]);
            request.cwd = working_dir.as_deref().map(super::place).transpose()?;
            run(&call, request, timeout, env, "shell", Some(command)).await
        },
    );
    code_tool(tool, "bash", "command", &[("cmd", "command")])
}

#[derive(Deserialize, JsonSchema)]
struct Streaming {
    /// The command to run.
    command: String,
    /// Stop it after so many seconds.
    #[serde(default = "half_a_minute")]
    timeout: f64,
    /// Variables to set.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The folder to run it in.
    working_dir: Option<String>,
}

/// The tool `shell_execute_streaming`: the result is the lines that were printed; who watches sees them as they come.
pub(crate) fn shell_execute_streaming(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "shell_execute_streaming",
        "Run a command of the shell and tell its output line by line.",
        |call: Call, Streaming { command, timeout, env, working_dir }| async move {
            no_nul("command", &command)?;
            let mut request = call.request(["bash", "-c", &command]);
            request.cwd = working_dir.as_deref().map(super::place).transpose()?;
            within(&mut request, timeout)?;
            request.env.extend(env);
            let result = call.run(request).await?;
            let lines: Vec<&str> = result.stdout.lines().map(str::trim_end).collect();
            let output = ToolOutput::serialize(&lines)?;
            Ok::<_, ToolError>(match result.success() {
                true => output,
                false => {
                    output.with_metadata("exit_code", result.code).with_metadata("stderr", result.stderr)
                }
            })
        },
    );
    code_tool(tool, "bash", "command", &[("cmd", "command")])
}

async fn run(
    call: &Call,
    mut request: ExecRequest,
    timeout: f64,
    env: BTreeMap<String, String>,
    language: &'static str,
    command: Option<String>,
) -> Result<Json<Outcome>, ToolError> {
    within(&mut request, timeout)?;
    request.env.extend(env);
    let start = Instant::now();
    let result = call.run(request).await?;
    let duration_ms = start.elapsed().as_secs_f64() * 1000.0;
    Ok(Json(Outcome {
        success: result.success(),
        exit_code: result.code,
        stdout: result.stdout,
        stderr: result.stderr,
        duration_ms,
        language,
        command,
    }))
}
