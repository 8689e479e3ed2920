//! The checks every sandbox must pass, as ordinary functions, so that other backends can run them too.
//!
//! ```no_run
//! # async fn example(sandbox: &toolwright_core::DynSandbox) {
//! for check in toolwright_sandbox::conformance::CHECKS {
//!     let outcome = (check.run)(sandbox).await;
//!     println!("{}: {outcome:?}", check.name);
//! }
//! # }
//! ```

mod exec;
mod files;
mod live;

use toolwright_core::{BoxFuture, DynSandbox, ErrorKind, ExecRequest, ExecResult, ToolError};

/// One check.
#[derive(Clone, Copy)]
pub struct Check {
    /// What holds, as a sentence with underscores.
    pub name: &'static str,
    /// Finds out.
    pub run: for<'a> fn(&'a DynSandbox) -> BoxFuture<'a, CheckOutcome>,
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// How a check went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It holds.
    Passed,
    /// It cannot be asked of this sandbox.
    Skipped(String),
    /// It does not hold.
    Failed(String),
}

/// Every check. A fresh sandbox for each is not needed, but names of files may be used twice.
pub const CHECKS: &[&Check] = &[
    // files
    &files::TEXT_COMES_BACK,
    &files::TEXT_BEYOND_ASCII_COMES_BACK,
    &files::BYTES_COME_BACK,
    &files::FIFTY_MEBIBYTES_COME_BACK,
    &files::AN_EMPTY_FILE_COMES_BACK,
    &files::NEWLINES_ARE_KEPT,
    &files::A_NAME_MAY_HAVE_SPACES,
    &files::PARENTS_ARE_MADE,
    &files::A_FILE_IS_OVERWRITTEN,
    &files::A_SHORTER_TEXT_LEAVES_NOTHING_BEHIND,
    &files::A_RELATIVE_PATH_IS_IN_THE_WORKSPACE,
    &files::AN_ABSOLUTE_PATH_WORKS,
    &files::WRITING_A_FOLDER_IS_AN_ERROR,
    &files::WRITING_A_PROTECTED_FILE_IS_AN_ERROR,
    &files::READING_A_MISSING_FILE_IS_AN_ERROR,
    &files::READING_A_NONSENSE_NAME_IS_AN_ERROR,
    &files::READING_A_FOLDER_IS_AN_ERROR,
    &files::READING_A_FORBIDDEN_FILE_IS_AN_ERROR,
    &files::READING_BYTES_AS_TEXT_IS_AN_ERROR,
    &files::READING_TOO_LARGE_A_FILE_IS_AN_ERROR,
    &files::READING_A_FIFO_DOES_NOT_BLOCK,
    &files::A_WRITTEN_FILE_KEEPS_ITS_MODE,
    &files::COMMANDS_SEE_WRITTEN_FILES,
    &files::READING_SEES_WHAT_COMMANDS_WROTE,
    // commands
    &exec::OUTPUT_IS_RETURNED,
    &exec::ERRORS_ARE_RETURNED_APART,
    &exec::THE_EXIT_CODE_IS_RETURNED,
    &exec::A_SIGNAL_IS_TOLD,
    &exec::ENDING_BY_SIGTERM_IS_NOT_A_TIMEOUT,
    &exec::VARIABLES_ARE_SET,
    &exec::VARIABLES_ARE_TAKEN_LITERALLY,
    &exec::THE_FOLDER_IS_THE_WORKSPACE,
    &exec::A_RELATIVE_FOLDER_WORKS,
    &exec::AN_ABSOLUTE_FOLDER_WORKS,
    &exec::A_MISSING_FOLDER_IS_AN_ERROR,
    &exec::TEXT_INPUT_ARRIVES,
    &exec::BINARY_INPUT_ARRIVES,
    &exec::FIFTY_MEBIBYTES_OF_INPUT_ARRIVE,
    &exec::EMPTY_INPUT_IS_EMPTY,
    &exec::NO_INPUT_IS_END_OF_FILE,
    &exec::INPUT_IS_TAKEN_LITERALLY,
    &exec::UNREAD_INPUT_IS_NO_ERROR,
    &exec::A_MEBIBYTE_OF_ARGUMENTS_ARRIVES,
    &exec::ARGUMENTS_ARE_TAKEN_LITERALLY,
    &exec::A_NUL_IN_AN_ARGUMENT_IS_AN_ERROR,
    &exec::A_MISSING_PROGRAM_IS_AN_ERROR,
    &exec::A_FILE_THAT_IS_NO_PROGRAM_IS_AN_ERROR,
    &exec::AN_UNKNOWN_USER_IS_AN_ERROR,
    &exec::TOO_MUCH_OUTPUT_IS_AN_ERROR,
    &exec::TOO_MANY_ERRORS_ARE_AN_ERROR,
    &exec::BROKEN_TEXT_IS_REPLACED,
    &exec::FILES_STAY_BETWEEN_COMMANDS,
    &exec::COMMANDS_AT_ONCE_DO_NOT_MIX,
    // time
    &live::A_TIMEOUT_STOPS_THE_COMMAND,
    &live::A_TIMEOUT_KEEPS_THE_OUTPUT,
    &live::A_TIMEOUT_STOPS_CHILDREN,
    &live::A_TIMEOUT_STOPS_THE_STUBBORN,
    &live::A_CHILD_THAT_HOLDS_THE_PIPE_DOES_NOT_BLOCK,
    &live::A_DROPPED_CALL_STOPS_THE_COMMAND,
    &live::OUTPUT_CAN_BE_SEEN_LIVE,
    &live::A_PROCESS_CAN_BE_TALKED_TO,
    &live::A_PROCESS_CAN_HAVE_A_TERMINAL,
    &live::A_TERMINAL_TAKES_LONG_LINES,
    &live::A_DROPPED_PROCESS_STOPS,
];

/// What a check's body returns: `Err` is the failure.
type CheckResult = Result<(), CheckFailure>;

/// Why a check did not pass.
#[derive(Debug)]
enum CheckFailure {
    Skip(String),
    Fail(String),
}

impl From<ToolError> for CheckFailure {
    fn from(error: ToolError) -> Self {
        CheckFailure::Fail(format!("unexpected error: {error:?}"))
    }
}

fn outcome(verdict: CheckResult) -> CheckOutcome {
    match verdict {
        Ok(()) => CheckOutcome::Passed,
        Err(CheckFailure::Skip(reason)) => CheckOutcome::Skipped(reason),
        Err(CheckFailure::Fail(reason)) => CheckOutcome::Failed(reason),
    }
}

fn equal<T: PartialEq + std::fmt::Debug>(got: T, want: T) -> CheckResult {
    if got == want {
        return Ok(());
    }
    let (got, want): (String, String) =
        (format!("{got:?}").chars().take(400).collect(), format!("{want:?}").chars().take(400).collect());
    Err(CheckFailure::Fail(format!("got {got}, wanted {want}")))
}

fn holds(what: &str, holds: bool) -> CheckResult {
    if holds { Ok(()) } else { Err(CheckFailure::Fail(what.to_owned())) }
}

fn fails<T: std::fmt::Debug>(
    result: Result<T, ToolError>,
    kind: ErrorKind,
) -> Result<ToolError, CheckFailure> {
    match result {
        Err(error) if error.kind() == kind => Ok(error),
        other => {
            let got: String = format!("{other:?}").chars().take(400).collect();
            Err(CheckFailure::Fail(format!("got {got}, wanted an error of kind `{kind}`")))
        }
    }
}

async fn shell(sandbox: &DynSandbox, script: &str) -> Result<ExecResult, ToolError> {
    sandbox.exec(ExecRequest::new(["sh", "-c", script])).await
}

/// Checks of file rights mean nothing to a user who is above them.
async fn ordinary_user(sandbox: &DynSandbox) -> CheckResult {
    match shell(sandbox, "id -u").await?.stdout.trim() {
        "0" => Err(CheckFailure::Skip("commands run as root, who may do anything".to_owned())),
        _ => Ok(()),
    }
}

/// Declares a check: a constant that wraps an async body.
macro_rules! check {
    ($name:ident, $text:literal, |$sandbox:ident| $body:block) => {
        pub(super) const $name: super::Check = super::Check {
            name: $text,
            run: |$sandbox| {
                Box::pin(async move {
                    let verdict: super::CheckResult = async { $body }.await;
                    super::outcome(verdict)
                })
            },
        };
    };
}
use check;
