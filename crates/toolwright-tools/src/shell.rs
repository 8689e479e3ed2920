//! `bash` and `python`: one command, run to its end in the sandbox.

use std::time::Duration;

use serde_json::Value;
use toolwright_core::{
    CallView, ErrorKind, ExecRequest, ExecResult, ToolContext, ToolDef, ToolError, ToolOutput, tool,
};

use crate::options::{Call, Options, code_view, within_time};

/// Run a bash command and see what it prints. Nothing but files is kept from one call to the next.
#[tool(category = "shell", sandboxed, viewer = command_view, finish = run_by_shell)]
pub async fn bash(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The bash command to run. Each call is a new shell in the same folder.
    #[tool(alias("cmd", "script"))]
    command: String,
) -> Result<ToolOutput, ToolError> {
    no_nul("command", &command)?;
    let call = Call::new(context, options);
    Ok(told(&call.run(call.shell(&command)?).await?))
}

/// The tool `python`: runs a program.
#[tool(
    description = "Run a Python program and see what it prints. The value of the last line is not shown unless it is \
                   printed, and variables are gone when the program ends.",
    category = "shell",
    sandboxed,
    viewer = program_view,
    finish = within_time
)]
pub async fn python(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The Python program to run. Print what you want to see.
    #[tool(alias = "script")]
    code: String,
) -> Result<ToolOutput, ToolError> {
    no_nul("code", &code)?;
    let call = Call::new(context, options);
    Ok(told(&call.run(call.shell("python3 -")?.input(code)).await?))
}

pub(crate) fn command_view(arguments: &Value) -> CallView {
    code_view("bash", "command", arguments)
}

pub(crate) fn program_view(arguments: &Value) -> CallView {
    code_view("python", "code", arguments)
}

fn script_view(arguments: &Value) -> CallView {
    code_view("python", "script", arguments)
}

/// A tool whose `command` a shell runs, so that rules judge every command in it.
pub(crate) fn run_by_shell(tool: ToolDef, options: &Options) -> ToolDef {
    within_time(tool, options).edit(|_, policy| policy.shell.push("command".into()))
}

/// The result of a command for a model: errors first, then output, then how it ended when it did not end
/// well.
fn told(result: &ExecResult) -> ToolOutput {
    let mut text = match result.stderr.as_str() {
        "" => result.stdout.clone(),
        stderr => format!("{stderr}\n{}", result.stdout),
    };
    if result.success() {
        return ToolOutput::text(text);
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("[{}]", ending(result.code)));
    ToolOutput::text(text).with_metadata("exit_code", result.code)
}

/// How a command ended, in words.
pub(crate) fn ending(code: i32) -> String {
    if code < 0 { format!("ended by signal {}", code.unsigned_abs()) } else { format!("exit code {code}") }
}

pub(crate) fn no_nul(name: &str, text: &str) -> Result<(), ToolError> {
    if text.contains('\0') {
        return Err(ToolError::invalid(format!("`{name}` contains a NUL byte")));
    }
    Ok(())
}

/// The shape of the tools whose result is the output alone: a command that fails is an error.
pub(crate) async fn output_or_error(
    call: &Call<'_>,
    command: &[&str],
    input: Option<String>,
    timeout: Option<f64>,
) -> Result<String, ToolError> {
    for word in command {
        no_nul("command", word)?;
    }
    let mut request = call.request(command.iter().copied());
    request.input = input.map(String::into_bytes);
    if let Some(seconds) = timeout {
        within(&mut request, seconds)?;
    }
    let result = call.run(request).await?;
    if result.success() {
        return Ok(result.stdout);
    }
    let message = match result.stderr.trim_end() {
        "" => ending(result.code),
        _ => format!("{}:\n{}", ending(result.code), result.stderr),
    };
    let error = ToolError::of(ErrorKind::Unknown, message);
    Err(if result.stdout.is_empty() { error } else { error.with_partial(ToolOutput::text(result.stdout)) })
}

/// So many seconds, as a `timeout` says.
pub(crate) fn seconds(timeout: f64) -> Result<Duration, ToolError> {
    let time = Duration::try_from_secs_f64(timeout).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| {
        ToolError::invalid(format!("`timeout` must be a positive number of seconds, got {timeout}"))
    })
}

/// Gives a command so many seconds, or less when it already has less.
pub(crate) fn within(request: &mut ExecRequest, timeout: f64) -> Result<(), ToolError> {
    let time = seconds(timeout)?;
    request.timeout = Some(request.timeout.map_or(time, |most| most.min(time)));
    Ok(())
}

/// The tool `run_python_script`: the result is what the program prints, and a program that fails is an error.
#[tool(
    description = "Run a Python program; the result is what it prints. A program that fails is an error.",
    category = "shell",
    sandboxed,
    viewer = script_view,
    finish = within_time
)]
pub async fn run_python_script(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The Python program to run.
    #[tool(alias = "code")]
    script: String,
) -> Result<String, ToolError> {
    no_nul("script", &script)?;
    output_or_error(&Call::new(context, options), &["python3", "-"], Some(script), None).await
}

/// The tool `run_process`: the result is what a program prints, and a program that fails is an error.
#[tool(
    description = "Run a program with the given arguments; the result is what it prints. A program that fails is an error.",
    category = "shell",
    sandboxed,
    finish = within_time
)]
pub async fn run_process(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The program, by name or path. No shell is involved.
    command: String,
    /// Its arguments, one by one.
    #[tool(default)]
    args: Vec<String>,
    /// Stop it after so many seconds.
    #[tool(default = 30.0)]
    timeout: f64,
) -> Result<String, ToolError> {
    let words: Vec<&str> = std::iter::once(&command).chain(&args).map(String::as_str).collect();
    output_or_error(&Call::new(context, options), &words, None, Some(timeout)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_come_first_and_a_bad_end_is_told() {
        let told = |code, stdout: &str, stderr: &str| {
            let (stdout, stderr) = (stdout.into(), stderr.into());
            let result = ExecResult { code, stdout, stderr, ..ExecResult::default() };
            super::told(&result).to_text()
        };
        assert_eq!(told(0, "out\n", ""), "out\n");
        assert_eq!(told(0, "out\n", "err\n"), "err\n\nout\n");
        assert_eq!(told(3, "", ""), "[exit code 3]");
        assert_eq!(told(1, "a", ""), "a\n[exit code 1]");
        assert_eq!(told(-9, "", "bad\n"), "bad\n\n[ended by signal 9]");
    }
}
