//! Slips of the pen that load and run, and do something else than was meant: another language's braces and
//! words, a name where its value was wanted, a variable that was never declared.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolwright_core::text::head;
use toolwright_expr::{TemplatePiece, Value};

use crate::diag::FileSpan;
use crate::step::call::{CallStep, Param};
use crate::step::{Statement, StatementKind};
use crate::template::{Snippet, TemplateTree};

/// Where, what, and what to do about it.
type Slip = (FileSpan, String, String);

/// Methods of the dict that `env` is.
const METHODS: [&str; 8] = ["get", "items", "keys", "values", "copy", "pop", "setdefault", "update"];

/// Tools that run a program, and what quotes a text in its language.
const PROGRAMS: [(&str, &str); 4] = [
    ("bash", "shell_quote"),
    ("bash_session", "shell_quote"),
    ("python", "repr"),
    ("run_python_script", "repr"),
];

/// How far a name is looked for behind a brace.
const LONGEST_NAME: usize = 100;

/// The slips of one statement, those of the bodies inside left out. `harmless`: names whose values hold no
/// code of another language, as numbers do.
pub(crate) fn of_step(
    statement: &Statement,
    names: &BTreeSet<Arc<str>>,
    env: &[String],
    harmless: &dyn Fn(&str) -> bool,
) -> Vec<Slip> {
    let mut slips = Vec::new();
    match &statement.step {
        StatementKind::Eval(document) => texts(document, statement.place, names, &mut slips),
        StatementKind::Call(call) => {
            call.params.iter().for_each(|param| texts(&param.value, param.place, names, &mut slips));
            slips.extend(program_text(call, harmless));
        }
        StatementKind::Each(each) => {
            if let TemplateTree::Fixed(Value::Str(text)) = &each.over
                && let Some(text) = names.get(&**text)
            {
                let message = format!("this is the text `{text}`, not what it names: the loop runs once");
                slips.push((statement.place, message, format!("write `${{{text}}}`")));
            }
        }
        _ => {}
    }
    statement.step.snippets(&mut |snippet| {
        // Braces in code have their own meaning there: f-strings, `format`, dicts.
        for piece in snippet.template.pieces() {
            if let TemplatePiece::Text(text) = piece {
                braces(text, snippet.place, names, &mut slips);
            }
        }
        if !snippet.template.references().contains(&"env") || names.contains("env") {
            return;
        }
        for name in codes(snippet).flat_map(|code| fields_of("env", code)) {
            if !METHODS.contains(&name) && !env.iter().any(|known| known == name) {
                let message = format!("`env` has no `{name}`");
                let hint =
                    format!("declare it: `env: {{{name}: {{description: ...}}}}` at the top of the file");
                slips.push((snippet.place, message, hint));
            }
        }
    });
    slips
}

/// A program that is put together from a text and values: whatever is in the values is run.
fn program_text(call: &CallStep, harmless: &dyn Fn(&str) -> bool) -> Option<Slip> {
    let entry = call.callee.tools.get(&call.callee.name)?;
    let (_, quote) = PROGRAMS.iter().find(|(name, _)| *name == &*entry.tool.spec().name)?;
    let program = |param: &&Param| matches!(&*param.name, "script" | "command" | "cmd" | "code");
    let Param { value: TemplateTree::Template(snippet), place, .. } = call.params.iter().find(program)?
    else {
        return None;
    };
    let bare = |code: &str| {
        let kept = [*quote, "int", "float", "len"].iter().any(|made| code.starts_with(&format!("{made}(")));
        !kept && !harmless(code)
    };
    if snippet.template.pieces().count() < 2 || !codes(snippet).any(bare) {
        return None;
    }
    let message = "what `${...}` gives becomes part of the program, and is run with it".to_owned();
    Some((*place, message, format!("`${{{quote}(...)}}` keeps it one text")))
}

/// The code of a template, piece by piece.
fn codes(snippet: &Snippet) -> impl Iterator<Item = &str> {
    snippet.template.pieces().filter_map(|piece| match piece {
        TemplatePiece::Code(at) => snippet.source.get(at.start as usize..at.end as usize),
        TemplatePiece::Text(_) => None,
    })
}

/// A document without code: braces in texts, and maps that were meant as names in braces.
fn texts(document: &TemplateTree, place: FileSpan, names: &BTreeSet<Arc<str>>, slips: &mut Vec<Slip>) {
    match document {
        TemplateTree::Fixed(Value::Str(text)) => braces(text, place, names, slips),
        TemplateTree::List(items) => items.iter().for_each(|item| texts(item, place, names, slips)),
        TemplateTree::Map(entries) => {
            if let [(name, TemplateTree::Fixed(Value::None))] = &**entries
                && names.contains(name)
            {
                let message = format!("`{{{name}}}` is a map with the key `{name}` and nothing under it");
                slips.push((place, message, format!("write `\"${{{name}}}\"` for its value")));
            }
            entries.iter().for_each(|(_, value)| texts(value, place, names, slips));
        }
        _ => {}
    }
}

/// `{name}` and `{{ name }}` in a text, where the name is one that has a value.
fn braces(text: &str, place: FileSpan, names: &BTreeSet<Arc<str>>, slips: &mut Vec<Slip>) {
    for (at, _) in text.match_indices('{') {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        if matches!(before, Some('$' | '{')) {
            continue;
        }
        let inside = text.get(at..).unwrap_or_default().trim_start_matches('{');
        let Some((name, _)) = head(inside, LONGEST_NAME).split_once('}') else { continue };
        let name = name.trim();
        if names.contains(name) {
            let message = format!("`{{{name}}}` is plain text here, not the value of `{name}`");
            slips.push((place, message, format!("write `${{{name}}}`")));
        }
    }
}

/// The fields that a text takes of a name: `b` of `a.b`.
fn fields_of<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let stands_alone = |at: usize| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        !before.is_some_and(|c| part(c) || c == '.')
    };
    let after = text.match_indices(name).filter(|(at, _)| stands_alone(*at));
    let after = after.filter_map(|(at, _)| text.get(at + name.len()..)?.strip_prefix('.'));
    let fields = after.map(|rest| rest.split(|c| !part(c)).next().unwrap_or_default());
    fields.filter(|field| !field.is_empty()).collect()
}

/// What was meant by a name that nothing defines, when another language has it. `looping`: inside a loop.
pub(crate) fn of_name(name: &str, looping: bool) -> Option<String> {
    let meant = match name {
        "true" => "True",
        "false" => "False",
        "null" | "nil" | "undefined" => "None",
        "item" | "element" | "elem" | "entry" | "row" | "it" | "value" if looping => {
            return Some("inside a loop the element is `_`, and the key of a dict `key`".to_owned());
        }
        "input" => {
            return Some(
                "`input` belongs to `cli`; a tool sees the parameters that it names itself".to_owned(),
            );
        }
        "_match_groups" => {
            return Some("the `then` of a `pattern` sees its groups, nothing else does".to_owned());
        }
        _ => return None,
    };
    Some(format!("the word is `{meant}`"))
}
