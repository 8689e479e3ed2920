//! The rules for one parameter: its type, its description, and options that fit both.

use syn::visit::Visit;
use syn::{Attribute, Type, TypeImplTrait, TypeReference};

use super::written;
use crate::parse::entries::number;
use crate::parse::options::DefaultValue;
use crate::parse::values;
use crate::parse::{Parameter, ParameterRole, ToolFn, bare, named};
use crate::problems::Problems;

pub(super) fn check(tool: &ToolFn, parameter: &Parameter, problems: &mut Problems) {
    if parameter.role != ParameterRole::Argument {
        injected(parameter, problems);
        return;
    }
    let name = parameter.name();
    if !values::is_parameter_name(&name) {
        let message = format!(
            "`{name}` cannot be a parameter's name; use 1 to 64 letters, digits, `_`, `-` or `.` with `#[tool(rename = \"...\")]`"
        );
        match &parameter.options.rename {
            Some(rename) => problems.at(rename, message),
            None => problems.at(&parameter.ident, message),
        }
    }
    if description(tool, parameter).is_none() {
        let message = format!(
            "the parameter `{name}` has no description; write a doc comment above it, \
             or an entry for it under `# Arguments` in the tool's doc comment"
        );
        problems.at(&parameter.ident, message);
    }
    owned(parameter, problems);
    passed_on(&parameter.passed_on, problems);
    options(parameter, problems);
}

/// What describes a parameter: an option, its own doc comment, or its entry in the tool's.
pub(crate) fn description(tool: &ToolFn, parameter: &Parameter) -> Option<syn::Expr> {
    if let Some(description) = &parameter.options.description {
        return Some(description.clone());
    }
    let names = [parameter.ident.to_string(), parameter.name()];
    let entry = || {
        let entry =
            tool.docs.parameters.iter().find(|(name, _)| names.contains(name) || parameter.ident == name);
        entry.map(|(_, text)| text.as_str())
    };
    let own = Some(parameter.docs.as_str()).filter(|text| !text.is_empty());
    let text = own.or_else(entry).filter(|text| !text.is_empty())?;
    Some(syn::parse_quote!(#text))
}

/// What the program provides is not told to a model, so nothing can be said about it.
fn injected(parameter: &Parameter, problems: &mut Problems) {
    let name = parameter.name();
    let setup = matches!(parameter.role, ParameterRole::Setup(_));
    let message = match setup {
        true => format!(
            "`{name}` is given when the tool is made and not told to a model; take its other options away"
        ),
        false => {
            format!("`{name}` is provided by the program and not told to a model; take its options away")
        }
    };
    if setup {
        mutable_setup(parameter, problems);
    }
    let others = parameter.options.places.iter().find(|(option, _)| !(setup && option == "setup"));
    if let Some((_, place)) = others {
        problems.at_span(*place, message);
    } else if let Some(attribute) = parameter.passed_on.first() {
        problems.at(attribute, message);
    }
}

/// What a tool is made with is shared by its calls.
fn mutable_setup(parameter: &Parameter, problems: &mut Problems) {
    if let Type::Reference(reference) = bare(&parameter.ty)
        && let Some(mutable) = &reference.mutability
    {
        let message = format!(
            "calls share `{}`, so it cannot be changed; take `&{}`",
            parameter.name(),
            written(&reference.elem)
        );
        problems.at(mutable, message);
    }
}

/// A model's arguments belong to the tool; there is nothing to borrow them from.
fn owned(parameter: &Parameter, problems: &mut Problems) {
    struct Borrows<'a> {
        reference: Option<&'a TypeReference>,
        lifetime: Option<&'a syn::Lifetime>,
        unnamed: Option<&'a TypeImplTrait>,
    }
    impl<'a> Visit<'a> for Borrows<'a> {
        fn visit_type_reference(&mut self, reference: &'a TypeReference) {
            self.reference.get_or_insert(reference);
        }

        fn visit_lifetime(&mut self, lifetime: &'a syn::Lifetime) {
            if lifetime.ident != "static" {
                self.lifetime.get_or_insert(lifetime);
            }
        }

        fn visit_type_impl_trait(&mut self, unnamed: &'a TypeImplTrait) {
            self.unnamed.get_or_insert(unnamed);
        }
    }
    let mut found = Borrows { reference: None, lifetime: None, unnamed: None };
    found.visit_type(&parameter.ty);
    let name = parameter.name();
    if let Some(unnamed) = found.unnamed {
        problems
            .at(unnamed, format!("a model must be told the type of `{name}`; name it instead of `impl ...`"));
    } else if let Some((ty, form)) = provided_form(&parameter.ty) {
        problems.at(ty, format!("`{name}` is provided by the program in another form; take `{form}`"));
    } else if let Some(reference) = found.reference {
        let owned = owned_form(&reference.elem);
        problems.at(
            reference,
            format!("`{name}` comes from a model, so there is nothing to borrow; take `{owned}`"),
        );
    } else if let Some(lifetime) = found.lifetime {
        problems.at(
            lifetime,
            format!(
                "`{name}` comes from a model, so there is nothing to borrow; take a type without a lifetime"
            ),
        );
    }
}

/// What the program provides, when it is asked for in a form it does not have.
fn provided_form(ty: &Type) -> Option<(&Type, String)> {
    let Type::Reference(reference) = bare(ty) else { return None };
    let (name, inner) = named(&reference.elem)?;
    match inner {
        None if name == "ToolContext" => Some((ty, "&ToolContext".to_owned())),
        Some(_) if name == "State" => Some((ty, written(&reference.elem))),
        _ => None,
    }
}

/// The type to take in place of a reference to `ty`.
fn owned_form(ty: &Type) -> String {
    match bare(ty) {
        Type::Slice(slice) => format!("Vec<{}>", written(&slice.elem)),
        Type::Reference(inner) => owned_form(&inner.elem),
        _ => match named(ty) {
            Some((name, _)) if name == "str" => "String".to_owned(),
            Some((name, _)) if name == "Path" => "PathBuf".to_owned(),
            _ => written(ty),
        },
    }
}

fn passed_on(attributes: &[Attribute], problems: &mut Problems) {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        // A list that does not parse is reported by serde itself.
        let _ = attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("flatten") {
                let message = "a tool refuses unknown parameters, which `flatten` rules out; \
                               take the fields as parameters, or the struct as one parameter";
                problems.at(&meta.path, message);
            }
            if meta.input.peek(syn::Token![=]) {
                meta.value()?.parse::<syn::Expr>()?;
            } else if meta.input.peek(syn::token::Paren) {
                meta.input.parse::<proc_macro2::Group>()?;
            }
            Ok(())
        });
    }
}

/// What a type is, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TypeKind {
    Signed,
    Unsigned,
    Fraction,
    Text,
    List,
    Map,
    Bool,
    Unknown,
}

impl TypeKind {
    fn of(ty: &Type) -> Self {
        if let Type::Tuple(_) | Type::Array(_) = bare(ty) {
            return TypeKind::List;
        }
        let Some((name, inner)) = named(ty) else { return TypeKind::Unknown };
        match name.to_string().as_str() {
            "Option" | "Box" | "Arc" | "Rc" => inner.map_or(TypeKind::Unknown, TypeKind::of),
            "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => TypeKind::Signed,
            "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => TypeKind::Unsigned,
            "f32" | "f64" => TypeKind::Fraction,
            "String" | "PathBuf" => TypeKind::Text,
            "Vec" | "VecDeque" | "HashSet" | "BTreeSet" | "IndexSet" => TypeKind::List,
            "HashMap" | "BTreeMap" | "IndexMap" => TypeKind::Map,
            "bool" => TypeKind::Bool,
            _ => TypeKind::Unknown,
        }
    }

    fn takes(self, option: &str) -> bool {
        let numeric = matches!(self, TypeKind::Signed | TypeKind::Unsigned | TypeKind::Fraction);
        match option {
            "min" | "max" | "exclusive_min" | "exclusive_max" => numeric,
            "min_length" | "max_length" | "pattern" | "format" => self == TypeKind::Text,
            "min_items" | "max_items" => self == TypeKind::List,
            _ => true,
        }
    }

    fn advice(self) -> &'static str {
        match self {
            TypeKind::Signed | TypeKind::Unsigned | TypeKind::Fraction => {
                "a number takes `min`, `max`, `exclusive_min`, `exclusive_max`"
            }
            TypeKind::Text => "text takes `min_length`, `max_length`, `pattern`, `format`",
            TypeKind::List => "a list takes `min_items`, `max_items`",
            TypeKind::Map | TypeKind::Bool | TypeKind::Unknown => "take it away",
        }
    }
}

fn options(parameter: &Parameter, problems: &mut Problems) {
    let options = &parameter.options;
    let kind = TypeKind::of(&parameter.ty);
    for (option, place) in &options.places {
        if kind != TypeKind::Unknown && !kind.takes(option) {
            let (ty, advice) = (written(&parameter.ty), kind.advice());
            problems.at_span(*place, format!("`{option}` says nothing about `{ty}`; {advice}"));
        }
    }
    let literal = |key: &str| options.bound(key).and_then(number);
    for (low, high) in [
        ("min", "max"),
        ("exclusive_min", "exclusive_max"),
        ("min_length", "max_length"),
        ("min_items", "max_items"),
    ] {
        if let (Some(least), Some(most), Some(place)) = (literal(low), literal(high), options.bound(low))
            && least > most
        {
            problems.at(place, format!("`{low}` is more than `{high}`, so no value fits; swap them"));
        }
    }
    if kind == TypeKind::Unsigned
        && let Some(place) = options.bound("min")
        && number(place).is_some_and(|least| least < 0.0)
    {
        problems
            .at(place, format!("a `{}` is never less than 0; take a signed type", written(&parameter.ty)));
    }
    default_fits(parameter, problems);
    if let Some(pattern) = &options.pattern
        && let Err(error) = regex_syntax::parse(&pattern.value())
    {
        let reason = match &error {
            regex_syntax::Error::Parse(error) => error.kind().to_string(),
            regex_syntax::Error::Translate(error) => error.kind().to_string(),
            _ => error.to_string(),
        };
        problems.at(pattern, format!("this pattern is not a regular expression: {reason}"));
    }
}

/// A default that a model could not send is a mistake.
fn default_fits(parameter: &Parameter, problems: &mut Problems) {
    let options = &parameter.options;
    let Some(DefaultValue::Value(value)) = &options.default else { return };
    let Some(given) = number(value) else { return };
    let literal = |key: &str| options.bound(key).and_then(number);
    let broken = [
        ("min", literal("min").is_some_and(|least| given < least)),
        ("max", literal("max").is_some_and(|most| given > most)),
        ("exclusive_min", literal("exclusive_min").is_some_and(|least| given <= least)),
        ("exclusive_max", literal("exclusive_max").is_some_and(|most| given >= most)),
    ];
    for (option, _) in broken.iter().filter(|(_, broken)| *broken) {
        problems.at(value, format!("the default does not keep to `{option}`; change one of them"));
    }
}
