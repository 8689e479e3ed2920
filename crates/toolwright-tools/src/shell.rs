//! `bash` and `python`: one command, run to its end in the sandbox.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolwright_core::{ErrorKind, ExecRequest, ExecResult, ToolDef, ToolError, ToolOutput};

use crate::options::{Call, Options, define, show_code};

#[derive(Deserialize, JsonSchema)]
struct Bash {
    /// The bash command to run. Each call is a new shell in the same folder.
    command: String,
}

/// The tool `bash`: runs a command of the shell. `cmd` and `script` are accepted for `command`.
pub fn bash(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "bash",
        "Run a bash command and see what it prints. Nothing but files is kept from one call to the next.",
        |call: Call, Bash { command }| async move {
            no_nul("command", &command)?;
            let request = call.shell(&command)?;
            Ok::<_, ToolError>(told(&call.run(request).await?))
        },
    );
    shell_tool(tool, "command", &[("cmd", "command"), ("script", "command")])
}

#[derive(Deserialize, JsonSchema)]
struct Python {
    /// The Python program to run. Print what you want to see.
    code: String,
}

/// The tool `python`: runs a program. `script` is accepted for `code`.
pub fn python(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "python",
        "Run a Python program and see what it prints. The value of the last line is not shown unless it is printed, and \
         variables are gone when the program ends.",
        |call: Call, Python { code }| async move {
            no_nul("code", &code)?;
            let request = call.shell("python3 -")?.input(code);
            Ok::<_, ToolError>(told(&call.run(request).await?))
        },
    );
    code_tool(tool, "python", "code", &[("script", "code")])
}

/// A tool whose parameter is a program of the shell, so that rules judge every command in it.
pub(crate) fn shell_tool(tool: ToolDef, parameter: &'static str, aliases: &[(&str, &str)]) -> ToolDef {
    code_tool(tool, "bash", parameter, aliases).edit(|_, policy| policy.shell.push(parameter.into()))
}

pub(crate) fn code_tool(
    tool: ToolDef,
    language: &'static str,
    parameter: &'static str,
    aliases: &[(&str, &str)],
) -> ToolDef {
    let tool = tool.with_category("shell").with_viewer(show_code(language, parameter));
    tool.edit(|_, policy| {
        policy.aliases.extend(aliases.iter().map(|(alias, name)| ((*alias).into(), (*name).into())));
    })
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
async fn output_or_error(
    call: &Call,
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
    let error = ToolError::of(ErrorKind::Unknown, format!("{}:\n{}", ending(result.code), result.stderr));
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

#[derive(Deserialize, JsonSchema)]
struct Script {
    /// The bash script to run.
    script: String,
    /// Stop it after so many seconds.
    #[serde(default = "half_a_minute")]
    timeout: f64,
}

pub(crate) fn half_a_minute() -> f64 {
    30.0
}

/// `bash` as llm-workers has it: the result is the standard output, and a script that fails is an error.
pub(crate) fn bash_script(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "bash",
        "Run a bash script; the result is what it prints. A script that fails is an error.",
        |call: Call, Script { script, timeout }| async move {
            output_or_error(&call, &["bash", "-c", &script], None, Some(timeout)).await
        },
    );
    shell_tool(tool, "script", &[("command", "script"), ("cmd", "script")])
}

#[derive(Deserialize, JsonSchema)]
struct PythonScript {
    /// The Python program to run.
    script: String,
}

/// The tool `run_python_script`: the result is what the program prints, and a program that fails is an error.
pub fn run_python_script(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "run_python_script",
        "Run a Python program; the result is what it prints. A program that fails is an error.",
        |call: Call, PythonScript { script }| async move {
            no_nul("script", &script)?;
            output_or_error(&call, &["python3", "-"], Some(script), None).await
        },
    );
    code_tool(tool, "python", "script", &[("code", "script")])
}

#[derive(Deserialize, JsonSchema)]
struct Process {
    /// The program, by name or path. No shell is involved.
    command: String,
    /// Its arguments, one by one.
    #[serde(default)]
    args: Vec<String>,
    /// Stop it after so many seconds.
    #[serde(default = "half_a_minute")]
    timeout: f64,
}

/// The tool `run_process`: the result is what a program prints, and a program that fails is an error.
pub fn run_process(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "run_process",
        "Run a program with the given arguments; the result is what it prints. A program that fails is an error.",
        |call: Call, Process { command, args, timeout }| async move {
            let words: Vec<&str> = std::iter::once(&command).chain(&args).map(String::as_str).collect();
            output_or_error(&call, &words, None, Some(timeout)).await
        },
    );
    tool.with_category("shell")
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
