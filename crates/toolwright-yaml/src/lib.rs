//! YAML text as a tree in which every node knows its place, read as PyYAML reads it.
//!
//! The scanner is serde-saphyr's; the tree is our own because a tool file needs what a plain value cannot
//! keep: places, how a scalar was quoted, `!include`, and the words of YAML 1.1. How text becomes a tree is
//! in `read`, what a plain word means in `scalar`, where a part of a text stands in the file in
//! `scalar_position`; `diag` has the problems that are found.
//!
//! ```
//! let value = toolwright_yaml::read_data("a.yaml", "answer: y\nflag: off\n")?;
//! assert_eq!(value, serde_json::json!({"answer": "y", "flag": false}));
//! # Ok::<(), toolwright_yaml::LoadError>(())
//! ```

mod data;
pub mod diag;
mod node;
mod read;
mod scalar;
mod scalar_position;
mod syntax_hints;

pub use data::{YamlDocument, read_data, read_plain_data};
pub use diag::{Diagnostic, LoadError, Severity};
pub use node::{Data, Node};
pub use read::{Budget, Include, MAX_BYTES, MAX_DATA, MAX_DEPTH, parse};
pub use scalar_position::{Origin, within};
