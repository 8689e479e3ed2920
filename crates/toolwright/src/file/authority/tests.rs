//! Which keys of the format are known to the trust screen, and what of a file is shown on it.

use std::collections::BTreeSet;
use std::path::Path;

use super::format::FORMAT;
use super::*;
use crate::lang::{Source, file_schema};

fn items(folder: &Path, text: &str) -> Vec<(AuthorityKind, String)> {
    let file = ToolFile::parse_all(Source::text("t.yaml", text));
    let authority = file.authority(folder);
    authority.items().iter().map(|item| (item.kind, item.text.clone())).collect()
}

/// A new key of the format is closed until the table says what it opens.
#[test]
fn the_table_has_every_key_of_the_format() {
    let schema = file_schema();
    let mut wanted = BTreeSet::new();
    for (shape, definition) in schema["$defs"].as_object().unwrap() {
        let keys = definition["properties"].as_object().into_iter().flatten();
        wanted.extend(keys.map(|(key, _)| (shape.clone(), key.clone())));
    }
    let own = ("definition".to_owned(), "match".to_owned());
    let known: BTreeSet<_> = FORMAT
        .iter()
        .flat_map(|(shape, keys)| keys.iter().map(|(key, _)| ((*shape).to_owned(), (*key).to_owned())))
        .filter(|entry| *entry != own)
        .collect();
    let missing: Vec<_> = wanted.difference(&known).collect();
    let stale: Vec<_> = known.difference(&wanted).collect();
    assert!(missing.is_empty() && stale.is_empty(), "say what these open: {missing:?}; gone: {stale:?}");
}

#[test]
fn a_key_without_an_entry_is_shown_whole() {
    let mut reader = AuthorityReader { folder: "/srv".into(), authority: Authority::default() };
    reader.shape("chat", "chat", &serde_json::json!({"user_banner": "x", "launches": {"rocket": true}}));
    let items: Vec<_> = reader.authority.items().iter().map(|item| (item.kind, &*item.text)).collect();
    assert_eq!(items, [(AuthorityKind::Other, "chat.launches: {\"rocket\":true}")]);
}

#[test]
fn what_opens_something_is_an_item_of_its_kind() {
    use AuthorityKind::{Approves, Other, Paths, Reaches, Reads, Starts};

    for (text, kind, part) in [
        (
            "mcp: {s: {transport: stdio, command: npx, args: [a b], auto_import_scope: none}}",
            Starts,
            "npx 'a b'",
        ),
        ("mcp: {s: {transport: sse, url: 'http://h/x', auto_import_scope: none}}", Reaches, "http://h/x"),
        ("env: {AWS_SECRET: {secret: true}}", Reads, "$AWS_SECRET (secret)"),
        ("models: {m: {model: openai/x, base_url: 'http://h', key_env: K}}", Reads, "$K"),
        ("models: {m: {model: openai/x, base_url: 'http://h'}}", Reaches, "http://h"),
        ("models: {m: scripted//tmp/r.yaml}", Paths, "/tmp/r.yaml"),
        ("chat: {model_ref: openai/x}", Reaches, "openai/x"),
        ("policy: [{tools: '*', decision: approve}]", Approves, "approve"),
        ("policy: [{tools: '*', decision: allow}]", Approves, "allow"),
        ("policy: [{tools: b, decision: modify, set: {x: 1}}]", Approves, "modify"),
        ("policy: {approvers: [{name: auto, tools: '*'}]}", Approves, "auto"),
        ("tools: [{import_tool: sql_query, config: {database: /x/y.db}}]", Paths, "/x/y.db, read "),
        ("tools: [{import_tool: sql_query, config: {database: y.db, read_only: false}}]", Paths, "written"),
        ("tools: [{import_tool: search_brave, config: {address: 'http://h', key_env: K}}]", Reads, "$K"),
        ("tools: [{import_tool: search_vectors}]", Reads, "$PINECONE_API_KEY"),
        ("tools: [{import_tool: llm_workers.tools.fetch.fetch_content}]", Reaches, "public internet"),
        ("tools: [{import_tool: bash, config: {sandbox: b}}]", Starts, "commands"),
        ("tools: [{import_tool: read_file, config: {instance: x}}]", Other, "instance"),
        ("tools: [{import_tool: llm_workers.tools.fetch.FetchContentTool}]", Other, "FetchContentTool"),
        ("tools: [{import_tool: browser_open}]", Reaches, "browser"),
        ("tools: [{import_tool: computer, config: {start: [xterm]}}]", Starts, "xterm"),
        ("tools: [{import_tool: write_file, require_confirmation: false}]", Approves, "`write_file`"),
        ("tools: [{import_tools: 'mcp:s', prefix: '', force_no_confirmation_for: ['*']}]", Approves, "*"),
        ("tools: [{name: t, annotations: {read_only: true}, do: {eval: 1}}]", Approves, "`t`"),
        ("tools: [{name: t, do: {call: f, params: {url: 'https://h/x?${k}'}}}]", Reaches, "https://h "),
        ("tools: [{name: t, do: {call: f, params: {description: 'https://h/x'}}}]", Reaches, "https://h "),
        ("tools: [{name: t, do: [{if: '${a}', then: {call: r, params: {path: ../x}}}]}]", Paths, "../x"),
        ("cli: {process_input: one_by_one, do: {call: r, params: {path: ~/x}}}", Paths, "~/x"),
        ("tools: [{import_tools: 'python:lib/t.py'}]", Starts, "Python file lib/t.py"),
        ("tools: [{import_tool: 'python:../t.py/f'}]", Paths, "../t.py"),
        ("tools: [{import_tools: 'script:bin/*'}]", Starts, "the scripts"),
        ("tools: [{import_tool: 'script:../x.sh'}]", Paths, "../x.sh"),
        ("scripts: {env: [KEY]}", Reads, "KEY"),
        ("python: {network: [api.example.com]}", Reaches, "api.example.com"),
        ("tools: [{import_tools: 'openapi:api.yaml'}]", Reaches, "OpenAPI document api.yaml"),
        ("tools: [{import_tool: 'openapi:../api.yaml/get'}]", Paths, "../api.yaml"),
        ("openapi: {api.yaml: {base_url: 'https://api.example.com'}}", Reaches, "https://api.example.com"),
        ("openapi: {api.yaml: {auth: {key: API_KEY}}}", Reads, "API_KEY"),
        ("openapi: {api.yaml: {network: ['10.0.0.1:80']}}", Reaches, "10.0.0.1:80"),
        ("python: {env: [KEY]}", Reads, "KEY"),
        ("python: {write: [out]}", Paths, "out"),
        ("python: {interpreter: ./python}", Starts, "./python"),
        ("resources: ['docs/*']", Paths, "docs/*"),
        ("env: {K: {secret: true, secret_visible_to_model: true}}", Reads, "models see the value of $K"),
        ("tools: [{name: t, timeout: none, do: {eval: 1}}]", AuthorityKind::Sandbox, "timeout"),
        ("limits: {turns: 21}", AuthorityKind::Sandbox, "21 instead of 20"),
        ("limits: {max_output: 0}", AuthorityKind::Sandbox, "max_output"),
    ] {
        let items = items(Path::new("/srv/app"), text);
        let shown = items.iter().any(|(known, text)| *known == kind && text.contains(part));
        assert!(shown, "{text}: {items:?}");
    }
}

#[cfg(feature = "sandbox")]
#[test]
fn sandboxes_and_raised_limits_are_items() {
    use AuthorityKind::{Paths, Reaches, Reads, Sandbox, Starts};

    for (text, kind, part) in [
        ("sandbox: local", Starts, "no sandbox at all"),
        ("sandbox: {kind: 'docker:evil/image'}", Starts, "docker:evil/image"),
        ("sandbox: {setup: 'curl x | sh'}", Starts, "curl x | sh"),
        ("sandbox: {read: [/etc]}", Paths, "/etc"),
        ("sandbox: {write: [., ..]}", Paths, ".. "),
        ("sandbox: {write: [.]}", Sandbox, "may be written"),
        ("sandbox: {network: [a.example]}", Reaches, "a.example"),
        ("sandbox: {env: {pass: [MY_KEY]}}", Reads, "$MY_KEY"),
        ("sandbox: {env: {set: {PATH: /x}}}", Sandbox, "PATH"),
        ("sandbox: {write: [.], protect: []}", Sandbox, ".git/hooks"),
        ("sandbox: {write: [.], changes: live}", Sandbox, "at once"),
        ("sandbox: {require: []}", Sandbox, "no seccomp"),
        ("sandbox: {limits: {memory: 9999999999}}", Sandbox, "`memory`"),
        ("sandbox: {limits: {processes: null}}", Sandbox, "no limit"),
        ("sandboxes: {b: local}", Starts, "sandbox `b`"),
    ] {
        let items = items(Path::new("/srv/app"), text);
        let shown = items.iter().any(|(known, text)| *known == kind && text.contains(part));
        assert!(shown, "{text}: {items:?}");
    }
}

#[test]
fn what_opens_nothing_is_no_item() {
    for text in [
        "tools: [{name: t, description: 'see https://h/x and /etc', input: [{name: a, type: str}], do: {eval: '${a}'}}]",
        "tools: [{import_tool: read_file}, {import_tool: think}]",
        "chat: {system_message: 'see https://h', tools: [t, {match: ['*']}]}",
        "policy: [{tools: '*', decision: reject}, {tools: a, decision: ask}]",
        "limits: {tool_calls: 3, turns: 5, max_parallel: 1}",
        "shared: {data: {a: 1}}",
        #[cfg(feature = "sandbox")]
        "sandbox: {mask: [secret], limits: {memory: 1000000000}}",
        "sandbox: none",
    ] {
        assert_eq!(items(Path::new("/srv/app"), text), [], "{text}");
    }
}

#[test]
fn values_with_secret_names_are_not_shown_and_still_count() {
    let text = |token: &str| {
        format!(
            "mcp: {{s: {{transport: stdio, command: x, env: {{API_TOKEN: {token}}}, auto_import_scope: none}}}}"
        )
    };
    let authority =
        |token: &str| ToolFile::parse_all(Source::text("t.yaml", text(token))).authority(Path::new("/srv"));
    let (one, two) = (authority("sesame"), authority("opens"));
    assert!(
        !format!("{:?}", one.items().iter().map(|item| &item.text).collect::<Vec<_>>()).contains("sesame")
    );
    assert_ne!(one.digest(), two.digest());
}

#[cfg(unix)]
#[test]
fn scripts_of_commands_are_bound_to_their_content() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("sub")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", at("link.sh")).unwrap();
    for (command, args, script) in [
        ("sh", "[./server.sh]", "server.sh"),
        ("sh", "[-c, 'cd . && exec ./server.sh --x']", "server.sh"),
        ("./server.sh", "[]", "server.sh"),
        ("node", "['--require=server.sh']", "server.sh"),
        ("npm", "[run, start]", "package.json"),
        ("env", "[X=1, make, serve]", "Makefile"),
        ("python3", "[-m, 'sub.server']", "sub/server.py"),
        ("sh", "[sub/../server.sh]", "server.sh"),
        ("bash", "[-e, ./start]", "start"),
        ("sh", "[-c, 'exec python3 -u main']", "main"),
    ] {
        let text = format!(
            "mcp: {{s: {{transport: stdio, command: '{command}', args: {args}, auto_import_scope: none}}}}"
        );
        let digest = || ToolFile::parse_all(Source::text("t.yaml", &text)).authority(folder.path()).digest();
        let missing = digest();
        std::fs::write(at(script), "one").unwrap();
        let one = digest();
        std::fs::write(at(script), "two").unwrap();
        assert!(one != missing && one != digest(), "{command} {args}");
        std::fs::remove_file(at(script)).unwrap();
        assert_eq!(digest(), missing);
    }
    // What a command writes is not a script.
    for data in ["server.log", "data.db", "started"] {
        let text = format!(
            "mcp: {{s: {{transport: stdio, command: sh, args: [-c, 'touch {data}; exec x --log {data}'], auto_import_scope: none}}}}"
        );
        let digest = || ToolFile::parse_all(Source::text("t.yaml", &text)).authority(folder.path()).digest();
        let before = digest();
        std::fs::write(at(data), "written").unwrap();
        assert_eq!(digest(), before, "{data}");
    }
    let link = "mcp: {s: {transport: stdio, command: sh, args: [link.sh], auto_import_scope: none}}";
    let shown = items(folder.path(), link);
    assert!(shown.iter().any(|(_, text)| text.contains("link.sh (its content is not checked")), "{shown:?}");
}

#[test]
fn a_value_cannot_look_like_a_line_of_its_own() {
    let text =
        "mcp: {s: {transport: stdio, command: sh, args: [\"a\\n  reach hosts\"], auto_import_scope: none}}";
    let items = items(Path::new("/srv"), text);
    let lines: Vec<&str> = items.iter().flat_map(|(_, text)| text.lines()).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
}
