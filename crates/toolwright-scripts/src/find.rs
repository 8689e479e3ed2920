//! From a pattern to files, and from files to tools. Nothing is started.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use toolwright_core::{ErrorKind, ToolDef, ToolError, Toolset, glob_match};

use crate::definition::{ScriptDefinition, ScriptRunner};
use crate::tool::{Script, ScriptOptions, script_tool};
use crate::{argc, comments, declared, javascript, python};

/// The most files of one pattern.
const MAX_FILES: usize = 256;
/// The longest file that is read; a longer one, such as a program, needs a definition beside it.
const MAX_SCRIPT: u64 = 16 << 20;
/// How much of a file is looked at for a definition.
const MAX_TEXT: usize = 1 << 20;
/// What a definition beside a script ends with.
const BESIDE: &str = ".tool.yaml";

/// The tools of a pattern.
#[derive(Debug, Clone, Default)]
pub struct Scripts {
    /// The tools, in the order of the names of their files.
    pub tools: Toolset,
    /// Files that cannot be tools.
    pub left_out: Vec<LeftOutScript>,
}

/// A file that cannot be a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutScript {
    /// The name of the file.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// The files that a pattern names, relative to the folder and in order: a path whose last part may have `*`
/// and `?`. Hidden files and definitions beside scripts are not among them.
pub fn matching_files(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, ToolError> {
    let failed = |path: &Path, error: std::io::Error| {
        let error = ToolError::of(ErrorKind::FileNotFound, format!("`{}`: {error}", path.display()));
        error.hint("paths of scripts are relative to the tool file that imports them")
    };
    let path = Path::new(pattern);
    let (Some(name), parent) = (path.file_name().and_then(|name| name.to_str()), path.parent()) else {
        return Err(ToolError::invalid(format!("`{pattern}` names no file")));
    };
    let parent = parent.unwrap_or(Path::new(""));
    if !name.contains(['*', '?', '[']) {
        let whole = folder.join(path);
        std::fs::metadata(&whole).map_err(|error| failed(&whole, error))?;
        return Ok(vec![path.to_owned()]);
    }
    let inside = match folder.join(parent) {
        here if here.as_os_str().is_empty() => PathBuf::from("."),
        inside => inside,
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&inside).map_err(|error| failed(&inside, error))? {
        let entry = entry.map_err(|error| failed(&inside, error))?;
        let file = entry.file_name();
        let Some(file) = file.to_str().filter(|file| !file.starts_with('.') && !file.ends_with(BESIDE))
        else {
            continue;
        };
        if glob_match(name, file) && std::fs::metadata(entry.path()).is_ok_and(|found| found.is_file()) {
            if found.len() == MAX_FILES {
                let message = format!("`{pattern}` names more than {MAX_FILES} files");
                return Err(ToolError::of(ErrorKind::Limit, message));
            }
            found.push(parent.join(file));
        }
    }
    found.sort();
    Ok(found)
}

/// Reads the definitions of the files that a pattern names. A file without a usable one is left out.
pub fn read_scripts(folder: &Path, pattern: &str, options: &ScriptOptions) -> Result<Scripts, ToolError> {
    let mut scripts = Scripts::default();
    let options = Arc::new(options.clone());
    for path in matching_files(folder, pattern)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let read = read_script(&folder.join(&path), &options);
        let added = read.and_then(|tool| scripts.tools.clone().with(tool).map_err(|error| error.to_string()));
        match added {
            Ok(grown) => scripts.tools = grown,
            Err(reason) => scripts.left_out.push(LeftOutScript { name, reason }),
        }
    }
    Ok(scripts)
}

fn read_script(path: &Path, options: &Arc<ScriptOptions>) -> Result<ToolDef, String> {
    let path = path.canonicalize().map_err(|error| error.to_string())?;
    let bytes = read_file(&path)?;
    let text = String::from_utf8_lossy(bytes.get(..MAX_TEXT).unwrap_or(&bytes)).into_owned();
    let stem = tool_name(&path);
    let definition = definition(&path, &stem, &text)?;
    let command = command(&path, &text, definition.runner)?;
    let hash = Sha256::digest(&bytes).into();
    let uses_output_file = text.contains("LLM_OUTPUT");
    Ok(script_tool(Script { path, hash, command, definition, uses_output_file }, options))
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let found = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !found.is_file() {
        return Err("it is not a file".to_owned());
    }
    if found.len() > MAX_SCRIPT {
        return Err(format!("it has {} bytes, more than {MAX_SCRIPT}", found.len()));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_SCRIPT).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

/// The name of the file without its ending, as a tool's name.
pub(crate) fn tool_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

/// The first definition that a file has.
fn definition(path: &Path, name: &str, text: &str) -> Result<ScriptDefinition, String> {
    if let Some(block) = comments::fenced_block(text) {
        return declared::read(name, &block?);
    }
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let own = match ending {
        "py" => python::read(name, text),
        "js" | "cjs" | "mjs" => javascript::read(name, text),
        _ => None,
    };
    if let Some(definition) = argc::read(name, text).or(own) {
        return definition;
    }
    for beside in definitions_beside(path) {
        if beside.is_file() {
            let yaml = String::from_utf8(read_file(&beside)?).map_err(|error| error.to_string())?;
            return declared::read(name, &yaml);
        }
    }
    Err(format!("it has no definition: neither `/// tool`, `@describe`, `run` nor `{name}{BESIDE}`"))
}

/// Where the definition beside a script may be: `x.tool.yaml` and `x.sh.tool.yaml` for `x.sh`.
pub fn definitions_beside(path: &Path) -> [PathBuf; 2] {
    let mut name = path.as_os_str().to_owned();
    name.push(BESIDE);
    [path.with_extension(BESIDE.trim_start_matches('.')), name.into()]
}

/// What starts a script: the file itself, or the interpreter it names.
fn command(path: &Path, text: &str, runner: ScriptRunner) -> Result<Vec<String>, String> {
    let file = path.to_str().ok_or("its path is not UTF-8")?.to_owned();
    let with = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).chain([file.clone()]).collect();
    match runner {
        ScriptRunner::PythonRun => return Ok(with(&["python3", "-c", python::RUNNER])),
        ScriptRunner::NodeRun => return Ok(with(&["node", "-e", javascript::RUNNER])),
        ScriptRunner::Itself => {}
    }
    if is_executable(path) {
        return Ok(vec![file]);
    }
    if let Some(line) = text.strip_prefix("#!") {
        let mut words: Vec<&str> = line.lines().next().unwrap_or_default().split_whitespace().collect();
        if words.first().is_some_and(|first| first.ends_with("/env")) {
            words.retain(|word| *word != "-S");
            words.remove(0);
        }
        if !words.is_empty() {
            return Ok(with(&words));
        }
    }
    let interpreter = match path.extension().and_then(|ending| ending.to_str()).unwrap_or_default() {
        "sh" | "bash" => "bash",
        "py" => "python3",
        "js" | "cjs" | "mjs" => "node",
        "rb" => "ruby",
        "pl" => "perl",
        "lua" => "lua",
        "php" => "php",
        _ => {
            return Err(
                "it is not executable and names no interpreter; `chmod +x` makes it executable".to_owned()
            );
        }
    };
    Ok(with(&[interpreter]))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_beginning_of_a_script_is_read_or_refused() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools");
        for path in matching_files(&folder, "*").unwrap() {
            let text = std::fs::read_to_string(folder.join(&path)).unwrap();
            let name = tool_name(&path);
            // Beside no file, so that only its own text counts.
            let nowhere = Path::new("/nowhere").join(&path);
            for (head, tail) in (0..text.len()).filter_map(|end| text.split_at_checked(end)) {
                let _ = definition(&nowhere, &name, head);
                let _ = definition(&nowhere, &name, tail);
            }
        }
    }

    #[test]
    fn an_empty_folder_is_the_current_one() {
        assert_eq!(matching_files(Path::new(""), "Cargo.*").unwrap(), [Path::new("Cargo.toml")]);
    }

    #[test]
    fn what_is_no_regular_file_of_usual_size_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("folder.sh")).unwrap();
        std::os::unix::net::UnixListener::bind(at("socket.sh")).unwrap();
        std::fs::File::create(at("large.sh")).unwrap().set_len(MAX_SCRIPT + 1).unwrap();
        std::fs::write(at("binary.sh"), [0, 159, 146, 150]).unwrap();
        std::fs::write(at(".hidden.sh"), "# @describe D\n").unwrap();
        let scripts = read_scripts(folder.path(), "*.sh", &ScriptOptions::default()).unwrap();
        let names: Vec<&str> = scripts.left_out.iter().map(|one| one.name.as_str()).collect();
        assert!(scripts.tools.is_empty());
        assert_eq!(names, ["binary.sh", "large.sh"]);
        for name in ["folder.sh", "socket.sh"] {
            let scripts = read_scripts(folder.path(), name, &ScriptOptions::default()).unwrap();
            assert_eq!(scripts.left_out[0].reason, "it is not a file");
        }
        for number in 0..MAX_FILES {
            std::fs::write(at(&format!("{number}.txt")), "").unwrap();
        }
        assert!(matching_files(folder.path(), "*.txt").is_ok());
        std::fs::write(at("one more.txt"), "").unwrap();
        let error = matching_files(folder.path(), "*.txt").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
    }
}
