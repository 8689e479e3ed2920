//! Suites that any tool, model or executor should pass.

mod executor;
mod model;
mod tool;

pub use executor::{executor, tools as executor_tools};
pub use model::model;
pub use tool::{tool, tool_in};

/// What a suite found: one line per check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The checks that passed.
    pub passed: Vec<String>,
    /// The checks that did not, with what was found.
    pub failed: Vec<String>,
}

impl Report {
    fn check(&mut self, what: &str, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.passed.push(what.to_owned()),
            Err(found) => self.failed.push(format!("{what}: {found}")),
        }
    }

    /// Panics with every failed check, for use in a test.
    #[track_caller]
    #[expect(clippy::panic, reason = "this is how a test fails")]
    pub fn assert(&self) {
        if !self.failed.is_empty() {
            panic!(
                "{} of {} checks failed:\n- {}",
                self.failed.len(),
                self.failed.len() + self.passed.len(),
                self.failed.join("\n- ")
            );
        }
        if self.passed.is_empty() {
            panic!("no check was made");
        }
    }
}

/// `Ok` when the condition holds, else what was found.
fn ensure(holds: bool, found: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(found()) }
}
