//! The language of tool files: sources, diagnostics, and the expressions in them.

#[doc(inline)]
pub use toolwright_expr as expr;
pub use toolwright_lang::*;
