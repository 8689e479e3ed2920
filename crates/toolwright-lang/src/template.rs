//! Values with templates in them, compiled once: the part of a file that is evaluated while a flow runs.

use std::sync::{Arc, LazyLock};

use toolwright_core::{ToolError, nearest};
use toolwright_expr::{
    EvalLimits, Program, Scope, Span, Template, Value, Variables, builtin_names, is_builtin,
};

use crate::diag::{FileSpan, Problems, Severity};
use crate::error;
use crate::yaml::{self, Data, Node, Origin};

/// A text with `${...}` in it, compiled.
pub(crate) struct Snippet {
    pub(crate) template: Template,
    pub(crate) source: Arc<str>,
    pub(crate) place: FileSpan,
    pub(crate) origin: Origin,
    /// Code in it does not compile and is left out. What else there is in it is checked, and never run.
    pub(crate) broken: bool,
}

impl Snippet {
    /// Compiles a text node. `None` when it does not compile; the problems have been reported.
    pub(crate) fn compile(problems: &mut Problems, node: &Node) -> Option<Snippet> {
        Snippet::read(problems, node).filter(|snippet| !snippet.broken)
    }

    /// Compiles a text node of a body. Problems are reported, and the rest is still checked. `None` when the
    /// node is not text.
    pub(crate) fn read(problems: &mut Problems, node: &Node) -> Option<Snippet> {
        let source = node.text()?.clone();
        let (template, errors) = match Template::compile(&source) {
            Ok(template) => (template, Vec::new()),
            Err(_) => Template::compile_all(&source),
        };
        errors.iter().for_each(|error| report(problems, node, &source, error));
        let origin = Origin::new(&mut problems.sources, node.place, &source);
        Some(Snippet { template, source, place: node.place, origin, broken: !errors.is_empty() })
    }

    pub(crate) fn evaluate(&self, scope: &dyn Scope, limits: &EvalLimits) -> Result<Value, ToolError> {
        self.template.evaluate(scope, limits).map_err(|error| self.failed(error))
    }

    #[cold]
    fn failed(&self, error: toolwright_expr::Error) -> ToolError {
        let place = self.origin.at(&self.source, error.span().map(|span| span.start));
        error::evaluation(&self.source, error, place)
    }
}

/// Reports an error of the expression language at its place in the file.
pub(crate) fn report(problems: &mut Problems, node: &Node, text: &str, error: &toolwright_expr::Error) {
    let place = match error.span() {
        Some(span) => {
            let source = problems.sources.text(node.place.file);
            yaml::within(source, node.place, text, span.start as usize, span.end as usize)
        }
        None => node.place,
    };
    let hint = error.hint().map(str::to_owned);
    problems.add(Severity::Error, place, error.message().to_owned(), hint);
}

/// Reports that a text which holds for the whole file cannot be evaluated: all names nobody defines, or the
/// error. `later` are names that are defined, but below it.
pub(crate) fn report_names(
    problems: &mut Problems,
    snippet: &Snippet,
    error: &toolwright_expr::Error,
    globals: &Variables,
    later: &[String],
) {
    let at = |problems: &Problems, span: Option<Span>| match span {
        Some(span) if problems.found.has_room() => {
            let source = problems.sources.text(snippet.place.file);
            yaml::within(source, snippet.place, &snippet.source, span.start as usize, span.end as usize)
        }
        _ => snippet.place,
    };
    if error.kind() != toolwright_expr::ErrorKind::UnknownName {
        let place = at(problems, error.span());
        let hint = error.hint().map(str::to_owned);
        problems.add(Severity::Error, place, error.message().to_owned(), hint);
        return;
    }
    for (name, span) in snippet.template.places() {
        if is_builtin(name) || globals.value(name).is_some() {
            continue;
        }
        let hint = if later.iter().any(|later| later == name) {
            Some(format!("`{name}` is defined further down; move it above"))
        } else {
            let known = globals.iter().map(|(name, _)| name).chain(builtin_names());
            nearest(name, known).map(|near| format!("did you mean `{near}`?"))
        };
        let message = format!("nothing defines `{}`", toolwright_core::text::clip(name, 80));
        let place = at(problems, Some(span));
        problems.add(Severity::Error, place, message, hint);
    }
}

/// Any value; every text in it is a template.
pub(crate) enum TemplateTree {
    /// A scalar without code. Shared, because nothing can change it.
    Fixed(Value),
    Template(Box<Snippet>),
    List(Box<[TemplateTree]>),
    Map(Box<[(Arc<str>, TemplateTree)]>),
    /// A map with keys that are not text.
    Mixed(Box<[(Value, TemplateTree)]>),
}

impl TemplateTree {
    /// Compiles a node. A text that does not compile is reported and replaced by the parts that do:
    /// the caller checks the problems before it uses the tree.
    pub(crate) fn compile(problems: &mut Problems, node: &Node) -> TemplateTree {
        match &node.data {
            // Nearly all texts are plain: no place is kept for them.
            Data::Text(text) if !text.contains("${") => TemplateTree::Fixed(Value::str(&**text)),
            Data::Text(_) => match Snippet::read(problems, node) {
                Some(snippet) => match snippet.template.static_value() {
                    Some(value) if !snippet.broken => TemplateTree::Fixed(value.clone()),
                    _ => TemplateTree::Template(Box::new(snippet)),
                },
                None => TemplateTree::Fixed(Value::None),
            },
            Data::List(items) => {
                TemplateTree::List(items.iter().map(|item| TemplateTree::compile(problems, item)).collect())
            }
            Data::Map(entries) => {
                let compiled: Vec<_> = entries
                    .iter()
                    .map(|(key, value)| (key, TemplateTree::compile(problems, value)))
                    .collect();
                if entries.iter().all(|(key, _)| key.text().is_some()) {
                    let text = |key: &Node| key.text().cloned().unwrap_or_default();
                    TemplateTree::Map(compiled.into_iter().map(|(key, value)| (text(key), value)).collect())
                } else {
                    TemplateTree::Mixed(
                        compiled.into_iter().map(|(key, value)| (scalar(key), value)).collect(),
                    )
                }
            }
            _ => TemplateTree::Fixed(scalar(node)),
        }
    }

    /// The value, with every template evaluated. Lists and maps are new each time: a flow may change them.
    pub(crate) fn evaluate(&self, scope: &dyn Scope, limits: &EvalLimits) -> Result<Value, ToolError> {
        match self {
            TemplateTree::Fixed(value) => Ok(value.clone()),
            TemplateTree::Template(snippet) => snippet.evaluate(scope, limits),
            TemplateTree::List(items) => {
                let items: Result<Vec<_>, _> =
                    items.iter().map(|item| item.evaluate(scope, limits)).collect();
                Ok(Value::list(items?))
            }
            TemplateTree::Map(entries) => {
                let mut values = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    values.push((&**key, value.evaluate(scope, limits)?));
                }
                Ok(Value::dict(values))
            }
            TemplateTree::Mixed(entries) => {
                let mut pairs = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    pairs.push((key.clone(), value.evaluate(scope, limits)?));
                }
                dict(pairs)
            }
        }
    }

    /// The value when there is no code in it.
    pub(crate) fn fixed(&self) -> Option<Value> {
        self.is_fixed().then(|| self.evaluate(&(), &EvalLimits::default()).ok()).flatten()
    }

    pub(crate) fn is_fixed(&self) -> bool {
        match self {
            TemplateTree::Fixed(_) => true,
            TemplateTree::Template(_) => false,
            TemplateTree::List(items) => items.iter().all(TemplateTree::is_fixed),
            TemplateTree::Map(entries) => entries.iter().all(|(_, value)| value.is_fixed()),
            TemplateTree::Mixed(entries) => entries.iter().all(|(_, value)| value.is_fixed()),
        }
    }

    /// Calls `visit` with every template.
    pub(crate) fn snippets<'d>(&'d self, visit: &mut dyn FnMut(&'d Snippet)) {
        match self {
            TemplateTree::Fixed(_) => {}
            TemplateTree::Template(snippet) => visit(snippet),
            TemplateTree::List(items) => items.iter().for_each(|item| item.snippets(visit)),
            TemplateTree::Map(entries) => entries.iter().for_each(|(_, value)| value.snippets(visit)),
            TemplateTree::Mixed(entries) => entries.iter().for_each(|(_, value)| value.snippets(visit)),
        }
    }
}

/// A node that is one value, without looking for code in it.
fn scalar(node: &Node) -> Value {
    match &node.data {
        Data::Text(text) => Value::str(&**text),
        Data::Bool(flag) => Value::Bool(*flag),
        Data::Int(number) => Value::Int(*number),
        Data::Float(number) => Value::Float(*number),
        Data::Large(digits) => large(digits),
        // Keys that are lists or maps were refused when the file was read.
        Data::Null | Data::List(_) | Data::Map(_) | Data::Bad => Value::None,
    }
}

fn large(digits: &str) -> Value {
    ask(&INT, Value::str(digits)).unwrap_or(Value::None)
}

/// A dict with keys of any kind.
pub(crate) fn dict(pairs: Vec<(Value, Value)>) -> Result<Value, ToolError> {
    if pairs.iter().all(|(key, _)| key.as_str().is_some()) {
        return Ok(Value::dict(
            pairs.iter().map(|(key, value)| (key.as_str().unwrap_or_default(), value.clone())),
        ));
    }
    let pairs = pairs.into_iter().map(|(key, value)| Value::tuple(vec![key, value])).collect();
    ask(&DICT, Value::list(pairs)).map_err(|error| ToolError::new(error.to_string()))
}

/// The elements of any value Python can walk over; `None` for texts and everything else that is one value.
pub(crate) fn elements(
    value: &Value,
    limits: &EvalLimits,
) -> Result<Option<Arc<Vec<Value>>>, toolwright_expr::Error> {
    match value {
        Value::List(list) => Ok(Some(list.snapshot())),
        Value::Tuple(items) => Ok(Some(Arc::new(items.to_vec()))),
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Big(_) | Value::Float(_) | Value::Str(_) => {
            Ok(None)
        }
        Value::Ellipsis | Value::Type(_) | Value::Builtin(_) => Ok(None),
        Value::Object(_) if value.type_name() == "LazyFormatter" => Ok(None),
        Value::Object(_) if !matches!(ask(&WALKS, value.clone()), Ok(Value::Bool(true))) => Ok(None),
        other => match LIST.evaluate(&[("x", other.clone())], limits)? {
            Value::List(list) => Ok(Some(list.snapshot())),
            _ => Ok(None),
        },
    }
}

/// Python's truth of a value.
pub(crate) fn truth(value: &Value) -> bool {
    match value {
        Value::None => false,
        Value::Bool(flag) => *flag,
        Value::Int(number) => *number != 0,
        Value::Float(number) => *number != 0.0,
        Value::Str(text) => !text.is_empty(),
        Value::List(list) => !list.is_empty(),
        Value::Tuple(items) => !items.is_empty(),
        Value::Dict(dict) => !dict.is_empty(),
        Value::Set(set) => !set.is_empty(),
        other => !matches!(ask(&BOOL, other.clone()), Ok(Value::Bool(false))),
    }
}

fn ask(program: &Program, x: Value) -> Result<Value, toolwright_expr::Error> {
    program.evaluate(&[("x", x)], &EvalLimits::default())
}

#[expect(clippy::unwrap_used, reason = "the programs are constants, and tests compile them")]
fn constant(source: &str) -> Program {
    Program::compile(source).unwrap()
}

static DICT: LazyLock<Program> = LazyLock::new(|| constant("dict(x)"));
static LIST: LazyLock<Program> = LazyLock::new(|| constant("list(x)"));
static BOOL: LazyLock<Program> = LazyLock::new(|| constant("bool(x)"));
static INT: LazyLock<Program> = LazyLock::new(|| constant("int(x)"));
/// Structs, functions, exceptions and complex numbers are single values; views, iterators and generators are
/// not.
static WALKS: LazyLock<Program> = LazyLock::new(|| {
    constant("not isinstance(x, (struct, complex, slice, BaseException)) and not callable(x)")
});

#[cfg(test)]
mod tests {
    use super::*;

    fn value(source: &str) -> Value {
        Program::compile(source).unwrap().evaluate(&(), &EvalLimits::default()).unwrap()
    }

    fn walked(source: &str) -> Option<usize> {
        elements(&value(source), &EvalLimits::default()).unwrap().map(|items| items.len())
    }

    #[test]
    fn what_can_be_walked_over_is() {
        for (source, want) in [
            ("[1, 2]", Some(2)),
            ("(1, 2, 3)", Some(3)),
            ("{1, 2}", Some(2)),
            ("range(4)", Some(4)),
            ("(i for i in [1, 2])", Some(2)),
            ("b'ab'", Some(2)),
            ("{'a': 1}.items()", Some(1)),
            ("zip([1], [2])", Some(1)),
            ("'text'", None),
            ("None", None),
            ("5", None),
            ("1j", None),
            ("len", None),
            ("struct(a=1)", None),
        ] {
            assert_eq!(walked(source), want, "{source}");
        }
    }

    #[test]
    fn truth_is_pythons() {
        for source in ["None", "False", "0", "0.0", "''", "[]", "{}", "()", "set()", "range(0)", "b''", "0j"]
        {
            assert!(!truth(&value(source)), "{source}");
        }
        for source in ["True", "-1", "'false'", "[0]", "{'a': 1}", "(0,)", "struct(a=1)", "range(1)", "len"] {
            assert!(truth(&value(source)), "{source}");
        }
    }
}
