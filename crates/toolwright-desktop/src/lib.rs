//! Tools that use programs with windows: mouse, keyboard and screenshots of a desktop.
//!
//! The display runs inside the sandbox of the run; it is started on first use and ends with the run. The
//! `computer` tool has Inspect's actions, reads the screen as text where programs describe themselves, and
//! takes the actions of the computer tools that vendors train their models on.
//!
//! ```
//! use toolwright_desktop::{DesktopOptions, desktop_tools};
//!
//! let tools = desktop_tools(&DesktopOptions::new())?;
//! assert_eq!(tools.len(), 2);
//! # Ok::<(), toolwright_core::ToolsetError>(())
//! ```

mod accessibility;
mod action;
mod dbus;
mod desktop;
mod display;
mod keyboard;
mod keys;
mod launch;
mod options;
mod perform;
mod picture;
mod scale;
mod tools;
mod x11;

pub use options::DesktopOptions;
pub use tools::{NAMES, computer, configured, desktop_tool, desktop_tools};
