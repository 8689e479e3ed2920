//! `search_files`: by what files hold, what they are called, or what their sections are called.

use std::time::Instant;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use toolwright_core::{ErrorKind, RootedPath, Structured, ToolContext, ToolError, glob_match, tool};

use super::{outline, pages, place};
use crate::document;
use crate::file_texts;
use crate::glob_files::{is_pattern, path_matches};
use crate::grep_files::{below, regex};
use crate::matching_lines::{Hit, Wanted, cut};
use crate::options::{Call, Options, count, within_time};
use crate::paths::FileKind;
use crate::walk::{Hidden, walk};
use crate::{paths, shell};

/// What documents are called, that a search also looks into.
const DOCUMENTS: [&str; 11] =
    [".pdf", ".docx", ".pptx", ".odt", ".odp", ".epub", ".xlsx", ".xls", ".xlsb", ".ods", ".msg"];
/// The most documents that are looked into; the others are counted.
const MOST_DOCUMENTS: usize = 100;

/// The pattern that all files match, hidden ones too.
const EVERYTHING: &str = "**/*";

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "lowercase")]
enum SearchType {
    #[default]
    Content,
    Filename,
    Structure,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Found")]
struct SearchReport {
    query: String,
    search_type: SearchType,
    matches: Vec<SearchMatch>,
    total_matches: usize,
    num_files: usize,
    truncated: bool,
    files_searched: usize,
    search_duration_ms: f64,
    metadata: serde_json::Map<String, serde_json::Value>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Match")]
struct SearchMatch {
    file: String,
    line: usize,
    #[serde(rename = "match")]
    text: String,
    location: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    context_before: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    context_after: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    section_id: Option<String>,
    /// The page of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u32>,
}

impl SearchMatch {
    fn new(file: &str, line: usize, text: String) -> SearchMatch {
        SearchMatch {
            file: file.to_owned(),
            line,
            text,
            location: format!("line {line}"),
            context_before: Vec::new(),
            context_after: Vec::new(),
            section_id: None,
            page: None,
        }
    }

    /// A match on a page of a document.
    fn on_page(file: &str, page: u32, line: usize, text: String) -> SearchMatch {
        let location = format!("page {page}, line {line}");
        SearchMatch { page: Some(page), location, ..SearchMatch::new(file, line, text) }
    }
}

/// Find files by what they hold, by name, or by the titles of their sections.
#[tool(category = "search", sandboxed, read_only, finish = within_time)]
pub(crate) async fn search_files(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// What to look for: a regular expression in texts, a name or pattern for files, a word in titles.
    #[tool(alias = "pattern")]
    query: String,
    /// Look in the texts, at the names of files, or at the titles of their sections.
    #[tool(default)]
    search_type: SearchType,
    /// The file or folder to look in.
    #[tool(default = ".")]
    path: RootedPath,
    /// Only files whose path matches.
    #[tool(default = "**/*")]
    file_pattern: String,
    /// The most matches to give back; all of them are counted.
    #[tool(default = 100)]
    max_results: i64,
    /// Capital and small letters differ.
    #[tool(default)]
    case_sensitive: bool,
    /// Also give the lines around a match.
    #[tool(default = true)]
    include_context: bool,
    /// How many lines around a match.
    #[tool(default = 3)]
    context_lines: i64,
    /// For names: how deep to go.
    #[tool(default = 3)]
    max_depth: i64,
    /// For names: how many files to look at.
    #[tool(default = 1000)]
    max_files: i64,
    /// Stop after so many seconds.
    timeout: Option<f64>,
) -> Result<Structured<SearchReport>, ToolError> {
    let start = Instant::now();
    let call = &Call::new(context, options);
    let most = count("max_results", max_results)?;
    let place = place(&path)?;
    let wanted = WantedFiles { query, search_type, place, file_pattern, case_sensitive };
    let search = async {
        match search_type {
            SearchType::Filename => {
                let depth = count("max_depth", max_depth)?;
                names(call, &wanted, depth, count("max_files", max_files)?).await
            }
            SearchType::Content | SearchType::Structure => {
                let around = if include_context { count("context_lines", context_lines)? } else { 0 };
                texts(call, &wanted, most, around).await
            }
        }
    };
    let mut found = match timeout.map(shell::seconds).transpose()? {
        None => search.await?,
        Some(time) => tokio::time::timeout(time, search).await.map_err(|_| {
            let message = format!("the search took longer than {} seconds", time.as_secs_f64());
            ToolError::of(ErrorKind::Timeout, message)
        })??,
    };
    found.truncated = found.total_matches > most || found.metadata.contains_key("matches_left_out");
    found.matches.truncate(most);
    found.search_duration_ms = start.elapsed().as_secs_f64() * 1000.0;
    Ok(Structured(found))
}

/// What is looked for, and where.
struct WantedFiles {
    query: String,
    search_type: SearchType,
    /// From the root of the run.
    place: String,
    file_pattern: String,
    case_sensitive: bool,
}

fn nothing(arguments: &WantedFiles) -> SearchReport {
    SearchReport {
        query: arguments.query.clone(),
        search_type: arguments.search_type,
        matches: Vec::new(),
        total_matches: 0,
        num_files: 0,
        truncated: false,
        files_searched: 0,
        search_duration_ms: 0.0,
        metadata: serde_json::Map::new(),
    }
}

/// Files by name: a pattern, or a piece of the name.
async fn names(
    call: &Call<'_>,
    arguments: &WantedFiles,
    depth: usize,
    most_files: usize,
) -> Result<SearchReport, ToolError> {
    let folder = arguments.place.clone();
    let files: Vec<String> = match paths::find(call, &folder).await?.about.map(|about| about.kind) {
        None => return Err(paths::missing(call, &folder).await),
        Some(FileKind::File) => vec![folder],
        Some(_) => {
            let items = walk(call, &folder, Some(depth), Hidden::Shown).await?;
            let wanted = items.iter().filter(|item| item.is_file && is_wanted(arguments, &item.path));
            wanted.map(|item| paths::join(&folder, &item.path)).collect()
        }
    };
    // A pattern is taken as it is written, a piece of a name in capitals or not.
    let fold = |text: &str| if arguments.case_sensitive { text.to_owned() } else { text.to_lowercase() };
    let query = &arguments.query;
    let mut found = nothing(arguments);
    for path in files.iter().take(most_files) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let hit = if is_pattern(query) { glob_match(query, name) } else { fold(name).contains(&fold(query)) };
        if hit {
            found.matches.push(SearchMatch::new(path, 1, cut(path)));
        }
    }
    found.total_matches = found.matches.len();
    (found.num_files, found.files_searched) = (found.total_matches, found.total_matches);
    Ok(found)
}

/// Lines of texts, or sections by title.
async fn texts(
    call: &Call<'_>,
    arguments: &WantedFiles,
    most: usize,
    around: usize,
) -> Result<SearchReport, ToolError> {
    let path = &arguments.place;
    let pattern = regex(&arguments.query, !arguments.case_sensitive)?;
    let files = below(call, path, Hidden::Shown).await?;
    if files.is_empty() && paths::find(call, path).await?.about.is_none() {
        return Err(paths::missing(call, path).await);
    }
    let fits = |file: &str| file == *path || is_wanted(arguments, inside(path, file));
    let is_document = |file: &str| DOCUMENTS.iter().any(|ending| file.to_lowercase().ends_with(ending));
    let (documents, files): (Vec<_>, Vec<_>) =
        files.into_iter().filter(|(file, _)| fits(file)).partition(|(file, _)| is_document(file));
    let mut found = nothing(arguments);
    let mut wanted = Wanted::new(most, around, around);
    let left_out = file_texts::each(call, files, |file, text| {
        found.files_searched += 1;
        if arguments.search_type == SearchType::Structure {
            for section in outline::sections(text).filter(|section| pattern.is_match(&section.title)) {
                found.total_matches += 1;
                if wanted.admits(file.len() + section.title.len()) {
                    let section_id = Some(section.id);
                    found.matches.push(SearchMatch {
                        section_id,
                        ..SearchMatch::new(file, section.start_line, section.title)
                    });
                }
            }
            return;
        }
        found.total_matches += wanted.find(&pattern, file, text, |Hit { number, line, before, after }| {
            found.matches.push(SearchMatch {
                context_before: before,
                context_after: after,
                ..SearchMatch::new(file, number, line)
            });
        });
    })
    .await?;
    let mut not_read = documents.len().saturating_sub(MOST_DOCUMENTS);
    for (file, _) in documents.iter().take(MOST_DOCUMENTS) {
        call.context.check_cancelled()?;
        match in_document(call, arguments.search_type, file, &pattern, &mut found, &mut wanted).await {
            Ok(()) => found.files_searched += 1,
            Err(error) if error.is_fatal() || error.kind() == ErrorKind::Cancelled => return Err(error),
            Err(_) => not_read += 1,
        }
    }
    if not_read > 0 {
        found.metadata.insert("documents_not_read".to_owned(), json!(not_read));
    }
    found.num_files = found.files_searched;
    if wanted.left_out > 0 {
        found.metadata.insert("matches_left_out".to_owned(), json!(wanted.left_out));
    }
    found.metadata.extend(left_out.told());
    Ok(found)
}

/// Lines of the pages of a document, or its headings by title.
async fn in_document(
    call: &Call<'_>,
    search_type: SearchType,
    file: &str,
    pattern: &regex::Regex,
    found: &mut SearchReport,
    wanted: &mut Wanted,
) -> Result<(), ToolError> {
    let bytes = paths::read(call, file).await?;
    if !document::is_document(&bytes, file) {
        return Ok(());
    }
    let document = pages::all_of(call, file, &bytes).await?;
    if search_type == SearchType::Structure {
        for (id, page, title) in
            pages::titled(&document).into_iter().filter(|(.., title)| pattern.is_match(title))
        {
            found.total_matches += 1;
            if wanted.admits(file.len() + title.len()) {
                let hit = SearchMatch::on_page(file, page, 1, title);
                found.matches.push(SearchMatch { section_id: Some(id), ..hit });
            }
        }
        return Ok(());
    }
    for (page, text) in pages::page_texts(&document) {
        found.total_matches += wanted.find(pattern, file, &text, |Hit { number, line, before, after }| {
            let hit = SearchMatch::on_page(file, page, number, line);
            found.matches.push(SearchMatch { context_before: before, context_after: after, ..hit });
        });
    }
    Ok(())
}

/// Whether a file is one to look at. The insides of repositories are not, and hidden names count unless a
/// pattern says what to look at.
fn is_wanted(arguments: &WantedFiles, path: &str) -> bool {
    !path.split('/').any(|name| matches!(name, ".git" | ".svn" | ".hg"))
        && (arguments.file_pattern == EVERYTHING || path_matches(&arguments.file_pattern, path))
}

/// A path as seen from the folder it was found in.
fn inside<'a>(folder: &str, file: &'a str) -> &'a str {
    file.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')).unwrap_or(file)
}
