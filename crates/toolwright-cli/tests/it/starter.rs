//! The file that `toolwright init` writes.

use crate::show_in;

#[test]
fn the_starter_file_checks_calls_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("text.txt"), "a\nthe longest line\nmiddle\n").unwrap();
    let cases: [(&str, &[&str], &str); 8] = [
        ("init", &["init"], ""),
        ("init_again", &["init"], ""),
        ("check", &["check"], ""),
        ("tools", &["tools", "toolwright.yaml", "greet"], ""),
        ("call_greet", &["call", "greet", "name=ada", "-f", "toolwright.yaml"], ""),
        ("run", &["run", "toolwright.yaml", "ada", "grace"], ""),
        ("run_stdin", &["run", "toolwright.yaml", "-"], "ada\ngrace\n"),
        (
            "call_longest_lines",
            &["call", "longest_lines", "path=text.txt", "count=1", "-f", "toolwright.yaml"],
            "",
        ),
    ];
    for (case, args, input) in cases {
        insta::assert_snapshot!(case, show_in(folder.path(), args, input));
    }
}
