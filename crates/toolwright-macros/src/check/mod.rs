//! Every rule for a function, an impl block and their options. Each mistake is noted at its own place with
//! what to write instead; none hides another.

mod parameter;

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::spanned::Spanned as _;
use syn::{FnArg, ImplItem, LitBool, Receiver, Type};

use crate::parse::entries::source;
use crate::parse::values;
use crate::parse::{ParameterRole, ToolFn, ToolImpl, bare, named};
use crate::problems::Problems;

pub(crate) use self::parameter::description;

/// How a method takes `self`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SelfForm {
    /// There is none.
    Absent,
    /// `&self`.
    Borrowed,
    /// `self: &Arc<Self>`.
    BorrowedShared,
    /// `self: Arc<Self>`.
    Shared,
    /// Anything else, which a tool cannot have.
    Other,
}

/// The rules for a function that is a tool by itself.
pub(crate) fn function(tool: &ToolFn, problems: &mut Problems) {
    if let Some(receiver) = tool.signature.receiver() {
        problems.at(
            receiver,
            "`#[tool]` on a method works in an impl block marked `#[toolset]`; put `#[toolset]` on the impl",
        );
    }
    generics(tool, problems);
    common(tool, "", problems);
    let name = tool.ident().to_string();
    if PRIMITIVES.contains(&name.as_str()) {
        let message = format!(
            "a function that is a tool is also a type, which would hide the type `{name}`; \
             call it otherwise and give it `name = \"{name}\"`"
        );
        problems.at(tool.ident(), message);
    }
}

const PRIMITIVES: [&str; 17] = [
    "bool", "char", "str", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128",
    "usize", "f32", "f64",
];

/// The rules for an impl block.
pub(crate) fn block(set: &ToolImpl, problems: &mut Problems) {
    if let Some((_, path, _)) = &set.block.trait_ {
        problems.at(path, "`#[toolset]` goes on an impl block of the type itself, not on one of a trait");
    }
    if set.tools.is_empty() {
        problems.at(&set.block.self_ty, "no method here is a tool; mark some with `#[tool]`");
    }
    let mut prefix = set.options.prefix.as_ref().map(syn::LitStr::value).unwrap_or_default();
    if let Some(literal) = &set.options.prefix
        && !values::is_tool_name(&prefix)
    {
        problems
            .at(literal, "names of tools, and so their prefix, are letters, digits, `_`, `-`, `.` or `/`");
        prefix.clear();
    }
    let mut names = HashSet::new();
    for tool in &set.tools {
        receiver(tool, problems);
        generics(tool, problems);
        common(tool, &prefix, problems);
        if !names.insert(tool.name()) {
            let message =
                format!("two tools here are called `{}`; give one of them another `name`", tool.name());
            match &tool.options.name {
                Some(name) => problems.at(name, message),
                None => problems.at(tool.ident(), message),
            }
        }
        for parameter in
            tool.parameters.iter().filter(|parameter| matches!(parameter.role, ParameterRole::Setup(_)))
        {
            let message = format!(
                "the tools of a set share `self`; make `{name}` a field of it, and take `self.{name}`",
                name = parameter.ident
            );
            problems.at(&parameter.ident, message);
        }
        if let Some(path) = &tool.options.crate_path {
            problems.at(path, "`crate` is said once, for all tools: `#[toolset(crate = ...)]`");
        }
        generic_parameters(set, tool, problems);
    }
    for item in &set.block.items {
        if let ImplItem::Fn(method) = item
            && ["tools", "into_tools"].iter().any(|name| method.sig.ident == name)
        {
            let name = &method.sig.ident;
            problems.at(
                name,
                format!("`#[toolset]` makes a method `{name}`; call this one otherwise (a tool keeps its name with `name = \"{name}\"`)"),
            );
        }
    }
}

/// How a method takes `self`.
pub(crate) fn self_form(tool: &ToolFn) -> SelfForm {
    let Some(FnArg::Receiver(receiver)) = tool.signature.inputs.first() else { return SelfForm::Absent };
    if receiver.colon_token.is_none() {
        let shared = receiver.reference.is_some() && receiver.mutability.is_none();
        return if shared { SelfForm::Borrowed } else { SelfForm::Other };
    }
    typed_self(receiver)
}

fn typed_self(receiver: &Receiver) -> SelfForm {
    let is_self = |ty: &Type| named(ty).is_some_and(|(name, _)| name == "Self");
    let is_shared =
        |ty: &Type| named(ty).is_some_and(|(name, inner)| name == "Arc" && inner.is_some_and(is_self));
    match bare(&receiver.ty) {
        Type::Reference(reference) if reference.mutability.is_some() => SelfForm::Other,
        Type::Reference(reference) if is_self(&reference.elem) => SelfForm::Borrowed,
        Type::Reference(reference) if is_shared(&reference.elem) => SelfForm::BorrowedShared,
        ty if is_shared(ty) => SelfForm::Shared,
        _ => SelfForm::Other,
    }
}

fn receiver(tool: &ToolFn, problems: &mut Problems) {
    let Some(receiver) = tool.signature.receiver() else { return };
    if self_form(tool) != SelfForm::Other {
        return;
    }
    let changes = matches!(&*receiver.ty, Type::Reference(reference) if reference.mutability.is_some());
    let message = if changes {
        "tools are called side by side, so a tool cannot take `&mut self`; \
         take `&self` and keep what changes in a `Mutex`, or in the run with `ctx.store`"
    } else {
        "a tool is called many times, so it cannot take `self` away; take `&self` or `self: Arc<Self>`"
    };
    problems.at(receiver, message);
}

fn generics(tool: &ToolFn, problems: &mut Problems) {
    let signature = &tool.signature;
    let generics = &signature.generics;
    let unusual = [
        (signature.constness.map(|token| token.span), "const"),
        (signature.unsafety.map(|token| token.span), "unsafe"),
        (signature.abi.as_ref().map(syn::spanned::Spanned::span), "extern"),
    ];
    for (place, word) in unusual {
        if let Some(place) = place {
            problems.at_span(place, format!("a tool cannot be `{word}`; take the word away"));
        }
    }
    for parameter in generics.params.iter().filter(|parameter| generic_name(parameter).is_some()) {
        let message =
            "a model cannot choose types, so a tool cannot be generic; name the types it works with";
        problems.at(parameter, message);
    }
    if let Some(clause) = &generics.where_clause {
        problems.at(clause, "a tool cannot be generic, so it needs no `where`; take it away");
    }
    if let Some(variadic) = &signature.variadic {
        problems.at(variadic, "a tool names all its parameters; take a `Vec` for many values");
    }
}

fn common(tool: &ToolFn, prefix: &str, problems: &mut Problems) {
    let name = tool.name();
    if tool.options.description.is_none() && tool.docs.description.is_empty() {
        let message = format!(
            "the tool `{name}` has no description; \
             write a doc comment above it that tells a model what it does and when to use it"
        );
        problems.at(tool.ident(), message);
    }
    if !values::is_tool_name(&format!("{prefix}{name}")) {
        let message = format!(
            "`{prefix}{name}` cannot be a tool's name; use 1 to 128 letters, digits, `_`, `-`, `.` or `/`"
        );
        match &tool.options.name {
            Some(name) => problems.at(name, message),
            None => problems.at(tool.ident(), format!("{message}, for example with `name = \"...\"`")),
        }
    }
    effects(tool, problems);
    documented(tool, problems);
    let mut names = HashSet::new();
    for parameter in &tool.parameters {
        parameter::check(tool, parameter, problems);
        if parameter.role == ParameterRole::Argument && !names.insert(parameter.name()) {
            let message = format!("two parameters are called `{}`; rename one of them", parameter.name());
            problems.at(&parameter.ident, message);
        }
    }
}

/// What the author says of a tool's effects must be possible.
fn effects(tool: &ToolFn, problems: &mut Problems) {
    let says = |flag: &Option<LitBool>| flag.as_ref().is_some_and(LitBool::value);
    if says(&tool.options.read_only)
        && let Some(flag) = tool.options.destructive.as_ref().filter(|flag| flag.value())
    {
        problems.at(flag, "a tool cannot be both `read_only` and `destructive`; keep the one that is true");
    }
}

/// The section about parameters names parameters, each once.
fn documented(tool: &ToolFn, problems: &mut Problems) {
    let mut seen = HashSet::new();
    for (name, _) in &tool.docs.parameters {
        let known =
            tool.parameters.iter().any(|parameter| parameter.ident == name || parameter.name() == *name);
        if !known {
            let names: Vec<String> = tool.parameters.iter().map(crate::parse::Parameter::name).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let near = match values::nearest(name, &names) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => "it has none".to_owned(),
                None => format!("it has: {}", names.join(", ")),
            };
            let message =
                format!("the doc comment describes a parameter `{name}` that the tool does not have; {near}");
            problems.at(tool.ident(), message);
        } else if !seen.insert(name) {
            problems.at(tool.ident(), format!("the doc comment describes the parameter `{name}` twice"));
        }
    }
}

/// The types of a tool's parameters stand outside the impl block, where its generics are not known.
fn generic_parameters(set: &ToolImpl, tool: &ToolFn, problems: &mut Problems) {
    let mut generics: Vec<String> = set.block.generics.params.iter().filter_map(generic_name).collect();
    if generics.is_empty() {
        return;
    }
    generics.push("Self".to_owned());
    for parameter in tool.parameters.iter().filter(|parameter| parameter.role == ParameterRole::Argument) {
        if let Some(used) = generics.iter().find(|name| mentions(parameter.ty.to_token_stream(), name)) {
            let message = format!(
                "the type of `{}` uses `{used}`, but a model must be told one type; name it",
                parameter.name()
            );
            problems.at_span(parameter.ty.span(), message);
        }
    }
}

fn generic_name(parameter: &syn::GenericParam) -> Option<String> {
    match parameter {
        syn::GenericParam::Type(parameter) => Some(parameter.ident.to_string()),
        syn::GenericParam::Const(parameter) => Some(parameter.ident.to_string()),
        syn::GenericParam::Lifetime(_) => None,
    }
}

/// Whether a word stands anywhere in the tokens.
fn mentions(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == word,
        TokenTree::Group(group) => mentions(group.stream(), word),
        _ => false,
    })
}

/// The type as it is written, for messages.
fn written(ty: &Type) -> String {
    source(ty)
}
