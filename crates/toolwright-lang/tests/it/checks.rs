//! What `check` finds, and how it is told.

use toolwright_lang::{Source, load};

use crate::support::{host, loaded, problems, short};

fn found(text: &str) -> Vec<String> {
    loaded(text)
        .check()
        .iter()
        .map(|problem| format!("{} {}", problem.severity.as_str(), short(problem)))
        .collect()
}

#[test]
fn all_problems_of_a_broken_file_come_at_once() {
    let text = "
shered: {}
tools:
  - {name: a, do: {eval: '${1 +}'}}
  - {name: b, input: [{name: x, type: text}], do: {eval: 1}}
  - {name: c, do: {call: d}}
  - {name: d, do: {if: true, then: {evil: 1}}}
";
    assert_eq!(
        problems(text),
        [
            "2:1 the file has no key `shered`",
            "4:32 unexpected `}`",
            "5:39 `text` is no type",
            "6:26 there is no tool `d`",
            "7:24 `if` of `if` is text, not a boolean",
            "7:36 this is no statement we know",
        ]
    );
}

#[test]
fn hints_name_what_was_meant() {
    let hint = |text: &str| load(Source::text("t.yaml", text), &host()).unwrap_err()[0].hint.clone().unwrap();
    assert_eq!(hint("shered: {}\n"), "did you mean `shared`?");
    assert_eq!(hint("tools: [{name: a, do: {evl: 1}}]\n"), "did you mean `eval`?");
    assert_eq!(hint("tools: [{import_tool: read_fil}]\n"), "did you mean `read_file`?");
    assert_eq!(
        hint("tools: [{name: a, do: {call: b}}, {name: b, do: {eval: 1}}]\n"),
        "`b` is defined further down, or is this very tool; a flow can call the tools above it"
    );
}

#[test]
fn names_nobody_defines_are_found_where_they_stand() {
    let text = "
shared:
  data: {limit: 5}
tools:
  - name: t
    input: [{name: count, type: int}]
    do:
      - eval: '${count + limit}'
        store_as: sum
      - eval: 'have ${coutn} of ${sum}'
      - for_each: [1]
        do: {eval: '${key} ${_} ${sum}'}
  - name: single
    do: {eval: '${_}'}
";
    assert_eq!(
        found(text),
        ["error 10:23 nothing defines `coutn`", "error 14:19 `_` has no value here: nothing came before"]
    );
}

#[test]
fn variables_a_caller_lends_are_known() {
    let text = "
tools:
  - name: t
    input: [{name: x, type: int}]
    tools:
      - {name: view, do: {eval: '${x}'}}
    do: {call: view}
";
    assert_eq!(found(text), Vec::<String>::new());
}

#[test]
fn arguments_the_callee_will_refuse_are_found() {
    let text = "
tools:
  - import_tool: read_file
  - {name: double, input: [{name: v, type: int}], do: {eval: '${v * 2}'}}
  - name: t
    do:
      - call: read_file
        params: {pat: x, lines: many}
      - call: double
        params: {v: abc, w: 1}
      - call: double
        params: {v: '5'}
";
    assert_eq!(
        found(text),
        [
            "error 7:15 `read_file` needs the parameter `path`",
            "error 8:23 `read_file` has no parameter `pat`",
            "error 8:33 `read_file` will refuse this: `lines`: \"many\" is not an integer",
            "error 10:21 `double` will refuse this: `v`: \"abc\" is not an integer",
            "warning 10:29 `double` has no parameter `w`",
        ]
    );
}

#[test]
fn branches_that_never_run_are_found() {
    let text = "
tools:
  - name: t
    do:
      - if: 'false'
        then: {eval: 1}
        else: {eval: 2}
      - if: '${1 > 2}'
        then: {eval: 1}
";
    assert_eq!(
        found(text),
        [
            "warning 5:13 the condition always holds, so `else` never runs",
            "warning 8:13 the condition never holds, so `then` never runs",
        ]
    );
}

#[test]
fn a_problem_is_shown_with_its_line() {
    let text = "tools:\n  - name: t\n    do:\n      evl: 1\n";
    let problem = &load(Source::text("tools/t.yaml", text), &host()).unwrap_err()[0];
    assert_eq!(
        problem.render(),
        "error: this is no statement we know\n  --> tools/t.yaml:4:7\n4 |       evl: 1\n  |       ^^^^^^\n\nhint: did you mean `eval`?"
    );
}
