//! What single texts come to: `testdata/policy/shell.json`, one verdict a line.

use std::collections::BTreeMap;

use serde::Deserialize;
use toolwright_shell::{ShellPartKind, ShellVerdict, judge, parts};

#[derive(Deserialize)]
struct Table {
    /// Patterns with `*`, by verdict; the strictest that matches holds.
    rules: BTreeMap<String, Vec<String>>,
    /// Texts, by the verdict that those rules must come to.
    texts: BTreeMap<String, Vec<String>>,
}

fn verdict(word: &str) -> ShellVerdict {
    match word {
        "approve" => ShellVerdict::Approve,
        "ask" => ShellVerdict::Ask,
        "reject" => ShellVerdict::Reject,
        other => panic!("unknown verdict {other}"),
    }
}

/// A pattern in which `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == text };
    let Some(rest) = text.strip_prefix(before) else { return false };
    after.is_empty() || (0..=rest.len()).any(|at| rest.get(at..).is_some_and(|rest| fits(after, rest)))
}

#[test]
fn every_text_of_the_table_comes_to_its_verdict() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/policy/shell.json");
    let table: Table = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let rule = |text: &str| {
        let said = table.rules.iter().filter(|(_, patterns)| patterns.iter().any(|p| fits(p, text)));
        said.map(|(word, _)| verdict(word)).max()
    };
    let mut wrong = Vec::new();
    let mut count = 0;
    for (word, texts) in &table.texts {
        for text in texts {
            count += 1;
            let judged = judge(text, rule);
            if judged.verdict != verdict(word) {
                wrong.push(format!("{text:?}: wanted {word}, got {judged:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 300, "only {count} texts");
}

#[test]
fn whatever_is_appended_to_an_approved_command_is_judged_too() {
    let approve = |text: &str| fits("git status*", text).then_some(ShellVerdict::Approve);
    let appended = [
        "; rm x",
        " && rm x",
        " || rm x",
        " | rm x",
        " & rm x",
        "\nrm x",
        " $(rm x)",
        " `rm x`",
        " > x",
        " >> x",
        " < x",
        " <(rm x)",
        " >(rm x)",
        " |& rm x",
        " \"$(rm x)\"",
        " \"`rm x`\"",
        " ${x:-$(rm x)}",
        " $((a[$(rm x)]))",
        " <<E\n$(rm x)\nE",
        " <<< $(rm x)",
        "\\\n; rm x",
        " # c\nrm x",
        " &> x",
        ";{ rm x;}",
        ";(rm x)",
        " 2> x",
        ";if rm x;then :;fi",
        ";while rm x;do :;done",
        ";for i in $(rm x);do :;done",
        ";f(){ rm x;};f",
        ";x=$(rm x)",
        ";case $(rm x) in *) ;; esac",
        "; ! rm x",
        ";time rm x",
        "; coproc rm x",
        ";[[ $(rm x) ]]",
        ";(( a[$(rm x)] ))",
        "\r\nrm x",
        "\u{85}rm x",
        ";eval rm x",
        "; . x",
        ";exec rm x",
    ];
    for end in appended {
        let text = format!("git status{end}");
        assert_ne!(judge(&text, approve).verdict, ShellVerdict::Approve, "{text:?}");
    }
    assert_eq!(judge("git status", approve).verdict, ShellVerdict::Approve);
}

#[test]
fn parts_are_in_one_form_whatever_way_they_are_written() {
    let of = |text: &str| -> Vec<(ShellPartKind, String)> {
        parts(text).unwrap().into_iter().map(|part| (part.kind, part.text)).collect()
    };
    let command = |text: &str| (ShellPartKind::Command, text.to_owned());
    assert_eq!(of(r#"git  sta"tu"s \-s"#), [command("git status -s")]);
    assert_eq!(of("git commit -m \"it's \\\"so\\\"\""), [command(r#"git commit -m 'it'\''s "so"'"#)]);
    assert_eq!(
        of("A=1 B=$x cmd <in 2>&1 >'a b'"),
        [
            command("cmd"),
            (ShellPartKind::Assignment, "A=1".to_owned()),
            (ShellPartKind::Assignment, "B=$x".to_owned()),
            (ShellPartKind::Redirection, "< in".to_owned()),
            (ShellPartKind::Redirection, "> 'a b'".to_owned()),
        ]
    );
}

#[test]
fn a_command_inside_wrappers_names_them_all() {
    let parts = parts("nohup timeout 5 sh -c 'rm x'").unwrap();
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].text, "rm x");
    assert_eq!(parts[0].wrappers, ["nohup timeout 5 sh -c 'rm x'", "timeout 5 sh -c 'rm x'", "sh -c 'rm x'"]);
}
