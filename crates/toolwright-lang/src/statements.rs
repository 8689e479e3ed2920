//! Compiling statements: which kind each is, what it holds, which tool it calls.

use std::sync::Arc;

use regex::RegexBuilder;
use toolwright_core::{Toolset, nearest};
use toolwright_expr::{Script, Value};

use crate::build::{self, FileBuilder, Visible, text, texts};
use crate::error::Catch;
use crate::file;
use crate::missing_tools::{Absent, stand_in};
use crate::shape::{self, Shape};
use crate::step::branch::{Arm, ArmTest, FullPattern, If, MatchStep};
use crate::step::call::{CallStep, Callee};
use crate::step::each::Each;
use crate::step::script::ScriptStep;
use crate::step::{Body, Statement, StatementKind};
use crate::template::{self, Snippet, TemplateTree};
use crate::yaml::{Data, Node, Origin};

/// The longest regular expression.
const MAX_PATTERN: usize = 8 * 1024;

/// How much memory a compiled regular expression may take.
const MAX_REGEX: usize = 1024 * 1024;

impl FileBuilder<'_> {
    /// Compiles a statement or a list of them. A statement with a problem is reported and stays
    /// as broken: the caller checks the problems before it runs the body.
    pub(crate) fn body(&mut self, node: &Node, visible: Visible<'_>) -> Body {
        match &node.data {
            Data::Map(_) => Body::One(Box::new(self.statement(node, visible))),
            Data::List(nodes) => {
                Body::List(nodes.iter().filter_map(|node| self.listed(node, visible)).collect())
            }
            Data::Bad => Body::List(Vec::new()),
            _ => {
                let message =
                    format!("a statement, or a list of statements, is wanted here, not {}", node.kind());
                self.problems.error_hint(node.place, message, statement_hint());
                Body::List(Vec::new())
            }
        }
    }

    fn listed(&mut self, node: &Node, visible: Visible<'_>) -> Option<Statement> {
        match &node.data {
            Data::Map(_) => Some(self.statement(node, visible)),
            Data::Bad => None,
            _ => {
                let message = format!("a statement is a map, not {}", node.kind());
                self.problems.error_hint(node.place, message, statement_hint());
                None
            }
        }
    }

    fn statement(&mut self, node: &Node, visible: Visible<'_>) -> Statement {
        let before = self.problems.errors();
        let step = match self.kind(node, visible) {
            Some(shape) => self.step(node, shape, visible),
            None => self.broken_step(node, visible),
        };
        Statement {
            pure: step.is_pure(),
            loops: step.loops(),
            step,
            store_as: stored_as(node, self.problems.errors() == before).map(Arc::from),
            place: node.place,
            located: self.problems.sources.locate(node.place).into(),
        }
    }

    /// A step with a problem is there all the same, as far as it can be, so that one run shows them all: a
    /// flow that has one is never run.
    fn step(&mut self, node: &Node, shape: &'static Shape, visible: Visible<'_>) -> StatementKind {
        let before = self.problems.errors();
        shape::check(self.problems, node, shape);
        let whole = self.problems.errors() == before;
        match shape.name {
            "call" => StatementKind::Call(Box::new(self.call(node, whole, visible))),
            "eval" => {
                StatementKind::Eval(node.get("eval").map_or(TemplateTree::Fixed(Value::None), |node| {
                    TemplateTree::compile(self.problems, node)
                }))
            }
            "if" => self.branch(node, visible),
            "for_each" => StatementKind::Each(Box::new(self.each(node, visible))),
            "match" => self.matching_step(node, visible),
            _ => match self.script(node, visible) {
                Some(script) => StatementKind::Script(Box::new(script)),
                None => StatementKind::Broken(Vec::new()),
            },
        }
    }

    /// The body under a key. One that is not there has been reported, and is empty.
    fn body_of(&mut self, node: &Node, key: &str, visible: Visible<'_>) -> Body {
        match node.get(key) {
            Some(body) => self.body(body, visible),
            None => Body::List(Vec::new()),
        }
    }

    /// What is inside a statement with a problem, so that one run shows them all.
    fn broken_step(&mut self, node: &Node, visible: Visible<'_>) -> StatementKind {
        let matchers = match node.get("matchers").map(|node| &node.data) {
            Some(Data::List(matchers)) => matchers.as_slice(),
            _ => &[],
        };
        let arms = matchers.iter().filter_map(|matcher| matcher.get("then"));
        let own = ["then", "else", "do", "default"].iter().filter_map(|key| node.get(key));
        let inside = own.chain(arms).filter(|inner| matches!(inner.data, Data::Map(_) | Data::List(_)));
        StatementKind::Broken(inside.map(|inner| self.body(inner, visible)).collect())
    }

    /// Which statement it is, by the one key that says so.
    fn kind(&mut self, node: &Node, visible: Visible<'_>) -> Option<&'static Shape> {
        let found: Vec<&&Shape> =
            file::STATEMENTS.iter().filter(|shape| node.get(shape.name).is_some()).collect();
        match found.as_slice() {
            [shape] => Some(shape),
            [] => {
                let names = file::STATEMENTS.iter().map(|shape| shape.name);
                let keys: Vec<String> = match &node.data {
                    Data::Map(entries) => entries.iter().map(|(key, _)| key.key_text()).collect(),
                    _ => Vec::new(),
                };
                let near = keys.iter().find_map(|key| nearest(key, names.clone()));
                let tool = keys.iter().find(|key| visible.get(key).is_some());
                let hint = match (near, tool) {
                    (_, Some(tool)) => {
                        format!("`{tool}` is a tool: `call: {tool}`, with its arguments under `params`")
                    }
                    (Some(near), None) => format!("did you mean `{near}`?"),
                    (None, None) => statement_hint(),
                };
                self.problems.error_hint(node.place, "unknown statement", hint);
                None
            }
            many => {
                let names: Vec<_> = many.iter().map(|shape| format!("`{}`", shape.name)).collect();
                let message = format!("one statement cannot have {} together", names.join(" and "));
                let hint = match many.iter().any(|shape| shape.name == "if") && node.get("then").is_none() {
                    true => "`if` needs `then`: put what is to be done under it",
                    false => "write them one below the other, each with its own `-`",
                };
                self.problems.error_hint(node.place, message, hint);
                None
            }
        }
    }

    /// `whole`: the statement has no problem of its own.
    fn call(&mut self, node: &Node, whole: bool, visible: Visible<'_>) -> CallStep {
        let name_node = node.get("call").unwrap_or(node);
        let name = name_node.text().cloned();
        let params = node.get("params").map_or_else(Vec::new, |params| build::params(self.problems, params));
        let hint = match node.get("ui_hint") {
            Some(hint @ Node { data: Data::Text(_), .. }) => Snippet::read(self.problems, hint),
            _ => None,
        };
        let callee = name.as_deref().and_then(|name| visible.get(name)).cloned().unwrap_or_else(|| {
            if let Some(name) = &name {
                let known: Vec<&str> = visible.names().collect();
                self.unknown_tool(name, name_node.place, known.iter().copied());
            }
            let name = name.clone().unwrap_or_default();
            // Something or nothing stands in its place, so that the params are checked all the same.
            let absent = Absent::find(&self.absent, &name);
            let stand_in = absent.and_then(|absent| Toolset::new().with(stand_in(&name, &absent.why)).ok());
            let (tools, takes, place) = (stand_in.unwrap_or_default(), [].into(), name_node.place);
            Callee { name, called: tools.clone(), tools, takes, place, gives_blocks: false, broken: false }
        });
        if callee.broken {
            self.unusable_tool(&callee.name, name_node.place);
        }
        let catch = node.get("catch").filter(|node| !matches!(node.data, Data::Null));
        let catch = catch.map(|node| {
            let names = texts(node);
            for name in &names {
                if let Some((message, hint)) = Catch::unknown(name) {
                    self.problems.warn_hint(node.place, message, hint);
                }
            }
            Catch::new(names.iter().map(String::as_str))
        });
        let timeout = node.get("timeout").and_then(shape::timeout).unwrap_or_default();
        CallStep { callee, params, catch, hint, timeout, place: name_node.place, whole }
    }

    fn branch(&mut self, node: &Node, visible: Visible<'_>) -> StatementKind {
        let condition = node.get("if").and_then(|node| Snippet::read(self.problems, node));
        let then = self.body_of(node, "then", visible);
        let otherwise = node.get("else").filter(|node| !matches!(node.data, Data::Null));
        let otherwise = otherwise.map(|body| self.body(body, visible));
        match condition {
            Some(condition) => StatementKind::If(Box::new(If { condition, then, otherwise })),
            None => StatementKind::Broken(std::iter::once(then).chain(otherwise).collect()),
        }
    }

    fn each(&mut self, node: &Node, visible: Visible<'_>) -> Each {
        let over_node = node.get("for_each").unwrap_or(node);
        let over = TemplateTree::compile(self.problems, over_node);
        let body = self.body_of(node, "do", visible);
        let parallelism = node.get("parallelism").and_then(shape::count);
        let parallelism = parallelism.map_or(0, |count| usize::try_from(count).unwrap_or(0));
        let located = self.problems.sources.locate(over_node.place).into();
        Each { over, body, parallelism, located }
    }

    fn matching_step(&mut self, node: &Node, visible: Visible<'_>) -> StatementKind {
        let value = node.get("match").and_then(|node| Snippet::read(self.problems, node));
        let trim = node.get("trim").and_then(shape::flag).unwrap_or(false);
        let matchers = match node.get("matchers").map(|node| &node.data) {
            Some(Data::List(matchers)) => matchers.as_slice(),
            _ => &[],
        };
        let arms: Vec<Arm> = matchers.iter().filter_map(|matcher| self.arm(matcher, visible)).collect();
        let default = self.body_of(node, "default", visible);
        match value {
            Some(value) => StatementKind::Match(Box::new(MatchStep { value, trim, arms, default })),
            None => StatementKind::Broken(arms.into_iter().map(|arm| arm.then).chain([default]).collect()),
        }
    }

    fn arm(&mut self, node: &Node, visible: Visible<'_>) -> Option<Arm> {
        let before = self.problems.errors();
        shape::check(self.problems, node, &file::MATCHER);
        let test = (self.problems.errors() == before).then(|| self.test(node)).flatten();
        let then = self.body(node.get("then")?, visible);
        // A matcher with a problem is kept for its body, which is checked and never run.
        Some(Arm { test: test.unwrap_or(ArmTest::Broken), then })
    }

    fn test(&mut self, node: &Node) -> Option<ArmTest> {
        let (case, pattern) = (node.get("case"), node.get("pattern"));
        let pattern = match (case, pattern) {
            (Some(case), None) => return Some(ArmTest::Equals((&**case.text()?).into())),
            (None, Some(pattern)) => pattern,
            _ => {
                self.problems.error(node.place, "a matcher has either `case` or `pattern`");
                return None;
            }
        };
        let source = pattern.text()?;
        if source.len() > MAX_PATTERN {
            self.problems.error(pattern.place, format!("the pattern is longer than {MAX_PATTERN} bytes"));
            return None;
        }
        match RegexBuilder::new(&format!(r"\A(?:{source})\z")).size_limit(MAX_REGEX).build() {
            Ok(regex) => Some(ArmTest::Pattern(FullPattern::new(regex))),
            Err(error) => {
                let problem = error.to_string();
                let last = problem.lines().last().unwrap_or_default().trim_start_matches("error: ");
                self.problems.error(pattern.place, format!("not a regular expression: {last}"));
                None
            }
        }
    }

    fn script(&mut self, node: &Node, visible: Visible<'_>) -> Option<ScriptStep> {
        let source_node = node.get("starlark")?;
        let source = source_node.text()?.clone();
        let script = match Script::compile(&source) {
            Ok(script) => script,
            Err(error) => {
                template::report(self.problems, source_node, &source, &error);
                return None;
            }
        };
        let usable = |name: &str| visible.get(name).filter(|callee| !callee.broken).cloned();
        let tools = script.references().filter_map(usable).collect();
        let place = source_node.place;
        let origin = Origin::new(&mut self.problems.sources, place, &source);
        Some(ScriptStep { script: Arc::new(script), tools, source, place, origin })
    }
}

/// The name a result is stored under. In a statement that is not well, one under a misspelt key is meant too.
fn stored_as(node: &Node, well: bool) -> Option<String> {
    let Data::Map(entries) = &node.data else { return None };
    let misspelt = || {
        let like = |key: &Node| nearest(&key.key_text(), ["store_as"]).is_some();
        let (_, name) = entries.iter().filter(|_| !well).find(|(key, _)| like(key))?;
        Some(name.text()?.to_string())
    };
    text(node, "store_as").or_else(misspelt)
}

fn statement_hint() -> String {
    let names: Vec<_> = file::STATEMENTS.iter().map(|shape| format!("`{}`", shape.name)).collect();
    format!("a statement has one of the keys {}", names.join(", "))
}
