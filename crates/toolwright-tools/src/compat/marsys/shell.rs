//! Programs that look at files, each with parameters in place of options: nothing of a call is read by a
//! shell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwright_core::{ExecResult, RootedPath, ToolContext, ToolDef, ToolError, ToolOutput, tool};

use super::place;
use crate::options::{Call, Options, count, object, within_time};
use crate::shell::no_nul;
use crate::{paths, walk};

/// Runs a program whose exit codes up to `fine` are answers.
async fn ask(call: &Call<'_>, command: &[&str], fine: i32) -> Result<ExecResult, ToolError> {
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

/// Find lines in a file, or in the files of a folder.
#[tool(category = "search", sandboxed, read_only, finish = finish_grep)]
pub(crate) async fn shell_grep(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// What to look for, as a basic regular expression.
    pattern: String,
    /// The file or folder to look in.
    #[tool(alias = "path")]
    file_or_dir: RootedPath,
    /// Look in all files below the folder.
    #[tool(default)]
    recursive: bool,
    /// Capital and small letters are the same.
    #[tool(default)]
    case_insensitive: bool,
    /// Tell the number of each line.
    #[tool(default = true)]
    line_numbers: bool,
    /// How many lines around each match to show.
    #[tool(default)]
    context_lines: i64,
) -> Result<ToolOutput, ToolError> {
    let call = &Call::new(context, options);
    let place = file(&file_or_dir)?;
    let around = count("context_lines", context_lines)?.to_string();
    let mut command = vec!["grep", "-n", "-H", "-Z", "-I"];
    command.extend(recursive.then_some("-r"));
    command.extend(case_insensitive.then_some("-i"));
    command.extend(["-C", &around, "-e", &pattern, "--", &place]);
    let result = ask(call, &command, 1).await?;
    let held = paths::held_login(call, &place, &result.stdout).await?;
    let held = held.as_deref().map(|held| held.strip_prefix("./").unwrap_or(held));
    let hits = result
        .stdout
        .lines()
        .filter_map(Hit::read)
        .filter(|hit| held != Some(hit.file.as_str()))
        .map(|hit| Hit { line_number: hit.line_number.filter(|_| line_numbers), ..hit });
    let (matches, around): (Vec<Hit>, Vec<Hit>) = hits.partition(|hit| hit.matches);
    let mut files: Vec<&str> = matches.iter().map(|hit| hit.file.as_str()).collect();
    files.dedup();
    let mut told = json!({
        "success": true, "total_matches": matches.len(), "files_searched": files.len(), "matches": matches,
    });
    if let Some(told) = told.as_object_mut().filter(|_| context_lines > 0) {
        told.insert("context".to_owned(), json!(around));
    }
    answer(told)
}

fn finish_grep(tool: ToolDef, options: &Options) -> ToolDef {
    let line_number = json!({"type": ["integer", "null"]});
    let hits = list(object(json!({"file": text(), "line_number": line_number, "line": text()}), json!({})));
    let always = json!({"total_matches": number(), "files_searched": number(), "matches": hits});
    within_time(tool, options).with_output_schema(result(always, json!({"context": hits})))
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

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "lowercase")]
enum EntryKind {
    F,
    D,
    L,
}

/// Find files and folders by name, kind, depth and age.
#[tool(category = "search", sandboxed, read_only, finish = finish_find)]
pub(crate) async fn shell_find(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The folder to look in.
    path: RootedPath,
    /// Only names that match, for example *.log.
    name_pattern: Option<String>,
    /// Only files (f), folders (d) or links (l).
    #[tool(rename = "type")]
    kind: Option<EntryKind>,
    /// How deep to go.
    max_depth: Option<i64>,
    /// Only what was changed within so many days.
    modified_within: Option<u32>,
) -> Result<ToolOutput, ToolError> {
    let place = file(&path)?;
    let depth = max_depth.map(|depth| count("max_depth", depth)).transpose()?;
    let depth = depth.map(|depth| depth.to_string());
    let age = modified_within.map(|days| format!("-{days}"));
    let mut command = vec!["find", "-H", &place];
    command.extend(depth.iter().flat_map(|depth| ["-maxdepth", depth]));
    command.extend(kind.iter().flat_map(|kind| {
        let kind = match kind {
            EntryKind::F => "f",
            EntryKind::D => "d",
            EntryKind::L => "l",
        };
        ["-type", kind]
    }));
    command.extend(name_pattern.iter().flat_map(|name| ["-name", name]));
    command.extend(age.iter().flat_map(|age| ["-mtime", age]));
    command.extend(["-printf", walk::WHOLE]);
    let result = ask(&Call::new(context, options), &command, 0).await?;
    let plain = |path: &'_ str| path.strip_prefix("./").unwrap_or(path).to_owned();
    let found = result.stdout.split('\0').filter_map(walk::read);
    let mut paths: Vec<String> = found.map(|item| plain(&item.path)).collect();
    paths.sort();
    let files: Vec<Value> = paths.into_iter().map(|path| json!({"path": path})).collect();
    answer(json!({"success": true, "total_found": files.len(), "files": files}))
}

fn finish_find(tool: ToolDef, options: &Options) -> ToolDef {
    let files = list(object(json!({"path": text()}), json!({})));
    let always = json!({"total_found": number(), "files": files});
    within_time(tool, options).with_output_schema(result(always, json!({})))
}

/// Count the lines, words and bytes of a file.
#[tool(category = "files", sandboxed, read_only, finish = finish_wc)]
pub(crate) async fn shell_wc(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file.
    #[tool(alias = "path")]
    file_path: RootedPath,
    /// What you are after; all three are counted.
    #[tool(rename = "count_type")]
    #[serde(default)]
    _count_type: Option<String>,
) -> Result<ToolOutput, ToolError> {
    let place = file(&file_path)?;
    let result = ask(&Call::new(context, options), &["wc", "-lwc", "--", &place], 0).await?;
    let numbers: Vec<u64> =
        result.stdout.split_whitespace().take(3).filter_map(|word| word.parse().ok()).collect();
    let &[lines, words, characters] = numbers.as_slice() else {
        return Err(ToolError::new("wc printed something else than three numbers"));
    };
    answer(json!({"success": true, "lines": lines, "words": words, "characters": characters}))
}

fn finish_wc(tool: ToolDef, options: &Options) -> ToolDef {
    let always = json!({"lines": number(), "words": number(), "characters": number()});
    within_time(tool, options).with_output_schema(result(always, json!({})))
}

/// Replace what matches a regular expression in every line of a file.
#[tool(category = "files", sandboxed, read_only = false, parallel = false, finish = finish_sed)]
pub(crate) async fn shell_sed(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// What to replace, as a basic regular expression.
    pattern: String,
    /// What to put in its place.
    replacement: String,
    /// The file.
    #[tool(alias = "path")]
    file_path: RootedPath,
    /// Change the file; otherwise only the changed text is given back.
    #[tool(default)]
    in_place: bool,
    /// Replace every occurrence in a line, not only the first.
    #[tool(default = true)]
    global_replace: bool,
) -> Result<ToolOutput, ToolError> {
    let place = file(&file_path)?;
    // The two texts cannot be read as anything else: a character that cannot be in either parts them, and a
    // line break in the new one is escaped.
    let script = format!(
        "s\u{1}{pattern}\u{1}{}\u{1}{}",
        replacement.replace('\n', "\\\n"),
        if global_replace { "g" } else { "" }
    );
    if [&pattern, &replacement].iter().any(|text| text.contains('\u{1}'))
        || pattern.contains('\n')
        || ends_in_backslash(&pattern)
        || ends_in_backslash(&replacement)
    {
        return Err(ToolError::invalid(
            "`pattern` has a line break, or one of the texts ends in a lone backslash or has a control character",
        ));
    }
    let mut command = vec!["sed", "--sandbox"];
    command.extend(in_place.then_some("--in-place"));
    command.extend(["-e", &script, "--", &place]);
    let result = ask(&Call::new(context, options), &command, 0).await?;
    let changed = (!in_place).then(|| lines(&result.stdout).len());
    answer(json!({"success": true, "output": result.stdout, "lines_modified": changed}))
}

fn finish_sed(tool: ToolDef, options: &Options) -> ToolDef {
    let always = json!({"output": text(), "lines_modified": {"type": ["integer", "null"]}});
    within_time(tool, options).with_output_schema(result(always, json!({})))
}

fn ends_in_backslash(text: &str) -> bool {
    text.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1
}

/// Run an awk program over a file.
// An awk program can write files and run commands.
#[tool(category = "shell", sandboxed, read_only = false, parallel = false, finish = finish_awk)]
pub(crate) async fn shell_awk(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The awk program.
    script: String,
    /// The file it reads.
    #[tool(alias = "path")]
    file_path: RootedPath,
    /// What separates fields.
    field_separator: Option<String>,
) -> Result<ToolOutput, ToolError> {
    let place = file(&file_path)?;
    let mut command = vec!["awk"];
    command.extend(field_separator.iter().flat_map(|mark| ["-F", mark]));
    command.extend(["--", &script, &place]);
    let result = ask(&Call::new(context, options), &command, 0).await?;
    let processed = lines(&result.stdout).len();
    answer(json!({"success": true, "output": result.stdout, "lines_processed": processed}))
}

fn finish_awk(tool: ToolDef, options: &Options) -> ToolDef {
    let always = json!({"output": text(), "lines_processed": number()});
    within_time(tool, options).with_output_schema(result(always, json!({})))
}

/// Read the first lines of a file.
#[tool(category = "files", sandboxed, read_only, finish = finish_ends)]
pub(crate) async fn shell_head(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file.
    #[tool(alias = "path")]
    file_path: RootedPath,
    /// How many lines; -8 is all but the last eight.
    #[tool(default = 10, alias = "lines")]
    num_lines: i64,
) -> Result<ToolOutput, ToolError> {
    let (place, number) = (file(&file_path)?, num_lines.to_string());
    let result = ask(&Call::new(context, options), &["head", "-n", &number, "--", &place], 0).await?;
    told(&result.stdout)
}

/// Read the last lines of a file.
#[tool(category = "files", sandboxed, read_only, finish = finish_ends)]
pub(crate) async fn shell_tail(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file.
    #[tool(alias = "path")]
    file_path: RootedPath,
    /// How many lines.
    #[tool(default = 10, alias = "lines")]
    num_lines: i64,
    /// Also the lines that are added within the next five seconds.
    #[tool(default)]
    follow: bool,
) -> Result<ToolOutput, ToolError> {
    let call = &Call::new(context, options);
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
    told(&ask(call, &command, 0).await?.stdout)
}

fn finish_ends(tool: ToolDef, options: &Options) -> ToolDef {
    let always = json!({"total_lines": number(), "lines": list(text())});
    within_time(tool, options).with_output_schema(result(always, json!({})))
}

fn told(text: &str) -> Result<ToolOutput, ToolError> {
    let lines = lines(text);
    answer(json!({"success": true, "total_lines": lines.len(), "lines": lines}))
}

/// Compare two files.
#[tool(category = "files", sandboxed, read_only, finish = finish_diff)]
pub(crate) async fn shell_diff(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file as it was.
    file1: RootedPath,
    /// The file as it is.
    file2: RootedPath,
    /// As a unified diff, with lines around each change.
    #[tool(default = true)]
    unified: bool,
    /// How many lines around each change.
    #[tool(default = 3)]
    context_lines: i64,
) -> Result<ToolOutput, ToolError> {
    let (one, two) = (file(&file1)?, file(&file2)?);
    let around = count("context_lines", context_lines)?.to_string();
    let mut command = vec!["diff"];
    if unified {
        command.extend(["-U", &around]);
    }
    command.extend(["--", &one, &two]);
    let result = ask(&Call::new(context, options), &command, 1).await?;
    let is_change = |line: &&str| {
        line.starts_with(['+', '-', '<', '>']) && !line.starts_with("+++") && !line.starts_with("---")
    };
    let changes = result.stdout.lines().filter(is_change).count();
    answer(json!({
        "success": true, "identical": result.code == 0, "diff_output": result.stdout, "changes": changes,
    }))
}

fn finish_diff(tool: ToolDef, options: &Options) -> ToolDef {
    let always = json!({"identical": {"type": "boolean"}, "diff_output": text(), "changes": number()});
    within_time(tool, options).with_output_schema(result(always, json!({})))
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
