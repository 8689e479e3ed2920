//! Text with `${...}` in it. One expression alone keeps the type of its value; mixed with text, everything
//! becomes text. `\${` stands for itself. Values are never read as templates again.

use std::sync::Arc;

use crate::ast::{Body, Code, Expr, Kind as ExprKind};
use crate::error::{Error, Span};
use crate::eval::Eval;
use crate::fuel::Limits;
use crate::host::Scope;
use crate::lexer::Dialect;
use crate::parser::Parser;
use crate::program::{check_output, references, run};
use crate::resolve;
use crate::value::Value;

/// A compiled template.
#[derive(Clone)]
pub struct Template {
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    /// No code: the text, with escapes undone.
    Static(Value),
    /// Exactly one expression and nothing else.
    Single(Arc<Code>),
    Mixed(Arc<[Part]>),
}

enum Part {
    Text(Box<str>),
    Code(Arc<Code>),
}

impl Template {
    /// Compiles a template. Errors point into `text`.
    ///
    /// # Errors
    /// When code in the template does not compile or is not closed.
    pub fn compile(text: &str) -> Result<Template, Error> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut at = 0;
        while let Some(found) = text.get(at..).and_then(|rest| rest.find("${")) {
            let start = at + found;
            literal.push_str(text.get(at..start).unwrap_or_default());
            if literal.ends_with('\\') && start > at {
                literal.pop();
                let end = escaped_end(text, start);
                literal.push_str(text.get(start..end).unwrap_or_default());
                at = end;
                continue;
            }
            let (code, end) = embedded(text, start)?;
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal).into()));
            }
            parts.push(Part::Code(Arc::new(code)));
            at = end;
        }
        literal.push_str(text.get(at..).unwrap_or_default());
        if parts.is_empty() {
            return Ok(Template { kind: Kind::Static(Value::str(literal)) });
        }
        if !literal.is_empty() {
            parts.push(Part::Text(literal.into()));
        }
        if let [Part::Code(code)] = parts.as_slice() {
            return Ok(Template { kind: Kind::Single(Arc::clone(code)) });
        }
        Ok(Template { kind: Kind::Mixed(parts.into()) })
    }

    /// Evaluates the template with the variables of `scope`.
    ///
    /// # Errors
    /// When code in it fails or a limit is reached; the limits hold for the template as a whole.
    pub fn evaluate(&self, scope: &dyn Scope, limits: &Limits) -> Result<Value, Error> {
        match &self.kind {
            Kind::Static(text) => Ok(text.clone()),
            Kind::Single(code) => {
                if let Some(value) = bare_variable(code, scope) {
                    return Ok(value);
                }
                let mut eval = Eval::new(code, scope, limits);
                let value = run(&mut eval, code)?;
                check_output(&eval, &value)?;
                Ok(value)
            }
            Kind::Mixed(parts) => mixed(parts, scope, limits),
        }
    }

    /// Whether the template holds no code, so that its value never changes.
    pub fn is_static(&self) -> bool {
        matches!(self.kind, Kind::Static(_))
    }

    /// The value of a template without code.
    pub fn static_value(&self) -> Option<&Value> {
        match &self.kind {
            Kind::Static(text) => Some(text),
            Kind::Single(_) | Kind::Mixed(_) => None,
        }
    }

    /// Names the template takes from its scope, built-ins it uses included. A name may come more than once.
    pub fn references(&self) -> Vec<&str> {
        match &self.kind {
            Kind::Static(_) => Vec::new(),
            Kind::Single(code) => references(code).collect(),
            Kind::Mixed(parts) => parts
                .iter()
                .filter_map(|part| match part {
                    Part::Code(code) => Some(references(code)),
                    Part::Text(_) => None,
                })
                .flatten()
                .collect(),
        }
    }
}

/// The value of code that only names a variable, without setting up an evaluation.
#[inline]
fn bare_variable(code: &Code, scope: &dyn Scope) -> Option<Value> {
    let Body::Expr(Expr { kind: ExprKind::Slot(0), .. }) = &code.body else { return None };
    let slot = code.slots.first()?;
    scope.get_hashed(&slot.name, slot.hash)
}

fn mixed(parts: &[Part], scope: &dyn Scope, limits: &Limits) -> Result<Value, Error> {
    let Some(Part::Code(first)) = parts.iter().find(|part| matches!(part, Part::Code(_))) else {
        return Ok(Value::None);
    };
    let mut eval = Eval::new(first, scope, limits);
    let mut out = String::new();
    for part in parts {
        match part {
            Part::Text(text) => {
                eval.fuel.allocate(text.len())?;
                out.push_str(text);
            }
            Part::Code(code) => {
                let value = match bare_variable(code, scope) {
                    Some(value) => value,
                    None => {
                        eval.enter(code);
                        run(&mut eval, code)?
                    }
                };
                crate::repr::append(&mut out, &value, &mut eval.fuel)?;
            }
        }
        eval.fuel.output(out.len())?;
    }
    Ok(Value::str(out))
}

/// Compiles the code whose `${` is at byte `start`; also gives the byte after its `}`.
fn embedded(text: &str, start: usize) -> Result<(Code, usize), Error> {
    let attempt = |dialect| Parser::new(text, start + 2, dialect)?.embedded();
    // A comment may or may not swallow the closing brace; whichever reading makes sense is meant.
    let parsed =
        attempt(Dialect::Embedded).or_else(|first| attempt(Dialect::EmbeddedLines).map_err(|_| first));
    let (expr, end) = parsed.map_err(|error| error.at(Span::new(start, start + 2)))?;
    Ok((resolve::expression(expr)?, end))
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
        let value = Template::compile(template).unwrap().evaluate(&scope, &Limits::default()).unwrap();
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
        let error = template.evaluate(&scope, &Limits::default()).unwrap_err();
        assert_eq!(error.span(), Some(Span::new(6, 7)));
    }

    #[test]
    fn references_name_what_the_scope_must_offer() {
        let template = Template::compile("${a.b} ${[i for i in c if len(i)]} ${(d for d in a)}").unwrap();
        assert_eq!(template.references(), ["a", "c", "len", "a"]);
    }
}
