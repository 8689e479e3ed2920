//! The list of mistakes in one use of a macro. All of them are reported together, each at its own place.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// Mistakes found so far.
#[derive(Default)]
pub(crate) struct Problems {
    errors: Vec<syn::Error>,
}

impl Problems {
    /// Notes a mistake in `tokens`.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.errors.push(syn::Error::new_spanned(tokens, message));
    }

    /// Notes a mistake at a place.
    pub(crate) fn at_span(&mut self, span: Span, message: impl std::fmt::Display) {
        self.errors.push(syn::Error::new(span, message));
    }

    /// Notes what a parser said.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.errors.push(error);
    }

    /// True when there were none.
    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// One `compile_error!` per mistake.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.errors.iter().map(syn::Error::to_compile_error).collect()
    }
}
