//! The attributes that turn Rust functions into tools: [`macro@tool`] and [`macro@toolset`]; and
//! [`macro@parameters`], for types of their parameters.
//!
//! Users have them from `toolwright` or `toolwright-core`, which re-export them:
//!
//! ```
//! use toolwright_core::{Toolset, tool};
//!
//! /// Reverses a text.
//! #[tool]
//! fn reverse(
//!     /// The text.
//!     text: String,
//! ) -> String {
//!     text.chars().rev().collect()
//! }
//!
//! let tools = Toolset::new().with(reverse())?;
//! assert_eq!(reverse::run("abc".to_owned()), "cba");
//! # Ok::<(), toolwright_core::ToolsetError>(())
//! ```
//!
//! One use of a macro passes through three modules: `parse` reads tokens into our own types, `check` collects
//! every mistake with its place, `expand` writes the code. On a mistake the items are still written, so that
//! one mistake makes one message.

mod check;
mod expand;
mod parse;
mod problems;

use proc_macro::TokenStream;
use syn::{ItemFn, ItemImpl};

use crate::problems::Problems;

/// Turns a function into a tool.
#[doc = include_str!("docs/tool.md")]
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let tokens = item.clone();
    let Ok(item) = syn::parse::<ItemFn>(item) else {
        return misplaced(
            tokens,
            "`#[tool]` goes on a function with a body, or on a method inside `#[toolset]`",
        );
    };
    let mut problems = Problems::default();
    let tool = parse::function(attribute.into(), item, &mut problems);
    check::function(&tool, &mut problems);
    let core = expand::core_path(tool.options.crate_path.as_ref(), &mut problems);
    expand::function(&tool, &core, problems).into()
}

/// Turns the marked methods of an impl block into tools that share one value.
#[doc = include_str!("docs/toolset.md")]
#[proc_macro_attribute]
pub fn toolset(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let tokens = item.clone();
    let Ok(block) = syn::parse::<ItemImpl>(item) else {
        return misplaced(tokens, "`#[toolset]` goes on an impl block; `#[tool]` is for functions");
    };
    let mut problems = Problems::default();
    let set = parse::block(attribute.into(), block, &mut problems);
    check::block(&set, &mut problems);
    let core = expand::core_path(set.options.crate_path.as_ref(), &mut problems);
    expand::block(&set, &core, problems).into()
}

/// Makes a struct or an enum a type of parameters, with a schema that models read.
#[doc = include_str!("docs/parameters.md")]
#[proc_macro_attribute]
pub fn parameters(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let tokens = item.clone();
    let Ok(item) = syn::parse::<syn::Item>(item) else {
        return misplaced(tokens, "`#[parameters]` goes on a struct or an enum");
    };
    let mut problems = Problems::default();
    let path = parse::crate_option(attribute.into(), &mut problems);
    let core = expand::core_path(path.as_ref(), &mut problems);
    expand::parameters(&item, &core, problems).into()
}

/// The item as it was, and what is wrong with an attribute on it.
fn misplaced(item: TokenStream, message: &str) -> TokenStream {
    let error = syn::Error::new(proc_macro2::Span::call_site(), message).to_compile_error();
    item.into_iter().chain(TokenStream::from(error)).collect()
}
