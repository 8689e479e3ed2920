//! Scripts and programs as tools.
//!
//! [`read_scripts`] reads the definitions of the files that a pattern names; nothing is started. A definition
//! is the first of these that a file has: a fenced block in its comments, argc's comment tags, a Python
//! function `run` with a docstring, JSDoc above `exports.run`, or a file `NAME.tool.yaml` beside it. A call
//! runs the file in the sandbox of the run.

mod argc;
mod comments;
mod declared;
mod definition;
mod find;
mod javascript;
mod parameters;
mod python;
mod request;
mod tool;

pub use find::{LeftOutScript, Scripts, definitions_beside, matching_files, read_scripts};
pub use tool::ScriptOptions;
