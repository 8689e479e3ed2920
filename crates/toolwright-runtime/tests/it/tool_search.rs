//! Tool search: what models are sent, how wrapped calls are treated, and how well questions find their tools.

use serde_json::{Value, json};
use toolwright_core::{ErrorKind, Message, ToolDef, ToolResult, ToolSpec, Toolset};
use toolwright_models::{Reply, ScriptedModel};
use toolwright_runtime::{
    Conversation, EventKind, LoopOptions, Policy, Run, RunLimits, SearchWhen, ToolIndex, ToolSearch,
};

use crate::support::Ears;

/// The names of the tools that each request offered.
fn offered(model: &ScriptedModel) -> Vec<Vec<String>> {
    model.offered().into_iter().map(|(names, _)| names).collect()
}

/// So many tools, as if a server had brought them; `thing_7` returns its number doubled.
fn many(count: usize) -> Toolset {
    (0..count).fold(Toolset::new(), |tools, number| {
        let name = format!("thing_{number}");
        let mut spec = ToolSpec::new(name.as_str(), format!("Doubles {number} and widget{number}."));
        spec.parameters = json!({"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": false});
        let tool = ToolDef::dynamic(spec, |_, arguments: Value| async move {
            format!("{}", arguments["x"].as_i64().unwrap() * 2)
        });
        tools.with(tool.edit(|_, policy| policy.was_called(&format!("mcp:s/{name}").into()))).unwrap()
    })
}

fn result(messages: &[Message], at: usize) -> &ToolResult {
    messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool(result) => Some(result),
            _ => None,
        })
        .nth(at)
        .unwrap()
}

#[tokio::test]
async fn a_tool_is_found_and_called_and_everything_sees_its_own_name() {
    let replies = [
        Reply::call("search_tools", json!({"query": "widget7"})),
        Reply::call("call_tool", json!({"name": "thing_7", "arguments": {"x": 21}})),
        Reply::call("call_tool", json!({"name": "thing_8", "arguments": {"x": 1}})),
        Reply::call("call_tool", json!({"name": "thing_7", "arguments": {"y": 1}})),
        Reply::call("thing_9", json!({"x": 2})),
        Reply::call("call_tool", json!({"arguments": {}})),
        Reply::call("call_tool", json!({"name": "thing_x", "arguments": {}})),
        Reply::text("done"),
    ];
    let model = ScriptedModel::new(replies);
    let own = ToolDef::dynamic(ToolSpec::new("own", "Of the file."), |_, _| async { "ok" });
    // The rules are silent about the search, which needs none.
    let policy =
        "- {tools: thing_8, decision: reject, reason: not this one}\n- {tools: 'thing_*', decision: approve}";
    let ears = Ears::default();
    let builder = Run::builder(many(60).with(own).unwrap())
        .policy(Policy::from_yaml(policy).unwrap())
        .tool_search(ToolSearch::default());
    let run = ears.on(builder).build().unwrap();
    assert!(run.search_reason().unwrap().contains("61 tools are more than 40; 60 are found"));
    let outcome =
        run.generate_loop(&model, vec![Message::user("go")], &LoopOptions::default()).await.unwrap();
    let sent = offered(&model);
    assert!(sent.iter().all(|names| *names == ["own", "search_tools", "call_tool"]), "{sent:?}");
    let found = result(&outcome.messages, 0).to_text();
    assert!(
        found.contains("thing_7") && found.contains("\"parameters\"") && !found.contains("thing_30"),
        "{found}"
    );
    let called = result(&outcome.messages, 1);
    assert_eq!((&*called.name, called.to_text().as_str()), ("thing_7", "42"));
    let kinds: Vec<Option<ErrorKind>> =
        (2..7).map(|at| result(&outcome.messages, at).error.as_ref().map(|error| error.kind)).collect();
    let (refused, wrong) = (Some(ErrorKind::Approval), Some(ErrorKind::Parsing));
    assert_eq!(kinds, [refused, wrong, None, wrong, wrong]);
    let unknown = result(&outcome.messages, 6).error.clone().unwrap();
    assert!(unknown.message.contains("there is no tool `thing_x`"), "{unknown:?}");
    let started = ears.events().into_iter().filter_map(|event| match event.kind {
        EventKind::CallStarted { tool, .. } => Some(tool.to_string()),
        _ => None,
    });
    let started: Vec<String> = started.collect();
    assert_eq!(started[..4], ["search_tools", "thing_7", "thing_8", "thing_7"]);
    // What was found is part of the state of the run.
    let state = run.state(Vec::new(), Vec::new()).unwrap();
    assert!(serde_json::to_string(&state.store).unwrap().contains("thing_7"));
}

#[tokio::test]
async fn limits_count_the_tool_and_a_run_that_is_taken_up_can_still_search() {
    let model = ScriptedModel::new([Reply::call("search_tools", json!({"query": "widget3"}))]);
    let build = || Run::builder(many(50)).tool_search(ToolSearch::default());
    let run = build().build().unwrap();
    let options = LoopOptions { tool_calls: toolwright_runtime::ToolCalls::None, ..LoopOptions::default() };
    let mut chat = Conversation::new(&run).with_loop(options);
    chat.say(&model, "go").await.unwrap();
    let state = chat.state().unwrap();
    let run = build()
        .resume(&state)
        .limits(RunLimits { tool_calls: Some(2), ..RunLimits::default() })
        .build()
        .unwrap();
    let mut chat = Conversation::resume(&run, &state);
    let model = ScriptedModel::new([
        Reply::call("call_tool", json!({"name": "thing_3", "arguments": {"x": 4}})),
        Reply::call("call_tool", json!({"name": "thing_3", "arguments": {"x": 5}})),
    ]);
    chat.answer(&model).await.unwrap();
    assert!(result(chat.messages(), 0).to_text().contains("thing_3"));
    assert_eq!(result(chat.messages(), 1).to_text(), "8");
    assert_eq!(run.spent().tool_calls, 2);
}

#[tokio::test]
async fn search_is_on_only_where_it_is_wanted_and_needed() {
    let names = |count: usize, search: Option<ToolSearch>| async move {
        let model = ScriptedModel::new([Reply::text("ok")]);
        let builder = Run::builder(many(count));
        let builder = match search {
            Some(search) => builder.tool_search(search),
            None => builder,
        };
        let run = builder.build().unwrap();
        run.generate_loop(&model, vec![Message::user("go")], &LoopOptions::default()).await.unwrap();
        offered(&model).remove(0)
    };
    let search = |change: fn(&mut ToolSearch)| {
        let mut search = ToolSearch::default();
        change(&mut search);
        Some(search)
    };
    assert_eq!(names(60, None).await.len(), 60);
    assert_eq!(names(40, search(|_| {})).await.len(), 40);
    assert_eq!(names(60, search(|search| search.when = SearchWhen::Never)).await.len(), 60);
    assert_eq!(names(41, search(|_| {})).await, ["search_tools", "call_tool"]);
    assert_eq!(names(5, search(|search| search.tokens = 10)).await, ["search_tools", "call_tool"]);
    let kept = search(|search| {
        search.when = SearchWhen::Always;
        search.keep = vec!["thing_1".into()];
    });
    assert_eq!(names(3, kept).await, ["thing_1", "search_tools", "call_tool"]);
}

fn catalogue() -> Vec<ToolSpec> {
    let text = include_str!("../../../../testdata/search/catalogue.jsonl");
    let spec = |line: &str| {
        let tool: Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| tool[key].as_str().unwrap().to_owned();
        let mut spec = ToolSpec::new(text("name"), text("description"));
        let parameters = tool["parameters"].as_object().unwrap().iter();
        let properties: serde_json::Map<String, Value> = parameters
            .map(|(name, text)| (name.clone(), json!({"type": "string", "description": text})))
            .collect();
        spec.parameters = json!({"type": "object", "properties": properties});
        spec
    };
    text.lines().map(spec).collect()
}

/// Slack's Web API (174 operations), DigitalOcean's (290), GitLab's MCP server (262) and our own tools.
/// Measured when written: recall@5 0.89 on the first parts and 0.86 on the parts kept apart, 0.62 and 0.80
/// without the lexicon.
#[test]
fn questions_find_their_tools() {
    let index = ToolIndex::new(&catalogue());
    let (mut hits, mut questions) = ([0_usize; 2], [0_usize; 2]);
    let mut apart = 0;
    let mut missed = Vec::new();
    for line in include_str!("../../../../testdata/search/questions.txt").lines() {
        match line {
            line if line.starts_with("##") => apart = 0,
            "--" => apart = 1,
            line if line.starts_with('#') => {}
            line => {
                let (question, answers) = line.split_once('|').unwrap();
                let found = index.find(question, 5);
                let hit = answers.split_whitespace().any(|answer| found.iter().any(|name| **name == *answer));
                questions[apart] += 1;
                hits[apart] += usize::from(hit);
                if !hit {
                    missed.push(question.to_owned());
                }
            }
        }
    }
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let recall = |hits: usize, of: usize| hits as f64 / of as f64;
    assert!(questions.iter().sum::<usize>() >= 100, "{questions:?}");
    let all = recall(hits.iter().sum(), questions.iter().sum());
    assert!(all >= 0.85 && recall(hits[1], questions[1]) >= 0.84, "{hits:?} of {questions:?}: {missed:?}");
}

#[test]
fn exact_names_come_first_whatever_else_fits() {
    let tools = catalogue();
    let index = ToolIndex::new(&tools);
    for spec in &tools {
        assert_eq!(index.find(&spec.name, 5)[0], spec.name);
    }
    assert_eq!(
        index.find("select:chat_update, nosuch,bash", 5).iter().map(|name| &**name).collect::<Vec<_>>(),
        ["chat_update", "bash"]
    );
    assert!(index.find("zzzz qqqq", 5).is_empty() && index.find("", 5).is_empty());
}
