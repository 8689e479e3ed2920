//! What a shell command would run, for rules that decide about it.
//!
//! A rule such as `command: "git status*"` means one command, not every text that begins so. [`parts`] reads
//! a text with bash's grammar and lists every simple command, redirection and assignment in it: those of
//! pipelines, functions and substitutions, and those that wrappers (`env`, `xargs`, `sh -c`, ...) would
//! start. [`judge`] asks a rule about each of them; the strictest answer holds. A text that cannot be read,
//! and a command whose text does not show what it runs, is never approved by a pattern.
//!
//! ```
//! use toolwright_shell::{ShellVerdict, judge};
//!
//! let rule = |command: &str| command.starts_with("git status").then_some(ShellVerdict::Approve);
//! assert_eq!(judge("git status -s", rule).verdict, ShellVerdict::Approve);
//! assert_eq!(judge("timeout 5 git status", rule).verdict, ShellVerdict::Approve);
//! assert_eq!(judge("git status; rm -rf x", rule).verdict, ShellVerdict::Ask);
//! ```
//!
//! The crate does no I/O. The grammar is tree-sitter's, which can be stopped: text of up to [`MOST_BYTES`] is
//! read or given up within 200 ms. The recursive parser in Rust that was tried took exponential time: 1.2 s
//! for twelve times `((`.

mod grammar;
mod judge;
mod programs;
mod words;
mod wrappers;

pub use self::grammar::{MOST_BYTES, ShellPart, ShellPartKind, Unreadable, parts};
pub use self::judge::{Judgement, ShellVerdict, judge};
