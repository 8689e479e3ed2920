//! `grep_files` and `grep`: lines by regular expression.

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwright_core::{ErrorKind, ToolContext, ToolDef, ToolError, ToolOutput, WorkspacePath, tool};

use crate::file_texts;
use crate::glob_files::{files, is_pattern};
use crate::matching_lines::{Hit, Wanted};
use crate::options::{Call, Options, count, object, within_time};
use crate::paths::{self, FileKind};
use crate::walk::{Hidden, walk};

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    #[default]
    Content,
    FilesOnly,
    Count,
}

/// Find the lines of files that match a regular expression.
#[tool(category = "search", sandboxed, read_only, finish = finish_grep_files)]
pub async fn grep_files(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The regular expression to look for.
    pattern: String,
    /// A pattern such as src/**/*.py, a file, or a folder.
    #[tool(alias("glob", "path"))]
    files_glob: String,
    /// Lines to show before a match.
    #[tool(default)]
    lines_before: i64,
    /// Lines to show after a match.
    #[tool(default)]
    lines_after: i64,
    /// Ignore case.
    #[tool(default)]
    case_insensitive: bool,
    /// The most to return; all are counted.
    #[tool(default = 50)]
    max_results: i64,
    /// Lines, names of files, or numbers.
    #[tool(default)]
    output_mode: OutputMode,
) -> Result<ToolOutput, ToolError> {
    let call = &Call::new(context, options);
    let before = count("lines_before", lines_before)?;
    let after = count("lines_after", lines_after)?;
    let most = count("max_results", max_results)?;
    let pattern = regex(&pattern, case_insensitive)?;
    let wanted = match output_mode {
        OutputMode::Content => Wanted::new(most, before, after),
        OutputMode::FilesOnly | OutputMode::Count => Wanted::new(0, 0, 0),
    };
    let mut hits = Hits::new(most, wanted, output_mode, [before, after]);
    let chosen = choose(call, &files_glob).await?;
    let left_out = file_texts::each(call, chosen, |path, text| hits.look(&pattern, path, text)).await?;
    Ok(ToolOutput::json(hits.told(&left_out)))
}

fn finish_grep_files(tool: ToolDef, options: &Options) -> ToolDef {
    within_time(tool, options).with_output_schema(result())
}

/// The schema of the result, which depends on the mode.
fn result() -> Value {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let texts = json!({"type": "array", "items": text});
    let found = object(
        json!({"file": text, "line_number": number, "content": text}),
        json!({"context_before": texts, "context_after": texts}),
    );
    object(
        json!({"total_matches": number, "files_searched": number}),
        json!({
            "matches": {"type": "array", "items": found}, "files": texts, "files_with_matches": number,
            "matches_left_out": number, "files_too_large": number, "files_not_read": number,
        }),
    )
}

/// A regular expression of a model, with bounds on what it may cost.
pub(crate) fn regex(pattern: &str, case_insensitive: bool) -> Result<Regex, ToolError> {
    RegexBuilder::new(pattern)
        .case_insensitive(case_insensitive)
        .size_limit(4 << 20)
        .build()
        .map_err(|error| ToolError::new(format!("the pattern is not a regular expression: {error}")))
}

/// The files to look through, with their sizes.
async fn choose(call: &Call<'_>, place: &str) -> Result<Vec<(String, u64)>, ToolError> {
    paths::check(place)?;
    if is_pattern(place) {
        let found = files(call, place, Hidden::Skipped).await?;
        return Ok(found.into_iter().map(|file| (file.path, file.size)).collect());
    }
    below(call, place, Hidden::Skipped).await
}

/// A file, or all files below a folder; with their sizes.
pub(crate) async fn below(
    call: &Call<'_>,
    place: &str,
    hidden: Hidden,
) -> Result<Vec<(String, u64)>, ToolError> {
    match paths::find(call, place).await?.about {
        Some(about) if about.kind == FileKind::File => Ok(vec![(place.to_owned(), about.size)]),
        Some(about) if about.kind == FileKind::Folder => {
            let found = walk(call, place, None, hidden).await?;
            let files = found.into_iter().filter(|item| item.is_file);
            Ok(files.map(|file| (paths::join(place, &file.path), file.size)).collect())
        }
        _ => Ok(Vec::new()),
    }
}

/// What was found so far.
struct Hits {
    output_mode: OutputMode,
    with_before: bool,
    with_after: bool,
    most: usize,
    wanted: Wanted,
    total: usize,
    searched: usize,
    matches: Vec<Value>,
    files: Vec<String>,
    files_with_matches: usize,
}

impl Hits {
    fn new(most: usize, wanted: Wanted, output_mode: OutputMode, lines: [usize; 2]) -> Self {
        let [before, after] = lines;
        Hits {
            output_mode,
            with_before: before > 0,
            with_after: after > 0,
            most,
            wanted,
            total: 0,
            searched: 0,
            matches: Vec::new(),
            files: Vec::new(),
            files_with_matches: 0,
        }
    }

    fn look(&mut self, pattern: &Regex, path: &str, text: &str) {
        self.searched += 1;
        let found = self.wanted.find(pattern, path, text, |Hit { number, line, before, after }| {
            let mut hit = json!({"file": path, "line_number": number, "content": line});
            if let Some(map) = hit.as_object_mut() {
                if self.with_before {
                    map.insert("context_before".to_owned(), Value::from(before));
                }
                if self.with_after {
                    map.insert("context_after".to_owned(), Value::from(after));
                }
            }
            self.matches.push(hit);
        });
        self.total += found;
        if found > 0 {
            self.files_with_matches += 1;
            if self.files.len() < self.most {
                self.files.push(path.to_owned());
            }
        }
    }

    fn told(self, left_out: &file_texts::LeftOut) -> Value {
        let mut told = json!({"total_matches": self.total, "files_searched": self.searched});
        if let Some(map) = told.as_object_mut() {
            let (key, value) = match self.output_mode {
                OutputMode::Content => ("matches", Value::Array(self.matches)),
                OutputMode::FilesOnly => ("files", json!(self.files)),
                OutputMode::Count => ("files_with_matches", json!(self.files_with_matches)),
            };
            map.insert(key.to_owned(), value);
            if self.wanted.left_out > 0 {
                map.insert("matches_left_out".to_owned(), json!(self.wanted.left_out));
            }
            map.extend(left_out.told());
        }
        told
    }
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
enum GrepMode {
    #[default]
    Content,
    FilesWithMatches,
    Count,
}

/// Find lines in the files of a folder, however deep. Each result is file:line:text.
#[tool(category = "search", sandboxed, read_only, finish = within_time)]
pub async fn grep(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// What to look for, as a basic regular expression.
    pattern: String,
    /// The file or folder to look in.
    #[tool(default = ".")]
    path: WorkspacePath,
    /// Only files whose name matches, for example *.py.
    glob: Option<String>,
    /// Take the pattern as plain text.
    #[tool(default)]
    fixed_strings: bool,
    /// Take the pattern as an extended regular expression.
    #[tool(default)]
    extended_regexp: bool,
    /// Give back the lines, only the names of the files, or how many lines match in each.
    #[tool(default)]
    output_mode: GrepMode,
) -> Result<String, ToolError> {
    let call = &Call::new(context, options);
    paths::check(&path)?;
    let include = glob.as_ref().map(|glob| format!("--include={glob}"));
    if [Some(&pattern), include.as_ref()].into_iter().flatten().any(|text| text.contains('\0')) {
        return Err(ToolError::invalid("a pattern contains a NUL byte"));
    }
    // A pipe or a device may have no end.
    let mut command = vec!["grep", "-r", "-D", "skip"];
    command.push(match output_mode {
        GrepMode::Content => "-n",
        GrepMode::FilesWithMatches => "-l",
        GrepMode::Count => "-c",
    });
    command.extend(fixed_strings.then_some("-F"));
    command.extend(extended_regexp.then_some("-E"));
    command.extend(include.as_deref());
    command.extend(["-e", &pattern, "--", &path]);
    let result = call.helper(&command).await?;
    match result.code {
        0 => {}
        1 => {
            let about = paths::find(call, &path).await?.about;
            if about.is_some_and(|about| about.kind == FileKind::Other) {
                let message = format!("{} is not a regular file", path);
                return Err(ToolError::of(ErrorKind::Permission, message));
            }
            return Ok("no matches".to_owned());
        }
        // Some files could not be read; what was found in the others counts.
        _ if !result.stdout.is_empty() => {}
        _ => return Err(ToolError::new(result.stderr.trim())),
    }
    let counting = matches!(output_mode, GrepMode::Count);
    let held = paths::held_login(call, &path, &result.stdout).await?;
    let is_held = |line: &str| {
        let rest = held.as_ref().and_then(|held| line.strip_prefix(held.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    };
    let is_none = |line: &str| counting && line.ends_with(":0");
    let lines = result.stdout.lines().filter(|line| !(is_none(line) || is_held(line)));
    let lines: Vec<&str> = lines.collect();
    Ok(if lines.is_empty() { "no matches".to_owned() } else { lines.join("\n") })
}
