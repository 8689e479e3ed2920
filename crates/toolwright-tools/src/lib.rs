//! The standard tools: a shell, Python, files, editing, search, memory and plans.
//!
//! They work on whatever sandbox the run has and know of files only what it shows them: a path goes to the
//! sandbox as it is, and the sandbox decides where it leads. A run without a sandbox refuses them with
//! `sandbox_unavailable`.
//!
//! ```
//! use toolwright_tools::{Options, bash, resolve, standard};
//!
//! let all = standard()?;
//! assert!(all.get("bash").is_some() && all.get("text_editor").is_some());
//!
//! // One tool for another sandbox of the run, under another name.
//! let victim = bash(&Options::new().in_sandbox("victim")).with_name("victim_bash");
//!
//! // Names of other systems stand for the same tools.
//! assert!(resolve("llm_workers.tools.fs.grep_files").is_some());
//! # Ok::<(), toolwright_core::ToolsetError>(())
//! ```
//!
//! Edits never touch more than they say: line endings, tabs, a missing newline at the end and everything else
//! outside the change stay as they are, byte for byte.

mod apply_patch;
mod approval_tokens;
mod bash_session;
mod compat;
mod data;
mod decode;
mod document;
mod edit_file;
mod fetch;
mod file_info;
mod file_texts;
mod glob_files;
mod grep_files;
mod list_files;
mod live_output;
mod matching_lines;
mod memory;
mod names;
mod options;
mod patch;
mod paths;
mod people;
mod plan;
mod read_figure;
mod read_file;
mod shell;
mod show_file;
mod similar_paths;
mod terminal;
mod text;
mod text_editor;
mod thought;
mod unified;
mod walk;
mod write_file;

pub use apply_patch::apply_patch;
pub use approval_tokens::{consume_approval, request_approval, validate_approval};
pub use bash_session::bash_session;
pub use data::{analyze_data, main_if_worker, parse_csv, transform_json};
pub use edit_file::edit_file;
pub use fetch::{
    check_website_status, fetch_content, fetch_page_links, fetch_page_markdown, fetch_page_text,
    fetch_url_content,
};
pub use file_info::file_info;
pub use glob_files::glob_files;
pub use grep_files::{grep, grep_files};
pub use list_files::{list_directory, list_files};
pub use memory::{Memory, memory};
pub use names::{
    configured, configured_through, references, resolve, resolve_with, standard, standard_with, toolkit,
};
pub use options::Options;
pub use people::{ask_user, notify_user, user_input};
pub use plan::{Plan, PlanStep, todo_write, update_plan};
pub use read_figure::read_figure;
pub use read_file::read_file;
pub use shell::{bash, python, run_process, run_python_script};
pub use show_file::{is_safe_to_open, show_file};
pub use text_editor::text_editor;
pub use thought::think;
pub use toolwright_net::{Proxies, ProxyError, Reach};
pub use write_file::write_file;
