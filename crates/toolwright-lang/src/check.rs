//! What can be known before running.
//!
//! Loading already found everything that keeps a file from being used. Here are the parts that would only
//! fail, or only surprise, when they run: names nobody defines, arguments the callee will refuse, branches
//! that are never taken.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use toolwright_core::schema::{Schema, Strictness};
use toolwright_core::{Arguments, Entry, ToolSpec, nearest};
use toolwright_expr::{EvalLimits, ScriptCall, Span, Value, builtin_names, is_builtin};

use crate::build::FlowInfo;
use crate::cli::CLI_TOOL;
use crate::diag::{Diagnostic, FileSpan, ProblemList, Severity};
use crate::input::Input;
use crate::json;
use crate::lints;
use crate::load::Loaded;
use crate::step::branch::{Arm, ArmTest};
use crate::step::call::{CallStep, Callee, Param};
use crate::step::script::ScriptStep;
use crate::step::{Body, StatementKind};
use crate::strict_arguments::is_flow;
use crate::template::{Snippet, TemplateTree, truth};
use crate::type_words::{self, TypeWord};
use crate::yaml;

/// How the warning about a server ends that was not started: it says what was not checked, and nothing is
/// wrong.
pub const NOT_STARTED: &str = "was not started, so calls of its tools are not checked";

/// How a flow calls tools.
const CALLED: &str = "expressions call none, a step does (`call: ...`), and a script calls those above it";

/// Checks all flows of a file.
pub(crate) fn run(loaded: &Loaded) -> Vec<Diagnostic> {
    let mut found = loaded.problems.found.clone();
    let env = match loaded.globals.value("env") {
        Some(Value::Dict(env)) => env.entries().iter().map(|(name, _)| name.to_string()).collect(),
        _ => Vec::new(),
    };
    for (name, place) in &loaded.unknown {
        let message = format!("{} {NOT_STARTED}", crate::file_sources::described(name));
        found.add(Severity::Warning, || {
            loaded.problems.sources.diagnostic(Severity::Warning, *place, message, None)
        });
    }
    let mut checker = Checker { loaded, found, lenders: lenders(&loaded.flows), env };
    for (index, flow) in loaded.flows.iter().enumerate() {
        checker.flow(index, flow);
    }
    checker.found.sort();
    checker.found.all()
}

struct Checker<'c> {
    loaded: &'c Loaded,
    found: ProblemList,
    /// For each flow, the names its callers may lend it.
    lenders: HashMap<usize, BTreeSet<Arc<str>>>,
    /// The names under `env`.
    env: Vec<String>,
}

/// What is known at one statement.
#[derive(Default)]
struct KnownNames {
    names: BTreeSet<Arc<str>>,
    /// `_` has a value here.
    last: bool,
    /// `key` may have a value here.
    key: bool,
    /// The parameters of the flow, and what its statements store.
    inputs: Arc<[Input]>,
    stored: BTreeSet<Arc<str>>,
}

impl Checker<'_> {
    fn flow(&mut self, index: usize, flow: &FlowInfo) {
        let mut known =
            KnownNames { inputs: flow.inputs.clone(), stored: stored(&flow.body), ..KnownNames::default() };
        known.names.extend(flow.inputs.iter().map(|input| input.name.clone()));
        let lent = self.lenders.remove(&index).unwrap_or_default();
        known.last = lent.contains("_");
        known.key = lent.contains("key");
        known.names.extend(lent);
        if &*flow.name == CLI_TOOL {
            // What an input stores is there for the next one.
            known.names.extend(known.stored.iter().cloned());
        }
        for input in flow.inputs.iter() {
            if let Some(default) = &input.default
                && let Err(problem) = input.kind.read(default.clone(), &input.name)
            {
                let message =
                    format!("the default of a parameter of `{}` does not fit its type: {problem}", flow.name);
                self.add(Severity::Warning, input.place, message, None);
            }
        }
        self.body(&flow.body, &mut known);
    }

    fn body(&mut self, body: &Body, known: &mut KnownNames) {
        let outer = (known.last, known.key);
        for statement in body.statements() {
            if matches!(body, Body::List(_)) {
                known.last = true;
            }
            self.step(&statement.step, known);
            let harmless = |name: &str| {
                let input = known.inputs.iter().find(|input| *input.name == *name);
                input.is_some_and(|input| input.kind.holds_no_code()) && !known.stored.contains(name)
            };
            for (place, message, hint) in lints::of_step(statement, &known.names, &self.env, &harmless) {
                self.add(Severity::Warning, place, message, Some(hint));
            }
            if let Some(name) = &statement.store_as {
                known.names.insert(name.clone());
            }
        }
        (known.last, known.key) = outer;
    }

    fn step(&mut self, step: &StatementKind, known: &mut KnownNames) {
        step.snippets(&mut |snippet| {
            for (name, at) in snippet.template.places() {
                let whole = (&*snippet.source, snippet.place);
                self.name(name, at, whole, known, &[]);
            }
        });
        match step {
            StatementKind::Eval(_) => {}
            StatementKind::If(branch) => {
                self.constant(&branch.condition, branch.otherwise.is_some());
                self.body(&branch.then, known);
                branch.otherwise.iter().for_each(|body| self.body(body, known));
            }
            StatementKind::Match(step) => {
                step.arms.iter().for_each(|arm| self.arm(arm, known));
                self.body(&step.default, known);
            }
            StatementKind::Each(each) => {
                // What the body stores is there in the next round.
                known.names.extend(stored(&each.body));
                let outer = (known.last, known.key);
                (known.last, known.key) = (true, true);
                self.body(&each.body, known);
                (known.last, known.key) = outer;
            }
            StatementKind::Call(call) => self.call(call, known),
            StatementKind::Script(script) => self.script(script, known),
            StatementKind::Broken(bodies) => {
                // What the statement would have lent to them is not known.
                let outer = (known.last, known.key);
                (known.last, known.key) = (true, true);
                bodies.iter().for_each(|body| self.body(body, known));
                (known.last, known.key) = outer;
            }
        }
    }

    /// One way of a `match`: what it does sees the groups of its pattern.
    fn arm(&mut self, arm: &Arm, known: &mut KnownNames) {
        let groups: Vec<Arc<str>> = groups(arm).filter(|name| !known.names.contains(name)).collect();
        known.names.extend(groups.iter().cloned());
        self.body(&arm.then, known);
        known.names.retain(|name| !groups.contains(name));
    }

    /// Names that a script reads and nobody defines: no variable, no tool, no built-in, and not the script
    /// itself.
    fn script(&mut self, step: &ScriptStep, known: &KnownNames) {
        let assigned = step.script.assigned();
        let tools: Vec<&str> = step.tools.iter().map(|tool| &*tool.name).collect();
        for (name, at) in step.script.places() {
            if assigned.contains(&name) || tools.contains(&name) {
                continue;
            }
            let all: Vec<&str> = self.loaded.tools().names().collect();
            self.name(name, at, (&step.source, step.place), known, &all);
        }
        if !assigned.iter().any(|name| matches!(*name, "result" | "run")) {
            let message = "the script has no result: it defines neither `result` nor `run`".to_owned();
            let hint = "end it with `result = ...`".to_owned();
            self.add(Severity::Warning, step.place, message, Some(hint));
        }
        for call in step.script.calls().iter().filter(|call| !assigned.contains(&&*call.name)) {
            if let Some(tool) = step.tools.iter().find(|tool| *tool.name == *call.name) {
                self.script_call(call, tool, step);
            }
        }
    }

    /// The names of a call's arguments in a script, and those that are constants; what the others are is
    /// known when it runs.
    fn script_call(&mut self, call: &ScriptCall, tool: &Callee, step: &ScriptStep) {
        let Some(entry) = tool.called.get(&tool.name) else { return };
        let spec = entry.tool.spec();
        let missing = missing(spec, |name| call.named.iter().any(|named| named == name));
        let names: Vec<&str> = spec.parameter_names().collect();
        let known = call.named.iter().all(|name| names.contains(&name.as_str()));
        let own = |name: &str| spec.parameters.get("properties").and_then(|all| all.get(name)).cloned();
        let misfits: Vec<String> = call
            .constants
            .iter()
            .filter(|(name, _)| names.contains(&name.as_str()))
            .filter_map(|(name, value)| misfit(entry, name, own(name), value.clone()))
            .collect();
        if known && misfits.is_empty() && !call.positional && (missing.is_empty() || call.others) {
            return;
        }
        let place = self.inside((&step.source, step.place), call.span);
        for problem in misfits {
            let message = format!("`{}` will refuse this: {problem}", spec.name);
            self.add(Severity::Error, place, message, None);
        }
        if call.positional {
            let example = names.first().map_or_else(String::new, |name| format!("{name}=..."));
            let message = format!("`{}` takes its arguments by name", spec.name);
            self.add(Severity::Error, place, message, Some(format!("`{}({example})`", call.name)));
        }
        for name in missing.iter().filter(|_| !call.others) {
            let hint = format!("give it by its name: `{}({name}=...)`", call.name);
            self.add(
                Severity::Error,
                place,
                format!("`{}` needs the parameter `{name}`", spec.name),
                Some(hint),
            );
        }
        for name in call.named.iter().filter(|name| !names.contains(&name.as_str())) {
            self.unknown_parameter(name, place, entry, tool);
        }
    }

    /// A parameter that the callee does not have.
    fn unknown_parameter(&mut self, name: &str, place: FileSpan, entry: &Entry, callee: &Callee) {
        let spec = entry.tool.spec();
        // A flow drops what it does not know.
        let closed = spec.parameters.get("additionalProperties") == Some(&serde_json::Value::Bool(false));
        if closed || reads(callee) {
            let severity = if closed { Severity::Error } else { Severity::Warning };
            let message = format!("`{}` has no parameter `{name}`", spec.name);
            let hint = nearest(name, spec.parameter_names()).map(|near| format!("did you mean `{near}`?"));
            self.add(severity, place, message, hint);
        }
    }

    fn is_known(&self, name: &str, known: &KnownNames) -> bool {
        match name {
            "_" => known.last || known.names.contains("_"),
            "key" if known.key => true,
            _ => known.names.contains(name) || self.loaded.globals.value(name).is_some() || is_builtin(name),
        }
    }

    /// Reports a name that is not known. `at` is where it stands in the text, which is given with its place;
    /// `tools` are those that can be called there.
    fn name(&mut self, name: &str, at: Span, text: (&str, FileSpan), known: &KnownNames, tools: &[&str]) {
        if self.is_known(name, known) {
            return;
        }
        let message = match name {
            "_" => "`_` has no value here: nothing came before".to_owned(),
            _ => format!("nothing defines `{}`", toolwright_core::text::clip(name, 80)),
        };
        let place = self.inside(text, at);
        if !self.found.has_room() {
            self.add(Severity::Error, place, message, None);
            return;
        }
        let hint = lints::of_name(name, known.key).or_else(|| self.near(name, known, tools));
        let is_tool = self.loaded.tools().get(name).is_some();
        let hint = if is_tool { Some(format!("`{name}` is a tool: {CALLED}")) } else { hint };
        self.add(Severity::Error, place, message, hint);
    }

    /// The place of a part of a text.
    fn inside(&self, (text, place): (&str, FileSpan), at: Span) -> FileSpan {
        if !self.found.has_room() {
            return place;
        }
        let file = self.loaded.problems.sources.text(place.file);
        yaml::within(file, place, text, at.start as usize, at.end as usize)
    }

    fn near(&self, name: &str, known: &KnownNames, tools: &[&str]) -> Option<String> {
        let shared = self.loaded.globals.iter().map(|(name, _)| name);
        let own = known.names.iter().map(|name| &**name).chain(known.key.then_some("key"));
        // Of names that are as near, the file's own come first.
        let names = own.chain(shared).chain(tools.iter().copied()).chain(builtin_names());
        nearest(name, names).map(|near| format!("did you mean `{near}`?"))
    }

    /// A condition that is always the same makes one of the branches dead.
    fn constant(&mut self, condition: &Snippet, has_else: bool) {
        if condition.broken {
            return;
        }
        let value = || constant_value(condition).map(|value| truth(&value));
        let Some(holds) = condition.template.truth().or_else(value) else { return };
        let message = match (holds, has_else) {
            (true, true) => "the condition always holds, so `else` never runs",
            (true, false) => "the condition always holds",
            (false, _) => "the condition never holds, so `then` never runs",
        };
        let plain = condition.template.is_static() && holds;
        let hint = plain.then(|| "any text that is not empty is true; write code as `${...}`".to_owned());
        self.add(Severity::Warning, condition.place, message.to_owned(), hint);
    }

    /// Arguments against the callee's schema, as far as they are known.
    fn call(&mut self, call: &CallStep, known: &KnownNames) {
        let Some(entry) = call.callee.called.get(&call.callee.name) else { return };
        let spec = entry.tool.spec();
        let names: Vec<&str> = spec.parameter_names().collect();
        let missing = missing(spec, |name| call.params.iter().any(|given| *given.name == *name));
        for name in missing.iter().filter(|_| call.whole) {
            let message = format!("`{}` needs the parameter `{name}`", spec.name);
            let hint = format!("add it under `params`: `{name}: ...`");
            self.add(Severity::Error, call.place, message, Some(hint));
        }
        let reads = reads(&call.callee);
        for Param { name, named, value: document, place } in &call.params {
            if !names.contains(&&**name) {
                self.unknown_parameter(name, *named, entry, &call.callee);
                continue;
            }
            let own = spec.parameters.get("properties").and_then(|all| all.get(&**name)).cloned();
            let constant = match document {
                TemplateTree::Template(snippet) => constant_value(snippet),
                other => other.fixed(),
            };
            let Some(value) = constant else {
                let of_kind = self.known_kind(document, known).and_then(|(source, given)| {
                    let wanted = type_words::refused(given, own.as_ref()?, reads)?;
                    Some((wanted, format!("`{source}` is {}", type_words::word(given))))
                });
                let of_text =
                    || Some((type_words::no_number(document, own.as_ref()?)?, "this is text".to_owned()));
                if let Some((wanted, given)) = of_kind.or_else(of_text) {
                    let message =
                        format!("`{}` will refuse this: `{name}` is {wanted}, and {given}", spec.name);
                    let hint = (wanted == "text").then(|| "`${str(...)}` makes text of it".to_owned());
                    self.add(Severity::Error, *place, message, hint);
                }
                continue;
            };
            let Ok(value) = json::from_value(&value, &toolwright_expr::EvalLimits::default()) else {
                continue;
            };
            if let Some(problem) = misfit(entry, name, own, value) {
                self.add(
                    Severity::Error,
                    *place,
                    format!("`{}` will refuse this: {problem}", spec.name),
                    None,
                );
            }
        }
    }

    /// The kind of a template that is one name: a parameter of the flow that nothing overwrites, or a shared
    /// value.
    fn known_kind<'d>(&self, document: &'d TemplateTree, known: &KnownNames) -> Option<(&'d str, TypeWord)> {
        let TemplateTree::Template(snippet) = document else { return None };
        let name = snippet.source.trim().strip_prefix("${")?.strip_suffix('}')?.trim();
        let kind = match known.inputs.iter().find(|input| *input.name == *name) {
            Some(input) if !known.stored.contains(name) => type_words::of_type(&input.kind),
            None if !known.names.contains(name) => type_words::of_value(self.loaded.globals.value(name)?),
            _ => None,
        };
        Some((name, kind?))
    }

    fn add(&mut self, severity: Severity, place: FileSpan, message: String, hint: Option<String>) {
        let sources = &self.loaded.problems.sources;
        self.found.add(severity, || sources.diagnostic(severity, place, message, hint));
    }
}

/// The value of a template that is the same each time.
fn constant_value(snippet: &Snippet) -> Option<Value> {
    let same = |name: &&str| is_builtin(name) && !matches!(*name, "rand" | "randint");
    if snippet.broken || !snippet.template.references().iter().all(same) {
        return None;
    }
    let limits = EvalLimits { steps: 20_000, bytes: 1 << 20, ..EvalLimits::default() };
    snippet.template.evaluate(&(), &limits).ok()
}

/// The parameters that a tool needs and a call does not give.
fn missing(spec: &ToolSpec, given: impl Fn(&str) -> bool) -> Vec<&str> {
    let required = spec.parameters.get("required").and_then(serde_json::Value::as_array);
    let required = required.into_iter().flatten().filter_map(serde_json::Value::as_str);
    required.filter(|name| !given(name)).collect()
}

/// Whether a tool reads its arguments itself, as flows do.
fn reads(callee: &Callee) -> bool {
    let own = callee.tools.get(&callee.name);
    own.is_some_and(is_flow)
}

/// What the callee will say about one argument, if it will refuse it.
fn misfit(
    entry: &Entry,
    name: &str,
    schema: Option<serde_json::Value>,
    value: serde_json::Value,
) -> Option<String> {
    // The others are put aside: only this argument is asked about.
    let mut alone = serde_json::Map::new();
    alone.insert(name.to_owned(), value);
    let alone = serde_json::Value::Object(alone);
    let mut whole = serde_json::json!({"type": "object", "properties": {}});
    whole.get_mut("properties")?.as_object_mut()?.insert(name.to_owned(), schema?);
    if let (Some(definitions), Some(map)) = (entry.tool.spec().parameters.get("$defs"), whole.as_object_mut())
    {
        map.insert("$defs".to_owned(), definitions.clone());
    }
    let schema = Schema::compile(&whole).ok()?;
    let error = entry.tool.prepare(Arguments::new(alone, &schema, Strictness::Lenient)).err()?;
    // A flow misses the arguments that were put aside.
    let (mark, flow) = (format!("- `{name}"), is_flow(entry));
    let told = |line: &&str| line.starts_with(&mark) && !(flow && line.ends_with("missing"));
    error.message().lines().find(told).map(|line| line.trim_start_matches("- ").to_owned())
}

/// The names that callers may lend to each flow: all they define, and all that is lent to them.
fn lenders(flows: &[FlowInfo]) -> HashMap<usize, BTreeSet<Arc<str>>> {
    let mut lent: HashMap<usize, BTreeSet<Arc<str>>> = HashMap::new();
    // A flow calls only flows made before it, or its own local ones, which come after it; two rounds settle
    // both.
    for _ in 0..2 {
        for index in (0..flows.len()).rev() {
            let Some(flow) = flows.get(index) else { continue };
            let mut names: BTreeSet<Arc<str>> = lent.get(&index).cloned().unwrap_or_default();
            names.extend(flow.inputs.iter().map(|input| input.name.clone()));
            names.extend(stored(&flow.body));
            names.extend(matched(&flow.body));
            names.insert("_".into());
            if flow.body.loops() {
                names.insert("key".into());
            }
            let mut called = Vec::new();
            callees(&flow.body, &mut called);
            for (other, info) in flows.iter().enumerate() {
                if other != index
                    && called.contains(&&*info.name)
                    && (info.parent == Some(index) || info.parent.is_none())
                {
                    lent.entry(other).or_default().extend(names.iter().cloned());
                }
            }
        }
    }
    lent
}

fn callees<'b>(body: &'b Body, found: &mut Vec<&'b str>) {
    for statement in body.statements() {
        match &statement.step {
            StatementKind::Call(call) => found.push(&call.callee.name),
            StatementKind::Script(script) => found.extend(script.tools.iter().map(|tool| &*tool.name)),
            _ => {}
        }
        statement.step.bodies().into_iter().for_each(|body| callees(body, found));
    }
}

/// The names of the groups of a pattern. How many one with a problem has is not known.
fn groups(arm: &Arm) -> impl Iterator<Item = Arc<str>> {
    let (names, unknown): (&[Arc<str>], _) = match &arm.test {
        ArmTest::Equals(_) => (&[], false),
        ArmTest::Pattern(pattern) => (&pattern.names, false),
        ArmTest::Broken => (&[], true),
    };
    let any = ["_match_groups", "match0", "match1", "match2"].iter().filter(move |_| unknown);
    names.iter().cloned().chain(any.map(|name| Arc::from(*name)))
}

/// The names of the groups of all patterns in a body.
fn matched(body: &Body) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    for statement in body.statements() {
        if let StatementKind::Match(step) = &statement.step {
            names.extend(step.arms.iter().flat_map(groups));
        }
        statement.step.bodies().into_iter().for_each(|body| names.extend(matched(body)));
    }
    names
}

/// All names a body stores.
fn stored(body: &Body) -> BTreeSet<Arc<str>> {
    let mut names = BTreeSet::new();
    for statement in body.statements() {
        names.extend(statement.store_as.clone());
        statement.step.bodies().into_iter().for_each(|body| names.extend(stored(body)));
    }
    names
}
