//! The options of each attribute, typed. An option of the wrong form is reported here; how options fit
//! together and fit the function is for `check`.

use std::time::Duration;

use proc_macro2::Span;
use syn::{Expr, Ident, LitBool, LitInt, LitStr, Path};

use super::entries::{Entries, EntryValue};
use crate::problems::Problems;

/// The options of `#[tool(...)]` on a function.
#[derive(Default)]
pub(crate) struct ToolOptions {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<Expr>,
    pub(crate) title: Option<LitStr>,
    pub(crate) category: Option<LitStr>,
    pub(crate) parallel: Option<LitBool>,
    pub(crate) read_only: Option<LitBool>,
    pub(crate) destructive: Option<LitBool>,
    pub(crate) idempotent: Option<LitBool>,
    pub(crate) open_world: Option<LitBool>,
    pub(crate) sandboxed: Option<LitBool>,
    pub(crate) return_direct: Option<LitBool>,
    pub(crate) confidential: Option<LitBool>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) cache: Option<Duration>,
    pub(crate) rate_limit: Option<(usize, Duration)>,
    pub(crate) max_output: Option<LitInt>,
    pub(crate) viewer: Option<Path>,
    pub(crate) crate_path: Option<Path>,
}

const TOOL_OPTIONS: &[&str] = &[
    "name",
    "description",
    "title",
    "category",
    "parallel",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
    "sandboxed",
    "return_direct",
    "confidential",
    "timeout",
    "cache",
    "rate_limit",
    "max_output",
    "viewer",
    "crate",
];

impl ToolOptions {
    pub(crate) fn read(entries: Entries, problems: &mut Problems) -> Self {
        let mut options = ToolOptions::default();
        for entry in entries.known(TOOL_OPTIONS, "`#[tool]`", problems) {
            match entry.key.to_string().as_str() {
                "name" => options.name = entry.text(problems),
                "description" => options.description = entry.text_expression(problems),
                "title" => options.title = entry.text(problems),
                "category" => options.category = entry.text(problems),
                "parallel" => options.parallel = entry.flag(problems),
                "read_only" => options.read_only = entry.flag(problems),
                "destructive" => options.destructive = entry.flag(problems),
                "idempotent" => options.idempotent = entry.flag(problems),
                "open_world" => options.open_world = entry.flag(problems),
                "sandboxed" => options.sandboxed = entry.flag(problems),
                "return_direct" => options.return_direct = entry.flag(problems),
                "confidential" => options.confidential = entry.flag(problems),
                "timeout" => options.timeout = entry.duration(problems),
                "cache" => options.cache = entry.duration(problems),
                "rate_limit" => options.rate_limit = entry.rate(problems),
                "max_output" => {
                    options.max_output = entry.size("a number of bytes, 0 for no bound", problems);
                }
                "viewer" => options.viewer = entry.path(problems),
                _ => options.crate_path = entry.path(problems),
            }
        }
        options
    }
}

/// The options of `#[toolset(...)]`.
#[derive(Default)]
pub(crate) struct ToolsetOptions {
    pub(crate) prefix: Option<LitStr>,
    pub(crate) category: Option<LitStr>,
    pub(crate) crate_path: Option<Path>,
}

impl ToolsetOptions {
    pub(crate) fn read(entries: Entries, problems: &mut Problems) -> Self {
        let mut options = ToolsetOptions::default();
        for entry in entries.known(&["prefix", "category", "crate"], "`#[toolset]`", problems) {
            match entry.key.to_string().as_str() {
                "prefix" => options.prefix = entry.text(problems),
                "category" => options.category = entry.text(problems),
                _ => options.crate_path = entry.path(problems),
            }
        }
        options
    }
}

/// The options of `#[tool(...)]` on a parameter.
#[derive(Default)]
pub(crate) struct ParameterOptions {
    pub(crate) default: Option<DefaultValue>,
    pub(crate) rename: Option<LitStr>,
    pub(crate) description: Option<Expr>,
    pub(crate) bounds: Vec<Bound>,
    pub(crate) pattern: Option<LitStr>,
    pub(crate) format: Option<LitStr>,
    pub(crate) examples: Vec<Expr>,
    /// Where each option stands, for rules that look at several.
    pub(crate) places: Vec<(String, Span)>,
}

/// What a parameter is when it is left out.
pub(crate) enum DefaultValue {
    /// `default`: the type's own.
    OfType,
    /// `default = value`.
    Value(Box<Expr>),
}

/// A limit on a parameter: the option and its value.
pub(crate) struct Bound {
    pub(crate) key: Ident,
    pub(crate) value: Expr,
}

const PARAMETER_OPTIONS: &[&str] = &[
    "default",
    "rename",
    "description",
    "min",
    "max",
    "exclusive_min",
    "exclusive_max",
    "min_length",
    "max_length",
    "min_items",
    "max_items",
    "pattern",
    "format",
    "example",
    "examples",
];

impl ParameterOptions {
    pub(crate) fn read(entries: Entries, problems: &mut Problems) -> Self {
        let mut options = ParameterOptions::default();
        for entry in entries.known(PARAMETER_OPTIONS, "`#[tool]` on a parameter", problems) {
            let key = entry.key.to_string();
            options.places.push((key.clone(), entry.key.span()));
            match key.as_str() {
                "default" => match &entry.given {
                    EntryValue::Nothing => options.default = Some(DefaultValue::OfType),
                    EntryValue::Value(value) => {
                        options.default = Some(DefaultValue::Value(Box::new(value.clone())))
                    }
                    EntryValue::List(_) => {
                        problems.at(&entry.key, "`default` wants a value: `default = ...`")
                    }
                },
                "rename" => options.rename = entry.text(problems),
                "description" => options.description = entry.text_expression(problems),
                "min" | "max" | "exclusive_min" | "exclusive_max" => {
                    let value = entry.number(problems);
                    options.bounds.extend(value.map(|value| Bound { key: entry.key, value }));
                }
                "min_length" | "max_length" | "min_items" | "max_items" => {
                    let value = entry.size("a count", problems);
                    options.bounds.extend(
                        value.map(|value| Bound { key: entry.key, value: syn::parse_quote!(#value) }),
                    );
                }
                "pattern" => options.pattern = entry.text(problems),
                "format" => options.format = entry.text(problems),
                _ => options.examples.extend(entry.values(problems)),
            }
        }
        options
    }

    /// The value of a bound, when it is there.
    pub(crate) fn bound(&self, key: &str) -> Option<&Expr> {
        self.bounds.iter().find(|bound| bound.key == key).map(|bound| &bound.value)
    }
}
