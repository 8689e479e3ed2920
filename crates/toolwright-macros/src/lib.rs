//! The attributes that turn Rust functions into tools: [`macro@tool`] and [`macro@toolset`].

mod check;
mod expand;
mod parse;
mod problems;

use proc_macro::TokenStream;
use syn::{ItemFn, ItemImpl, parse_macro_input};

use crate::problems::Problems;

/// Turns a function into a tool.
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as ItemFn);
    let mut problems = Problems::default();
    let tool = parse::function(attribute.into(), item, &mut problems);
    check::function(&tool, &mut problems);
    let core = expand::core_path(tool.options.crate_path.as_ref(), &mut problems);
    expand::function(&tool, &core, problems).into()
}

/// Turns the marked methods of an impl block into tools that share one value.
#[proc_macro_attribute]
pub fn toolset(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let block = parse_macro_input!(item as ItemImpl);
    let mut problems = Problems::default();
    let set = parse::block(attribute.into(), block, &mut problems);
    check::block(&set, &mut problems);
    let core = expand::core_path(set.options.crate_path.as_ref(), &mut problems);
    expand::block(&set, &core, problems).into()
}
