//! The tools of other agents, as our rules know them: by the names of ours that do the same, with the names
//! of our parameters, and with the parameters that a shell runs.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};
use toolwright::tool::{ToolPolicy, ToolSpec};

/// What is known of a tool of an agent.
struct KnownTool {
    name: &'static str,
    /// Names of ours: rules about them hold for it.
    ours: &'static [&'static str],
    /// Names that our tools give its parameters: `(ours, its own)`.
    aliases: &'static [(&'static str, &'static str)],
    shell: Option<&'static str>,
    /// The parameter that names a file or folder.
    path: Option<&'static str>,
    read_only: bool,
}

const KNOWN: KnownTool =
    KnownTool { name: "", ours: &[], aliases: &[], shell: None, path: None, read_only: false };

/// Codex's tool for changes in files.
pub const PATCH: &str = "apply_patch";

/// Claude Code's tools, and Codex's by the names that its hooks give them.
const TOOLS: [KnownTool; 20] = [
    KnownTool { name: "Bash", ours: &["bash"], shell: Some("command"), ..KNOWN },
    KnownTool {
        name: "Read",
        ours: &["read_file"],
        aliases: &[("path", "file_path")],
        path: Some("file_path"),
        read_only: true,
        ..KNOWN
    },
    KnownTool {
        name: "Write",
        ours: &["write_file", "create_file"],
        aliases: &[("path", "file_path")],
        path: Some("file_path"),
        ..KNOWN
    },
    KnownTool {
        name: "Edit",
        ours: &["edit_file", "search_and_replace"],
        aliases: &[("path", "file_path")],
        path: Some("file_path"),
        ..KNOWN
    },
    KnownTool {
        name: "NotebookEdit",
        ours: &["edit_file"],
        aliases: &[("path", "notebook_path")],
        path: Some("notebook_path"),
        ..KNOWN
    },
    KnownTool { name: "Glob", ours: &["glob_files", "glob"], path: Some("path"), read_only: true, ..KNOWN },
    KnownTool { name: "Grep", ours: &["grep_files", "grep"], path: Some("path"), read_only: true, ..KNOWN },
    KnownTool { name: "WebFetch", ours: &["fetch_content", "fetch_url_content"], ..KNOWN },
    KnownTool { name: "WebSearch", ours: &["web_search", "search_web"], ..KNOWN },
    KnownTool { name: "TodoWrite", ours: &["todo_write"], read_only: true, ..KNOWN },
    KnownTool { name: "TaskOutput", read_only: true, ..KNOWN },
    KnownTool { name: "TaskList", read_only: true, ..KNOWN },
    KnownTool { name: "TaskGet", read_only: true, ..KNOWN },
    KnownTool { name: "ToolSearch", read_only: true, ..KNOWN },
    KnownTool { name: "AskUserQuestion", ours: &["ask_user"], read_only: true, ..KNOWN },
    KnownTool { name: "EnterPlanMode", read_only: true, ..KNOWN },
    KnownTool { name: "ListMcpResourcesTool", read_only: true, ..KNOWN },
    // Codex's.
    KnownTool { name: PATCH, aliases: &[("patch", "command")], ..KNOWN },
    KnownTool { name: "update_plan", read_only: true, ..KNOWN },
    KnownTool { name: "view_image", ours: &["show_file"], path: Some("path"), read_only: true, ..KNOWN },
];

/// A tool of an agent, as far as its name and one call tell.
pub struct AgentTool {
    pub spec: ToolSpec,
    pub policy: ToolPolicy,
    path: Option<&'static str>,
}

impl AgentTool {
    pub fn of(name: &str, input: &Value) -> Self {
        let known = TOOLS.iter().find(|known| known.name == name).unwrap_or(&KNOWN);
        let own = known.aliases.iter().map(|(_, own)| *own).chain(known.shell).chain(known.path);
        let given = input.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        let properties: Map<String, Value> =
            own.chain(given).map(|name| (name.to_owned(), json!({}))).collect();
        let mut spec = ToolSpec::new(name, "");
        spec.parameters = json!({"type": "object", "properties": properties});
        spec.annotations.read_only = known.read_only.then_some(true);
        let mut policy = ToolPolicy::default();
        policy.known_as = known.ours.iter().map(|name| (*name).into()).chain(of_server(name)).collect();
        policy.aliases = known.aliases.iter().map(|(ours, own)| ((*ours).into(), (*own).into())).collect();
        policy.shell = known.shell.iter().map(|name| (*name).into()).collect();
        AgentTool { spec, policy, path: known.path }
    }

    /// The file or folder that a call names, from the root.
    pub fn path_of(&self, input: &Value, cwd: Option<&str>) -> Option<PathBuf> {
        Some(plain(&Path::new(cwd?).join(input.get(self.path?)?.as_str()?)))
    }

    /// The arguments with the path of the call as a rule may name it: from the folder of the session if it
    /// lies there, or from the root. `None` when there is no path, or no other way to write it.
    pub fn with_path(&self, input: &Value, cwd: Option<&str>, from: PathFrom) -> Option<Value> {
        let whole = self.path_of(input, cwd)?;
        let path = match from {
            PathFrom::Root => whole,
            PathFrom::Folder => {
                let inside = whole.strip_prefix(plain(Path::new(cwd?)));
                inside.map_or(whole.clone(), Path::to_owned)
            }
        };
        let mut input = input.clone();
        *input.get_mut(self.path?)? = path.to_str()?.into();
        Some(input)
    }
}

/// From where a path is named.
#[derive(Clone, Copy, Debug)]
pub enum PathFrom {
    Root,
    Folder,
}

/// Our name for a tool of an MCP server, `mcp:server/tool`, where agents write `mcp__server__tool`.
fn of_server(name: &str) -> Option<std::sync::Arc<str>> {
    let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
    Some(format!("mcp:{server}/{tool}").into())
}

/// A path without `.` and `..`, by its text alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_servers_have_our_names() {
        assert_eq!(of_server("mcp__shop__sell_all").as_deref(), Some("mcp:shop/sell_all"));
        // The name of the server comes first, so that a server cannot choose it.
        assert_eq!(of_server("mcp__evil__good__tool").as_deref(), Some("mcp:evil/good__tool"));
        assert_eq!((of_server("Bash"), of_server("mcp__odd")), (None, None));
    }

    #[test]
    fn path_is_named_from_the_folder_and_from_the_root() {
        let read = |path: &str, from| {
            let input = json!({"file_path": path});
            let tool = AgentTool::of("Read", &input);
            tool.with_path(&input, Some("/w"), from).unwrap()["file_path"].as_str().unwrap().to_owned()
        };
        assert_eq!(read("/w/a/../.env", PathFrom::Folder), ".env");
        assert_eq!(read("a/../.env", PathFrom::Folder), ".env");
        assert_eq!(read("./.env", PathFrom::Root), "/w/.env");
        assert_eq!(read("/etc/passwd", PathFrom::Folder), "/etc/passwd");
        assert_eq!(read("../../etc/passwd", PathFrom::Folder), "/etc/passwd");
    }
}
