//! What a shell command would run, for rules that decide about it.
//!
//! A rule such as `command: "git status*"` means one command, not every text that begins so. [`parts`] reads
//! a text with bash's grammar and lists every simple command, redirection and assignment in it: those of
//! pipelines, functions and substitutions, and those that wrappers (`env`, `xargs`, `sh -c`, ...) would
//! start. Each part says whether its text shows what it runs; a text that cannot be read is an error.
//!
//! ```
//! use toolwright_shell::parts;
//!
//! let all = parts("timeout 5 git status; r\"m\" -rf x")?;
//! assert_eq!(all.iter().map(|part| part.text.as_str()).collect::<Vec<_>>(), ["git status", "rm -rf x"]);
//! assert!(parts("git status; 'rm").is_err());
//! # Ok::<(), toolwright_shell::Unreadable>(())
//! ```
//!
//! The crate does no I/O. The grammar is tree-sitter's, which can be stopped: text of up to [`MOST_BYTES`] is
//! read or given up within 200 ms. The recursive parser in Rust that was tried took exponential time: 1.2 s
//! for twelve times `((`.

mod grammar;
mod programs;
mod spelling;
mod words;
mod wrappers;

pub use self::grammar::{MOST_BYTES, ShellPart, ShellPartKind, Unreadable, parts};
