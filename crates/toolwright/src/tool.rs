//! Tools in detail: definitions by hand, parameters, errors, state, wrappers, and sources of tools.
//!
//! Most tools need nothing of this: [`#[tool]`](macro@crate::tool) writes the definition, and [`ToolContext`] and
//! [`ToolError`] are at the root.
//!
//! [`ToolContext`]: crate::ToolContext
//! [`ToolError`]: crate::ToolError

// Definitions.
#[doc(inline)]
pub use toolwright_core::{
    Annotations, Arguments, CallDescription, CallView, DynTool, DynToolSource, Fingerprint, PathParameters,
    Prepared, ToolDef, ToolPolicy, ToolSpec, ViewContent, ViewFormat,
};
// Parameters, results and errors.
#[doc(inline)]
pub use toolwright_core::{
    ErrorInfo, ErrorKind, ForeignClass, IntoToolOutput, Json, ResultExt, RootedPath, Secret, Structured,
    WorkspacePath,
};
// What a call can reach.
#[doc(inline)]
pub use toolwright_core::{
    CallInfo, CallNote, CallTimeout, CancelToken, InvokeOptions, ProgressListener, RunScope, State, Store,
    StoreState, Stored, run_blocking,
};
// Sets, sources and wrappers.
#[doc(inline)]
pub use toolwright_core::schema;
#[doc(inline)]
pub use toolwright_core::{
    BoxFuture, Cache, Entry, Handoff, IntoToolset, RateLimit, Retry, RewriteResults, ToolExt, ToolSource,
    ToolsetError,
};
