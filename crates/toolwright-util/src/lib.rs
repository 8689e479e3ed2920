//! Helpers that several crates of Toolwright share. They know nothing of tools, models or files of tools, and
//! promise no stable interface to anybody else.

mod atomic_write;
mod sync;

pub use atomic_write::{FileAccess, create, replace};
pub use sync::lock;
