//! The crate's one integration binary: whole files through the runtime.

mod attacks;
mod checks;
mod examples;
mod flows;
mod generated;
mod imports;
mod properties;
mod support;
