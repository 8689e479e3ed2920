//! Files that bring in others: includes, toolkits, servers, models, the environment.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use toolwright_core::{
    AssistantMessage, Content, DataError, DynModel, DynTool, ErrorKind, Media, Message, Model, ModelError,
    ModelReply, ModelRequest, ToolCall, ToolError, ToolOutput, Toolset, Usage,
};
use toolwright_lang::{
    Host, Imports, LoadError, Loaded, Server, ServerState, ServerTools, Source, SourceFile, Wanted, load,
    load_all,
};
use toolwright_runtime::{Run, RunEnd, RunLimits};

use crate::support::{call, host, short, tool};

/// A folder of its own for one test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("toolwright-lang-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        for (path, text) in files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Folder(folder)
    }

    fn problems(&self) -> Vec<String> {
        match load(self.0.join("main.yaml"), &host()) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.problems().iter().map(short).collect(),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn numbers_of_an_included_file_are_pythons() {
    let main = "shared: {data: {d: !include d.json}}\n";
    let json = "{\"k\": 12345678901234567890123, \"f\": 1e400}";
    let folder = Folder::new("numbers", &[("main.yaml", main), ("d.json", json)]);
    let file = load(folder.0.join("main.yaml"), &host()).unwrap();
    assert_eq!(file.data()["d"].to_string(), "{'k': 12345678901234567890123, 'f': inf}");
    let folder = Folder::new("no-json", &[("main.yaml", main), ("d.json", "{\"k\":\n ,}")]);
    let problem = "1:29 cannot include `d.json`: not JSON: Expecting value: line 2 column 2 (char 7)";
    assert_eq!(folder.problems(), [problem]);
}

#[test]
fn large_data_is_included_and_what_is_too_large_is_told_once() {
    let rows = |count: usize| {
        let rows: Vec<_> = (0..count).map(|n| json!({"id": n, "name": "n", "tags": ["a", "b"]})).collect();
        json!(rows).to_string()
    };
    let main = "shared: {data: {rows: !include rows.json}}\ntools: [{name: t, do: {eval: '${len(rows)}'}}]\n";
    let folder = Folder::new("rows", &[("main.yaml", main), ("rows.json", &rows(6_000))]);
    assert_eq!(folder.problems(), Vec::<String>::new());
    let folder = Folder::new(
        "rows-many",
        &[("main.yaml", main), ("rows.json", &format!("[{}1]", "1,".repeat(200_000)))],
    );
    let problem = "1:32 cannot include `rows.json`: the JSON files have more than 200000 values";
    assert_eq!(folder.problems(), [problem]);
}

#[test]
fn includes_are_parsed_by_their_kind() {
    let folder = Folder::new(
        "kinds",
        &[
            (
                "main.yaml",
                "shared:\n  data:\n    a: !include parts/a.yaml\n    b: !require b.json\n    c: !include c.txt\n    d: !include gone.txt\n",
            ),
            ("parts/a.yaml", "x: !include deeper.yml\n"),
            ("parts/deeper.yml", "[1, yes]\n"),
            ("b.json", "{\"k\": [1.5, null]}"),
            ("c.txt", "plain text"),
        ],
    );
    let file = load(folder.0.join("main.yaml"), &host()).unwrap();
    let data: serde_json::Map<_, _> =
        file.data().iter().map(|(name, value)| (name.to_string(), value.to_json().unwrap())).collect();
    assert_eq!(
        json!(data),
        json!({"a": {"x": [1, true]}, "b": {"k": [1.5, null]}, "c": "plain text", "d": ""})
    );
}

#[test]
fn includes_cannot_escape_loop_or_be_missing_when_required() {
    let escape = Folder::new("escape", &[("main.yaml", "shared:\n  data: {a: !include ../secret.txt}\n")]);
    assert!(escape.problems()[0].contains("may not leave its folder"));
    let absolute =
        Folder::new("absolute", &[("main.yaml", "shared:\n  data: {a: !include /etc/hostname}\n")]);
    assert!(absolute.problems()[0].contains("may not leave its folder"));
    let cycle = Folder::new(
        "cycle",
        &[("main.yaml", "shared: !include other.yaml\n"), ("other.yaml", "data: !include main.yaml\n")],
    );
    assert!(cycle.problems()[0].contains("includes itself"));
    let missing = Folder::new("missing", &[("main.yaml", "shared: !require gone.yaml\n")]);
    assert_eq!(missing.problems(), ["1:18 cannot include `gone.yaml`: there is no such file"]);
}

#[cfg(unix)]
#[test]
fn links_do_not_lead_out() {
    let folder = Folder::new("link", &[("main.yaml", "shared:\n  data: {a: !include link.txt}\n")]);
    std::os::unix::fs::symlink("/etc/hostname", folder.0.join("link.txt")).unwrap();
    assert!(folder.problems()[0].contains("through a link"));
}

/// Connects the servers of a file, in place of a program.
trait Connects {
    fn server(&self, name: &str, server: &Server) -> Result<ServerTools, ToolError>;
}

/// Loads a file with its servers connected.
fn connected(source: Source, host: &Host, connects: &dyn Connects) -> Result<Loaded, LoadError> {
    let file = SourceFile::parse(source);
    let bound = file.bind(host, &file.needs(&Wanted::everything()));
    let state = |(name, server): (&String, &Server)| {
        let state = match connects.server(name, server) {
            Ok(tools) => ServerState::Connected(tools),
            Err(error) => ServerState::Failed { error, required: server.trust().required },
        };
        (name.clone(), state)
    };
    let states = bound.servers().iter().map(state).collect();
    bound.compile(&states).into_result()
}

struct Servers;

impl Imports for Servers {
    fn tool(&self, reference: &str, config: &serde_json::Value) -> Option<Result<Arc<DynTool>, ToolError>> {
        let greeting = config.get("greeting").and_then(|value| value.as_str()).unwrap_or("hi").to_owned();
        (reference == "acme.greet").then(|| {
            let tool = tool("greet", &[], move |_| Ok(toolwright_core::ToolOutput::text(greeting.clone())));
            Ok(Arc::new(tool) as Arc<DynTool>)
        })
    }
}

impl Connects for Servers {
    fn server(&self, name: &str, server: &Server) -> Result<ServerTools, ToolError> {
        let Server::Stdio { args, .. } = server else { return Err(ToolError::new("no HTTP here")) };
        let shown = format!("{name} {}", args.join(" "));
        let names = ["search", "write_file", "write_dir"];
        let tools = names.into_iter().fold(Toolset::new(), |set, tool_name| {
            let shown = shown.clone();
            set.with(tool(tool_name, &[], move |_| Ok(toolwright_core::ToolOutput::text(shown.clone()))))
                .unwrap()
        });
        Ok(tools.into())
    }
}

#[tokio::test]
async fn servers_and_factories_are_reached_through_the_host() {
    let text = "
mcp:
  gh: {transport: stdio, command: gh-mcp, args: ['--user', '${env.UserName}'], auto_import_scope: none}
  auto: {transport: stdio, command: x, auto_import_scope: shared}
tools:
  - {import_tools: 'mcp:gh', prefix: gh_, filter: ['*', '!write*'], force_require_confirmation_for: ['search']}
  - {import_tool: 'mcp:gh/write_file', name: writer, ui_hint: false}
  - {import_tool: acme.greet, config: {greeting: hello}}
";
    let file = connected(Source::text("t.yaml", text), &host().imports(Servers), &Servers).unwrap();
    assert_eq!(
        file.tools().names().collect::<Vec<_>>(),
        ["auto_search", "auto_write_file", "auto_write_dir", "gh_search", "writer", "greet"]
    );
    assert_eq!(file.tools().get("gh_search").unwrap().tool.policy().require_confirmation, Some(true));
    assert_eq!(call(&file, "writer", json!({})).await, Ok(json!("gh --user ann")));
    let unconfirmed = call(&file, "gh_search", json!({})).await.unwrap_err();
    assert!(unconfirmed.contains("needs approval"), "{unconfirmed}");
    assert_eq!(call(&file, "greet", json!({})).await, Ok(json!("hello")));
    let two = "mcp: {gh: {transport: stdio, command: x, auto_import_scope: none}}\ntools: [{import_tool: 'mcp:gh/write*'}]\n";
    let problems = connected(Source::text("t.yaml", two), &host().imports(Servers), &Servers).unwrap_err();
    assert!(problems.problems()[0].message.contains("has 2 tools that match"));
}

#[test]
fn an_imported_tool_is_described_anew() {
    let text = "
tools:
  - import_tool: read_file
    name: look
    description: Looks at a file.
    parameters: {path: Which file., lines: How many.}
    parallel: false
  - {import_tool: build_llm_tool, parameters: {prompt: What to think of.}, parallel: false}
  - {name: t, parallel: false, do: {call: look, params: {path: notes.txt}}}
";
    let file = load(Source::text("t.yaml", text), &host()).unwrap();
    let told = |name: &str, parameter: &str| {
        let tool = &file.tools().get(name).unwrap().tool;
        assert!(!tool.policy().is_parallel(), "{name}");
        tool.spec().parameters["properties"][parameter]["description"].clone()
    };
    assert_eq!((told("look", "path"), told("look", "lines")), (json!("Which file."), json!("How many.")));
    assert_eq!(told("llm", "prompt"), json!("What to think of."));
    assert_eq!(told("t", ""), json!(null));
    let wrong = |entry: &str| {
        let text = format!("tools:\n  - {{import_tool: read_file, {entry}}}\n");
        let problems = load(Source::text("t.yaml", text), &host()).unwrap_err();
        problems.problems().iter().map(|one| (short(one), one.hint.clone())).collect::<Vec<_>>()
    };
    let hinted = |problem: &str, hint: &str| (problem.to_owned(), Some(hint.to_owned()));
    assert_eq!(
        wrong("parameters: {pth: Which file., zzz: None.}"),
        [
            hinted("2:43 `read_file` has no parameter `pth`", "did you mean `path`?"),
            hinted("2:61 `read_file` has no parameter `zzz`", "it has: path, lines"),
        ]
    );
    assert_eq!(
        wrong("parameters: {lines: [many]}, parallel: maybe"),
        [
            ("2:50 `lines` of `parameters` is text, not a list".to_owned(), None),
            ("2:69 `parallel` of `import_tool` is true or false, not text".to_owned(), None),
        ]
    );
    assert_eq!(
        wrong("parameters: [path]"),
        [hinted(
            "2:42 `parameters` of `import_tool` is a map, not a list",
            "write `name: value` for each, without `-`"
        )]
    );
}

/// A server with tools of odd names, and one that cannot be used.
struct Odd;

impl Connects for Odd {
    fn server(&self, _: &str, _: &Server) -> Result<ServerTools, ToolError> {
        let long = "x".repeat(126);
        let tools = ["a/b", long.as_str()].into_iter().fold(Toolset::new(), |set, name| {
            set.with(tool(name, &[], |_| Ok(toolwright_core::ToolOutput::text("hi")))).unwrap()
        });
        let left_out = vec![("ns:x".to_owned(), "no".to_owned())];
        Ok(ServerTools { tools, left_out, ..ServerTools::default() })
    }
}

#[tokio::test]
async fn a_tool_of_a_server_with_an_odd_name_does_not_spoil_the_rest() {
    let long = "x".repeat(126);
    let server =
        |scope: &str| format!("mcp: {{odd: {{transport: stdio, command: x, auto_import_scope: {scope}}}}}\n");
    let text = server("shared") + "tools: [{name: t, do: [{call: odd_a/b}, {eval: '${_[0].text}'}]}]\n";
    let file = connected(Source::text("t.yaml", &text), &host(), &Odd).unwrap();
    assert_eq!(file.tools().names().collect::<Vec<_>>(), ["odd_a/b", "t"]);
    assert_eq!(call(&file, "t", json!({})).await, Ok(json!("hi")));
    let told: Vec<String> = file.problems().iter().map(short).collect();
    let why = format!(
        "1:12 `{long}` of the MCP server `odd` is left out: `odd_{long}` cannot be a tool's name: use 1 to 128 letters, digits, `_`, `-`, `.` or `/`; import it by itself, with a `name`"
    );
    assert_eq!(told, ["1:12 `ns:x` of the MCP server `odd` is left out: no".to_owned(), why]);
    // Each can be imported alone under another name; tools that no filter matches are not reported.
    let text = server("none")
        + &format!(
            "tools: [{{import_tool: mcp:odd/a/b, name: ab}}, {{import_tool: mcp:odd/{long}, name: l}}, {{import_tools: 'mcp:odd', prefix: p_, filter: ['a*']}}]\n"
        );
    let file = connected(Source::text("t.yaml", &text), &host(), &Odd).unwrap();
    assert_eq!(file.tools().names().collect::<Vec<_>>(), ["ab", "l", "p_a/b"]);
    assert_eq!(file.problems().iter().map(short).collect::<Vec<_>>(), Vec::<String>::new());
    let text =
        server("none") + "tools: [{import_tool: 'mcp:odd/ns:x', name: x}, {import_tool: mcp:off/a/b}]\n";
    let error = connected(Source::text("t.yaml", &text), &host(), &Odd).unwrap_err();
    assert_eq!(
        error.problems().iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>(),
        ["`ns:x` of `mcp:odd` cannot be used: no", "there is no MCP server `off`"]
    );
}

/// A server whose results hold one block each.
struct Blocks;

impl Connects for Blocks {
    fn server(&self, _: &str, _: &Server) -> Result<ServerTools, ToolError> {
        let link = |mime_type: &str| Content::ResourceLink {
            uri: "https://a.example/1".to_owned(),
            name: "one".to_owned(),
            description: None,
            mime_type: Some(mime_type.to_owned()),
        };
        let results = [
            ("image", Content::image("image/png", b"png")),
            ("blob", Content::document("application/gzip", "demo://1", b"zip")),
            ("link", link("text/plain")),
            ("picture_link", link("image/png")),
            ("audio", Content::Audio(Media::from_bytes("audio/wav", b"wav"))),
            ("unknown", Content::json(json!({"type": "new"}))),
        ];
        let mut tools = Toolset::new();
        for (name, content) in results {
            tools = tools.with(tool(name, &[], move |_| Ok(ToolOutput::blocks([content.clone()])))).unwrap();
        }
        let empty = tool("empty", &[], |_| {
            let result = json!({"result": []});
            let mut output = ToolOutput::blocks([Content::json(result.clone())]);
            output.structured = Some(result);
            Ok(output)
        });
        Ok(tools.with(empty).unwrap().into())
    }
}

#[tokio::test]
async fn the_blocks_of_a_server_have_the_names_llm_workers_gives_them() {
    let names = ["image", "blob", "link", "picture_link", "audio", "unknown", "empty"];
    let steps: Vec<String> =
        names.iter().map(|name| format!("{{call: s_{name}, store_as: {name}}}")).collect();
    let all: Vec<String> = names.iter().map(|name| format!("'${{{name}}}'")).collect();
    let text = format!(
        "mcp: {{s: {{transport: stdio, command: x, auto_import_scope: shared}}}}\ntools: [{{name: t, do: [{}, {{eval: [{}]}}]}}]\n",
        steps.join(", "),
        all.join(", ")
    );
    let file = connected(Source::text("t.yaml", &text), &host(), &Blocks).unwrap();
    assert_eq!(
        call(&file, "t", json!({})).await,
        Ok(json!([
            [{"type": "image", "base64": "cG5n", "mime_type": "image/png"}],
            [{"type": "file", "base64": "emlw", "mime_type": "application/gzip", "name": "demo://1"}],
            [{"type": "file", "url": "https://a.example/1", "mime_type": "text/plain", "name": "one"}],
            [{"type": "image", "url": "https://a.example/1", "mime_type": "image/png", "name": "one"}],
            [{"type": "audio", "base64": "d2F2", "mime_type": "audio/wav"}],
            [{"type": "text", "text": "{\"type\":\"new\"}"}],
            []
        ]))
    );
}

/// What a run has of a tool's output.
async fn given(file: &toolwright_lang::Loaded, name: &str) -> (Vec<Content>, Option<serde_json::Value>) {
    let run = Run::builder(file.tools().clone()).max_output(0).build().unwrap();
    let result = run.call(ToolCall::new("1", name, json!({}))).await.unwrap();
    assert_eq!(result.error, None);
    (result.content, result.structured)
}

#[tokio::test]
async fn what_a_flow_returns_of_a_server_is_content_again() {
    let text = "
mcp: {s: {transport: stdio, command: x, auto_import_scope: shared}}
tools:
  - {name: look, do: {call: s_image}}
  - {name: twice, do: [{call: look}, {eval: '${_ + [{\"type\": \"text\", \"text\": _[0].base64}]}'}]}
  - {name: every, do: {for_each: [1, 2], do: {call: s_image}}}
  - {name: link, do: {call: s_picture_link}}
  - {name: told, do: {call: s_unknown}}
  - {name: heard, do: [{call: told}, {eval: '${_[0].text}'}]}
";
    let file = connected(Source::text("t.yaml", text), &host(), &Blocks).unwrap();
    let picture = || Content::image("image/png", b"png");
    assert_eq!(given(&file, "look").await, (vec![picture()], None));
    // Another flow still finds the blocks under the same names.
    assert_eq!(given(&file, "twice").await, (vec![picture(), Content::text("cG5n")], None));
    assert_eq!(given(&file, "every").await.0, [picture(), picture()]);
    assert!(matches!(given(&file, "link").await.0.as_slice(), [Content::ResourceLink { .. }]));
    let text = "{\"type\":\"new\"}";
    let list = json!([{"type": "text", "text": text}]);
    assert_eq!(given(&file, "told").await, (vec![Content::text(text)], Some(list)));
    assert_eq!(given(&file, "heard").await, (vec![Content::text(text)], None));
}

#[tokio::test]
async fn pictures_beside_a_value_travel_with_it() {
    let value = json!({"width": 4});
    let told = value.clone();
    let photo = tool("photo", &[], move |_| {
        let blocks = [Content::text("4 wide"), Content::image("image/png", b"png")];
        Ok(ToolOutput::blocks(blocks).with_structured(told.clone()))
    });
    let plain = tool("plain", &[], |_| {
        Ok(ToolOutput::blocks([Content::text("a"), Content::document("application/pdf", "a.pdf", b"%PDF")]))
    });
    let counted = tool("count", &[], |_| {
        Ok(ToolOutput::blocks([Content::image("image/png", b"png")]).with_structured(json!(2)))
    });
    let tools = Toolset::new().with(photo).unwrap().with(plain).unwrap().with(counted).unwrap();
    let text = "
tools:
  - import_tool: photo
  - import_tool: plain
  - import_tool: count
  - {name: counted, do: [{eval: 1}, {if: '${True}', then: {call: count}}]}
  - {name: equal, do: [{call: count}, {eval: '${1 + 1}'}]}
  - {name: same, do: [{call: photo, store_as: x}, {eval: 1}, {eval: '${x}'}]}
  - {name: outer, do: {call: same}}
  - {name: script, do: {starlark: 'result = photo()'}}
  - {name: every, do: {for_each: [1, 2], do: {call: photo}}}
  - {name: width, do: [{call: photo}, {eval: '${_.width}'}]}
  - {name: files, do: {call: plain}}
  - {name: bytes, do: [{call: plain}, {eval: '${_[1].base64}'}]}
";
    let file = load(Source::text("t.yaml", text), &Host::new().builtins(tools)).unwrap();
    let picture = || Content::image("image/png", b"png");
    for name in ["same", "outer", "script"] {
        let wanted = (vec![Content::json(value.clone()), picture()], Some(value.clone()));
        assert_eq!(given(&file, name).await, wanted, "{name}");
    }
    let list = json!([value, value]);
    assert_eq!(
        given(&file, "every").await,
        (vec![Content::json(list.clone()), picture(), picture()], Some(list))
    );
    assert_eq!(given(&file, "width").await, (vec![Content::json(json!(4))], None));
    let two = || Content::json(json!(2));
    assert_eq!(given(&file, "counted").await, (vec![two(), picture()], Some(json!(2))));
    assert_eq!(given(&file, "equal").await, (vec![two()], None), "another two has no picture");
    let document = Content::document("application/pdf", "a.pdf", b"%PDF");
    assert_eq!(given(&file, "files").await, (vec![Content::text("a"), document], None));
    assert_eq!(given(&file, "bytes").await, (vec![Content::text("JVBERg==")], None));
}

#[test]
fn what_llm_workers_has_and_we_lack_is_named() {
    let text = "tools:\n  - import_tool: llm_workers.tools.unsafe.bash\n  - {import_tools: llm_workers.tools.fs.FilesystemToolkit, prefix: ''}\n";
    let problems = load(Source::text("t.yaml", text), &host()).unwrap_err();
    let told: Vec<String> = problems.problems().iter().map(short).collect();
    assert_eq!(
        told,
        [
            "2:18 `bash` of llm-workers is not among the built-in tools here",
            "3:20 `llm_workers.tools.fs.FilesystemToolkit` needs built-in tools that do not exist here: write_file, edit_file, glob_files, grep_files, file_info, list_files",
        ]
    );
}

#[test]
fn declared_variables_are_read_and_secrets_are_told() {
    let text = "
env:
  KEY: {description: 'The key of ${env.UserName}', secret: true}
  PLAIN: {}
shared: {data: {k: '${env.KEY}-${env.PLAIN}'}}
";
    let source = || Source::text("t.yaml", text);
    let file = SourceFile::parse(source());
    let declared = file.variables(&host().environment([("PLAIN", "p")]), &file.needs(&Wanted::everything()));
    assert_eq!(declared[0].description.as_deref(), Some("The key of ann"));
    assert_eq!((declared[0].is_set, declared[0].secret, declared[1].is_set), (false, true, true));
    let file = load(source(), &host().environment([("KEY", "s3cret"), ("PLAIN", "p")])).unwrap();
    assert_eq!(file.data()["k"].as_str(), Some("s3cret-p"));
    assert_eq!(file.secrets()[0].expose(), "s3cret");
    let missing = load(source(), &host()).unwrap_err();
    assert_eq!(short(&missing.problems()[0]), "3:3 the environment variable `KEY` is not set");
}

/// Calls `add_one` until it has a number, then answers with it in a fence.
struct Counter;

impl Model for Counter {
    fn name(&self) -> &str {
        "test/counter"
    }

    async fn generate(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let last = request.messages.last().map(Message::text).unwrap_or_default();
        let reply = match request.messages.last() {
            Some(Message::Tool(_)) => AssistantMessage {
                content: vec![toolwright_core::Content::text(format!("```json\n{{\"n\": {last}}}\n```"))],
                ..AssistantMessage::default()
            },
            _ => AssistantMessage::calls([ToolCall::new("c", "add_one", json!({"n": 41}))]),
        };
        let usage = Usage { input_tokens: 40, output_tokens: 2, ..Usage::default() };
        Ok(ModelReply { usage, ..reply.into() })
    }
}

#[tokio::test]
async fn model_tools_loop_until_the_model_is_done() {
    let text = "
tools:
  - {name: add_one, input: [{name: n, type: int}], do: {eval: '${n + 1}'}}
  - import_tool: llm_workers.tools.llm_tool.build_llm_tool
    name: ask
    config: {model_ref: fast, system_message: 'You are ${env.UserName}.', tools: [add_one], extract_json: true}
  - {name: t, do: [{call: ask, params: {prompt: go}}, {eval: '${_.n * 2}'}]}
";
    let host = host().models(|name| (name == "fast").then(|| Ok(Arc::new(Counter) as Arc<DynModel>)));
    let file = load(Source::text("t.yaml", text), &host).unwrap();
    assert_eq!(call(&file, "t", json!({})).await, Ok(json!(84)));
}

#[tokio::test]
async fn what_a_model_tool_spends_counts_for_the_run() {
    let text = "
models: {fast: test/counter}
tools:
  - {name: add_one, input: [{name: n, type: int}], do: {eval: '${n + 1}'}}
  - {import_tool: build_llm_tool, config: {model_ref: fast, tools: [add_one]}}
";
    let host = host().models(|name| (name == "test/counter").then(|| Ok(Arc::new(Counter) as Arc<DynModel>)));
    let file = load(Source::text("t.yaml", text), &host).unwrap();
    let ask = || ToolCall::new("1", "llm", json!({"prompt": "go"}));
    let run = Run::builder(file.tools().clone()).build().unwrap();
    assert!(run.call(ask()).await.unwrap().error.is_none());
    assert_eq!(run.spent().usage.total(), 84);
    let limits = RunLimits { tokens: Some(50), ..RunLimits::default() };
    let run = Run::builder(file.tools().clone()).limits(limits).build().unwrap();
    let error = run.call(ask()).await.unwrap().error.unwrap();
    assert_eq!(error.kind, ErrorKind::Limit);
    assert!(matches!(run.ended(), Some(RunEnd::Limit { .. })));
}

#[test]
fn names_of_models_must_stand_for_something() {
    let found = |models: &str| {
        let problems = load(Source::text("t.yaml", format!("models: {models}\n")), &host()).err();
        problems.into_iter().flatten().map(|problem| problem.message).collect::<Vec<_>>()
    };
    assert_eq!(found("{a: openai/x, b: anthropic/y}"), Vec::<String>::new());
    assert_eq!(
        found("[{name: a, provider: openai, model: x, config: {temperature: 0}}]"),
        Vec::<String>::new()
    );
    assert_eq!(found("{a: x}"), ["`x` names no model"]);
    assert_eq!(found("{a: {model: openai/x, temperature: 0}}"), Vec::<String>::new());
    assert_eq!(found("{a: 5}"), ["a model is named as `vendor/model`, or described by a map"]);
    assert_eq!(found("{a: {temperature: 0}}"), ["the model `a` has no `model`"]);
    assert_eq!(found("[{name: a}]"), ["the model `a` has no `model`"]);
    assert_eq!(found("[{model: a/b}]"), ["a model in a list has a `name`"]);
    assert_eq!(found("7"), ["`models` is a map or a list, not an integer"]);
}

#[test]
fn sections_for_others_are_carried_as_data() {
    let text = "policy: [{tools: '*', decision: approve}]\nlimits: {tool_calls: 5}\nmodels: {}\n";
    let found: Vec<String> = load_all(Source::text("t.yaml", text), &Host::new())
        .problems()
        .iter()
        .map(|problem| problem.message.clone())
        .collect();
    let unapplied =
        |name: &str| format!("the file has a section `{name}`, and this program does not apply it");
    assert_eq!(found, [unapplied("policy"), unapplied("limits")]);
    let mut file = SourceFile::parse(Source::text("t.yaml", text));
    let limits = file.section("limits", Ok).unwrap();
    assert_eq!(limits.value, json!({"tool_calls": 5}));
    let policy = file.section("policy", |_| Ok(())).unwrap();
    assert_eq!(policy.location, "t.yaml:1:9");
    assert!(file.section("sandbox", Ok).is_none());
    let needs = file.needs(&Wanted::everything());
    assert!(file.bind(&Host::new(), &needs).compile(&HashMap::new()).into_result().is_ok());
    let misfit = DataError::new("too many").inside("tool_calls");
    assert!(file.section("limits", |_| Err::<(), _>(vec![misfit])).is_none());
    let told: Vec<String> = file.error().unwrap().problems().iter().map(short).collect();
    assert_eq!(told, ["2:10 `limits`: too many"]);
}

#[test]
fn references_come_by_name_and_by_pattern() {
    let text = "
tools:
  - {name: web_search, do: {eval: 1}}
  - {name: web_admin, do: {eval: 1}}
  - {name: add, do: {eval: 1}}
chat:
  system_message: 'Hello ${env.UserName}'
  tools: [add, {match: ['web_*', '!*admin']}, {name: own, do: {call: add}}]
";
    let file = load(Source::text("t.yaml", text), &host()).unwrap();
    let chat = file.chat().unwrap();
    assert_eq!(chat.tools.names().collect::<Vec<_>>(), ["add", "web_search", "own"]);
    assert_eq!(chat.system_message.as_deref(), Some("Hello ann"));
    let unknown =
        load(Source::text("t.yaml", "chat: {tools: [nope, {match: ['x*']}]}\n"), &host()).unwrap_err();
    assert_eq!(unknown.into_iter().count(), 2);
}

#[tokio::test]
async fn a_server_that_is_not_needed_is_unknown_and_asks_for_nothing() {
    let text = "
env: {TOKEN: {secret: true}, PLACE: {}}
mcp: {git: {transport: stdio, command: x, env: {T: '${env.TOKEN}'}, auto_import_scope: shared}}
shared: {data: {far: '${int(env.TOKEN)}', near: 'at ${env.PLACE}'}}
tools:
  - {import_tool: 'mcp:git/log', name: history}
  - {name: here, do: {eval: '${near}'}}
  - {name: there, do: [{call: git_log}, {eval: '${far}'}]}
";
    let file = SourceFile::parse(Source::text("t.yaml", text));
    let host = host().environment([("PLACE", "home")]);
    let bound = file.bind(&host, &file.needs(&Wanted::tool("here")));
    assert!(bound.servers().is_empty());
    let loaded = bound.compile(&HashMap::new()).into_result().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(call(&loaded, "here", json!({})).await, Ok(json!("at home")));
    let refused = call(&loaded, "history", json!({})).await.unwrap_err();
    assert!(refused.contains("was not started"), "{refused}");
    assert_eq!(loaded.why_missing("git_log").as_deref(), Some("the MCP server `git` was not started"));
    let bound = file.bind(&host, &file.needs(&Wanted::tool("there")));
    assert_eq!(bound.servers().keys().collect::<Vec<_>>(), ["git"]);
    let told: Vec<String> = bound.error().unwrap().problems().iter().map(short).collect();
    assert_eq!(told[0], "2:7 the environment variable `TOKEN` is not set");
}

#[test]
fn tools_that_a_lock_lists_are_checked_and_others_are_unknown() {
    let text = "
mcp: {git: {transport: stdio, command: x, auto_import_scope: shared}}
tools:
  - {import_tool: 'mcp:git/new', name: fresh, parameters: {any: Thing.}}
  - {name: t, do: [{call: git_log, params: {count: 1}}, {call: git_other, params: {x: 1}}]}
";
    let file = SourceFile::parse(Source::text("t.yaml", text));
    let known = Toolset::new().with(tool("log", &["path"], |_| Ok(ToolOutput::text("")))).unwrap();
    let states = HashMap::from([("git".to_owned(), ServerState::Known(known))]);
    let loaded = file.bind(&host(), &file.needs(&Wanted::everything())).compile(&states);
    let told: Vec<String> = loaded.check().iter().map(short).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("git_log"), "{told:?}");
    let unknown = file.bind(&host(), &file.needs(&Wanted::everything())).compile(&HashMap::new());
    let told: Vec<String> = unknown.check().iter().map(short).collect();
    assert_eq!(told, ["2:12 the MCP server `git` was not started, so calls of its tools are not checked"]);
}
