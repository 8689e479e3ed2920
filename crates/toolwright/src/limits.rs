//! What a run may spend, and what it has spent.

#[doc(inline)]
pub use toolwright_core::wait;
#[doc(inline)]
pub use toolwright_runtime::{LimitKind, LimitReached, LimitScope, RunLimits, Spent};
