//! What `check` finds, and how it is told.

use std::collections::HashMap;

use toolwright_lang::{Source, SourceFile, Wanted, load, load_all};

use crate::support::{host, loaded, problems, short};

fn found(text: &str) -> Vec<String> {
    let mut file = SourceFile::parse(Source::text("test.yaml", text));
    for name in ["policy", "limits", "sandbox"] {
        file.section(name, |_| Ok(()));
    }
    let needs = file.needs(&Wanted::everything());
    file.bind(&host(), &needs)
        .compile(&HashMap::new())
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
  - {name: a, do: {eval: 1}}
";
    assert_eq!(
        problems(text),
        [
            "2:1 the file has no key `shered`",
            "4:32 unexpected `}`",
            "5:39 unknown type `text`",
            "6:26 `d` cannot be called here: it is defined further down, or is this very tool",
            "7:24 `if` of `if` is text, not a boolean",
            "7:36 unknown statement",
            "8:12 there are two tools `a` in the file",
        ]
    );
}

#[test]
fn hints_name_what_was_meant() {
    let hint = |text: &str| {
        load(Source::text("t.yaml", text), &host()).unwrap_err().problems()[0].hint.clone().unwrap()
    };
    assert_eq!(hint("shered: {}\n"), "did you mean `shared`?");
    assert_eq!(hint("tools: [{name: a, do: {evl: 1}}]\n"), "did you mean `eval`?");
    assert_eq!(hint("tools: [{import_tool: read_fil}]\n"), "did you mean `read_file`?");
    assert_eq!(
        hint("tools: [{name: a, do: {call: b}}, {name: b, do: {eval: 1}}]\n"),
        "a flow can call the tools above it; move that one up. Tools that call themselves or one another in a circle would never end"
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
fn groups_are_known_where_a_pattern_gives_them() {
    let text = r"
tools:
  - name: t
    input: [{name: q, type: str}]
    do:
      - match: '${q}'
        matchers:
          - {pattern: '(a)(b)', then: {eval: '${match0 + match1} ${_match_groups}'}}
          - {pattern: '(a)', then: {eval: '${match1}'}}
          - {case: x, then: {eval: '${_match_groups}'}}
        default: {eval: '${[_match_groups for _match_groups in q]}'}
";
    assert_eq!(
        found(text),
        [
            "error 9:46 nothing defines `match1`",
            "error 10:39 nothing defines `_match_groups`",
            "error 11:47 \"_match_groups\" cannot be given a value",
        ]
    );
}

#[test]
fn settings_of_a_model_tool_are_of_their_kinds() {
    let text = "
tools:
  - {import_tool: build_llm_tool, name: a, config: {model_ref: 5, system_message: [x], extract_json: 5}}
  - {import_tool: build_llm_tool, name: b, config: nonsense}
  - {import_tool: build_llm_tool, name: c, config: {extract_json: frist, modle_ref: x, tools: add}}
  - {name: d, config: 5, do: {eval: 1}}
  - {import_tool: build_llm_tool, name: e, config: {extract_json: true, system_message: null}}
";
    assert_eq!(
        found(text),
        [
            "error 3:64 `model_ref` of the config of a model is text, not an integer",
            "error 3:83 `system_message` of the config of a model is text, not a list",
            "error 3:102 `extract_json` of the config of a model is true, false, `first`, `last`, `all` or `none`, not an integer",
            "error 4:52 `config` of `import_tool` is a map, not text",
            "warning 5:67 unknown value `frist` of `extract_json` is read as `none`",
            "error 5:74 the config of a model has no key `modle_ref`",
            "error 5:95 `tools` of the config of a model is a list, not text",
            "error 6:23 the config of a tool made of statements is a map, not an integer",
        ]
    );
}

#[test]
fn hints_know_the_functions_of_the_language() {
    let text = "
tools:
  - name: t
    input: [{name: q, type: dict}]
    do:
      - eval: '${lenn(q)} ${sortd(q)} ${rnage(3)} ${pritn_json(q)}'
      - {for_each: '${q}', do: {eval: '${kye}'}}
";
    let all = load_all(Source::text("t.yaml", text), &host()).check();
    let hints: Vec<_> = all.iter().map(|problem| problem.hint.as_deref().unwrap()).collect();
    let meant = ["len", "sorted", "range", "print_json", "key"].map(|name| format!("did you mean `{name}`?"));
    assert_eq!(hints, meant);
}

#[test]
fn what_calls_give_is_known_where_it_is_constant() {
    let text = "
tools:
  - {name: add, input: [{name: a, type: int}], do: {eval: '${a}'}}
  - name: t
    input: [{name: q, type: str}]
    do:
      - {call: add, params: {a: '${[1, 2]}'}}
      - {call: add, params: {a: 'x${q}'}}
      - {call: add, params: {a: '1${q}'}}
      - {call: add, params: {a: '${\"7\"}'}}
      - starlark: |
          add(a='zz')
          add(1)
          add(a='7')
      - {if: '${False and q}', then: {eval: 1}}
      - {if: '${q or True}', then: {eval: 1}}
      - {if: '${q and True}', then: {eval: 1}}
";
    assert_eq!(
        found(text),
        [
            "error 7:33 `add` will refuse this: `a`: [1,2] is not an integer",
            "error 8:33 `add` will refuse this: `a` is an integer, and this is text",
            "warning 12:11 the script has no result: it defines neither `result` nor `run`",
            "error 12:11 `add` will refuse this: `a`: \"zz\" is not an integer",
            "error 13:11 `add` takes its arguments by name",
            "warning 15:14 the condition never holds, so `then` never runs",
            "warning 16:14 the condition always holds",
        ]
    );
}

#[test]
fn a_problem_hides_no_other_of_the_same_statement() {
    let text = "
tools:
  - {name: broken, input: [{name: a, type: int}], do: {eval: '${1 +} ${zz} ${2 *}'}}
  - name: t
    do:
      - {eval: '${1 -}', store_as: 5}
      - {eval: '${bad1}', stor_as: x}
      - {eval: '${x}'}
      - {call: b, parms: {q: 1}}
      - {for_each: '${bad4}', doo: {eval: 1}}
      - {call: broken, params: {a: '${[1]}'}}
      - {call: broken, parms: {a: 1}}
      - {if: '${1 /}', then: {eval: '${bad5}'}}
";
    let lines: Vec<String> =
        found(text).iter().map(|problem| problem.trim_start_matches("error ").to_owned()).collect();
    assert_eq!(
        lines,
        [
            "3:68 unexpected `}`",
            "3:72 nothing defines `zz`",
            "3:81 unexpected `}`",
            "6:22 unexpected `}`",
            "6:36 `store_as` of `eval` is text, not an integer",
            "7:19 nothing defines `bad1`",
            "7:27 `eval` has no key `stor_as`",
            "9:16 there is no tool `b`",
            "9:19 `call` has no key `parms`",
            "10:9 `for_each` needs the key `do`",
            "10:23 nothing defines `bad4`",
            "10:31 `for_each` has no key `doo`",
            "11:16 `broken` cannot be called: its definition has problems",
            "11:36 `broken` will refuse this: `a`: [1] is not an integer",
            "12:16 `broken` cannot be called: its definition has problems",
            "12:24 `call` has no key `parms`",
            "13:20 unexpected `}`",
            "13:40 nothing defines `bad5`",
        ]
    );
}

#[test]
fn all_names_of_shared_texts_are_told_with_hints() {
    let text = "
shared:
  data:
    count: 1
    a: '${cuont} and ${nope_nothing_like_it}'
    b: '${c}'
    c: {x: '${1 // 0}', y: 'it''s ${lenn([])}'}
chat:
  system_message: 'You ${coutn} ${cuont}.'
";
    let all = load_all(Source::text("t.yaml", text), &host()).check();
    let told: Vec<String> = all
        .iter()
        .map(|problem| format!("{} ({})", short(problem), problem.hint.as_deref().unwrap_or("-")))
        .collect();
    assert_eq!(
        told,
        [
            "5:11 nothing defines `cuont` (did you mean `count`?)",
            "5:24 nothing defines `nope_nothing_like_it` (-)",
            "6:11 nothing defines `c` (`c` is defined further down; move it above)",
            "7:15 integer division or modulo by zero (-)",
            "7:37 nothing defines `lenn` (did you mean `len`?)",
            "9:26 nothing defines `coutn` (did you mean `count`?)",
            "9:35 nothing defines `cuont` (did you mean `count`?)",
        ]
    );
}

#[test]
fn kinds_of_names_are_held_against_what_the_callee_takes() {
    let text = "
shared:
  data: {limit: 5, tags: [a]}
tools:
  - import_tool: read_file
  - name: takes
    input: [{name: s, type: str}, {name: l, type: list}]
    do: {eval: 1}
  - name: t
    input: [{name: n, type: int}, {name: d, type: dict}, {name: kept, type: int}]
    do:
      - {eval: 'a', store_as: kept}
      - {call: read_file, params: {path: '${n}', lines: '${n}'}}
      - {call: read_file, params: {path: '${kept}', lines: '${tags}'}}
      - {call: takes, params: {s: '${limit}', l: '${d}'}}
      - {call: takes, params: {s: '${ d }', l: '${tags}'}}
";
    assert_eq!(
        found(text),
        [
            "error 13:42 `read_file` will refuse this: `path` is text, and `n` is an integer",
            "error 14:60 `read_file` will refuse this: `lines` is an integer, and `tags` is a list",
            "error 15:50 `takes` will refuse this: `l` is a list, and `d` is a dict",
            "error 16:35 `takes` will refuse this: `s` is text, and `d` is a dict",
        ]
    );
}

#[test]
fn braces_in_code_are_code() {
    let text = "
tools:
  - name: t
    input: [{name: s, type: str}]
    do:
      - eval: \"${f'<{s}>'}\"
      - eval: \"${'{s}'.format(s=s)} and ${f'{s}'}\"
      - eval: \"${ {s} }\"
      - eval: \"env.NOT is text, ${env.UserName} is not\"
";
    assert_eq!(found(text), Vec::<String>::new());
}

#[test]
fn unknown_names_are_placed_where_they_are_used() {
    let text = "
tools:
  - name: t
    do:
      - eval: \"${'x' + [x for x in 'a'][0] + x}\"
      - starlark: |
          # y is nobody
          result = 'y' + y
";
    assert_eq!(found(text), ["error 5:46 nothing defines `x`", "error 8:26 nothing defines `y`"]);
}

#[test]
fn a_chat_whose_model_the_file_does_not_name_is_told() {
    let file = |models: &str, model: &str| format!("models: {models}\nchat: {{model_ref: {model}}}\n");
    let named = "{fast: vendor/one}";
    assert_eq!(found(&file(named, "fsat")), ["warning 2:19 the file has no model `fsat`"]);
    for (models, model) in [(named, "fast"), (named, "default"), (named, "vendor/other"), ("{}", "fsat")] {
        assert!(found(&file(models, model)).is_empty(), "{models} {model}");
    }
}

#[test]
fn what_is_knowable_before_running_is_told_where_it_stands() {
    let text = "
tools:
  - import_tool: llm_workers.tools.fs.FilesystemToolkit
  - import_tool: llm_workers.tools.llm_tool.build_llm_tool
    name: ask
    config: {model_ref: fast}
  - {name: double, input: [{name: v, type: int}], do: {eval: '${v * 2}'}}
  - name: t
    input: [{name: n, type: int, default: many}]
    ui_hint: 'With ${n} and ${m}'
    do:
      - eval: '${double}'
      - starlark: |
          double(w=1)
          result = double(v=1) + double(**{})
";
    assert_eq!(
        found(text),
        [
            "error 3:18 `llm_workers.tools.fs.FilesystemToolkit` is several tools",
            "warning 6:25 the file has no model `fast`",
            "warning 9:43 the default of a parameter of `t` does not fit its type: `n`: \"many\" is not an integer",
            "warning 10:31 `ui_hint` sees the parameters only, and `m` is not a parameter",
            "error 12:18 nothing defines `double`",
            "error 14:11 `double` needs the parameter `v`",
            "warning 14:11 `double` has no parameter `w`",
        ]
    );
    let checked = load_all(Source::text("test.yaml", text), &host()).check();
    let hint = |line: usize| checked.iter().find(|p| p.line == line).and_then(|p| p.hint.clone()).unwrap();
    assert!(hint(3).contains("import_tools"), "{}", hint(3));
    assert!(hint(12).starts_with("`double` is a tool: "), "{}", hint(12));
}

#[test]
fn slips_of_the_pen_are_pointed_at() {
    let text = "
tools:
  - name: t
    input: [{name: query, type: str}, {name: items, type: list}]
    do:
      - eval: 'about {query}'
      - eval: '{{ query }} and ${query} and {other}'
      - eval: {query}
      - for_each: items
        do: {eval: '${item}'}
      - eval: '${env.UserName} ${env.API_KEY} ${env.get(1)}'
      - eval: '${true}'
";
    assert_eq!(
        found(text),
        [
            "warning 6:9 `{query}` is plain text here, not the value of `query`",
            "warning 7:15 `{query}` is plain text here, not the value of `query`",
            "warning 8:9 `{query}` is a map with the key `query` and nothing under it",
            "warning 9:9 this is the text `items`, not what it names: the loop runs once",
            "error 10:23 nothing defines `item`",
            "warning 11:15 `env` has no `API_KEY`",
            "error 12:18 nothing defines `true`",
        ]
    );
    let hints: Vec<Option<String>> =
        load_all(Source::text("test.yaml", text), &host()).check().into_iter().map(|p| p.hint).collect();
    assert_eq!(hints[4].as_deref(), Some("inside a loop the element is `_`, and the key of a dict `key`"));
    assert_eq!(hints[6].as_deref(), Some("the word is `True`"));
}

#[test]
fn what_is_no_yaml_comes_with_advice() {
    let advice = |text: &str| {
        let found = load(Source::text("t.yaml", text), &host()).unwrap_err();
        found.problems()[0].hint.clone().unwrap_or_default()
    };
    for (text, wanted) in [
        ("tools:\n\t- name: a\n", "blanks"),
        ("tools:\n  - name: a\n    description: Note: this\n", "needs quotes"),
        ("tools:\n  - name: a\n     input: []\n", "same depth"),
        ("tools:\n  - name:a\n    do: {eval: 1}\n", "blank is missing"),
        ("tools:\n  - name: a\n    do:\n      - eval: 1\n     - eval: 2\n", "as far in"),
        ("tools:\n  - name: a\n    do\n      - eval: 1\n", "ends with `:`"),
        ("tools:\n  - name: \"a\n    do: {eval: 1}\n", "not closed"),
        ("a: \"x\" + \"y\"\n", "second quote"),
        ("a: @x\n", "needs quotes"),
        ("a: \"\\d\"\n", "single quotes"),
    ] {
        assert!(advice(text).contains(wanted), "{text}: {}", advice(text));
    }
}

#[test]
fn one_broken_statement_hides_nothing_else() {
    let text = "
tools:
  - name: t
    input: [{name: x, type: text}]
    do:
      - call: serch
        params: {q: '${1 +}', r: '${nope}'}
        store_as: hits
      - eval: [ '${x) + 1}', '${nupe}', '${hits}' ]
      - if: '${)}'
        then: {eval: '${naught}', store_as: seen}
        else: {call: also_missing}
      - for_each: '${[}'
        do: {eval: '${key} ${_} ${gone}'}
      - match: '${x}'
        matchers:
          - {pattern: '(', then: {eval: '${lost}'}}
        default: {eval: '${seen}'}
      - {evl: 1, store_as: kept}
      - eval: '${kept}'
  - {name: u, do: {call: t}}
  - {name: v, input: 5, do: {call: nowhere}}
  - {import_tool: read_fil, name: reader}
  - {name: w, do: {call: reader}}
";
    let found = found(text);
    assert_eq!(
        found,
        [
            "error 4:29 unknown type `text`",
            "error 6:15 there is no tool `serch`",
            "error 7:27 unexpected `}`",
            "error 7:37 nothing defines `nope`",
            "error 9:21 unmatched ')'",
            "error 9:33 nothing defines `nupe`",
            "error 10:16 unmatched ')'",
            "error 11:25 nothing defines `naught`",
            "error 12:22 there is no tool `also_missing`",
            "error 13:23 closing bracket '}' does not match opening bracket '['",
            "error 14:35 nothing defines `gone`",
            "error 17:23 not a regular expression: unclosed group",
            "error 17:44 nothing defines `lost`",
            "error 19:9 unknown statement",
            "error 21:26 `t` cannot be called: its definition has problems",
            "error 22:22 `input` of a tool is a list, not an integer",
            "error 22:36 there is no tool `nowhere`",
            "error 23:19 there is no tool `read_fil` to import",
            "error 24:26 `reader` cannot be called: its definition has problems",
        ]
    );
}

#[test]
fn names_in_scripts_are_checked() {
    let text = "
shared:
  data: {limit: 5}
tools:
  - {name: double, input: [{name: v, type: int}], do: {eval: '${v * 2}'}}
  - name: t
    input: [{name: count, type: int}]
    do:
      - eval: 1
        store_as: one
      - starlark: |
          def twice(n, m=limit):
              inner = double(v=n)
              return inner + lost + later
          a, (b, c) = 1, (2, 3)
          for i in range(count):
              later = i
          [z for z in [a, b, c]]
          result = twice(one) + dubble(v=cuont) + len([]) + _
";
    assert_eq!(
        found(text),
        [
            "error 14:30 nothing defines `lost`",
            "error 19:33 nothing defines `dubble`",
            "error 19:42 nothing defines `cuont`",
        ]
    );
    let hints: Vec<_> =
        loaded(text).check().into_iter().map(|problem| problem.hint.unwrap_or_default()).collect();
    assert_eq!(hints, ["did you mean `list`?", "did you mean `double`?", "did you mean `count`?"]);
}

#[test]
fn what_a_file_includes_is_checked_in_its_own_place() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "main.yaml",
        "tools: !require tools.yaml\nshared: {data: {x: !require gone.yaml, y: !include ../up.yaml}}\n",
    );
    write(
        "tools.yaml",
        "- name: t\n  do:\n    - eval: '${nope}'\n    - call: missing\n- !include tools.yaml\n",
    );
    let loaded = load_all(folder.path().join("main.yaml"), &host());
    let told: Vec<String> = loaded
        .check()
        .iter()
        .map(|problem| {
            let file = problem.file.rsplit('/').next().unwrap_or_default();
            format!("{file}:{}:{} {}", problem.line, problem.column, problem.message)
        })
        .collect();
    assert_eq!(
        told,
        [
            "main.yaml:2:29 cannot include `gone.yaml`: there is no such file",
            "main.yaml:2:52 cannot include `../up.yaml`: a path may not leave its folder: no `..`, and nothing absolute",
            "tools.yaml:3:16 nothing defines `nope`",
            "tools.yaml:4:13 there is no tool `missing`",
            "tools.yaml:5:12 cannot include `tools.yaml`: the file includes itself",
        ]
    );
}

#[test]
fn what_comes_twice_is_found() {
    let text = "
tools:
  - {name: t, input: [{name: x, type: int}, {name: x, type: str}], do: {eval: 1}}
  - {name: u, do: {eval: 1}}
  - {name: u, do: {eval: 2, eval: 3}}
  - {name: loop, do: {call: loop}}
";
    assert_eq!(
        problems(text),
        [
            "5:29 the key `eval` comes twice",
            "3:52 the parameter `x` comes twice",
            "5:12 there are two tools `u` in the file",
            "6:29 `loop` cannot be called here: it is defined further down, or is this very tool",
        ]
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
            "error 8:18 `read_file` has no parameter `pat`",
            "error 8:33 `read_file` will refuse this: `lines`: \"many\" is not an integer",
            "error 10:21 `double` will refuse this: `v`: \"abc\" is not an integer",
            "warning 10:26 `double` has no parameter `w`",
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
fn limits_are_checked_like_everything_else() {
    let text = "
limits: {turns: -1, tool_calls: many, cost: 0.5, wall_time: .inf, max_paralel: 3, max_parallel: 0}
shared: {data: {1: one}}
";
    assert_eq!(
        found(text),
        [
            "error 2:17 `turns` of `limits` is a whole number, 0 or more, not -1",
            "error 2:33 `tool_calls` of `limits` is a whole number, 0 or more, not text",
            "error 2:61 `wall_time` of `limits` is a number, 0 or more, not inf",
            "error 2:67 `limits` has no key `max_paralel`",
            "error 2:97 `max_parallel` of `limits` is a whole number, 1 or more, not 0",
            "error 3:17 the name of shared data is text, not an integer",
        ]
    );
    assert_eq!(found("limits: {turns: 3, tokens: 0, cost: 1, max_parallel: 4}\n"), [""; 0]);
}

#[test]
fn flags_are_read_as_arguments_are() {
    let text = "tools: [{name: t, return_direct: 'yes', confidential: 0, do: {eval: 1}}]\n";
    let file = loaded(text);
    let settings = file.tools().get("t").unwrap().tool.policy();
    assert_eq!((settings.return_direct, settings.confidential), (true, false));
    let wrong = "tools: [{name: t, return_direct: maybe, do: {eval: 1}}]\n";
    assert_eq!(problems(wrong), ["1:34 `return_direct` of a tool is true or false, not text"]);
}

#[test]
fn files_that_are_no_text_say_how_to_save_them() {
    let folder = tempfile::tempdir().unwrap();
    let told = |bytes: &[u8]| {
        let path = folder.path().join("t.yaml");
        std::fs::write(&path, bytes).unwrap();
        let error = load(path, &host()).unwrap_err();
        let first = error.problems()[0].clone();
        (first.line, first.message, first.hint.unwrap_or_default())
    };
    let text = "tools:\n  - {name: café, do: {evl: 1}}\n";
    let wide = |order: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(order).collect::<Vec<u8>>();
    let marked: Vec<u8> = [0xff, 0xfe].into_iter().chain(wide(u16::to_le_bytes)).collect();
    let latin = text.chars().map(|c| c as u8).collect::<Vec<u8>>();
    for (bytes, line, message) in [
        (marked.as_slice(), 1, "the file is UTF-16, not UTF-8"),
        (&wide(u16::to_le_bytes), 1, "the file is not text: it contains NUL bytes"),
        (&wide(u16::to_be_bytes), 1, "the file is not text: it contains NUL bytes"),
        (&latin, 2, "the file is not UTF-8 text"),
    ] {
        assert_eq!(told(bytes), (line, message.to_owned(), "save it as UTF-8".to_owned()));
    }
    // A mark at the beginning and lines of Windows are nothing to complain about.
    let marked = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    assert_eq!(told(marked.as_bytes()).2, "did you mean `eval`?");
}

#[cfg(unix)]
#[test]
fn what_is_included_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe.yaml")).status();
    if !made.is_ok_and(|status| status.success()) {
        return;
    }
    let path = folder.path().join("t.yaml");
    std::fs::write(&path, "tools: !include pipe.yaml\n").unwrap();
    let told = load(path, &host()).unwrap_err().to_string();
    assert!(told.contains("cannot include `pipe.yaml`: it is not a file"), "{told}");
}

#[test]
fn a_problem_is_shown_with_its_line() {
    let text = "tools:\n  - name: t\n    do:\n      evl: 1\n";
    let error = load(Source::text("tools/t.yaml", text), &host()).unwrap_err();
    let problem = &error.problems()[0];
    assert_eq!(
        problem.render(),
        "error: unknown statement\n  --> tools/t.yaml:4:7\n4 |       evl: 1\n  |       ^^^^^^\n\nhint: did you mean `eval`?"
    );
}

#[test]
fn errors_that_no_tool_has_and_filters_that_take_nothing_are_told_of() {
    let text = "
tools:
  - {import_tools: 'toolwright.fs', prefix: '', filter: ['raed_*']}
  - import_tool: read_file
  - name: t
    do:
      call: read_file
      params: {path: a, lines: 1}
      catch: [file_not_fund, ValueErorr, FileNotFoundError, timeout, OSError, MyOwnTrouble, all]
";
    let host = host().toolkit("toolwright.fs", ["read_file"]);
    let found = load_all(Source::text("test.yaml", text), &host);
    let found: Vec<String> = found
        .check()
        .iter()
        .map(|one| format!("{} {} {}", one.severity.as_str(), short(one), one.hint.as_deref().unwrap_or("")))
        .collect();
    assert_eq!(
        found,
        [
            "warning 3:20 the `filter` takes none of the tools of `toolwright.fs` it has read_file",
            "warning 9:14 no error is called `file_not_fund` did you mean `file_not_found`?",
            "warning 9:14 no error is called `ValueErorr` did you mean `ValueError`?",
            "warning 9:14 `OSError` does not catch the classes below it: names are compared `all` catches every error",
            "warning 9:14 no error is called `MyOwnTrouble` write one of our error types, such as `file_not_found`, a class of Python, or `all`",
        ]
    );
}

#[test]
fn config_of_a_tool_made_of_statements_holds_or_is_a_problem() {
    let load_one = |config: &str| {
        let text = format!("tools: [{{name: t, config: {config}, do: {{eval: '1'}}}}]");
        load_all(Source::text("test.yaml", &text), &host())
    };
    let file = load_one("{timeout: 1.5, require_confirmation: true}");
    let policy = file.tools().get("t").unwrap().tool.policy().clone();
    assert_eq!(policy.timeout, Some(std::time::Duration::from_millis(1500)));
    assert_eq!(policy.require_confirmation, Some(true));
    for (config, severity) in
        [("{nonsense: 3}", "warning"), ("{timeout: 0}", "error"), ("{timeout: soon}", "error")]
    {
        let found = load_one(config).check();
        let found: Vec<&str> = found.iter().map(|one| one.severity.as_str()).collect();
        assert_eq!(found, [severity], "{config}");
    }
}

#[test]
fn python_class_that_is_imported_gets_a_hint_that_says_what_to_write() {
    let found = load_all(Source::text("t.yaml", "tools: [{import_tool: my.module.MyTool}]"), &host());
    let hint = found.check()[0].hint.clone().unwrap();
    assert!(hint.contains("transport: stdio") && hint.contains("import_tool: mcp:mine/TOOL"), "{hint}");
}

#[test]
fn a_batch_program_sees_what_the_last_input_stored() {
    let cli = "
cli:
  process_input: one_by_one
  do:
    - eval: \"${z if input != 'first' else 0}\"
    - {eval: '${_ + 1}', store_as: z}
";
    assert_eq!(found(cli), [""; 0]);
    let text = "tools: [{name: t, do: {eval: '${input}'}}]";
    let hint = load_all(Source::text("t.yaml", text), &host()).check()[0].hint.clone();
    assert!(hint.unwrap().starts_with("`input` belongs to `cli`"));
}
