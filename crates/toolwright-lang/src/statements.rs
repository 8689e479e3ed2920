//! Compiling statements: which kind each is, what it holds, which tool it calls.

use std::sync::Arc;

use regex::RegexBuilder;
use toolwright_core::nearest;
use toolwright_expr::Script;

use crate::build::{Builder, Visible, documents, text, texts};
use crate::error::Catch;
use crate::file::{self, Shape};
use crate::step::branch::{Arm, If, Match, Test};
use crate::step::call::Call;
use crate::step::each::Each;
use crate::step::script::ScriptStep;
use crate::step::{Body, Statement, Step};
use crate::template::{self, Document, Snippet};
use crate::yaml::{Data, Node};

/// The longest regular expression.
const MAX_PATTERN: usize = 8 * 1024;

/// How much memory a compiled regular expression may take.
const MAX_REGEX: usize = 1024 * 1024;

impl Builder<'_> {
    /// Compiles a statement or a list of them. `None` when there was a problem, which has been reported.
    pub(crate) fn body(&mut self, node: &Node, visible: Visible<'_>) -> Option<Body> {
        match &node.data {
            Data::Map(_) => Some(Body::One(Box::new(self.statement(node, visible)?))),
            Data::List(nodes) => {
                let statements: Vec<_> = nodes
                    .iter()
                    .map(|node| match &node.data {
                        Data::Map(_) => self.statement(node, visible),
                        Data::Bad => None,
                        _ => {
                            let message = format!("a statement is a map, not {}", node.kind());
                            self.problems.error_hint(node.place, message, statement_hint());
                            None
                        }
                    })
                    .collect();
                Some(Body::List(statements.into_iter().collect::<Option<_>>()?))
            }
            Data::Bad => None,
            _ => {
                let message =
                    format!("a statement, or a list of statements, is wanted here, not {}", node.kind());
                self.problems.error_hint(node.place, message, statement_hint());
                None
            }
        }
    }

    fn statement(&mut self, node: &Node, visible: Visible<'_>) -> Option<Statement> {
        let shape = self.kind(node)?;
        let before = self.problems.errors();
        file::check(self.problems, node, shape);
        if self.problems.errors() > before {
            // Problems inside are told as well, so that one run shows them all.
            for key in ["then", "else", "do", "default"] {
                if let Some(inner @ Node { data: Data::Map(_) | Data::List(_), .. }) = node.get(key) {
                    self.body(inner, visible);
                }
            }
            return None;
        }
        let step = match shape.name {
            "call" => Step::Call(Box::new(self.call(node, visible)?)),
            "eval" => Step::Eval(Document::compile(self.problems, node.get("eval")?)?),
            "if" => Step::If(Box::new(self.branch(node, visible)?)),
            "for_each" => Step::Each(Box::new(self.each(node, visible)?)),
            "match" => Step::Match(Box::new(self.matching_step(node, visible)?)),
            _ => Step::Script(Box::new(self.script(node, visible)?)),
        };
        Some(Statement {
            pure: step.is_pure(),
            loops: step.loops(),
            step,
            store_as: text(node, "store_as").map(Arc::from),
            place: node.place,
            located: self.problems.sources.locate(node.place).into(),
        })
    }

    /// Which statement it is, by the one key that says so.
    fn kind(&mut self, node: &Node) -> Option<&'static Shape> {
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
                let hint = near.map_or_else(statement_hint, |near| format!("did you mean `{near}`?"));
                self.problems.error_hint(node.place, "this is no statement we know", hint);
                None
            }
            many => {
                let names: Vec<_> = many.iter().map(|shape| format!("`{}`", shape.name)).collect();
                let message = format!("one statement cannot have {} together", names.join(" and "));
                self.problems.error_hint(
                    node.place,
                    message,
                    "write them one below the other, each with its own `-`",
                );
                None
            }
        }
    }

    fn call(&mut self, node: &Node, visible: Visible<'_>) -> Option<Call> {
        let name_node = node.get("call")?;
        let name = name_node.text()?.clone();
        let params = match node.get("params") {
            Some(params) => documents(self.problems, params),
            None => Some(Vec::new()),
        };
        let hint = match node.get("ui_hint") {
            Some(hint @ Node { data: Data::Text(_), .. }) => Some(Snippet::compile(self.problems, hint)?),
            _ => None,
        };
        let Some(callee) = visible.get(&name) else {
            let known: Vec<&str> = visible.names().collect();
            self.unknown_tool(&name, name_node.place, known.iter().copied());
            return None;
        };
        let catch = node.get("catch").filter(|node| !matches!(node.data, Data::Null));
        let catch = catch.map(|node| {
            let names = texts(node);
            Catch::new(names.iter().map(String::as_str))
        });
        Some(Call { callee: callee.clone(), params: params?, catch, hint, place: name_node.place })
    }

    fn branch(&mut self, node: &Node, visible: Visible<'_>) -> Option<If> {
        let condition = Snippet::compile(self.problems, node.get("if")?);
        let then = self.body(node.get("then")?, visible);
        let otherwise = match node.get("else") {
            None | Some(Node { data: Data::Null, .. }) => None,
            Some(body) => Some(self.body(body, visible)?),
        };
        Some(If { condition: condition?, then: then?, otherwise })
    }

    fn each(&mut self, node: &Node, visible: Visible<'_>) -> Option<Each> {
        let over_node = node.get("for_each")?;
        let over = Document::compile(self.problems, over_node);
        let body = self.body(node.get("do")?, visible);
        let parallelism = match node.get("parallelism").map(|node| &node.data) {
            Some(Data::Int(count)) => usize::try_from(*count).unwrap_or(0),
            _ => 0,
        };
        let located = self.problems.sources.locate(over_node.place).into();
        Some(Each { over: over?, body: body?, parallelism, located })
    }

    fn matching_step(&mut self, node: &Node, visible: Visible<'_>) -> Option<Match> {
        let value = Snippet::compile(self.problems, node.get("match")?);
        let trim = matches!(node.get("trim").map(|node| &node.data), Some(Data::Bool(true)));
        let Data::List(matchers) = &node.get("matchers")?.data else { return None };
        let arms: Vec<Option<Arm>> = matchers.iter().map(|matcher| self.arm(matcher, visible)).collect();
        let default = self.body(node.get("default")?, visible);
        Some(Match { value: value?, trim, arms: arms.into_iter().collect::<Option<_>>()?, default: default? })
    }

    fn arm(&mut self, node: &Node, visible: Visible<'_>) -> Option<Arm> {
        let before = self.problems.errors();
        file::check(self.problems, node, &file::MATCHER);
        if self.problems.errors() > before {
            return None;
        }
        let test = match (node.get("case"), node.get("pattern")) {
            (Some(case), None) => Test::Equals((&**case.text()?).into()),
            (None, Some(pattern)) => {
                let source = pattern.text()?;
                let built = RegexBuilder::new(&format!(r"\A(?:{source})\z")).size_limit(MAX_REGEX).build();
                match built {
                    Ok(regex) if source.len() <= MAX_PATTERN => Test::Pattern(regex),
                    Ok(_) => {
                        let message = format!("the pattern is longer than {MAX_PATTERN} bytes");
                        self.problems.error(pattern.place, message);
                        return None;
                    }
                    Err(error) => {
                        let problem = error.to_string();
                        let last = problem.lines().last().unwrap_or_default().trim_start_matches("error: ");
                        self.problems.error(pattern.place, format!("not a regular expression: {last}"));
                        return None;
                    }
                }
            }
            _ => {
                self.problems.error(node.place, "a matcher has either `case` or `pattern`");
                return None;
            }
        };
        Some(Arm { test, then: self.body(node.get("then")?, visible)? })
    }

    fn script(&mut self, node: &Node, visible: Visible<'_>) -> Option<ScriptStep> {
        let source_node = node.get("starlark")?;
        let source = source_node.text()?;
        let script = match Script::compile(source) {
            Ok(script) => script,
            Err(error) => {
                template::report(self.problems, source_node, source, &error);
                return None;
            }
        };
        let tools = script.references().filter_map(|name| visible.get(name).cloned()).collect();
        let located = self.problems.sources.locate(source_node.place).into();
        Some(ScriptStep { script: Arc::new(script), tools, located })
    }
}

fn statement_hint() -> String {
    let names: Vec<_> = file::STATEMENTS.iter().map(|shape| format!("`{}`", shape.name)).collect();
    format!("a statement has one of the keys {}", names.join(", "))
}
