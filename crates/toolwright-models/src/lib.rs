//! Models that answer conversations: the only crate that knows a vendor's HTTP.
//!
//! [`connect`] turns a name such as `anthropic/claude-sonnet-4-5` into a [`Model`](toolwright_core::Model).
//! Behind it are few [wire formats](wire) and many [vendors](vendor), which are tables of constants.
//! [`ScriptedModel`] answers from data: it needs no key, no account and no network, and always replies the
//! same, which is what tests and demonstrations want.
//!
//! ```no_run
//! use toolwright_core::{Message, Model, ModelOptions, ModelRequest, ToolChoice};
//! use toolwright_models::{ModelSettings, connect};
//!
//! # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
//! let model = connect("ollama/qwen3", ModelSettings::new(), |name| std::env::var(name).ok())?;
//! let messages = [Message::user("Say hello.")];
//! let request = ModelRequest {
//!     messages: &messages,
//!     tools: &[],
//!     tool_choice: &ToolChoice::None,
//!     options: &ModelOptions::default(),
//! };
//! println!("{}", model.generate(request).await?.message.text());
//! # Ok(())
//! # }
//! ```

pub mod aws;
mod computer;
mod config;
pub mod dialect;
mod error;
mod http;
mod model;
mod offer;
mod pace;
pub mod price;
mod registry;
pub mod retry;
mod scripted;
pub mod tokens;
pub mod vendor;
pub mod wire;

pub use config::{ConfigError, ModelConfig};
pub use http::HttpLimits;
pub use model::VendorModel;
pub use offer::{Offer, offered};
pub use pace::Pace;
pub use price::Price;
pub use registry::{ConnectError, ModelSettings, connect};
pub use retry::RetryPolicy;
pub use scripted::{Reply, ScriptError, ScriptedCall, ScriptedModel};
pub use toolwright_net::{Proxies, ProxyError};
