//! From tokens to what the other modules work on: a [`ToolFn`] or a [`ToolImpl`], with our attributes taken
//! out of the code that is emitted again.

pub(crate) mod docs;
pub(crate) mod entries;
pub(crate) mod options;
pub(crate) mod values;

use proc_macro2::TokenStream;
use syn::ext::IdentExt as _;
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Block, Expr, ExprLit, FnArg, GenericArgument, Ident, ImplItem, ItemFn, ItemImpl, Lit, LitStr,
    Pat, Path, PathArguments, ReturnType, Signature, Type, TypeParamBound, Visibility,
};

use self::docs::Docs;
use self::entries::Entries;
use self::options::{ParameterOptions, ToolOptions, ToolsetOptions};
use crate::problems::Problems;

/// A function or method that becomes a tool.
pub(crate) struct ToolFn {
    pub(crate) visibility: Visibility,
    /// Doc comments and whatever else stands above the function.
    pub(crate) attributes: Vec<Attribute>,
    /// The signature without our attributes.
    pub(crate) signature: Signature,
    pub(crate) body: Block,
    pub(crate) docs: Docs,
    pub(crate) options: ToolOptions,
    pub(crate) parameters: Vec<Parameter>,
}

impl ToolFn {
    /// The name of the function, as it is written.
    pub(crate) fn ident(&self) -> &Ident {
        &self.signature.ident
    }

    /// The name of the tool, without a toolset's prefix.
    pub(crate) fn name(&self) -> String {
        match &self.options.name {
            Some(name) => name.value(),
            None => self.ident().unraw().to_string(),
        }
    }

    /// The return type; nothing for `()`.
    pub(crate) fn output(&self) -> Option<&Type> {
        match &self.signature.output {
            ReturnType::Default => None,
            ReturnType::Type(_, output) => Some(output),
        }
    }
}

/// One parameter of the function.
pub(crate) struct Parameter {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) role: ParameterRole,
    /// Its own doc comment.
    pub(crate) docs: String,
    pub(crate) options: ParameterOptions,
    /// `#[serde(...)]` and `#[schemars(...)]`, handed on.
    pub(crate) passed_on: Vec<Attribute>,
}

impl Parameter {
    /// The name a model uses.
    pub(crate) fn name(&self) -> String {
        match &self.options.rename {
            Some(name) => name.value(),
            None => self.ident.unraw().to_string(),
        }
    }

    /// Its name in the schema, and the other names that it is read by.
    pub(crate) fn aliases(&self) -> (String, Vec<LitStr>) {
        let (mut name, mut aliases) = (self.name(), self.options.aliases.clone());
        for attribute in self.passed_on.iter().filter(|attribute| attribute.path().is_ident("serde")) {
            // A list that does not parse is reported by serde itself.
            let _ = attribute.parse_nested_meta(|meta| {
                if meta.input.peek(syn::Token![=]) {
                    let value: Expr = meta.value()?.parse()?;
                    if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = value {
                        if meta.path.is_ident("alias") {
                            aliases.push(text);
                        } else if meta.path.is_ident("rename") {
                            name = text.value();
                        }
                    }
                } else if meta.input.peek(syn::token::Paren) {
                    meta.input.parse::<proc_macro2::Group>()?;
                }
                Ok(())
            });
        }
        (name, aliases)
    }
}

/// Where the value of a parameter comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ParameterRole {
    /// From the model.
    Argument,
    /// `&ToolContext` or `ToolContext`.
    Context(Passing),
    /// `State<T>`.
    State(Box<Type>),
    /// `&DynSandbox`, `Arc<DynSandbox>` or `&Arc<DynSandbox>`.
    Sandbox(SandboxForm),
    /// Given when the tool is made.
    Setup(Passing),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passing {
    Borrowed,
    Owned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SandboxForm {
    Borrowed,
    Shared,
    BorrowedShared,
}

/// An impl block whose marked methods become tools.
pub(crate) struct ToolImpl {
    /// The block without our attributes.
    pub(crate) block: ItemImpl,
    pub(crate) options: ToolsetOptions,
    pub(crate) tools: Vec<ToolFn>,
}

/// Reads `#[tool(attribute)] item`.
pub(crate) fn function(attribute: TokenStream, item: ItemFn, problems: &mut Problems) -> ToolFn {
    let options = ToolOptions::read(entries(attribute, problems), problems);
    tool_fn(options, item.vis, item.attrs, item.sig, *item.block, problems)
}

/// Reads `#[parameters(attribute)]`: the crate, if it is named.
pub(crate) fn crate_option(attribute: TokenStream, problems: &mut Problems) -> Option<Path> {
    let entries = entries(attribute, problems).known(&["crate"], "`#[parameters]`", problems);
    entries.into_iter().filter_map(|entry| entry.path(problems)).last()
}

/// Reads `#[toolset(attribute)] block`.
pub(crate) fn block(attribute: TokenStream, mut block: ItemImpl, problems: &mut Problems) -> ToolImpl {
    let options = ToolsetOptions::read(entries(attribute, problems), problems);
    let mut tools = Vec::new();
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else { continue };
        let Some(index) = method.attrs.iter().position(is_tool) else { continue };
        let attribute = method.attrs.remove(index);
        let options = ToolOptions::read(attribute_entries(&attribute, problems), problems);
        let (attributes, signature) = (method.attrs.clone(), method.sig.clone());
        let tool =
            tool_fn(options, method.vis.clone(), attributes, signature, method.block.clone(), problems);
        method.sig = tool.signature.clone();
        tools.push(tool);
    }
    ToolImpl { block, options, tools }
}

fn tool_fn(
    options: ToolOptions,
    visibility: Visibility,
    attributes: Vec<Attribute>,
    mut signature: Signature,
    body: Block,
    problems: &mut Problems,
) -> ToolFn {
    let docs = docs::parse(&docs::text(&attributes, problems));
    let mut parameters = Vec::new();
    for input in &mut signature.inputs {
        let FnArg::Typed(input) = input else { continue };
        let (ours, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut input.attrs).into_iter().partition(is_ours);
        input.attrs = kept;
        match &*input.pat {
            Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => {
                parameters.push(parameter(name.ident.clone(), (*input.ty).clone(), ours, problems));
            }
            pattern => problems.at(
                pattern,
                "a parameter of a tool needs a name that a model can use; write `name: Type` and take it apart in the body",
            ),
        }
    }
    ToolFn { visibility, attributes, signature, body, docs, options, parameters }
}

fn parameter(ident: Ident, ty: Type, attributes: Vec<Attribute>, problems: &mut Problems) -> Parameter {
    let docs = docs::text(&attributes, problems);
    let mut all = Entries::default();
    let mut passed_on = Vec::new();
    for attribute in attributes {
        if is_tool(&attribute) {
            all.0.extend(attribute_entries(&attribute, problems).0);
        } else if !attribute.path().is_ident("doc") {
            passed_on.push(attribute);
        }
    }
    let options = ParameterOptions::read(all, problems);
    let is_setup = options.setup.as_ref().is_some_and(syn::LitBool::value);
    let role = match bare(&ty) {
        Type::Reference(_) if is_setup => ParameterRole::Setup(Passing::Borrowed),
        _ if is_setup => ParameterRole::Setup(Passing::Owned),
        ty => role(ty),
    };
    Parameter { ident, ty, role, docs, options, passed_on }
}

fn is_tool(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|last| last.ident == "tool")
}

fn is_ours(attribute: &Attribute) -> bool {
    let path = attribute.path();
    is_tool(attribute) || ["doc", "serde", "schemars"].iter().any(|name| path.is_ident(name))
}

fn entries(tokens: TokenStream, problems: &mut Problems) -> Entries {
    syn::parse2(tokens).unwrap_or_else(|error| {
        problems.push(error);
        Entries::default()
    })
}

fn attribute_entries(attribute: &Attribute, problems: &mut Problems) -> Entries {
    match &attribute.meta {
        syn::Meta::Path(_) => Entries::default(),
        syn::Meta::List(list) => entries(list.tokens.clone(), problems),
        syn::Meta::NameValue(pair) => {
            problems.at_span(pair.span(), "write the options in parentheses: `#[tool(...)]`");
            Entries::default()
        }
    }
}

/// What a parameter is for, by the name of its type.
fn role(ty: &Type) -> ParameterRole {
    if let Type::Reference(reference) = bare(ty) {
        if reference.mutability.is_some() {
            return ParameterRole::Argument;
        }
        return match role(&reference.elem) {
            ParameterRole::Context(Passing::Owned) => ParameterRole::Context(Passing::Borrowed),
            ParameterRole::Sandbox(SandboxForm::Shared) => {
                ParameterRole::Sandbox(SandboxForm::BorrowedShared)
            }
            _ if is_dyn_sandbox(&reference.elem) => ParameterRole::Sandbox(SandboxForm::Borrowed),
            _ => ParameterRole::Argument,
        };
    }
    match named(ty) {
        Some((name, _)) if name == "ToolContext" => ParameterRole::Context(Passing::Owned),
        Some((name, Some(inner))) if name == "State" => ParameterRole::State(Box::new(inner.clone())),
        Some((name, Some(inner))) if name == "Arc" && is_dyn_sandbox(inner) => {
            ParameterRole::Sandbox(SandboxForm::Shared)
        }
        _ => ParameterRole::Argument,
    }
}

/// The type without parentheses, and without the invisible ones that `macro_rules!` puts around a type.
pub(crate) fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Paren(inner) => bare(&inner.elem),
        Type::Group(inner) => bare(&inner.elem),
        ty => ty,
    }
}

/// The last name of a path type, and its only type argument.
pub(crate) fn named(ty: &Type) -> Option<(&Ident, Option<&Type>)> {
    let Type::Path(path) = bare(ty) else { return None };
    let last = path.path.segments.last()?;
    let inner = match &last.arguments {
        PathArguments::AngleBracketed(list) => {
            let mut types = list.args.iter().filter_map(|argument| match argument {
                GenericArgument::Type(inner) => Some(inner),
                _ => None,
            });
            types.next().filter(|_| types.next().is_none())
        }
        _ => None,
    };
    Some((&last.ident, inner))
}

/// Also true for `dyn Sandbox`, so that the compiler says that the trait is not for pointers.
fn is_dyn_sandbox(ty: &Type) -> bool {
    if named(ty).is_some_and(|(name, inner)| name == "DynSandbox" && inner.is_none()) {
        return true;
    }
    match bare(ty) {
        Type::TraitObject(object) => object.bounds.iter().any(|bound| match bound {
            TypeParamBound::Trait(bound) => {
                bound.path.segments.last().is_some_and(|last| last.ident == "Sandbox")
            }
            _ => false,
        }),
        _ => false,
    }
}
