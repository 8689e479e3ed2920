//! Programs that look at files, each with parameters in place of options: nothing of a call is read by a
//! shell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwright_core::{ExecResult, RootedPath, ToolDef, ToolError, ToolOutput};

use super::place;
use crate::options::{Call, Effect, Options, count, define, finish, object};
use crate::shell::no_nul;
use crate::{paths, walk};

fn ten() -> i64 {
    10
}

fn three() -> i64 {
    3
}

/// Runs a program whose exit codes up to `fine` are answers.
async fn ask(call: &Call, command: &[&str], fine: i32) -> Result<ExecResult, ToolError> {
    for word in command {
        no_nul("command", word)?;
    }
    let result = call.helper(command).await?;
    if (0..=fine).contains(&result.code) {
        return Ok(result);
    }
    let name = command.first().copied().unwrap_or_default();
    Err(ToolError::new(format!("{name} failed: {}", result.stderr.trim())))
}

/// A path that no program takes for an option.
fn file(path: &str) -> Result<String, ToolError> {
    Ok(crate::paths::operand(&place(path)?))
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

/// The schema of a result with this beside `success`, and this at times.
fn result(always: Value, sometimes: Value) -> Value {
    let mut all = json!({"success": {"type": "boolean"}});
    if let (Value::Object(all), Value::Object(always)) = (&mut all, always) {
        all.extend(always);
    }
    object(all, sometimes)
}

fn text() -> Value {
    json!({"type": "string"})
}

fn number() -> Value {
    json!({"type": "integer"})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn answer(value: Value) -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput::json(value))
}

#[derive(Deserialize, JsonSchema)]
struct Grep {
    /// What to look for, as a basic regular expression.
    pattern: String,
    /// The file or folder to look in.
    file_or_dir: RootedPath,
    /// Look in all files below the folder.
    #[serde(default)]
    recursive: bool,
    /// Capital and small letters are the same.
    #[serde(default)]
    case_insensitive: bool,
    /// Tell the number of each line.
    #[serde(default = "super::yes")]
    line_numbers: bool,
    /// How many lines around each match to show.
    #[serde(default)]
    context_lines: i64,
}

/// The tool `shell_grep`.
pub(crate) fn shell_grep(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "shell_grep",
        "Find lines in a file, or in the files of a folder.",
        |call: Call, arguments: Grep| async move {
            let place = file(&arguments.file_or_dir)?;
            let context = count("context_lines", arguments.context_lines)?.to_string();
            let mut command = vec!["grep", "-n", "-H", "-Z", "-I"];
            command.extend(arguments.recursive.then_some("-r"));
            command.extend(arguments.case_insensitive.then_some("-i"));
            command.extend(["-C", &context, "-e", &arguments.pattern, "--", &place]);
            let result = ask(&call, &command, 1).await?;
            let held = paths::held_login(&call, &place, &result.stdout).await?;
            let held = held.as_deref().map(|held| held.strip_prefix("./").unwrap_or(held));
            let hits = result
                .stdout
                .lines()
                .filter_map(Hit::read)
                .filter(|hit| held != Some(hit.file.as_str()))
                .map(|hit| Hit { line_number: hit.line_number.filter(|_| arguments.line_numbers), ..hit });
            let (matches, around): (Vec<Hit>, Vec<Hit>) = hits.partition(|hit| hit.matches);
            let mut files: Vec<&str> = matches.iter().map(|hit| hit.file.as_str()).collect();
            files.dedup();
            let mut told = json!({
                "success": true, "total_matches": matches.len(), "files_searched": files.len(), "matches": matches,
            });
            if let Some(told) = told.as_object_mut().filter(|_| arguments.context_lines > 0) {
                told.insert("context".to_owned(), json!(around));
            }
            answer(told)
        },
    );
    finish(tool, "search", Effect::Reads, &[("path", "file_or_dir")]).with_output_schema({
        let line_number = json!({"type": ["integer", "null"]});
        let hits =
            list(object(json!({"file": text(), "line_number": line_number, "line": text()}), json!({})));
        result(
            json!({"total_matches": number(), "files_searched": number(), "matches": hits}),
            json!({"context": hits}),
        )
    })
}

/// One line of the output.
#[derive(Debug, PartialEq, Serialize)]
struct Hit {
    file: String,
    /// Nothing when nobody wants it.
    line_number: Option<u64>,
    line: String,
    /// Not a line around a match.
    #[serde(skip)]
    matches: bool,
}

impl Hit {
    /// The name ends with a NUL, the number with a colon, or a dash for a line around a match.
    fn read(line: &str) -> Option<Hit> {
        let (file, rest) = line.split_once('\0')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, text) = rest.split_at_checked(digits)?;
        let matches = text.starts_with(':');
        let line = text.strip_prefix([':', '-'])?.to_owned();
        let file = file.strip_prefix("./").unwrap_or(file).to_owned();
        Some(Hit { file, line_number: Some(number.parse().ok()?), line, matches })
    }
}

#[derive(Deserialize, JsonSchema)]
struct Find {
    /// The folder to look in.
    path: RootedPath,
    /// Only names that match, for example *.log.
    name_pattern: Option<String>,
    /// Only files (f), folders (d) or links (l).
    #[serde(rename = "type")]
    kind: Option<EntryKind>,
    /// How deep to go.
    max_depth: Option<i64>,
    /// Only what was changed within so many days.
    modified_within: Option<u32>,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "lowercase")]
enum EntryKind {
    F,
    D,
    L,
}

/// The tool `shell_find`.
pub(crate) fn shell_find(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "shell_find",
        "Find files and folders by name, kind, depth and age.",
        |call: Call, arguments: Find| async move {
            let place = file(&arguments.path)?;
            let depth = arguments.max_depth.map(|depth| count("max_depth", depth)).transpose()?;
            let (depth, age) = (depth.map(|depth| depth.to_string()), arguments.modified_within);
            let age = age.map(|days| format!("-{days}"));
            let mut command = vec!["find", "-H", &place];
            command.extend(depth.iter().flat_map(|depth| ["-maxdepth", depth]));
            command.extend(arguments.kind.iter().flat_map(|kind| {
                let kind = match kind {
                    EntryKind::F => "f",
                    EntryKind::D => "d",
                    EntryKind::L => "l",
                };
                ["-type", kind]
            }));
            command.extend(arguments.name_pattern.iter().flat_map(|name| ["-name", name]));
            command.extend(age.iter().flat_map(|age| ["-mtime", age]));
            command.extend(["-printf", walk::WHOLE]);
            let result = ask(&call, &command, 0).await?;
            let plain = |path: &'_ str| path.strip_prefix("./").unwrap_or(path).to_owned();
            let found = result.stdout.split('\0').filter_map(walk::read);
            let mut paths: Vec<String> = found.map(|item| plain(&item.path)).collect();
            paths.sort();
            let files: Vec<Value> = paths.into_iter().map(|path| json!({"path": path})).collect();
            answer(json!({"success": true, "total_found": files.len(), "files": files}))
        },
    );
    finish(tool, "search", Effect::Reads, &[]).with_output_schema({
        let files = list(object(json!({"path": text()}), json!({})));
        result(json!({"total_found": number(), "files": files}), json!({}))
    })
}

#[derive(Deserialize, JsonSchema)]
struct CountParams {
    /// The file.
    file_path: RootedPath,
    /// What you are after; all three are counted.
    #[serde(default, rename = "count_type")]
    _count_type: Option<String>,
}

/// The tool `shell_wc`.
pub(crate) fn shell_wc(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "shell_wc",
        "Count the lines, words and bytes of a file.",
        |call: Call, CountParams { file_path, .. }| async move {
            let place = file(&file_path)?;
            let result = ask(&call, &["wc", "-lwc", "--", &place], 0).await?;
            let numbers: Vec<u64> =
                result.stdout.split_whitespace().take(3).filter_map(|word| word.parse().ok()).collect();
            let &[lines, words, characters] = numbers.as_slice() else {
                return Err(ToolError::new("wc printed something else than three numbers"));
            };
            answer(json!({"success": true, "lines": lines, "words": words, "characters": characters}))
        },
    );
    finish(tool, "files", Effect::Reads, &[("path", "file_path")]).with_output_schema(result(
        json!({"lines": number(), "words": number(), "characters": number()}),
        json!({}),
    ))
}

#[derive(Deserialize, JsonSchema)]
struct Sed {
    /// What to replace, as a basic regular expression.
    pattern: String,
    /// What to put in its place.
    replacement: String,
    /// The file.
    file_path: RootedPath,
    /// Change the file; otherwise only the changed text is given back.
    #[serde(default)]
    in_place: bool,
    /// Replace every occurrence in a line, not only the first.
    #[serde(default = "super::yes")]
    global_replace: bool,
}

/// The tool `shell_sed`: one substitution. The two texts cannot be read as anything else, whatever is in
/// them.
pub(crate) fn shell_sed(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "shell_sed",
        "Replace what matches a regular expression in every line of a file.",
        |call: Call, arguments: Sed| async move {
            let place = file(&arguments.file_path)?;
            // A character that cannot be in either text parts them, and a line break in the new one is
            // escaped.
            let script = format!(
                "s\u{1}{}\u{1}{}\u{1}{}",
                arguments.pattern,
                arguments.replacement.replace('\n', "\\\n"),
                if arguments.global_replace { "g" } else { "" }
            );
            if [&arguments.pattern, &arguments.replacement].iter().any(|text| text.contains('\u{1}'))
                || arguments.pattern.contains('\n')
                || ends_in_backslash(&arguments.pattern)
                || ends_in_backslash(&arguments.replacement)
            {
                return Err(ToolError::invalid(
                    "`pattern` has a line break, or one of the texts ends in a lone backslash or has a control character",
                ));
            }
            let mut command = vec!["sed", "--sandbox"];
            command.extend(arguments.in_place.then_some("--in-place"));
            command.extend(["-e", &script, "--", &place]);
            let result = ask(&call, &command, 0).await?;
            let changed = (!arguments.in_place).then(|| lines(&result.stdout).len());
            answer(json!({"success": true, "output": result.stdout, "lines_modified": changed}))
        },
    );
    finish(tool, "files", Effect::Writes, &[("path", "file_path")]).with_output_schema(result(
        json!({"output": text(), "lines_modified": {"type": ["integer", "null"]}}),
        json!({}),
    ))
}

fn ends_in_backslash(text: &str) -> bool {
    text.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

#[derive(Deserialize, JsonSchema)]
struct Awk {
    /// The awk program.
    script: String,
    /// The file it reads.
    file_path: RootedPath,
    /// What separates fields.
    field_separator: Option<String>,
}

/// The tool `shell_awk`.
pub(crate) fn shell_awk(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "shell_awk",
        "Run an awk program over a file.",
        |call: Call, Awk { script, file_path, field_separator }| async move {
            let place = file(&file_path)?;
            let mut command = vec!["awk"];
            command.extend(field_separator.iter().flat_map(|mark| ["-F", mark]));
            command.extend(["--", &script, &place]);
            let result = ask(&call, &command, 0).await?;
            let processed = lines(&result.stdout).len();
            answer(json!({"success": true, "output": result.stdout, "lines_processed": processed}))
        },
    );
    // An awk program can write files and run commands.
    finish(tool, "shell", Effect::Writes, &[("path", "file_path")])
        .with_output_schema(result(json!({"output": text(), "lines_processed": number()}), json!({})))
}

#[derive(Deserialize, JsonSchema)]
struct HeadParams {
    /// The file.
    file_path: RootedPath,
    /// How many lines; -8 is all but the last eight.
    #[serde(default = "ten")]
    num_lines: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Tail {
    /// The file.
    file_path: RootedPath,
    /// How many lines.
    #[serde(default = "ten")]
    num_lines: i64,
    /// Also the lines that are added within the next five seconds.
    #[serde(default)]
    follow: bool,
}

/// The tool `shell_head`.
pub(crate) fn shell_head(options: &Options) -> ToolDef {
    let description = "Read the first lines of a file.";
    let tool = define(
        options,
        "shell_head",
        description,
        |call: Call, HeadParams { file_path, num_lines }| async move {
            let (place, number) = (file(&file_path)?, num_lines.to_string());
            let result = ask(&call, &["head", "-n", &number, "--", &place], 0).await?;
            told(&result.stdout)
        },
    );
    finish(tool, "files", Effect::Reads, &ENDS).with_output_schema(ends())
}

/// The tool `shell_tail`.
pub(crate) fn shell_tail(options: &Options) -> ToolDef {
    let description = "Read the last lines of a file.";
    let tool = define(options, "shell_tail", description, |call: Call, arguments: Tail| async move {
        let Tail { file_path, num_lines, follow } = arguments;
        let (place, number) = (file(&file_path)?, num_lines.unsigned_abs().to_string());
        let mut command = vec!["tail", "-n", &number, "--", &place];
        if follow {
            // What is waited for may never come.
            command.splice(0..1, ["timeout", "--preserve-status", "-s", "KILL", "5", "tail", "-f"]);
            let result = call.helper(&command).await?;
            return match result.stderr.is_empty() || !result.stdout.is_empty() {
                true => told(&result.stdout),
                false => Err(ToolError::new(format!("tail failed: {}", result.stderr.trim()))),
            };
        }
        told(&ask(&call, &command, 0).await?.stdout)
    });
    finish(tool, "files", Effect::Reads, &ENDS).with_output_schema(ends())
}

const ENDS: [(&str, &str); 2] = [("path", "file_path"), ("lines", "num_lines")];

fn ends() -> Value {
    result(json!({"total_lines": number(), "lines": list(text())}), json!({}))
}

fn told(text: &str) -> Result<ToolOutput, ToolError> {
    let lines = lines(text);
    answer(json!({"success": true, "total_lines": lines.len(), "lines": lines}))
}

#[derive(Deserialize, JsonSchema)]
struct Diff {
    /// The file as it was.
    file1: RootedPath,
    /// The file as it is.
    file2: RootedPath,
    /// As a unified diff, with lines around each change.
    #[serde(default = "super::yes")]
    unified: bool,
    /// How many lines around each change.
    #[serde(default = "three")]
    context_lines: i64,
}

/// The tool `shell_diff`.
pub(crate) fn shell_diff(options: &Options) -> ToolDef {
    let tool = define(
        options,
        "shell_diff",
        "Compare two files.",
        |call: Call, Diff { file1, file2, unified, context_lines }| async move {
            let (one, two) = (file(&file1)?, file(&file2)?);
            let around = count("context_lines", context_lines)?.to_string();
            let mut command = vec!["diff"];
            if unified {
                command.extend(["-U", &around]);
            }
            command.extend(["--", &one, &two]);
            let result = ask(&call, &command, 1).await?;
            let is_change = |line: &&str| {
                line.starts_with(['+', '-', '<', '>']) && !line.starts_with("+++") && !line.starts_with("---")
            };
            let changes = result.stdout.lines().filter(is_change).count();
            answer(json!({
                "success": true, "identical": result.code == 0, "diff_output": result.stdout, "changes": changes,
            }))
        },
    );
    finish(tool, "files", Effect::Reads, &[]).with_output_schema(result(
        json!({"identical": {"type": "boolean"}, "diff_output": text(), "changes": number()}),
        json!({}),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_grep_is_read_whatever_is_in_its_name() {
        let hit = Hit { file: "a:1:b".into(), line_number: Some(7), line: "x:y".into(), matches: true };
        assert_eq!(Hit::read("./a:1:b\x007:x:y"), Some(hit));
        let around = Hit::read("f\x003-around").unwrap();
        assert!(around.line == "around" && !around.matches);
        assert_eq!(Hit::read("--"), None);
    }

    #[test]
    fn a_lone_backslash_would_reach_past_its_text() {
        assert!(ends_in_backslash(r"a\") && ends_in_backslash(r"\\\"));
        assert!(!ends_in_backslash(r"a\\") && !ends_in_backslash(""));
    }
}
