//! The inside of `#[tool(...)]`: a list of `key`, `key = value` and `key(value, ...)`, read one value at a
//! time.

use std::collections::HashSet;
use std::time::Duration;

use quote::ToTokens;
use syn::ext::IdentExt as _;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprLit, ExprUnary, Ident, Lit, LitBool, LitInt, LitStr, Path, Token, UnOp, parenthesized};

use super::values;
use crate::problems::Problems;

/// One `key`, `key = value` or `key(value, ...)`.
pub(crate) struct AttributeEntry {
    pub(crate) key: Ident,
    pub(crate) given: EntryValue,
}

/// What stands after a key.
pub(crate) enum EntryValue {
    Nothing,
    Value(Expr),
    List(Vec<Expr>),
}

impl Parse for AttributeEntry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        // `crate` is a keyword, so any word is a key.
        let key = Ident::parse_any(input)?;
        let given = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            EntryValue::Value(input.parse()?)
        } else if input.peek(syn::token::Paren) {
            let inside;
            parenthesized!(inside in input);
            EntryValue::List(Punctuated::<Expr, Token![,]>::parse_terminated(&inside)?.into_iter().collect())
        } else if input.is_empty() || input.peek(Token![,]) {
            EntryValue::Nothing
        } else {
            return Err(input.error(format!("write `{key}`, `{key} = value` or `{key}(value, ...)`")));
        };
        Ok(AttributeEntry { key, given })
    }
}

/// Everything between the parentheses of an attribute.
#[derive(Default)]
pub(crate) struct Entries(pub(crate) Vec<AttributeEntry>);

impl Parse for Entries {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let list = Punctuated::<AttributeEntry, Token![,]>::parse_terminated(input)?;
        Ok(Entries(list.into_iter().collect()))
    }
}

impl Entries {
    /// The entries that are known and stand there for the first time; the others are mistakes.
    pub(crate) fn known(self, known: &[&str], place: &str, problems: &mut Problems) -> Vec<AttributeEntry> {
        let mut seen = HashSet::new();
        let mut fine = Vec::new();
        for entry in self.0 {
            let name = entry.key.to_string();
            if !known.contains(&name.as_str()) {
                problems.at(&entry.key, unknown(&name, known, place));
            } else if !seen.insert(name.clone()) {
                problems.at(&entry.key, format!("`{name}` is given twice; keep one of them"));
            } else {
                fine.push(entry);
            }
        }
        fine
    }
}

fn unknown(name: &str, known: &[&str], place: &str) -> String {
    match values::nearest(name, known) {
        Some(near) => format!("{place} has no option `{name}`; did you mean `{near}`?"),
        None => format!("{place} has no option `{name}`; the options are: {}", known.join(", ")),
    }
}

impl AttributeEntry {
    fn wrong(&self, wants: &str, problems: &mut Problems) {
        let message = format!("`{}` wants {wants}", self.key);
        match &self.given {
            EntryValue::Value(value) => problems.at(value, message),
            EntryValue::Nothing | EntryValue::List(_) => problems.at(&self.key, message),
        }
    }

    fn literal(&self) -> Option<&Lit> {
        match &self.given {
            EntryValue::Value(Expr::Lit(ExprLit { lit, .. })) => Some(lit),
            _ => None,
        }
    }

    /// `key = "text"`, not empty.
    pub(crate) fn text(&self, problems: &mut Problems) -> Option<LitStr> {
        match self.literal() {
            Some(Lit::Str(text)) if text.value().trim().is_empty() => {
                problems.at(text, format!("`{}` is empty; write some text or leave it out", self.key));
                None
            }
            Some(Lit::Str(text)) => Some(text.clone()),
            _ => {
                self.wrong(&format!("text: `{} = \"...\"`", self.key), problems);
                None
            }
        }
    }

    /// `key = "text"` or `key("text", ...)`.
    pub(crate) fn texts(&self, problems: &mut Problems) -> Vec<LitStr> {
        let EntryValue::List(list) = &self.given else { return self.text(problems).into_iter().collect() };
        let texts = list.iter().filter_map(|value| match value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) if !text.value().is_empty() => Some(text.clone()),
            value => {
                problems.at(value, format!("`{key}` wants texts: `{key}(\"a\", \"b\")`", key = self.key));
                None
            }
        });
        texts.collect()
    }

    /// `key = "text"` or any expression that makes text, such as `include_str!("...")`.
    pub(crate) fn text_expression(&self, problems: &mut Problems) -> Option<Expr> {
        match &self.given {
            EntryValue::Value(Expr::Lit(_)) => self.text(problems).map(|text| syn::parse_quote!(#text)),
            EntryValue::Value(value) => Some(value.clone()),
            EntryValue::Nothing | EntryValue::List(_) => {
                self.wrong(&format!("text: `{} = \"...\"`", self.key), problems);
                None
            }
        }
    }

    /// `key`, `key = true` or `key = false`.
    pub(crate) fn flag(&self, problems: &mut Problems) -> Option<LitBool> {
        match (&self.given, self.literal()) {
            (EntryValue::Nothing, _) => Some(LitBool::new(true, self.key.span())),
            (_, Some(Lit::Bool(flag))) => Some(flag.clone()),
            _ => {
                self.wrong(&format!("true or false: `{key}` or `{key} = false`", key = self.key), problems);
                None
            }
        }
    }

    /// `key = 4096`.
    pub(crate) fn size(&self, meaning: &str, problems: &mut Problems) -> Option<LitInt> {
        match self.literal() {
            Some(Lit::Int(number)) if number.base10_parse::<u64>().is_ok() => Some(number.clone()),
            _ => {
                self.wrong(&format!("{meaning}: `{} = 100`", self.key), problems);
                None
            }
        }
    }

    /// `key = "30s"` or a number of seconds.
    pub(crate) fn duration(&self, problems: &mut Problems) -> Option<Duration> {
        let parsed = match self.literal() {
            Some(Lit::Str(text)) => values::duration(&text.value()),
            Some(Lit::Int(number)) => values::seconds(number.base10_digits()),
            Some(Lit::Float(number)) => values::seconds(number.base10_digits()),
            _ => None,
        };
        if parsed.is_none() {
            let form = "a time longer than zero: \"30s\", \"500ms\", \"5m\", \"1h\", or a number of seconds";
            self.wrong(form, problems);
        }
        parsed
    }

    /// `key = "10/60s"`.
    pub(crate) fn rate(&self, problems: &mut Problems) -> Option<(usize, Duration)> {
        let parsed = match self.literal() {
            Some(Lit::Str(text)) => values::rate(&text.value()),
            _ => None,
        };
        if parsed.is_none() {
            self.wrong("calls per period, both more than zero: \"10/60s\" or \"2/s\"", problems);
        }
        parsed
    }

    /// `key = some::path`, or the same in quotes.
    pub(crate) fn path(&self, problems: &mut Problems) -> Option<Path> {
        let path = match &self.given {
            EntryValue::Value(Expr::Path(path)) if path.qself.is_none() => Some(path.path.clone()),
            _ => match self.literal() {
                Some(Lit::Str(text)) => text.parse().ok(),
                _ => None,
            },
        };
        if path.is_none() {
            self.wrong(&format!("a path: `{} = some::path`", self.key), problems);
        }
        path
    }

    /// `key = -1.5`, or an expression such as a constant.
    pub(crate) fn number(&self, problems: &mut Problems) -> Option<Expr> {
        match &self.given {
            EntryValue::Value(value) if number(value).is_some() || !is_literal(value) => Some(value.clone()),
            _ => {
                self.wrong(&format!("a number: `{} = 1`", self.key), problems);
                None
            }
        }
    }

    /// `key = value`, `key = [value, ...]` or `key(value, ...)`.
    pub(crate) fn values(&self, problems: &mut Problems) -> Vec<Expr> {
        match &self.given {
            EntryValue::List(list) if !list.is_empty() => list.clone(),
            EntryValue::Value(Expr::Array(array)) if self.key == "examples" => {
                array.elems.iter().cloned().collect()
            }
            EntryValue::Value(value) => vec![value.clone()],
            EntryValue::Nothing | EntryValue::List(_) => {
                self.wrong(&format!("values: `{}(1, 2)`", self.key), problems);
                Vec::new()
            }
        }
    }
}

fn is_literal(value: &Expr) -> bool {
    match value {
        Expr::Lit(_) => true,
        Expr::Unary(ExprUnary { expr, .. }) => is_literal(expr),
        _ => false,
    }
}

/// The value of a numeric literal, with its sign.
pub(crate) fn number(value: &Expr) -> Option<f64> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => number.base10_parse().ok(),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => number(expr).map(|value| -value),
        _ => None,
    }
}

/// The source of a small piece of syntax, for messages.
pub(crate) fn source(tokens: impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    let mut out = text.replace(" :: ", "::").replace(":: ", "::").replace("& ", "&");
    for (spaced, tight) in [(" <", "<"), ("< ", "<"), (" >", ">"), (" ,", ","), ("' ", "'"), ("- ", "-")] {
        out = out.replace(spaced, tight);
    }
    out
}
