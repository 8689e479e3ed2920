//! The code of `#[parameters]`: the derives of serde and schemars, with paths into the crate.

use proc_macro2::TokenStream;
use quote::quote;
use syn::punctuated::Punctuated;
use syn::{Attribute, Item, Path, Token};

use super::definition::crate_text;
use crate::problems::Problems;

/// What the attribute derives, so that the item must not.
const DERIVED: [&str; 2] = ["Deserialize", "JsonSchema"];

/// The struct or enum with its derives.
pub(crate) fn parameters(item: &Item, core: &Path, mut problems: Problems) -> TokenStream {
    let attributes: &[Attribute] = match item {
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        other => {
            problems.at(other, "`#[parameters]` goes on a struct or an enum");
            &[]
        }
    };
    attributes.iter().for_each(|attribute| check(attribute, &mut problems));
    if !problems.is_empty() {
        let errors = problems.into_tokens();
        return quote! { #item #errors };
    }
    let serde = crate_text(core, "serde");
    let schemars = crate_text(core, "schemars");
    quote! {
        #[derive(#core::__private::serde::Deserialize, #core::__private::schemars::JsonSchema)]
        #[serde(crate = #serde)]
        #[schemars(crate = #schemars)]
        #item
    }
}

fn check(attribute: &Attribute, problems: &mut Problems) {
    if !attribute.path().is_ident("derive") {
        return;
    }
    let Ok(derives) = attribute.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated) else {
        return;
    };
    for path in &derives {
        let Some(last) = path.segments.last() else { continue };
        if let Some(name) = DERIVED.iter().find(|name| last.ident == **name) {
            problems.at(path, format!("`#[parameters]` derives `{name}` already; remove it here"));
        }
    }
}
