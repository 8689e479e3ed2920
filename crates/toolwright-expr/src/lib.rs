//! Expressions for tools: Python's expression language on plain data, for values computed between two tool
//! calls. Nothing in it does I/O, nothing reaches the host except functions the host lends, and every
//! evaluation is bounded in steps, bytes, depth and output.
//!
//! ```
//! use toolwright_expr::{EvalLimits, Template, Value};
//!
//! let template = Template::compile("${user.name} has ${len(items)} items")?;
//! let user = Value::dict([("name", Value::str("Ann"))]);
//! let scope = [("user", user), ("items", Value::list(vec![1.into(), 2.into()]))];
//! let text = template.evaluate(&scope, &EvalLimits::default())?;
//! assert_eq!(text.as_str(), Some("Ann has 2 items"));
//!
//! let error = Template::compile("${usr.name}")?.evaluate(&scope, &EvalLimits::default()).unwrap_err();
//! assert_eq!(error.hint(), Some("did you mean `user`?"));
//! # Ok::<(), toolwright_expr::Error>(())
//! ```

mod ast;
mod builtins;
mod error;
mod eval;
mod format;
mod fuel;
mod host;
mod iter;
mod json;
mod lexer;
mod ops;
mod parser;
mod program;
mod repr;
mod resolve;
mod statements;
mod template;
mod types;
mod value;
mod yaml;

pub use builtins::Builtin;
pub use error::{Error, ErrorKind, LimitKind, Span};
pub use fuel::EvalLimits;
pub use host::{HostArgs, HostError, HostFunction, NamedFunction, Nested, Scope, Variables};
pub use program::{Program, Script, ScriptCall, builtin_names, is_builtin, is_usable_name, reference_tables};
pub use template::{Template, TemplatePiece};
pub use types::Type;
pub use value::{Bytes, Dict, List, Object, Range, Set, Text, Tuple, Value};
