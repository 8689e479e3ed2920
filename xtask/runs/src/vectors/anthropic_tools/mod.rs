//! Vectors of the anthropic-tools package: its prompt, its messages, its parser, its loop, its requests.
//!
//! Where the original crashes, or is open to an attack, the record tells what went wrong there, and what is
//! right is decided here: see `crashed` and `forged`. The list is in `docs/divergences.md`.

mod prebuilt;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, bail};
use serde_json::{Map, Value as Json, json};
use toolwright_core::{BoxFuture, ModelError, ModelErrorKind, ToolDef, ToolError, ToolSpec, Toolset};
use toolwright_expr::{EvalLimits, Program, Value};
use toolwright_prompted::{
    CallMode, CheckedRequest, Completer, Completion, CompletionRequest, Next, ParsedReply, PromptError,
    PromptMessage, PromptTool, ToolUser, Transport, Verbosity, check, convert, extract, from_messages_api,
    inject_error, inject_success, render, system_prompt, to_messages_api,
};
use toolwright_runtime::Run;

use super::Tally;

/// Runs files of vectors.
pub fn run(files: &[PathBuf]) -> Result<Tally> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut tally = Tally::default();
    for file in files {
        let prebuilt = prebuilt::Prebuilt::new()?;
        for vector in load(file)? {
            let id = vector["id"].as_str().unwrap_or("?").to_owned();
            runtime.block_on(judge(&id, &vector, &prebuilt, &mut tally)).with_context(|| id)?;
        }
    }
    Ok(tally)
}

/// The records of a file. Python's whole numbers have no end, so those that JSON's readers would round are
/// kept as text.
fn load(file: &Path) -> Result<Vec<Json>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut all: Json = serde_json::from_str(&with_whole_numbers(&text))?;
    match all["vectors"].take() {
        Json::Array(vectors) => Ok(vectors),
        _ => bail!("{} has no list of `vectors`", file.display()),
    }
}

fn with_whole_numbers(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        made.push_str(before);
        let quoted = from.starts_with('"');
        let length = if quoted { quoted_length(from) } else { number_length(from) };
        let (token, after) = from.split_at(length);
        let whole =
            !quoted && token.len() > 18 && token.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit());
        match whole {
            true => made.push_str(&json!({"__py__": "int", "repr": token}).to_string()),
            false => made.push_str(token),
        }
        rest = after;
    }
    made + rest
}

fn number_length(text: &str) -> usize {
    text.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E')).unwrap_or(text.len())
}

fn quoted_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

/// What our code made of a record's input.
type Outcome<E = PromptError> = Result<Json, E>;

async fn judge(id: &str, vector: &Json, prebuilt: &prebuilt::Prebuilt, tally: &mut Tally) -> Result<()> {
    let input = &vector["input"];
    let outcome: Outcome = match vector["group"].as_str().unwrap_or_default() {
        _ if vector.get("quirk").is_some() => return skip(tally),
        "tool_description" => PromptTool::from_json(input).map(|tool| tool.describe().into()),
        "system_prompt" => tools(&input["tools"]).map(|tools| system_prompt(&tools).into()),
        "render" | "validate" => PromptMessage::list_from_value(&python(&input["messages"]))
            .and_then(|all| render(&all))
            .map(Json::from),
        "extract" => {
            judge_extract(id, vector, tally);
            return Ok(());
        }
        "parse" => parse(input).await,
        "convert" => {
            judge_convert(id, vector, tally);
            return Ok(());
        }
        "pystr" => {
            let value = python(&input["value"]);
            let listed = Value::list(vec![value.clone()]);
            tally.check(
                id,
                &json!([vector["ok"], vector["in_list"]]),
                &json!([value.to_string(), listed.to_string()]),
            );
            return Ok(());
        }
        "inject_success" => inject(&input["results"]),
        "inject_error" => Ok(inject_error(input["message"].as_str().unwrap_or_default()).into()),
        "to_messages_api" => {
            to_messages_api(input["prompt"].as_str().unwrap_or_default()).map(|(system, turns)| {
                let turns = turns.iter().map(|(role, content)| json!({"role": role, "content": content}));
                json!({"messages": turns.collect::<Vec<_>>(), "system": system})
            })
        }
        "from_messages_api" => Ok(completion(input)),
        "e2e" => return judge_session(id, vector, Transport::FirstParty, tally).await,
        "bedrock" if input.get("messages").is_some() => {
            return judge_session(id, vector, Transport::Bedrock, tally).await;
        }
        "bedrock" => model(Transport::Bedrock, input),
        // What has no type has no constructor here: that is the compiler's word.
        "ctor" if vector["error"]["type"] == "TypeError" => return skip(tally),
        "ctor" => model(transport(input), input),
        // The tools that come with the package.
        _ => {
            match prebuilt.try_one(id, vector).await {
                Some(outcome) => compare(id, vector, &outcome, tally),
                None => tally.skip(),
            }
            return Ok(());
        }
    };
    compare(id, vector, &outcome, tally);
    Ok(())
}

fn skip(tally: &mut Tally) -> Result<()> {
    tally.skip();
    Ok(())
}

fn compare<E: std::fmt::Display>(id: &str, vector: &Json, outcome: &Outcome<E>, tally: &mut Tally) {
    let got = match outcome {
        Ok(value) => same_numbers(value),
        Err(error) => json!({"error": error.to_string()}),
    };
    let passed = match (vector.get("ok"), vector.get("ok_one_of"), outcome) {
        (Some(wanted), _, Ok(_)) => same_numbers(wanted) == got,
        (None, Some(Json::Array(choices)), Ok(_)) => choices.iter().any(|wanted| same_numbers(wanted) == got),
        (None, None, Err(_)) => true,
        (None, None, Ok(value)) => crashed(vector) && is_answer_to_a_crash(vector, value),
        _ => false,
    };
    if passed {
        tally.pass();
    } else {
        let wanted = vector.get("ok").or_else(|| vector.get("error")).unwrap_or(&Json::Null);
        tally.fail(id, wanted, got);
    }
}

/// True when the original did not refuse its input but broke: an exception it does not mean to raise.
fn crashed(vector: &Json) -> bool {
    let error = &vector["error"];
    let text = error["message"].as_str().unwrap_or_default();
    error["type"] != "ValueError" || text.starts_with("malformed node")
}

/// What may take the place of a crash: the model is told, or what it said last is the answer, be it nothing.
fn is_answer_to_a_crash(vector: &Json, value: &Json) -> bool {
    let words = [value, &value["content"], &value["completion"]].into_iter().find_map(Json::as_str);
    let said = vector["input"]["model_script"].as_array().and_then(|all| all.last());
    let said = said.and_then(|last| last["text"].as_str()).unwrap_or_default();
    value["status"] == "ERROR" || words == Some(said)
}

/// Whole numbers are the same number with and without a fraction where the format does not say which.
fn same_numbers(value: &Json) -> Json {
    match value {
        Json::Number(number) => json!(number.as_f64()),
        Json::Array(items) => items.iter().map(same_numbers).collect(),
        Json::Object(map) => {
            Json::Object(map.iter().map(|(key, value)| (key.clone(), same_numbers(value))).collect())
        }
        other => other.clone(),
    }
}

/// A Python value from the way the file writes it.
fn python(json: &Json) -> Value {
    let items = || json["items"].as_array().into_iter().flatten().map(python).collect::<Vec<_>>();
    let run = |code: &str| {
        let made = Program::compile(code)
            .and_then(|program| program.evaluate(&[("x", Value::list(items()))], &EvalLimits::default()));
        made.unwrap_or(Value::None)
    };
    match (json, json["__py__"].as_str()) {
        (_, Some("tuple")) => Value::tuple(items()),
        (_, Some(set @ ("set" | "frozenset"))) if json.get("items").is_some() => run(&format!("{set}(x)")),
        (_, Some("complex")) => run(&format!("complex('{}')", json["repr"].as_str().unwrap_or_default())),
        (_, Some("float")) => run(&format!("float('{}')", json["repr"].as_str().unwrap_or_default())),
        (_, Some(_)) => run(json["repr"].as_str().unwrap_or("None")),
        (Json::Array(items), _) => Value::list(items.iter().map(python).collect()),
        (Json::Object(map), _) => Value::dict(map.iter().map(|(key, value)| (key, python(value)))),
        (other, _) => Value::from_json(other),
    }
}

fn judge_convert(id: &str, vector: &Json, tally: &mut Tally) {
    let input = &vector["input"];
    let (text, kind) =
        (input["value"].as_str().unwrap_or_default(), input["type"].as_str().unwrap_or_default());
    let got = convert(text, kind);
    let runs_code =
        ["eval", "exec", "open", "compile", "__import__", "input", "breakpoint", "getattr", "vars"];
    let passed = match (vector.get("ok"), &got) {
        (Some(_), Err(_)) => runs_code.contains(&kind),
        (Some(wanted), Ok(value)) => {
            let wanted = python(wanted);
            wanted.type_name() == value.type_name() && (shown(&wanted) == shown(value))
        }
        (None, outcome) => outcome.is_err(),
    };
    if passed {
        tally.pass();
    } else {
        tally.fail(
            id,
            vector.get("ok").or_else(|| vector.get("error")).unwrap_or(&Json::Null),
            format!("{got:?}"),
        );
    }
}

/// A value as text in which sets are in order.
fn shown(value: &Value) -> String {
    let sorted = Program::compile("sorted(x)")
        .and_then(|program| program.evaluate(&[("x", value.clone())], &EvalLimits::default()));
    match sorted {
        Ok(sorted) if matches!(value.type_name(), "set" | "frozenset") => format!("{sorted:?}"),
        _ => format!("{value:?}"),
    }
}

fn judge_extract(id: &str, vector: &Json, tally: &mut Tally) {
    let pair = |(name, value): &(String, String)| json!({"__py__": "tuple", "items": [name, value]});
    let got = match extract(vector["input"]["completion"].as_str().unwrap_or_default()) {
        ParsedReply::Text => json!({"status": true, "invokes": []}),
        ParsedReply::Mistake(reason) => json!({"status": false, "reason": reason}),
        ParsedReply::Calls { prefix, invokes } => {
            let invokes: Vec<_> = invokes
                .iter()
                .map(|invoke| {
                    let parameters: Vec<_> = invoke.parameters.iter().map(pair).collect();
                    json!({"tool_name": invoke.tool_name, "parameters_with_values": parameters})
                })
                .collect();
            json!({"status": true, "invokes": invokes, "prefix_content": prefix})
        }
    };
    // The original takes a parameter's name for a pattern: it crashes, or finds the value of another one.
    let patterns = |text: &str| text.contains(['+', '(', ')', '[', '{', '*', '?', '\\', '.', '|', '^', '$']);
    let names = |value: &Json| -> Vec<Json> {
        let invokes = value["invokes"].as_array().cloned().unwrap_or_default();
        let pairs = invokes
            .iter()
            .flat_map(|invoke| invoke["parameters_with_values"].as_array().cloned().unwrap_or_default());
        pairs.map(|pair| pair["items"][0].clone()).collect()
    };
    let is_pattern = names(&got).iter().any(|name| name.as_str().is_some_and(patterns));
    match vector.get("ok") {
        Some(wanted) if is_pattern && names(wanted) == names(&got) => tally.pass(),
        Some(wanted) => tally.check(id, wanted, &got),
        None if is_pattern => tally.pass(),
        None => tally.fail(id, &vector["error"], got),
    }
}

fn tools(json: &Json) -> Result<Vec<PromptTool>, PromptError> {
    json.as_array().into_iter().flatten().map(tool).collect()
}

/// A tool, written out or named.
fn tool(json: &Json) -> Result<PromptTool, PromptError> {
    let Some(name) = json.as_str() else { return PromptTool::from_json(json) };
    let numbers = |name: &str, about: &str| {
        PromptTool::new(name, about).with("a", "float", "first").with("b", "float", "second")
    };
    Ok(match name {
        "perform_addition" => numbers(name, "Add a and b."),
        "perform_subtraction" => numbers(name, "Subtract b from a."),
        "echo" => ["str s", "int n", "float f", "list l", "dict d", "bool t"].iter().fold(
            PromptTool::new(name, "Echo arguments."),
            |tool, parameter| {
                let (kind, name) = parameter.split_once(' ').unwrap_or_default();
                tool.with(name, kind, "")
            },
        ),
        "query" => PromptTool::new(name, "Runs a query.").with("sql_query", "str", "The query."),
        _ => PromptTool::new(name, "No parameters."),
    })
}

/// The tools of the vectors, at work.
fn working(tools: &[PromptTool]) -> Result<Run> {
    let mut set = Toolset::new();
    for tool in tools {
        let name = tool.name.clone();
        let properties: Map<String, Json> =
            tool.parameters.iter().map(|each| (each.name.clone(), json!({}))).collect();
        let mut spec = ToolSpec::new(name.as_str(), "A tool.");
        spec.parameters = json!({"type": "object", "properties": properties});
        set = set.with(ToolDef::dynamic(spec, move |_, arguments: Json| {
            let outcome = work(&name, &arguments);
            async move { outcome }
        }))?;
    }
    Ok(Run::builder(set).build()?)
}

fn work(name: &str, arguments: &Json) -> Result<Json, ToolError> {
    let (a, b) = (&arguments["a"], &arguments["b"]);
    match (name, a.as_f64().zip(b.as_f64())) {
        ("perform_addition", Some((a, b))) => Ok(json!(a + b)),
        ("perform_subtraction", Some((a, b))) => Ok(json!(a - b)),
        ("ping", _) => Ok(json!("pong")),
        ("echo", _) => Ok(arguments.clone()),
        ("query", _) => Ok(json!([])),
        ("perform_addition", None) if a.is_string() && b.is_string() => {
            Ok(json!(format!("{}{}", a.as_str().unwrap_or_default(), b.as_str().unwrap_or_default())))
        }
        _ => Err(ToolError::new("this cannot be done")),
    }
}

async fn parse(input: &Json) -> Outcome {
    let tools = tools(&input["tools"])?;
    let text = input["completion"].as_str().unwrap_or_default();
    let (prefix, calls) = match check(text, &tools) {
        CheckedRequest::Nothing => return Ok(json!({"status": "DONE"})),
        CheckedRequest::Mistake(message) => return Ok(json!({"status": "ERROR", "message": message})),
        CheckedRequest::Calls { prefix, calls } => (prefix, calls),
    };
    let asked = PromptMessage::ToolInputs { content: prefix.clone(), tool_inputs: calls.clone() }.to_json();
    let mut results = asked["tool_inputs"].clone();
    if input["evaluate"] == true {
        let Ok(run) = working(&tools) else { return Ok(Json::Null) };
        let mut user = ToolUser::new(run.dispatch(), Arc::new(Script::default())).await?;
        user.tools = tools;
        let told = user.run_tools(&calls).await?.to_json();
        if let Some(message) = told["tool_error"].as_str() {
            return Ok(json!({"status": "ERROR", "message": message}));
        }
        results = told["tool_outputs"].clone();
    }
    Ok(json!({"status": "SUCCESS", "invoke_results": results, "content": prefix}))
}

fn inject(results: &Json) -> Outcome {
    let message = json!([{"role": "tool_outputs", "tool_outputs": null, "tool_error": null}]);
    let Value::List(list) = python(&message) else { return Ok(Json::Null) };
    if let Some(Value::Dict(fields)) = list.get(0) {
        fields.insert("tool_outputs", python(results));
    }
    match PromptMessage::list_from_value(&Value::List(list))?.as_slice() {
        [PromptMessage::ToolOutputs(Ok(outcomes))] => Ok(inject_success(outcomes).into()),
        _ => Ok(Json::Null),
    }
}

fn completion(input: &Json) -> Json {
    let texts: Vec<&str> = input["texts"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let reason = input["stop_reason"].as_str().unwrap_or_default();
    let made = from_messages_api(reason, input["stop_sequence"].as_str(), &texts);
    let reason = if reason.is_empty() { Json::Null } else { made.stop_reason.into() };
    json!({"stop_reason": reason, "stop": made.stop, "completion": made.text})
}

fn transport(input: &Json) -> Transport {
    if input["first_party"] == false { Transport::Bedrock } else { Transport::FirstParty }
}

fn model(transport: Transport, input: &Json) -> Outcome {
    transport.model(input["model"].as_str().unwrap_or("default")).map(Json::from)
}

/// A model that says what the record says, and remembers what it was asked.
#[derive(Default)]
struct Script {
    replies: Mutex<VecDeque<Completion>>,
    asked: Mutex<Vec<CompletionRequest>>,
}

impl Completer for Script {
    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
    ) -> BoxFuture<'a, Result<Completion, ModelError>> {
        self.asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(request.clone());
        let next = self.replies.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop_front();
        Box::pin(
            async move { next.ok_or_else(|| ModelError::new(ModelErrorKind::Script, "nothing left to say")) },
        )
    }
}

const UNKNOWN: &str = "\n\n<function_calls>\n<invoke>\n<tool_name>nope</tool_name>\n<parameters>\n<a>1</a>\n</parameters>\n</invoke>\n";
const KNOWN: &str = "\n\n<function_calls>\n<invoke>\n<tool_name>perform_addition</tool_name>\n<parameters>\n<a>1</a>\n<b>2</b>\n</parameters>\n</invoke>\n";

/// What the model says: written out, or as a sketch such as `bad,good,text`.
fn replies(input: &Json, transport: Transport) -> VecDeque<Completion> {
    let call = |text: &str| from_messages_api("stop_sequence", Some("</function_calls>"), &[text]);
    if let Some(sketch) = input["script"].as_str() {
        if sketch.starts_with("every") {
            return (0..20).map(|_| call(UNKNOWN)).collect();
        }
        let each = sketch.split(',').map(|word| match word {
            "bad" => call(UNKNOWN),
            "good" => call(KNOWN),
            _ => from_messages_api("end_turn", None, &["end"]),
        });
        return each.collect();
    }
    let each = input["model_script"].as_array().into_iter().flatten().map(|reply| {
        let texts: Vec<&str> = reply["text"].as_str().into_iter().collect();
        let usual = if transport == Transport::Bedrock { "stop_sequence" } else { "end_turn" };
        from_messages_api(
            reply["stop_reason"].as_str().unwrap_or(usual),
            reply["stop_sequence"].as_str(),
            &texts,
        )
    });
    each.collect()
}

/// One use of tools from beginning to end: what comes back, what was asked, and what a watcher saw.
async fn judge_session(id: &str, vector: &Json, transport: Transport, tally: &mut Tally) -> Result<()> {
    let input = &vector["input"];
    let options = &input["options"];
    let tools = tools(&input["tools"])?;
    let run = working(&tools)?;
    let script = Arc::new(Script { replies: Mutex::new(replies(input, transport)), ..Script::default() });
    let mut user = ToolUser::new(run.dispatch(), script.clone()).await?;
    user.tools = tools;
    user.temperature = Some(options["temperature"].as_f64().unwrap_or(1.0));
    if let Some(tokens) = options["max_tokens_to_sample"].as_u64() {
        user.max_tokens = u32::try_from(tokens)?;
    }
    if let Some(retries) = input["max_retries"].as_u64().or_else(|| options["max_retries"].as_u64()) {
        user.max_retries = u32::try_from(retries)?;
    }
    let seen = Arc::new(Mutex::new(String::new()));
    let shown = seen.clone();
    let verbosity = match options["verbose"].as_f64() {
        Some(1.0) => Some(Verbosity::Full),
        Some(0.5) => Some(Verbosity::Half),
        _ => None,
    };
    if let Some(verbosity) = verbosity {
        user = user.watched(verbosity, move |text| {
            shown.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push_str(text)
        });
    }
    let automatic = if input.get("script").is_some() { "automatic" } else { "manual" };
    let mode = options["execution_mode"].as_str().unwrap_or(automatic).parse::<CallMode>();
    let said = json!([{"role": "user", "content": "1+2?"}]);
    let messages = input.get("messages").unwrap_or(&said);
    let outcome: Outcome = async {
        let (mode, messages) = (mode?, PromptMessage::list_from_value(&python(messages))?);
        Ok(match user.use_tools(&messages, mode).await? {
            Next::Message(PromptMessage::Assistant { content }) if mode == CallMode::Automatic => {
                content.into()
            }
            Next::Message(message) => message.to_json(),
            Next::Mistake(message) => json!({"status": "ERROR", "error_message": message}),
        })
    }
    .await;
    let asked = script.asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    let model = transport.model(options["model"].as_str().unwrap_or("default"))?;
    let requests: Vec<Json> = asked
        .iter()
        .map(|request| Ok(json!({"method": "POST", "url": url(transport, model), "body": transport.body(model, request)?})))
        .collect::<Result<_, PromptError>>()?;
    if forged(vector, messages) {
        let users = |requests: &[Json]| requests.iter().map(|each| turns(&each["body"])).max().unwrap_or(0);
        tally.check(id, &spoken(messages), &users(&requests));
        return Ok(());
    }
    // What the original means to refuse, we refuse in its words; any other error is one that broke it.
    let refused = outcome.as_ref().err().map(ToString::to_string);
    let crashed = vector.get("error").is_some_and(|error| error["message"].as_str() != refused.as_deref());
    let counted = vector["request_count"].as_u64().is_none_or(|count| count == requests.len() as u64);
    let wanted = vector["requests"].as_array();
    let same = wanted.is_none_or(|wanted| {
        // After a crash of the original we go on, and the script ends.
        let compared = if crashed { requests.get(..wanted.len()).unwrap_or(&requests) } else { &requests };
        same_numbers(&json!(wanted)) == same_numbers(&json!(compared))
    });
    let printed = vector["stdout"]
        .as_str()
        .is_none_or(|wanted| *wanted == *seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    if !(same && counted && printed) {
        tally.fail(
            id,
            json!([wanted, vector["stdout"]]),
            json!([requests, *seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)]),
        );
        return Ok(());
    }
    compare(id, vector, &outcome, tally);
    Ok(())
}

fn url(transport: Transport, model: &str) -> String {
    let base = match transport {
        Transport::FirstParty => "https://api.anthropic.com",
        Transport::Bedrock => "https://bedrock-runtime.us-east-1.amazonaws.com",
    };
    format!("{base}{}", transport.path(model))
}

/// True when text of a tool or a message became a turn of its own in the original.
fn forged(vector: &Json, messages: &Json) -> bool {
    let requests = vector["requests"].as_array();
    requests.into_iter().flatten().any(|request| turns(&request["body"]) > spoken(messages))
}

/// How often the user speaks in a request.
fn turns(body: &Json) -> usize {
    match body["prompt"].as_str() {
        Some(prompt) => prompt.matches("\n\nHuman:").count(),
        None => {
            body["messages"].as_array().into_iter().flatten().filter(|turn| turn["role"] == "user").count()
        }
    }
}

/// How often the user really spoke: messages in a row are one turn.
fn spoken(messages: &Json) -> usize {
    let roles: Vec<bool> =
        messages.as_array().into_iter().flatten().map(|message| message["role"] == "user").collect();
    roles
        .iter()
        .enumerate()
        .filter(|(at, user)| **user && (*at == 0 || roles.get(at - 1) == Some(&false)))
        .count()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_vectors_of_the_repository_hold() {
        let tally =
            super::run(&[crate::root().join("testdata/anthropic_tools/anthropic_tools.json")]).unwrap();
        assert_eq!(tally.failures, Vec::<String>::new());
        assert_eq!((tally.passed, tally.skipped), (214, 0), "{}", tally.closing_line());
    }
}
