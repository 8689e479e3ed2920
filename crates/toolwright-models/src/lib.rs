//! Models that answer conversations.
//!
//! [`ScriptedModel`] answers from data: it needs no key, no account and no network, and always says the same, which is
//! what tests and demonstrations want.

mod scripted;

pub use scripted::{Reply, ScriptError, ScriptedCall, ScriptedModel};
