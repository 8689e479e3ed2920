//! `memory`: notes in virtual files that last as long as the run. No sandbox is needed.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{ErrorKind, ToolContext, ToolDef, ToolError, tool};

use crate::options::Options;
use crate::text;

/// The folder that everything is in.
const ROOT: &str = "/memories";
/// How much all files may hold together, and how many files and folders there may be.
const MOST_BYTES: usize = 4 << 20;
const MOST_FILES: usize = 1000;
/// The longest path.
const LONGEST: usize = 4096;

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
enum MemoryCommand {
    View,
    Create,
    StrReplace,
    Insert,
    Delete,
    Rename,
}

impl MemoryCommand {
    fn word(self) -> &'static str {
        match self {
            MemoryCommand::View => "view",
            MemoryCommand::Create => "create",
            MemoryCommand::StrReplace => "str_replace",
            MemoryCommand::Insert => "insert",
            MemoryCommand::Delete => "delete",
            MemoryCommand::Rename => "rename",
        }
    }

    fn needs(self, parameter: &str) -> ToolError {
        ToolError::new(format!("`{}` needs `{parameter}`", self.word()))
    }
}

/// The tool `memory`, empty at first. For more see [`Memory`].
pub fn memory(options: &Options) -> ToolDef {
    Memory::new().tool(options)
}

/// A `memory` tool that begins with files, or that may only be read.
///
/// ```
/// use toolwright_tools::{Memory, Options};
///
/// let memory = Memory::new().file("/memories/rules.md", "Be brief.\n").read_only().tool(&Options::new());
/// assert_eq!(memory.spec().parameter_names().collect::<Vec<_>>(), ["command", "path", "view_range"]);
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Memory {
    files: BTreeMap<String, String>,
    read_only: bool,
}

impl Memory {
    /// Nothing is remembered yet, and everything may be changed.
    pub fn new() -> Self {
        Memory::default()
    }

    /// Begins with a file.
    pub fn file(mut self, path: impl Into<String>, text: impl Into<String>) -> Self {
        self.files.insert(path.into(), text.into());
        self
    }

    /// Only `view` is offered.
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// What a file's `config` says, taken out of it: `initial_data`, a map of paths to texts, and `readonly`.
    pub(crate) fn from_config(config: &mut serde_json::Value) -> Result<Self, ToolError> {
        let mut said = |name: &str| {
            let value = config.as_object_mut().and_then(|config| config.shift_remove(name));
            value.filter(|value| !value.is_null())
        };
        let wrong =
            |name: &str, wanted: &str| ToolError::invalid(format!("`config`: `{name}` must be {wanted}"));
        let files: BTreeMap<String, String> = said("initial_data")
            .map(serde_json::from_value)
            .transpose()
            .map_err(|_| wrong("initial_data", "a map of paths to texts"))?
            .unwrap_or_default();
        for path in files.keys() {
            resolve(path).map_err(|error| ToolError::invalid(format!("`config`: {}", error.message())))?;
        }
        let read_only = match said("readonly") {
            None => false,
            Some(value) => value.as_bool().ok_or_else(|| wrong("readonly", "true or false"))?,
        };
        Ok(Memory { files, read_only })
    }

    /// The tool.
    pub fn tool(self, options: &Options) -> ToolDef {
        notes(&self, options)
    }
}

/// The tool `memory`.
#[tool(
    name = "memory",
    description = "Keep notes in files below /memories that last through the whole task. Look at what is there before \
                   starting, and write down what will be needed later.",
    category = "memory",
    read_only,
    finish = begin_with
)]
async fn notes(
    context: &ToolContext,
    #[tool(setup)] memory: &Memory,
    #[tool(setup)] options: &Options,
    /// What to do.
    command: MemoryCommand,
    /// The file or folder, below /memories.
    path: Option<String>,
    /// For `create`: the text of the file.
    file_text: Option<String>,
    /// For `str_replace`: the text to replace. It must be in the file exactly once.
    old_str: Option<String>,
    /// For `str_replace`: the text to put in; left out, the old text is only taken away.
    new_str: Option<String>,
    /// For `insert`: the line after which to insert; 0 is the top.
    insert_line: Option<i64>,
    /// For `insert`: the lines to insert.
    insert_text: Option<String>,
    /// For `view`: the first and the last line to show, counted from 1; -1 is the end.
    view_range: Option<Vec<i64>>,
    /// For `rename`: the path it has.
    old_path: Option<String>,
    /// For `rename`: the path it gets.
    new_path: Option<String>,
) -> Result<String, ToolError> {
    if memory.read_only && !matches!(command, MemoryCommand::View) {
        return Err(ToolError::of(ErrorKind::Permission, "these memories can only be viewed"));
    }
    let named = |name: &str, path: Option<String>| resolve(&path.ok_or_else(|| command.needs(name))?);
    context.store_as::<Files>(options.instance_name()).update(|files| {
        files.begin(&memory.files)?;
        match command {
            MemoryCommand::View => files.view(&named("path", path)?, view_range.as_deref()),
            MemoryCommand::Create => {
                let text = file_text.ok_or_else(|| command.needs("file_text"))?;
                files.put(named("path", path)?, text).map(|path| format!("created {path}"))
            }
            MemoryCommand::StrReplace => {
                let path = named("path", path)?;
                let old = old_str.ok_or_else(|| command.needs("old_str"))?;
                let edited = text::replace_once(
                    &path,
                    files.file(&path)?,
                    &old,
                    new_str.as_deref().unwrap_or_default(),
                )?;
                files.changed(path, edited)
            }
            MemoryCommand::Insert => {
                let path = named("path", path)?;
                let line = insert_line.ok_or_else(|| command.needs("insert_line"))?;
                let new = insert_text.or(new_str).ok_or_else(|| command.needs("insert_text"))?;
                let edited = text::insert(files.file(&path)?, line, &new)?;
                files.changed(path, edited)
            }
            MemoryCommand::Delete => files.delete(&named("path", path)?),
            MemoryCommand::Rename => {
                let from = named("old_path", old_path)?;
                files.rename(&from, &named("new_path", new_path)?)
            }
        }
    })
}

fn begin_with(tool: ToolDef, memory: &Memory, _: &Options) -> ToolDef {
    let tool = if memory.read_only { tool.edit(|spec, _| only_view(&mut spec.parameters)) } else { tool };
    tool.with_step(|mut prepared| {
        canonicalise(&mut prepared.arguments);
        Ok(prepared)
    })
}

/// Puts the paths that are acted on into their one form. One that leads out is left, and the command refuses
/// it. They are paths of the virtual folder, not of a workspace.
fn canonicalise(arguments: &mut serde_json::Value) {
    for name in ["path", "old_path", "new_path"] {
        if let Some(serde_json::Value::String(path)) = arguments.get_mut(name)
            && let Ok(plain) = resolve(path)
        {
            *path = plain;
        }
    }
}

/// Leaves only what `view` takes.
fn only_view(parameters: &mut serde_json::Value) {
    if let Some(properties) = parameters.get_mut("properties").and_then(serde_json::Value::as_object_mut) {
        properties.retain(|name, _| matches!(name.as_str(), "command" | "path" | "view_range"));
        let description = "What to do.";
        properties.insert(
            "command".to_owned(),
            serde_json::json!({"type": "string", "enum": ["view"], "description": description}),
        );
    }
    if let Some(map) = parameters.as_object_mut() {
        map.shift_remove("$defs");
    }
}

/// The files of a run.
#[derive(Default, Serialize, Deserialize)]
struct Files {
    begun: bool,
    files: BTreeMap<String, String>,
    /// Those below the root. A folder stays when its last file goes.
    #[serde(default)]
    folders: BTreeSet<String>,
}

impl Files {
    fn begin(&mut self, initial: &BTreeMap<String, String>) -> Result<(), ToolError> {
        if !self.begun {
            for (path, text) in initial {
                let path = resolve(path).map_err(|error| error.with_kind(ErrorKind::Fatal))?;
                self.folders.extend(folders_of(&path).map(str::to_owned));
                self.files.insert(path, text.clone());
            }
            self.begun = true;
        }
        Ok(())
    }

    fn delete(&mut self, path: &str) -> Result<String, ToolError> {
        if !self.is_there(path) {
            return Err(missing(path));
        }
        self.files.retain(|file, _| !is_at_or_below(file, path));
        self.folders.retain(|folder| !is_at_or_below(folder, path));
        Ok(format!("deleted {path}"))
    }

    fn file(&self, path: &str) -> Result<&str, ToolError> {
        match self.files.get(path) {
            Some(text) => Ok(text),
            None if self.is_folder(path) => {
                Err(ToolError::new(format!("{path} is a folder, which can only be viewed")))
            }
            None => Err(missing(path)),
        }
    }

    fn is_folder(&self, path: &str) -> bool {
        path == ROOT
            || self.folders.contains(path)
            || self.files.keys().any(|file| file != path && is_at_or_below(file, path))
    }

    fn is_there(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.is_folder(path)
    }

    fn view(&self, path: &str, range: Option<&[i64]>) -> Result<String, ToolError> {
        if let Some(text) = self.files.get(path) {
            return Ok(format!("{path}, with line numbers:\n{}", text::view(text, range)?));
        }
        if !self.is_folder(path) {
            return Err(missing(path));
        }
        // Folders come before files.
        let all = self.folders.iter().map(|folder| (false, folder));
        let all = all.chain(self.files.keys().map(|file| (true, file)));
        let inside = all.filter_map(|(is_file, name)| {
            let name = name.strip_prefix(path)?.strip_prefix('/')?;
            (name.matches('/').count() < 2).then_some((is_file, name))
        });
        let listed: BTreeSet<_> = inside.collect();
        if listed.is_empty() {
            return Ok(format!("{path} is empty\n"));
        }
        let lines: String = listed.iter().map(|(_, name)| format!("{path}/{name}\n")).collect();
        Ok(format!("{path}, two levels deep:\n{lines}"))
    }

    fn put(&mut self, path: String, text: String) -> Result<String, ToolError> {
        if path == ROOT || self.is_folder(&path) {
            return Err(ToolError::new(format!("{path} is a folder")));
        }
        if let Some(file) = self.files.keys().find(|file| *file != &path && is_at_or_below(&path, file)) {
            return Err(ToolError::new(format!("{file} is a file, so there is nothing below it")));
        }
        let others: usize =
            self.files.iter().filter(|(file, _)| **file != path).map(|(_, text)| text.len()).sum();
        let new = folders_of(&path).filter(|folder| !self.folders.contains(*folder)).count()
            + usize::from(!self.files.contains_key(&path));
        if others + text.len() > MOST_BYTES || self.files.len() + self.folders.len() + new > MOST_FILES {
            return Err(full());
        }
        self.folders.extend(folders_of(&path).map(str::to_owned));
        self.files.insert(path.clone(), text);
        Ok(path)
    }

    fn changed(&mut self, path: String, edited: text::Edited) -> Result<String, ToolError> {
        let snippet = edited.snippet();
        let path = self.put(path, edited.text)?;
        Ok(format!("{path} was changed. It now reads around the change:\n{snippet}"))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<String, ToolError> {
        if from == ROOT || is_at_or_below(to, from) {
            return Err(ToolError::new(format!("{from} cannot become {to}")));
        }
        if self.is_there(to) {
            return Err(ToolError::new(format!("{to} is there already")));
        }
        if !self.is_there(from) {
            return Err(missing(from));
        }
        if let Some(file) = self.files.keys().find(|file| is_at_or_below(to, file)) {
            return Err(ToolError::new(format!("{file} is a file, so there is nothing below it")));
        }
        let moved = |path: String| match path.strip_prefix(from).filter(|_| is_at_or_below(&path, from)) {
            Some(rest) => format!("{to}{rest}"),
            None => path,
        };
        let longest = self
            .files
            .keys()
            .chain(&self.folders)
            .filter(|path| is_at_or_below(path, from))
            .map(String::len)
            .max();
        if longest.unwrap_or(0) - from.len() + to.len() > LONGEST {
            return Err(ToolError::new(format!("a path would be longer than {LONGEST} bytes")));
        }
        let new = folders_of(to).filter(|folder| !self.folders.contains(*folder)).count();
        if self.files.len() + self.folders.len() + new > MOST_FILES {
            return Err(full());
        }
        self.files =
            std::mem::take(&mut self.files).into_iter().map(|(path, text)| (moved(path), text)).collect();
        self.folders = std::mem::take(&mut self.folders).into_iter().map(moved).collect();
        self.folders.extend(folders_of(to).map(str::to_owned));
        Ok(format!("renamed {from} to {to}"))
    }
}

fn full() -> ToolError {
    let message = format!("memories hold at most {MOST_FILES} files and folders, and {MOST_BYTES} bytes");
    ToolError::of(ErrorKind::Limit, message).hint("delete what you do not need any more")
}

fn missing(path: &str) -> ToolError {
    ToolError::new(format!("there is no file or folder {path}"))
}

fn is_at_or_below(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The folders above a path, below the root.
fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter_map(|(at, _)| path.get(..at)).filter(|folder| folder.len() > ROOT.len())
}

/// The plain form of a path, which is at or below the root.
fn resolve(path: &str) -> Result<String, ToolError> {
    let path = path.replace('\\', "/");
    let outside = || ToolError::new(format!("{path} is not below {ROOT}"));
    if !path.starts_with('/') || path.contains('\0') {
        return Err(outside());
    }
    if path.len() > LONGEST {
        return Err(ToolError::new(format!("the path is longer than {LONGEST} bytes")));
    }
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop().ok_or_else(outside)?;
            }
            name => names.push(name),
        }
    }
    let plain = format!("/{}", names.join("/"));
    if is_at_or_below(&plain, ROOT) { Ok(plain) } else { Err(outside()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_is_remembered_at_first() {
        let config = serde_json::json!({
            "initial_data": {"/memories/rules.md": "Be brief."}, "readonly": true, "instance": "one",
        });
        let tool = crate::configured("memory", &config).unwrap().unwrap();
        assert_eq!(tool.spec().parameter_names().collect::<Vec<_>>(), ["command", "path", "view_range"]);
        for (wrong, told) in [
            (serde_json::json!({"readonly": "yes"}), "`readonly` must be true or false"),
            (serde_json::json!({"initial_data": ["x"]}), "a map of paths to texts"),
            (serde_json::json!({"initial_data": {"/etc/x": ""}}), "not below /memories"),
            (serde_json::json!({"read_only": true}), "unknown field"),
        ] {
            let error = crate::configured("inspect_ai.tool.memory", &wrong).unwrap().unwrap_err();
            assert!(error.message().contains(told), "{wrong}: {error}");
        }
    }

    #[test]
    fn no_path_leaves_the_root() {
        assert_eq!(resolve("/memories/a/../b.txt").unwrap(), "/memories/b.txt");
        assert_eq!(resolve("\\memories\\a").unwrap(), "/memories/a");
        for path in [
            "/etc/passwd",
            "/memoriesX",
            "/memories/../etc",
            "memories/a",
            "/memories/../../x",
            "/memories/\0",
        ] {
            assert!(resolve(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn memories_that_are_only_read_say_so() {
        let tool = Memory::new().read_only().tool(&Options::new());
        let parameters = &tool.spec().parameters;
        assert_eq!(tool.spec().parameter_names().collect::<Vec<_>>(), ["command", "path", "view_range"]);
        assert_eq!(
            (&parameters["required"], &parameters["additionalProperties"]),
            (&serde_json::json!(["command"]), &false.into())
        );
    }

    #[test]
    fn files_and_folders_do_not_mix_and_the_size_is_bounded() {
        let mut files = Files::default();
        files.put("/memories/a".into(), "x".into()).unwrap();
        assert!(files.put("/memories/a/b".into(), "x".into()).is_err());
        files.put("/memories/d/e".into(), "x".into()).unwrap();
        assert!(files.put("/memories/d".into(), "x".into()).is_err());
        assert!(files.rename("/memories/a", "/memories/d/e").is_err());
        let long = format!("/memories/{}", "x/".repeat(1000));
        assert_eq!(
            files.rename("/memories/d", long.trim_end_matches('/')).unwrap_err().kind(),
            ErrorKind::Limit
        );
        let long = format!("/memories/{}", "x".repeat(LONGEST - 10));
        assert!(files.rename("/memories/d", &long).is_err() && files.is_there("/memories/d/e"));
        assert!(files.rename("/memories/d", "/memories/d/f").is_err());
        files.rename("/memories/d", "/memories/g").unwrap();
        assert!(files.files.contains_key("/memories/g/e"));
        assert!(files.is_folder("/memories/g") && !files.is_there("/memories/d"));
        assert!(files.rename("/memories/g/e", "/memories/a/e").is_err(), "a is a file");
        files.rename("/memories/g/e", "/memories/h/i/e").unwrap();
        assert!(files.is_folder("/memories/g"), "a folder stays when its last file goes");
        assert_eq!(files.view("/memories/g", None).unwrap(), "/memories/g is empty\n");
        let deep = format!("/memories{}", "/x".repeat(MOST_FILES));
        assert_eq!(files.put(deep, "x".into()).unwrap_err().kind(), ErrorKind::Limit);
        let error = files.put("/memories/big".into(), "x".repeat(MOST_BYTES)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit);
    }
}
