//! Tools that use the web in a real browser.
//!
//! The browser runs inside the sandbox of the run, with its network rules; it is started on first use and
//! ends with the run. Pages are text with references to their controls; everything from a page is one block
//! that says where it is from.
//!
//! ```
//! use toolwright_browser::{BrowserOptions, browser_tools};
//!
//! let tools = browser_tools(&BrowserOptions::new())?;
//! assert_eq!(tools.len(), 6);
//! # Ok::<(), toolwright_core::ToolsetError>(())
//! ```

mod act;
mod ax_tree;
mod cdp;
mod engine;
mod input;
mod inspect;
mod instance;
mod launch;
mod locate;
mod options;
mod page_text;
mod perform;
mod reading;
mod refs;
mod report;
mod risk;
mod script;
mod settle;
mod tools;

pub use inspect::{WEB_BROWSER_NAMES, web_browser};
pub use options::BrowserOptions;
pub use tools::{NAMES, browser_tool, browser_tools, configured};
