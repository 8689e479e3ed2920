//! The file, code and shell tools with the parameters they have in MARSYS: what they find must be equal,
//! sentences need not.

use std::collections::BTreeSet;
use std::time::Duration;

use image::ImageFormat;
use serde_json::{Map, Value, json};
use toolwright_core::{Content, ErrorKind, ToolResult};
use toolwright_tools::{references, resolve};

use super::{Vector, finish, tally, to_run};
use crate::support::{Backend, Bench, cases, value_of};

cases![
    file_tools_find_what_they_find_in_marsys,
    pictures_are_shown_as_in_marsys,
    one_tool_does_the_plain_things_to_files,
    hidden_files_are_found_and_patterns_of_paths_too,
    code_and_shell_tools_answer_as_in_marsys,
    paths_of_marsys_begin_at_the_folder_of_the_run,
    definitions_are_those_of_marsys,
    every_tool_of_the_marsys_toolkits_is_there,
    calls_of_the_marsys_documents_work_on_the_standard_tools,
    sections_can_be_read_one_by_one,
    a_strategy_says_how_much_is_read,
    a_program_that_holds_the_pipe_is_stopped_on_time,
    texts_for_the_shell_stay_texts,
];

const FILE_TOOLS: [&str; 8] = [
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "search_files",
    "create_directory",
    "get_file_structure",
    "read_section",
];
const SHELL_TOOLS: [&str; 10] = [
    "python_execute",
    "shell_execute",
    "shell_grep",
    "shell_find",
    "shell_wc",
    "shell_sed",
    "shell_awk",
    "shell_head",
    "shell_tail",
    "shell_diff",
];

async fn bench(backend: Backend) -> Bench {
    let files = FILE_TOOLS.map(|name| resolve(&format!("marsys.{name}")).unwrap());
    let shell = SHELL_TOOLS.map(|name| resolve(name).unwrap());
    let bench = Bench::of(backend, files.into_iter().chain(shell)).await;
    let lines = |count: usize, word: &str| (1..=count).map(|n| format!("{word}{n}\n")).collect::<String>();
    bench.write("ten.txt", lines(10, "line "));
    bench.write("long.txt", lines(600, "L"));
    bench.write("nonl.txt", "a\nb\nc");
    bench.write("empty.txt", "");
    bench.write("big.txt", "x".repeat(130_000));
    bench.write("utf8.txt", "naïve ⚠ 日本語\n");
    bench.write("code.py", "import os\n\ndef f(x):\n    return x\n\nclass K:\n    pass\n");
    bench.write("data.json", r#"{"a": [1, 2], "b": "t"}"#);
    bench.write("bin.dat", [0, 1, 2, 0xff]);
    bench.write("para.md", format!("# One\n\nTwo\n\n{}\n", "x".repeat(104)));
    bench.write("d1/inner.txt", "needle here\n");
    bench.write("d1/d2/deep.txt", "needle deep\n");
    bench.write("out/new.md", "x\n");
    bench
}

fn of_kind(kind: &str) -> impl Iterator<Item = Vector> {
    to_run("marsys/tools").into_iter().filter(move |vector| vector.id.starts_with(&format!("{kind}/")))
}

/// Whether it worked there: an exception, `success: false` and `error: true` all mean that it did not.
fn worked(observed: &Value) -> bool {
    let ok = observed.get("ok");
    ok.is_some_and(|ok| ok["success"] != false && ok["error"] != true)
}

/// What the observation says that can be compared, by name.
fn facts(tool: &str, told: &Value) -> Map<String, Value> {
    let names: &[&str] = match tool {
        "read_file" => &[
            "content",
            "path",
            "encoding",
            "total_lines",
            "file_size",
            "character_count",
            "estimated_tokens",
        ],
        "write_file" => &["success", "path", "lines_changed"],
        "list_files" => {
            &["path", "files", "file_count", "directory_count", "total_size", "pattern", "recursive"]
        }
        "search_files" => &["query", "search_type", "matches", "total_matches", "truncated"],
        "create_directory" => &["success", "path", "already_existed"],
        "get_file_structure" => &["type", "sections", "metadata"],
        _ => &[],
    };
    let mut facts = Map::new();
    for name in names {
        let mut value = told[*name].clone();
        if let Some(items) = value.as_array_mut() {
            items.iter_mut().for_each(settle);
            items.sort_by_key(|item| item["file"].to_string() + &item["path"].to_string());
        }
        // There, a number that is 0 is left out.
        let zero = value.is_null()
            && matches!(*name, "total_lines" | "file_size" | "character_count" | "estimated_tokens");
        facts.insert((*name).to_owned(), if zero { 0.into() } else { value });
    }
    facts
}

/// Takes away what differs from machine to machine, or is never filled in.
fn settle(item: &mut Value) {
    let Some(item) = item.as_object_mut() else { return };
    if item.get("is_directory") == Some(&Value::Bool(true)) {
        item.remove("size");
        item.remove("size_human");
    }
    item.retain(|name, value| {
        let unset = value.is_null() || *value == json!([]) || *value == json!({});
        !unset && name != "modified"
    });
}

async fn file_tools_find_what_they_find_in_marsys(backend: Backend) {
    let bench = bench(backend).await;
    let mut tally = tally();
    for vector in of_kind("file") {
        let Some(tool) = vector.given["tool"].as_str() else { continue };
        if is_about_a_picture(&vector) || vector.id.contains("pdf") {
            continue;
        }
        let result = bench.call(tool, vector.given["args"].clone()).await;
        if !worked(&vector.observed) {
            tally.check(&vector.id, &true, &result.error.is_some());
            continue;
        }
        let ok = &vector.observed["ok"];
        let observed = if ok["$ToolResponse"].is_null() { ok } else { &ok["$ToolResponse"]["content"] };
        assert!(result.error.is_none(), "{}: {:?}", vector.id, result.error);
        tally.check(&vector.id, &facts(tool, observed), &facts(tool, &value_of(&result)));
    }
    finish(&tally);
    assert_eq!(bench.read("out/new.md"), "x\ny\n");
}

fn is_about_a_picture(vector: &Vector) -> bool {
    let path = vector.given["args"]["path"].as_str().unwrap_or_default();
    [".png", ".jpg", ".gif"].iter().any(|ending| path.ends_with(ending))
}

async fn pictures_are_shown_as_in_marsys(backend: Backend) {
    let bench = bench(backend).await;
    for (name, width, height, format) in [
        ("wide.jpg", 3000, 1000, ImageFormat::Jpeg),
        ("im.png", 640, 480, ImageFormat::Png),
        ("tiny.gif", 10, 10, ImageFormat::Gif),
    ] {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image::DynamicImage::new_rgb8(width, height).write_to(&mut bytes, format).unwrap();
        bench.write(name, bytes.into_inner());
    }
    let mut tally = tally();
    for vector in of_kind("file").filter(is_about_a_picture) {
        let tool = vector.given["tool"].as_str().unwrap();
        let result = bench.call(tool, vector.given["args"].clone()).await;
        assert!(result.error.is_none(), "{}: {:?}", vector.id, result.error);
        let told = value_of(&result);
        if tool == "get_file_structure" {
            let ok = &vector.observed["ok"];
            let about = |told: &Value| {
                let section = &told["sections"][0];
                let size = &told["metadata"]["dimensions"];
                (told["type"].clone(), section["id"].clone(), section["metadata"].clone(), size.clone())
            };
            tally.check(&vector.id, &about(ok), &about(&told));
            continue;
        }
        let blocks = &vector.observed["ok"]["$ToolResponse"]["content"];
        let words = blocks[0]["text"].as_str().unwrap();
        let said =
            |what: &str| words.split(what).nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
        let url = &blocks[1]["image_url"]["url"];
        let url = url["$data_url"].as_str().or(url.as_str()).unwrap();
        let wanted = (
            said("Dimensions: "),
            said("(generic): "),
            words.contains("Downsampled"),
            url.split([':', ';']).nth(1).unwrap().to_owned(),
        );
        let Some(Content::Image(media)) = result.content.get(1) else { panic!("{result:?}") };
        let got = (
            format!("{}x{}", told["width"], told["height"]),
            told["estimated_tokens"].to_string(),
            told["downsampled"] == true,
            media.mime_type.clone(),
        );
        tally.check(&vector.id, &wanted, &got);
    }
    finish(&tally);
}

/// The parameters of a method that was called by position.
fn named(vector: &Vector) -> (String, Value) {
    let method = vector.given["method"].as_str().unwrap();
    let names: &[&str] = match method {
        "grep" => &["pattern", "file_or_dir"],
        "sed" => &["pattern", "replacement", "file_path"],
        "awk" => &["script", "file_path"],
        "execute" => &["command"],
        _ => &["file_path"],
    };
    let mut arguments = vector.given["kw"].as_object().unwrap().clone();
    let values = vector.given["args"].as_array().unwrap();
    arguments.extend(names.iter().map(|name| (*name).to_owned()).zip(values.iter().cloned()));
    (format!("shell_{method}"), Value::Object(arguments))
}

async fn code_and_shell_tools_answer_as_in_marsys(backend: Backend) {
    let bench = bench(backend).await;
    let mut tally = tally();
    for vector in of_kind("code") {
        let tool = if vector.given["code"].is_null() { "shell_execute" } else { "python_execute" };
        let got = value_of(&bench.call(tool, vector.given.clone()).await);
        let wanted = &vector.observed["ok"][0];
        let outcome = |told: &Value| {
            let last = told["stderr"].as_str().unwrap_or_default().lines().last().map(str::to_owned);
            (told["success"].clone(), told["exit_code"].clone(), last)
        };
        tally.check(&vector.id, &outcome(wanted), &outcome(&got));
        // The folder of the observation had another name.
        if vector.id != "code/sh_pwd" {
            tally.check(&vector.id, &wanted["stdout"], &got["stdout"]);
        }
    }
    for vector in of_kind("shell") {
        let (tool, arguments) = named(&vector);
        let got = value_of(&bench.call(&tool, arguments).await);
        let Some(wanted) = vector.observed["ok"].as_object() else { panic!("{}", vector.id) };
        for (name, wanted) in wanted {
            // A file in which nothing was found counts there and not here.
            if name != "files_searched" || vector.observed["ok"]["total_matches"] != 0 {
                tally.check(&vector.id, &(name, wanted), &(name, &got[name]));
            }
        }
    }
    finish(&tally);
    assert!(!bench.folder.join("pwned.flag").exists());
}

async fn paths_of_marsys_begin_at_the_folder_of_the_run(backend: Backend) {
    let bench = bench(backend).await;
    let mut tally = tally();
    for vector in of_kind("vfs") {
        let path = vector.given.as_str().unwrap_or_default();
        if path.is_empty() || path == "lnk/passwd" {
            continue;
        }
        let path_of = |result: &ToolResult| value_of(result)["path"].as_str().map(str::to_owned);
        let arguments = json!({"path": path, "content": "x"});
        let result = bench.call("write_file", arguments).await;
        let wanted =
            vector.observed["ok"]["virtual"].as_str().map(|path| path.trim_start_matches('/').to_owned());
        tally.check(&vector.id, &wanted, &path_of(&result));
        if let Some(path) = wanted {
            assert!(bench.folder.join(path).is_file());
        }
    }
    finish(&tally);
}

async fn a_strategy_says_how_much_is_read(backend: Backend) {
    let bench = bench(backend).await;
    let object: Map<String, Value> = (0..100).map(|n| (format!("k{n}"), "v".repeat(500).into())).collect();
    bench.write("bigobj.json", Value::Object(object).to_string());
    bench.write("para.txt", "line\n\n".repeat(30_000));
    let read = async |path: &str, strategy: &str| {
        bench.value("read_file", json!({"path": path, "strategy": strategy})).await
    };
    // The lengths are those of MARSYS (but for the last, whose JSON has blanks there).
    for (path, strategy, length, partial) in [
        ("long.txt", "auto", 2892, false),
        ("long.txt", "full", 2892, false),
        ("long.txt", "partial", 1141, true),
        ("bigobj.json", "full", 21_292, true),
        ("bigobj.json", "auto", 50_891, false),
    ] {
        let got = read(path, strategy).await;
        let told = (got["content"].as_str().unwrap().chars().count(), got["partial"] == true);
        assert_eq!(told, (length, partial), "{path} {strategy}");
    }
    let section = |told: &Value| {
        ["id", "title", "start_line", "end_line"].map(|name| told["structure"]["sections"][0][name].clone())
    };
    for (strategy, content) in [("progressive", "- L1"), ("overview", "- L1 (lines 1-600)")] {
        let got = read("long.txt", strategy).await;
        assert_eq!((&got["content"], &got["partial"]), (&json!(content), &json!(true)));
        assert_eq!(section(&got), [json!("paragraph:1"), json!("L1"), json!(1), json!(600)]);
    }
    assert!(read("para.txt", "auto").await["content"].as_str().unwrap().starts_with("- line\n- line\n"));
    let lines = json!({"path": "para.txt", "strategy": "auto", "start_line": 1, "end_line": 1});
    assert_eq!(bench.value("read_file", lines).await["content"], "line");
    let all = json!({"path": "para.txt", "strategy": "full"});
    assert_eq!(bench.error("read_file", all).await.0, ErrorKind::OutputLimit);
}

async fn definitions_are_those_of_marsys(_: Backend) {
    let mut tally = tally();
    for vector in of_kind("file").filter(|vector| vector.id.starts_with("file/schema_")) {
        let tool = resolve(&format!("marsys.{}", vector.given.as_str().unwrap())).unwrap();
        let wanted = &vector.observed["ok"]["function"]["parameters"];
        let names: BTreeSet<&str> = tool.spec().parameter_names().collect();
        let all = wanted["properties"].as_object().unwrap().keys().all(|name| names.contains(name.as_str()));
        tally.check(&vector.id, &(true, &wanted["required"]), &(all, &tool.spec().parameters["required"]));
    }
    finish(&tally);
}

async fn every_tool_of_the_marsys_toolkits_is_there(_: Backend) {
    let known: BTreeSet<&str> = references().collect();
    let mut tally = tally();
    for vector in of_kind("file").filter(|vector| vector.id == "file/tool_names") {
        let names = vector.observed.as_array().unwrap().iter();
        let unknown: Vec<&Value> =
            names.filter(|name| !known.contains(&*format!("marsys.{}", name.as_str().unwrap()))).collect();
        tally.check(&vector.id, &Vec::new(), &unknown);
    }
    finish(&tally);
    assert!(SHELL_TOOLS.iter().all(|name| known.contains(name)));
}

/// The calls as its documents write them, on the tools a run has anyway.
async fn calls_of_the_marsys_documents_work_on_the_standard_tools(backend: Backend) {
    let bench = Bench::new(backend).await;
    let text = |path: &str| bench.read(path);
    bench
        .text("write_file", json!({"path": "a/n.md", "content": "one\ntwo\nthree\n", "mode": "write"}))
        .await;
    bench.text("write_file", json!({"path": "a/n.md", "content": "four\n", "mode": "append"})).await;
    assert_eq!(text("a/n.md"), "one\ntwo\nthree\nfour\n");
    bench.text("write_file", json!({"path": "a/n.md", "content": "1\n2\n3\n", "mode": "write"})).await;
    let lines = json!({"path": "a/n.md", "encoding": "utf-8", "lines": [2, 3]});
    assert_eq!(bench.text("read_file", lines).await, "2\n3\n");
    for lines in [[0, 1], [3, 2], [4, 9]] {
        let error = bench.error("read_file", json!({"path": "a/n.md", "lines": lines})).await;
        assert_eq!(error.0, ErrorKind::Parsing, "{lines:?}");
    }
    let middle = bench.call("read_file", json!({"path": "a/n.md", "lines": 1, "offset": 1})).await;
    assert_eq!((middle.to_text().as_str(), &middle.metadata["lines_left"]), ("2\n", &json!(1)));
    let end = bench.call("read_file", json!({"path": "a/n.md", "lines": 9})).await;
    assert!(end.metadata.is_empty(), "{end:?}");
    bench.write("latin", b"caf\xe9");
    assert_eq!(bench.error("read_file", json!({"path": "latin"})).await.0, ErrorKind::UnicodeDecode);
    assert_eq!(bench.text("read_file", json!({"path": "latin", "encoding": "latin-1"})).await, "café");
    let wrong = bench.error("read_file", json!({"path": "latin", "encoding": "klingon"})).await;
    assert_eq!(wrong.0, ErrorKind::Parsing);
    let listed = bench.value("list_directory", json!({"path": "a", "pattern": "*.md"})).await;
    assert_eq!(listed, json!([{"name": "n.md", "type": "file", "size": 6}]));
    assert_eq!(bench.value("list_directory", json!({"path": "a", "pattern": "*.txt"})).await, json!([]));
}

async fn sections_can_be_read_one_by_one(backend: Backend) {
    let bench = bench(backend).await;
    let told = bench.value("get_file_structure", json!({"path": "/code.py"})).await;
    assert_eq!(told["outline"], "- import os\n- def f(x):\n- class K:");
    let section = bench.call("read_section", json!({"path": "code.py", "section_id": "paragraph:2"})).await;
    assert_eq!(section.to_text(), "def f(x):\n    return x");
    assert_eq!(section.metadata["line_range"], json!([3, 4]));
    let found = json!({"query": "class", "search_type": "structure"});
    assert_eq!(bench.value("search_files", found).await["matches"][0]["section_id"], "paragraph:3");
    bench.write("p.png", b"\x89PNG\r\n\x1a\n");
    assert_eq!(bench.error("get_file_structure", json!({"path": "p.png"})).await.0, ErrorKind::UnicodeDecode);
    let overview = json!({"path": "code.py", "start_line": 1, "end_line": 2, "include_overview": true});
    let read = bench.value("read_file", overview).await;
    assert_eq!((&read["partial"], &read["overview"]["type"]), (&json!(true), &json!("python")));
    bench.value("read_file", json!({"path": "code.py", "extract_images": false})).await;
    let made = bench.value("create_directory", json!({"path": "d1"})).await;
    assert_eq!(made["already_existed"], true);
}

async fn a_program_that_holds_the_pipe_is_stopped_on_time(backend: Backend) {
    let bench = bench(backend).await;
    let command = "echo before; sleep 3600; true";
    let call = bench.call("shell_execute", json!({"command": command, "timeout": 1}));
    let result = tokio::time::timeout(Duration::from_secs(60), call).await.unwrap();
    let error = result.error.as_ref().unwrap();
    assert_eq!(error.kind, ErrorKind::Timeout);
    assert!(result.to_text().contains("before"), "{result:?}");
}

/// Nothing that a model puts into a parameter is read as something else.
async fn texts_for_the_shell_stay_texts(backend: Backend) {
    let bench = bench(backend).await;
    let sed = |pattern: &str, replacement: &str| json!({"pattern": pattern, "replacement": replacement, "file_path": "nonl.txt"});
    let output = async |arguments: Value| bench.value("shell_sed", arguments).await["output"].clone();
    assert_eq!(output(sed("b", "x/y;e touch pwned")).await, "a\nx/y;e touch pwned\nc");
    assert_eq!(output(sed("b", "two\nlines")).await, "a\ntwo\nlines\nc");
    for (pattern, replacement) in [("b\\", "x"), ("b", "x\\"), ("b\u{1}w pwned\n", ""), ("b\nw pwned", "")] {
        assert_eq!(bench.error("shell_sed", sed(pattern, replacement)).await.0, ErrorKind::Parsing);
    }
    bench.write("-exec", "needle\n");
    let found = bench.value("shell_grep", json!({"pattern": "needle", "file_or_dir": "-exec"})).await;
    assert_eq!(found["total_matches"], 1);
    let around = json!({"pattern": "line 1$", "file_or_dir": "ten.txt", "context_lines": 1});
    let found = bench.value("shell_grep", around).await;
    assert_eq!((&found["total_matches"], &found["context"][0]["line"]), (&json!(1), &json!("line 2")));
    let counted = bench.value("shell_wc", json!({"file_path": "utf8.txt"})).await;
    assert_eq!(counted["words"], 3);
    let found = bench.value("shell_find", json!({"path": "d1", "name_pattern": "*.txt", "type": "f"})).await;
    assert_eq!(found["files"], json!([{"path": "d1/d2/deep.txt"}, {"path": "d1/inner.txt"}]));
    let diff = bench.value("shell_diff", json!({"file1": "ten.txt", "file2": "nonl.txt"})).await;
    assert_eq!((&diff["identical"], &diff["changes"]), (&json!(false), &json!(13)));
    let head = bench.value("shell_head", json!({"file_path": "ten.txt", "num_lines": 1})).await;
    assert_eq!(head["lines"], json!(["line 1"]));
    let awk = bench.value("shell_awk", json!({"script": "{print $2}", "file_path": "ten.txt"})).await;
    assert_eq!(awk["lines_processed"], 10);
    let in_place = json!({"pattern": "line", "replacement": "row", "file_path": "ten.txt", "in_place": true});
    bench.value("shell_sed", in_place).await;
    assert!(bench.read("ten.txt").starts_with("row 1\n"));
    assert!(!bench.folder.join("pwned").exists());
}

async fn one_tool_does_the_plain_things_to_files(backend: Backend) {
    let bench = Bench::of(backend, resolve("marsys.file_operations")).await;
    let ask = async |arguments: Value| bench.value("file_operations", arguments).await;
    let written = ask(json!({"operation": "write", "path": "a/b.txt", "content": "hi"})).await;
    assert_eq!(written, json!({"path": "a/b.txt", "written": 2, "status": "success"}));
    let read = ask(json!({"operation": "read", "path": "/a/b.txt"})).await;
    assert_eq!(read, json!({"path": "a/b.txt", "content": "hi", "size": 2}));
    assert_eq!(ask(json!({"operation": "list", "path": "a"})).await["items"], json!(["b.txt"]));
    let about = ask(json!({"operation": "info", "path": "a"})).await;
    assert_eq!((&about["is_dir"], &about["is_file"]), (&json!(true), &json!(false)));
    let changes = json!({"search": "hi", "replace": "ho"});
    ask(json!({"operation": "edit", "path": "a/b.txt", "changes": changes})).await;
    assert_eq!(bench.read("a/b.txt"), "ho");
    for (wrong, kind) in [
        (json!({"operation": "write", "path": "z"}), ErrorKind::Parsing),
        (json!({"operation": "edit", "path": "a/b.txt"}), ErrorKind::Parsing),
        (json!({"operation": "move", "path": "a/b.txt"}), ErrorKind::Parsing),
        (json!({"operation": "read", "path": "zz"}), ErrorKind::FileNotFound),
        (json!({"operation": "info", "path": "zz"}), ErrorKind::FileNotFound),
        (json!({"operation": "read", "path": "../x"}), ErrorKind::Unknown),
        (json!({"operation": "list", "path": "a/b.txt"}), ErrorKind::Unknown),
        (json!({"operation": "delete", "path": "a"}), ErrorKind::Unknown),
    ] {
        assert_eq!(bench.error("file_operations", wrong.clone()).await.0, kind, "{wrong}");
    }
    ask(json!({"operation": "delete", "path": "a/b.txt"})).await;
    ask(json!({"operation": "delete", "path": "a"})).await;
    assert!(!bench.folder.join("a").exists());
}

async fn hidden_files_are_found_and_patterns_of_paths_too(backend: Backend) {
    let bench = bench(backend).await;
    bench.write("d1/.hidden", "needle hid\n");
    bench.write(".git/needle", "needle\n");
    bench.write("UPPER.TXT", "x\n");
    let files = async |arguments: Value| -> Vec<String> {
        let told = bench.value("search_files", arguments).await;
        let matches = told["matches"].as_array().unwrap().iter();
        matches.map(|found| found["file"].as_str().unwrap().to_owned()).collect()
    };
    let found = files(json!({"query": "needle h"})).await;
    assert_eq!(found, ["d1/.hidden", "d1/inner.txt"]);
    assert_eq!(files(json!({"query": "hidden", "search_type": "filename"})).await, ["d1/.hidden"]);
    assert_eq!(files(json!({"query": "*.TXT", "search_type": "filename"})).await, ["UPPER.TXT"]);
    assert_eq!(files(json!({"query": "upper", "search_type": "filename"})).await, ["UPPER.TXT"]);
    let one = json!({"query": "deep", "search_type": "filename", "path": "d1/d2/deep.txt"});
    assert_eq!(files(one).await, ["d1/d2/deep.txt"]);
    let listed = bench.value("list_files", json!({"pattern": "d1/**/*.txt", "recursive": true})).await;
    assert_eq!(listed["file_count"], 2);
    bench.write("bom.txt", b"\xef\xbb\xbfhi\n");
    assert_eq!(bench.value("read_file", json!({"path": "bom.txt"})).await["content"], "hi\n");
    bench.write("latin.txt", b"caf\xe9\n");
    let read = bench.value("read_file", json!({"path": "latin.txt", "encoding": "utf-8"})).await;
    assert_eq!((&read["content"], &read["encoding"]), (&json!("caf\u{e9}\n"), &json!("latin-1")));
    let fenced = json!({"path": "/nonl.txt", "changes": "```diff\n@@ -1,1 +1,1 @@\n-a\n+A\n```"});
    assert_eq!(bench.value("edit_file", fenced).await["lines_changed"], 2);
    assert_eq!(bench.read("nonl.txt"), "A\nb\nc");
    let wrong = json!({"path": "ten.txt", "changes": {"search": "line", "replace": "x"}, "edit_format": "unified_diff"});
    assert_eq!(bench.error("edit_file", wrong).await.0, ErrorKind::Parsing);
}
