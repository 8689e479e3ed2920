//! What a model asks of large files is bounded before memory is taken for it.

use serde_json::{Value, json};
use toolwright_core::ErrorKind;
use toolwright_tools::{Options, resolve_with};

use crate::support::{Backend, Bench, cases};

cases![
    an_edit_makes_no_file_that_could_not_be_read,
    lines_around_matches_are_bounded,
    lines_of_a_large_file_are_read_one_by_one,
    a_long_name_of_a_folder_is_not_repeated_without_end,
];

async fn marsys(backend: Backend, names: &[&str]) -> Bench {
    let tools = names.iter().map(|name| resolve_with(&format!("marsys.{name}"), &Options::new()).unwrap());
    Bench::of(backend, tools).await
}

async fn an_edit_makes_no_file_that_could_not_be_read(backend: Backend) {
    let (text, long) = ("a".repeat(1 << 20), "b".repeat(1000));
    let bench = Bench::new(backend).await;
    bench.write("f", &text);
    let edit = json!({"path": "f", "old_string": "a", "new_string": long, "replace_all": true});
    let (kind, message) = bench.error("edit_file", edit).await;
    assert_eq!(
        (kind, message.as_str()),
        (ErrorKind::OutputLimit, "f would have 1048576000 bytes, and 100 MiB is the most")
    );
    assert_eq!(bench.read("f"), text);
    let bench = marsys(backend, &["edit_file"]).await;
    bench.write("f", &text);
    let edit = json!({"path": "f", "changes": {"search": "a", "replace": long}, "replace_all": true});
    assert_eq!(bench.error("edit_file", edit).await.0, ErrorKind::OutputLimit);
    assert_eq!(bench.read("f"), text);
}

async fn lines_around_matches_are_bounded(backend: Backend) {
    let bench = Bench::new(backend).await;
    let lines = 100_000;
    bench.write("f", "\n".repeat(lines));
    let around = json!({"pattern": "^", "files_glob": "f", "lines_before": 1000, "lines_after": 1000, "max_results": 50_000});
    let found = bench.value("grep_files", around).await;
    let told = found["matches"].as_array().unwrap();
    let copied: usize = told.iter().map(|hit| hit["context_before"].as_array().unwrap().len()).sum();
    assert!(!told.is_empty() && copied < 1_000_000, "{copied}");
    assert_eq!(found["matches_left_out"], 50_000 - told.len());
    assert_eq!(found["total_matches"], lines);
    let bench = marsys(backend, &["search_files"]).await;
    bench.write("f", "\n".repeat(lines));
    let around = json!({"query": "^", "path": "f", "context_lines": 1000, "max_results": 50_000});
    let found = bench.value("search_files", around).await;
    let told = found["matches"].as_array().unwrap();
    assert_eq!(found["metadata"]["matches_left_out"], 50_000 - told.len());
    assert_eq!((&found["truncated"], &found["total_matches"]), (&Value::from(true), &Value::from(lines)));
}

async fn lines_of_a_large_file_are_read_one_by_one(backend: Backend) {
    let bench = Bench::new(backend).await;
    let lines = 4 << 20;
    bench.write("f", "\n".repeat(lines));
    let read = bench.call("read_file", json!({"path": "f", "lines": 2})).await;
    assert_eq!(read.to_text(), "\n\n");
    let numbered = bench
        .text("read_file", json!({"path": "f", "lines": 2, "offset": -3, "show_line_numbers": true}))
        .await;
    assert_eq!(numbered, format!("{}: \n{}: ", lines - 2, lines - 1));
}

async fn a_long_name_of_a_folder_is_not_repeated_without_end(backend: Backend) {
    let bench = Bench::new(backend).await;
    let long = vec!["d".repeat(250); 15].join("/");
    bench.write(&format!("{long}/0"), "");
    for name in 1..20_000 {
        std::fs::File::create(bench.folder.join(format!("{long}/{name}"))).unwrap();
    }
    assert_eq!(bench.error("list_files", json!({"path": long})).await.0, ErrorKind::OutputLimit);
    // However often one writes that one stays where one is, the path is short.
    std::fs::rename(bench.folder.join(&long), bench.folder.join("d")).unwrap();
    let dots = format!("{}d", "./".repeat(2000));
    assert_eq!(bench.text("list_files", json!({"path": dots})).await.lines().count(), 20_000);
}
