//! Tests of your own tools: a model that answers from data, and with the feature `testkit` conformance suites
//! and recorded exchanges.

#[cfg(feature = "models")]
#[doc(inline)]
pub use toolwright_models::{Reply, ScriptError, ScriptedCall, ScriptedModel};
#[cfg(feature = "testkit")]
#[doc(inline)]
pub use toolwright_testkit::*;
