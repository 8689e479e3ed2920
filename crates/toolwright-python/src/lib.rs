//! Python functions as tools.
//!
//! A [`PythonFile`] is a file of functions. Its worker, one process of standard library code in a sandbox,
//! imports the file, describes its functions from hints and docstrings, and makes calls until the file is
//! dropped. A call that does not end in time takes the worker with it; the next call starts a new one.

mod definition;
mod file;
mod frame;
mod output;
mod tool;
mod worker;

pub use definition::LeftOut;
pub use file::{PythonFile, PythonOptions};
