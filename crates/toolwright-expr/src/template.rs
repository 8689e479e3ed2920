//! Text with `${...}` in it. One expression alone keeps the type of its value; mixed with text, everything
//! becomes text. `\${` stands for itself. Values are never read as templates again.

use std::sync::Arc;

use compact_str::CompactString;

use crate::ast::{Body, Code, Expr, ExprForm as ExprKind, Symbol};
use crate::error::{Error, Span};
use crate::eval::{Eval, alone};
use crate::fuel::{EvalLimits, Fuel};
use crate::host::Scope;
use crate::lexer::{Dialect, MAX_SOURCE, is_word};
use crate::parser::{Parser, is_allowed_name};
use crate::program::{check_output, places, run};
use crate::resolve;
use crate::value::{Value, hash_text};

/// A compiled template.
#[derive(Clone)]
pub struct Template {
    kind: TemplateForm,
}

#[derive(Clone)]
enum TemplateForm {
    /// No code: the text, with escapes undone.
    Static(Value),
    /// Exactly one expression and nothing else.
    Single(TemplatePart),
    Mixed(Vec<TemplatePart>),
}

#[derive(Clone)]
enum TemplatePart {
    Text(CompactString),
    /// Code that only names a variable, by far the most frequent: it is read and evaluated without a tree.
    Variable(Variable),
    Code(Arc<Code>),
}

#[derive(Clone)]
struct Variable {
    name: Symbol,
    hash: u64,
    start: u32,
}

impl Template {
    /// Compiles a template. Errors point into `text`.
    ///
    /// # Errors
    /// When code in the template does not compile or is not closed.
    pub fn compile(text: &str) -> Result<Template, Error> {
        Template::read(text, Err)
    }

    /// Compiles all parts that compile and returns every error: for `check`, which reports all of them at
    /// once.
    pub fn compile_all(text: &str) -> (Template, Vec<Error>) {
        let mut errors = Vec::new();
        let read = Template::read(text, |error| {
            errors.push(error);
            Ok(())
        });
        let nothing = Template { kind: TemplateForm::Static(Value::str("")) };
        (read.unwrap_or(nothing), errors)
    }

    /// Compiles a template. `wrong` says whether to go on behind code that does not compile.
    fn read(text: &str, mut wrong: impl FnMut(Error) -> Result<(), Error>) -> Result<Template, Error> {
        let mut parts = Vec::new();
        let mut literal = CompactString::default();
        let mut at = 0;
        while let Some(start) = find_code(text, at) {
            literal.push_str(text.get(at..start).unwrap_or_default());
            if literal.ends_with('\\') && start > at {
                literal.pop();
                let end = escaped_end(text, start);
                literal.push_str(text.get(start..end).unwrap_or_default());
                at = end;
                continue;
            }
            let (code, end) = match embedded(text, start) {
                Ok(found) => found,
                Err(error) => {
                    wrong(error)?;
                    at = escaped_end(text, start);
                    continue;
                }
            };
            if parts.is_empty() && literal.is_empty() && end == text.len() {
                return Ok(Template { kind: TemplateForm::Single(code) });
            }
            if !literal.is_empty() {
                parts.push(TemplatePart::Text(std::mem::take(&mut literal)));
            }
            parts.push(code);
            at = end;
        }
        literal.push_str(text.get(at..).unwrap_or_default());
        if parts.is_empty() {
            return Ok(Template { kind: TemplateForm::Static(Value::str(literal)) });
        }
        if !literal.is_empty() {
            parts.push(TemplatePart::Text(literal));
        }
        Ok(Template { kind: TemplateForm::Mixed(parts) })
    }

    /// Evaluates the template with the variables of `scope`.
    ///
    /// # Errors
    /// When code in it fails or a limit is reached; the limits hold for the template as a whole.
    pub fn evaluate(&self, scope: &dyn Scope, limits: &EvalLimits) -> Result<Value, Error> {
        match &self.kind {
            TemplateForm::Static(text) => Ok(text.clone()),
            TemplateForm::Single(TemplatePart::Text(text)) => Ok(Value::str(text.clone())),
            TemplateForm::Single(TemplatePart::Variable(variable)) => match variable.value(scope) {
                Some(value) => Ok(value),
                None => variable.evaluate(scope, limits),
            },
            TemplateForm::Single(TemplatePart::Code(code)) => {
                if let Some(value) = alone(code, scope, limits) {
                    return Ok(value);
                }
                let mut eval = Eval::new(code, scope, limits);
                let value = run(&mut eval, code)?;
                check_output(&eval, &value)?;
                Ok(value)
            }
            TemplateForm::Mixed(parts) => mixed(parts, scope, limits),
        }
    }

    /// Whether the template holds no code, so that its value never changes.
    pub fn is_static(&self) -> bool {
        matches!(self.kind, TemplateForm::Static(_))
    }

    /// The value of a template without code.
    pub fn static_value(&self) -> Option<&Value> {
        match &self.kind {
            TemplateForm::Static(text) => Some(text),
            TemplateForm::Single(_) | TemplateForm::Mixed(_) => None,
        }
    }

    /// Whether the value is true, when it is so whatever the variables hold: `False and x` never is.
    pub fn truth(&self) -> Option<bool> {
        match &self.kind {
            TemplateForm::Static(text) => Some(!matches!(text, Value::Str(text) if text.is_empty())),
            TemplateForm::Single(TemplatePart::Code(code)) => match &code.body {
                Body::Expr(expr) => truth(expr),
                _ => None,
            },
            TemplateForm::Single(_) => None,
            TemplateForm::Mixed(parts) => {
                let text = |part: &TemplatePart| matches!(part, TemplatePart::Text(text) if !text.is_empty());
                parts.iter().any(text).then_some(true)
            }
        }
    }

    /// Names the template takes from its scope, built-ins it uses included. A name may come more than once.
    pub fn references(&self) -> Vec<&str> {
        self.places().into_iter().map(|(name, _)| name).collect()
    }

    /// The same names, each with the place where a piece of code uses it first.
    pub fn places(&self) -> Vec<(&str, Span)> {
        let mut names = Vec::new();
        for part in self.parts() {
            match part {
                TemplatePart::Text(_) => {}
                TemplatePart::Variable(variable) => names.push((variable.name.as_str(), variable.span())),
                TemplatePart::Code(code) => names.extend(places(code)),
            }
        }
        names
    }

    /// The pieces, in their order, when there is code among them.
    pub fn pieces(&self) -> impl Iterator<Item = TemplatePiece<'_>> {
        self.parts().iter().map(|part| match part {
            TemplatePart::Text(text) => TemplatePiece::Text(text),
            TemplatePart::Variable(variable) => TemplatePiece::Code(variable.span()),
            TemplatePart::Code(code) => match &code.body {
                Body::Expr(expr) => TemplatePiece::Code(expr.span),
                _ => TemplatePiece::Code(Span::default()),
            },
        })
    }

    fn parts(&self) -> &[TemplatePart] {
        match &self.kind {
            TemplateForm::Static(_) => &[],
            TemplateForm::Single(part) => std::slice::from_ref(part),
            TemplateForm::Mixed(parts) => parts,
        }
    }
}

/// A piece of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplatePiece<'t> {
    /// Text as it is, with escapes undone.
    Text(&'t str),
    /// An expression: where it stands in the template, without `${` and `}`.
    Code(Span),
}

impl Variable {
    fn span(&self) -> Span {
        let start = self.start as usize;
        Span::new(start, start + self.name.len())
    }

    #[inline]
    fn value(&self, scope: &dyn Scope) -> Option<Value> {
        scope.get_hashed(&self.name, self.hash)
    }

    /// The general way, for a name the scope does not know: a built-in, or an error that says what is near.
    #[cold]
    fn evaluate(&self, scope: &dyn Scope, limits: &EvalLimits) -> Result<Value, Error> {
        let expr = Expr { kind: ExprKind::Name(self.name.clone()), span: self.span(), height: 1 };
        let code = resolve::expression(expr)?;
        run(&mut Eval::new(&code, scope, limits), &code)
    }
}

/// What an expression is likely to need in the text; a guess that saves growing the text step by step.
const ROOM: usize = 8;

fn mixed(parts: &[TemplatePart], scope: &dyn Scope, limits: &EvalLimits) -> Result<Value, Error> {
    let mut fuel = Fuel::new(limits);
    let room: usize =
        parts.iter().map(|part| if let TemplatePart::Text(text) = part { text.len() } else { ROOM }).sum();
    fuel.allocate(room)?;
    let mut out = CompactString::with_capacity(room);
    for part in parts {
        let value = match part {
            TemplatePart::Text(text) => {
                out.push_str(text);
                continue;
            }
            TemplatePart::Variable(variable) => {
                fuel.spend(1)?;
                match variable.value(scope) {
                    Some(value) => value,
                    None => variable.evaluate(scope, limits)?,
                }
            }
            TemplatePart::Code(code) => {
                let mut eval = Eval::with_fuel(code, scope, fuel);
                let value = run(&mut eval, code)?;
                fuel = eval.fuel;
                value
            }
        };
        crate::repr::append(&mut out, &value, &mut fuel)?;
        fuel.output(out.len())?;
    }
    fuel.output(out.len())?;
    Ok(Value::str(out))
}

/// The truth of an expression that needs no variable to be known.
fn truth(expr: &Expr) -> Option<bool> {
    match &expr.kind {
        ExprKind::Const(value) => Some(crate::ops::truth(value)),
        ExprKind::Not(inner) => truth(inner).map(|known| !known),
        ExprKind::And(all) => match all.iter().map(truth).collect::<Vec<_>>() {
            known if known.contains(&Some(false)) => Some(false),
            known => known.iter().all(|one| *one == Some(true)).then_some(true),
        },
        ExprKind::Or(all) => match all.iter().map(truth).collect::<Vec<_>>() {
            known if known.contains(&Some(true)) => Some(true),
            known => known.iter().all(|one| *one == Some(false)).then_some(false),
        },
        _ => None,
    }
}

/// The place of the next `${`.
fn find_code(text: &str, from: usize) -> Option<usize> {
    let rest = text.as_bytes().get(from..)?;
    rest.windows(2).position(|pair| pair == b"${").map(|at| from + at)
}

/// Compiles the code whose `${` is at byte `start`; also gives the byte after its `}`.
fn embedded(text: &str, start: usize) -> Result<(TemplatePart, usize), Error> {
    if let Some(found) = bare_variable(text, start + 2) {
        return Ok(found);
    }
    let attempt = |dialect| Parser::new(text, start + 2, dialect)?.embedded();
    // A comment may or may not swallow the closing brace; whichever reading makes sense is meant.
    let parsed =
        attempt(Dialect::Embedded).or_else(|first| attempt(Dialect::EmbeddedLines).map_err(|_| first));
    let (expr, end) = parsed.map_err(|error| error.at(Span::new(start, start + 2)))?;
    Ok((TemplatePart::Code(Arc::new(resolve::expression(expr)?)), end))
}

/// Code that is one plain name and a closing brace, blanks around it allowed. Anything else is for the
/// parser.
fn bare_variable(text: &str, from: usize) -> Option<(TemplatePart, usize)> {
    let bytes = text.as_bytes();
    let skip = |at: usize, is: fn(&u8) -> bool| {
        at + bytes.get(at..).unwrap_or_default().iter().take_while(|byte| is(byte)).count()
    };
    let start = skip(from, |byte| *byte == b' ');
    let end = skip(start, |byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let close = skip(end, |byte| *byte == b' ');
    let name = text.get(start..end)?;
    let plain = !name.is_empty()
        && !name.as_bytes().first().is_some_and(u8::is_ascii_digit)
        && text.len() <= MAX_SOURCE
        && bytes.get(close) == Some(&b'}')
        && is_allowed_name(name)
        && !is_word(name);
    let variable =
        Variable { name: Symbol::new(name), hash: hash_text(name), start: u32::try_from(start).ok()? };
    plain.then_some((TemplatePart::Variable(variable), close + 1))
}

/// An escaped block runs to the brace that balances it, or to the end.
fn escaped_end(text: &str, start: usize) -> usize {
    let mut depth = 0usize;
    for (offset, c) in text.get(start..).unwrap_or_default().char_indices() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return start + offset + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(template: &str, wanted: &str) {
        let scope = [("x", Value::Int(1)), ("s", Value::str("a"))];
        let value = Template::compile(template).unwrap().evaluate(&scope, &EvalLimits::default()).unwrap();
        assert_eq!(format!("{value:?}"), wanted, "{template}");
    }

    #[test]
    fn one_expression_alone_keeps_its_type() {
        check("${x}", "1");
        check("${ x }", "1");
        check(" ${x}", "' 1'");
        check("${x}${x}", "'11'");
    }

    #[test]
    fn escapes_and_braces_are_read_as_written() {
        check("\\${x} ${x}", "'${x} 1'");
        check("\\${a{b}c}", "'${a{b}c}'");
        check("${'}'}", "'}'");
        check("${x#comment}", "1");
        check("${[x, # }\n x]}", "[1, 1]");
        check("$x {x} $$", "'$x {x} $$'");
        check("\\\\${x}", "'\\\\${x}'");
    }

    #[test]
    fn errors_point_into_the_template() {
        let error = Template::compile("abc ${1 +}").err().unwrap();
        assert_eq!(error.span(), Some(Span::new(9, 10)));
        let scope = [("x", Value::Int(1))];
        let template = Template::compile("abc ${y}").unwrap();
        let error = template.evaluate(&scope, &EvalLimits::default()).unwrap_err();
        assert_eq!(error.span(), Some(Span::new(6, 7)));
    }

    #[test]
    fn all_errors_are_found_and_the_rest_is_kept() {
        let (template, errors) = Template::compile_all("${1 +} ${zz} ${2 *} ${open");
        let starts: Vec<_> = errors.iter().filter_map(|error| error.span()).map(|span| span.start).collect();
        assert_eq!(starts, [5, 18, 26]);
        assert_eq!(template.references(), ["zz"]);
        assert!(Template::compile_all("${1} x").1.is_empty());
    }

    #[test]
    fn truth_is_known_where_variables_do_not_matter() {
        for (text, wanted) in [
            ("${False and x}", Some(false)),
            ("${x and not 1}", Some(false)),
            ("${x or True}", Some(true)),
            ("${x and True}", None),
            ("${x}", None),
            ("${not x}", None),
            ("a${x}", Some(true)),
            ("${x}${x}", None),
            ("", Some(false)),
        ] {
            assert_eq!(Template::compile(text).unwrap().truth(), wanted, "{text}");
        }
    }

    #[test]
    fn references_name_what_the_scope_must_offer() {
        let template = Template::compile("${a.b} ${[i for i in c if len(i)]} ${(d for d in a)}").unwrap();
        assert_eq!(template.references(), ["a", "c", "len", "a"]);
    }

    #[test]
    fn places_are_those_of_the_names_not_of_words_that_look_like_them() {
        let text = "a ${'a' + f'{b}'} ${[c for c in 'x'] + c} ${ d } ${(x.e for x in e)}";
        let template = Template::compile(text).unwrap();
        let places: Vec<_> = template.places().into_iter().map(|(name, at)| (name, at.start)).collect();
        let want = [("b", "{b}'}"), ("c", "c} $"), ("d", "d }"), ("e", "e)}")];
        let want: Vec<_> = want.iter().map(|(name, rest)| (*name, text.find(rest).unwrap())).collect();
        assert_eq!(places.len(), want.len());
        for ((name, at), (wanted, start)) in places.into_iter().zip(want) {
            // In an f-string the field is known, not the name inside it.
            assert!(name == wanted && (at as usize).abs_diff(start) <= 1, "{name} at {at}, not {start}");
        }
        let pieces = template.pieces().filter_map(|piece| match piece {
            TemplatePiece::Text(text) => Some(text),
            TemplatePiece::Code(_) => None,
        });
        assert_eq!(pieces.collect::<Vec<_>>(), ["a ", " ", " ", " "]);
    }
}
