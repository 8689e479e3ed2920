//! The code that is written: from a checked [`ToolFn`] or [`ToolImpl`] to Rust. When something was wrong, the
//! items are written all the same, with nothing in them, so that one mistake makes one message.

mod definition;
mod parameters;

use proc_macro_crate::{Error, FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Attribute, Ident, Path};

use crate::parse::{ParameterRole, ToolFn, ToolImpl};
use crate::problems::Problems;

pub(crate) use parameters::parameters;

/// Where the generated code finds core: the option, or what the user's `Cargo.toml` calls it.
pub(crate) fn core_path(option: Option<&Path>, problems: &mut Problems) -> Path {
    if let Some(path) = option {
        return path.clone();
    }
    for package in ["toolwright", "toolwright-core"] {
        let ident = match crate_name(package) {
            // Tests, examples and documentation of the package itself see it by its name.
            Ok(FoundCrate::Itself) => format_ident!("{}", package.replace('-', "_")),
            Ok(FoundCrate::Name(name)) => Ident::new(&name, Span::call_site()),
            Err(Error::CrateNotFound { .. }) => continue,
            // No manifest: a build system other than cargo, where crates keep their names.
            Err(_) => format_ident!("toolwright"),
        };
        return syn::parse_quote!(::#ident);
    }
    problems.at_span(
        Span::call_site(),
        "`toolwright` is not among the dependencies in Cargo.toml; add it, or say where it is with `crate = some::path`",
    );
    syn::parse_quote!(::toolwright)
}

/// The code of `#[tool]`.
pub(crate) fn function(tool: &ToolFn, core: &Path, problems: Problems) -> TokenStream {
    let ToolFn { visibility, attributes, signature, body, .. } = tool;
    let name = tool.ident();
    if signature.receiver().is_some() {
        // A method of an impl block, where no other items can stand.
        let errors = problems.into_tokens();
        return quote! { #(#attributes)* #visibility #signature #body #errors };
    }
    if tool.parameters.iter().any(|parameter| matches!(parameter.role, ParameterRole::Setup(_))) {
        return with_setup(tool, core, problems);
    }
    let mut run = signature.clone();
    run.ident = Ident::new("run", name.span());
    let (ours, theirs): (Vec<&Attribute>, Vec<&Attribute>) =
        attributes.iter().partition(|attribute| belongs_to_definition(attribute));
    let everywhere: Vec<_> = attributes.iter().filter(|attribute| is(attribute, &["cfg", "allow"])).collect();
    let definition = if problems.is_empty() {
        let definition = definition::of_function(tool, core);
        quote! {
            static __TOOLWRIGHT_TOOL: ::std::sync::LazyLock<#core::__private::ToolDef> = ::std::sync::LazyLock::new(|| #definition);
            ::core::clone::Clone::clone(&*__TOOLWRIGHT_TOOL)
        }
    } else {
        quote! { ::core::unreachable!() }
    };
    let errors = problems.into_tokens();
    quote! {
        #(#ours)*
        #(#everywhere)*
        #visibility fn #name() -> #core::__private::ToolDef {
            #definition
        }

        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "it is named like the function")]
        #(#everywhere)*
        #visibility enum #name {}

        #(#everywhere)*
        impl #name {
            #[doc = "The function itself, to be called directly in tests."]
            #[allow(clippy::too_many_arguments, reason = "they are the parameters of a tool")]
            #(#theirs)*
            #visibility #run #body
        }

        #errors
    }
}

/// The code of a `#[tool]` that is given something when it is made: a function that takes it.
fn with_setup(tool: &ToolFn, core: &Path, problems: Problems) -> TokenStream {
    let ToolFn { visibility, attributes, signature, body, .. } = tool;
    let name = tool.ident();
    let mut run = signature.clone();
    run.ident = Ident::new(definition::RUN, name.span());
    let (ours, theirs): (Vec<&Attribute>, Vec<&Attribute>) =
        attributes.iter().partition(|attribute| belongs_to_definition(attribute));
    let everywhere = attributes.iter().filter(|attribute| is(attribute, &["cfg", "allow"]));
    let setup = tool.parameters.iter().filter(|parameter| matches!(parameter.role, ParameterRole::Setup(_)));
    let setup = setup.map(|parameter| {
        let (ident, ty) = (&parameter.ident, &parameter.ty);
        quote! { #ident: #ty }
    });
    let definition = if problems.is_empty() {
        definition::of_function_with_setup(tool, core)
    } else {
        quote! { ::core::unreachable!() }
    };
    let errors = problems.into_tokens();
    quote! {
        #(#ours)*
        #(#everywhere)*
        #[allow(unused_variables, reason = "with mistakes in it, the tool is not made")]
        #visibility fn #name(#(#setup),*) -> #core::__private::ToolDef {
            #[allow(dead_code, clippy::too_many_arguments, reason = "they are the parameters of a tool")]
            #(#theirs)*
            #run #body
            #definition
        }

        #errors
    }
}

/// The code of `#[toolset]`.
pub(crate) fn block(set: &ToolImpl, core: &Path, problems: Problems) -> TokenStream {
    let block = &set.block;
    let (generics, _, clause) = block.generics.split_for_impl();
    let ty = &block.self_ty;
    if block.trait_.is_some() {
        let errors = problems.into_tokens();
        return quote! { #block #errors };
    }
    let taken = |name: &str| {
        block.items.iter().any(|item| matches!(item, syn::ImplItem::Fn(method) if method.sig.ident == name))
    };
    let body = if problems.is_empty() {
        let tools = set.tools.iter().map(|tool| {
            let cfg = tool.attributes.iter().filter(|attribute| is(attribute, &["cfg"]));
            let definition = definition::of_method(set, tool, core);
            quote! { #(#cfg)* let __set = __set.with(#definition)?; }
        });
        quote! {
            let __set = #core::__private::Toolset::new();
            #(#tools)*
            ::core::result::Result::Ok(__set)
        }
    } else {
        quote! { ::core::unreachable!() }
    };
    let result = quote! { ::core::result::Result<#core::__private::Toolset, #core::__private::ToolsetError> };
    // At the type, because that is what must be changed when the bound does not hold.
    let shared = quote_spanned! { ty.span() => Self: ::core::marker::Send + ::core::marker::Sync + 'static };
    let tools = (!taken("tools")).then(|| {
        quote! {
            /// The tools of this value; they share it.
            pub fn tools(self: &::std::sync::Arc<Self>) -> #result where #shared {
                #body
            }
        }
    });
    let into_tools = (!taken("into_tools") && !taken("tools")).then(|| {
        quote! {
            /// The tools of this value, which they take over.
            pub fn into_tools(self) -> #result where #shared {
                Self::tools(&::std::sync::Arc::new(self))
            }
        }
    });
    let errors = problems.into_tokens();
    quote! {
        #block

        #[allow(dead_code, unreachable_pub, reason = "written for each toolset, used or not")]
        impl #generics #ty #clause {
            #tools
            #into_tools
        }

        #errors
    }
}

/// Documentation and `#[deprecated]` belong to what users call; everything else to the code they wrote.
fn belongs_to_definition(attribute: &Attribute) -> bool {
    is(attribute, &["doc", "deprecated"])
}

fn is(attribute: &Attribute, names: &[&str]) -> bool {
    names.iter().any(|name| attribute.path().is_ident(name))
}
