//! From the sections of a file to the items of the trust screen.

use serde_json::{Map, Value, json};
use toolwright_runtime::is_secret_name;

use super::scripts::{self, ScriptContent};
use super::{AuthorityKind, AuthorityReader, on_one_line};

/// What references to files of Python functions begin with.
const PYTHON: &str = "python:";
/// What references to scripts begin with.
const SCRIPTS: &str = "script:";

/// What references to OpenAPI documents begin with.
const OPENAPI: &str = "openapi:";

/// Tools that reach the public internet wherever a call leads them.
const FETCHES: [&str; 4] = ["fetch_content", "fetch_page_text", "fetch_page_markdown", "fetch_page_links"];

/// Tools that run what a model or a flow writes.
const RUNS: [&str; 7] =
    ["bash", "bash_session", "python", "run_process", "run_python_script", "shell", "execute_python"];

/// Tools that work in the folder, ask a person or only think. All others are shown.
const QUIET: [&str; 32] = [
    "read_file",
    "write_file",
    "edit_file",
    "text_editor",
    "apply_patch",
    "list_files",
    "list_directory",
    "glob_files",
    "grep_files",
    "grep",
    "file_info",
    "show_file",
    "memory",
    "update_plan",
    "todo_write",
    "think",
    "user_input",
    "ask_user",
    "notify_user",
    "request_approval",
    "validate_approval",
    "consume_approval",
    "plan_create",
    "plan_read",
    "plan_update",
    "plan_add_item",
    "plan_remove_item",
    "plan_clear",
    "add",
    "word_count",
    "countdown",
    "remember",
];

/// Search engines, and the variables that hold their keys unless `config` names others.
const SEARCHES: [(&str, &[&str]); 4] = [
    ("search_brave", &["BRAVE_API_KEY"]),
    ("search_wikipedia", &[]),
    ("search_elasticsearch", &["ELASTICSEARCH_API_KEY"]),
    ("search_vectors", &["PINECONE_API_KEY", "HUGGINGFACE_API_KEY"]),
];

/// What limits are when a file does not set them; a smaller number restricts.
const USUAL_LIMITS: [(&str, u64); 5] =
    [("turns", 20), ("max_parallel", 16), ("max_output", 16_384), ("steps", 2_000_000), ("memory", 24 << 20)];

fn text<'v>(entries: &'v Map<String, Value>, key: &str) -> Option<&'v str> {
    entries.get(key).and_then(Value::as_str)
}

fn texts(value: Option<&Value>) -> Vec<&str> {
    match value {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => vec![text.as_str()],
        _ => Vec::new(),
    }
}

/// A word as a shell would read it back.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

impl AuthorityReader {
    /// Shapes that only mean something as a whole.
    pub(super) fn whole(&mut self, shape: &str, at: &str, entries: &Map<String, Value>) {
        match shape {
            "mcp_server_stdio" => self.program(at, entries),
            "mcp_server_http" => self.address(at, entries),
            "import_tool" => self.import(entries),
            "tool" => self.custom(entries),
            _ => {}
        }
    }

    fn program(&mut self, at: &str, server: &Map<String, Value>) {
        let name = at.strip_prefix("mcp.").unwrap_or(at);
        let words: Vec<&str> = text(server, "command").into_iter().chain(texts(server.get("args"))).collect();
        let line: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
        let cwd = text(server, "cwd");
        let mut shown = vec![format!("MCP server `{name}`: {}", line.join(" "))];
        if let Some(Value::Object(env)) = server.get("env") {
            for (variable, value) in env {
                let value = match value.as_str() {
                    Some(value) if !is_secret_name(variable) || value.starts_with("${") => shell_word(value),
                    _ => "(hidden)".to_owned(),
                };
                shown.push(format!("  with {variable}={value}"));
            }
        }
        if let Some(folder) = cwd {
            shown.push(format!("  in the folder {}", shell_word(folder)));
        }
        match server.get("sandbox").filter(|policy| !policy.is_null()) {
            Some(policy) => shown.push(format!("  in a sandbox: {policy}")),
            None => shown.push("  outside any sandbox".to_owned()),
        }
        self.lines(AuthorityKind::Starts, &shown, Value::Object(server.clone()));
        if let Some(folder) = cwd {
            self.path("a server starts there", folder);
        }
        self.scripts(&words, cwd);
    }

    /// The scripts that a command names. Another content is another item.
    pub(super) fn scripts(&mut self, words: &[&str], cwd: Option<&str>) {
        let folder = self.folder.clone();
        for script in scripts::named_in(words.iter().copied(), &folder, cwd) {
            let path = script.path.to_string_lossy();
            let (shown, exact) = match &script.content {
                ScriptContent::Hash(hash) => {
                    let short = hash.get(..12).unwrap_or_default();
                    (format!("script {} (content {short})", shell_word(&path)), json!([path, hash]))
                }
                ScriptContent::Unchecked(why) => {
                    let shown = format!("script {} (its content is not checked: {why})", shell_word(&path));
                    (shown, json!([path, why]))
                }
            };
            self.item(AuthorityKind::Starts, shown, exact);
        }
    }

    fn address(&mut self, at: &str, server: &Map<String, Value>) {
        let name = at.strip_prefix("mcp.").unwrap_or(at);
        let mut shown = vec![format!("MCP server `{name}` at {}", text(server, "url").unwrap_or_default())];
        if let Some(headers) = server.get("headers").filter(|headers| !headers.is_null()) {
            shown.push(format!("  with the headers {}", on_one_line(headers)));
        }
        self.lines(AuthorityKind::Reaches, &shown, Value::Object(server.clone()));
    }

    pub(super) fn asked_model(&mut self, at: &str, value: &Value) {
        if let Some(model) = value.as_str() {
            self.item(AuthorityKind::Reaches, format!("the model {model} ({at})"), value.clone());
        }
    }

    pub(super) fn variables(&mut self, _: &str, value: &Value) {
        let Value::Object(variables) = value else { return };
        for (name, about) in variables {
            let secret = about.get("secret").and_then(Value::as_bool).unwrap_or(false);
            let kind = if secret { " (secret)" } else { "" };
            let shown = format!("${name}{kind}, from the environment or the nearest .env file");
            self.item(AuthorityKind::Reads, shown, json!(name));
            if about.get("secret_visible_to_model").and_then(Value::as_bool) == Some(true) {
                let shown = format!("models see the value of ${name}");
                self.item(AuthorityKind::Reads, shown, json!([name, "visible"]));
            }
        }
    }

    /// A time-out of a call restricts; doing without one does not.
    pub(super) fn call_time(&mut self, at: &str, value: &Value) {
        if !value.is_number() && !value.is_null() {
            let shown = format!("{at} is {} instead of a number of seconds", on_one_line(value));
            self.item(AuthorityKind::Sandbox, shown, value.clone());
        }
    }

    pub(super) fn resources(&mut self, _: &str, value: &Value) {
        let patterns = texts(Some(value));
        if !patterns.is_empty() {
            let shown = format!("files that MCP clients of `serve` may read: {}", patterns.join(", "));
            self.item(AuthorityKind::Paths, shown, value.clone());
        }
    }

    pub(super) fn models(&mut self, _: &str, value: &Value) {
        let named: Vec<(String, &Value)> = match value {
            Value::Object(models) => models.iter().map(|(name, model)| (name.clone(), model)).collect(),
            Value::Array(models) => {
                let name =
                    |model: &Value| model.get("name").and_then(Value::as_str).unwrap_or("?").to_owned();
                models.iter().map(|model| (name(model), model)).collect()
            }
            _ => Vec::new(),
        };
        for (name, model) in named {
            let shown = match model {
                Value::String(model) => model.clone(),
                other => on_one_line(other),
            };
            self.item(AuthorityKind::Reaches, format!("model `{name}`: {shown}"), model.clone());
            let whole = model.as_str().or_else(|| model.get("model")?.as_str()).unwrap_or_default();
            if let Some(path) = whole.strip_prefix("scripted/") {
                self.path("replies of a scripted model", path);
            }
            let vendor = model.get("provider").and_then(Value::as_str);
            let vendor = vendor.or_else(|| whole.split_once('/').map(|(vendor, _)| vendor));
            let key = model.get("key_env").and_then(Value::as_str);
            match key {
                Some(key) => self.key(key),
                None => vendor.map_or(&[][..], usual_keys).iter().for_each(|key| self.key(key)),
            }
        }
    }

    fn key(&mut self, variable: &str) {
        let shown = format!("${variable} (a key that is sent)");
        self.item(AuthorityKind::Reads, shown, json!(["key", variable]));
    }

    pub(super) fn policy(&mut self, _: &str, value: &Value) {
        let approvers = value.get("approvers").and_then(Value::as_array);
        let rules = value.as_array().or(approvers).map(Vec::as_slice).unwrap_or_default();
        for rule in rules {
            let decision = rule.get("decision").or_else(|| rule.get("params")?.get("decision"));
            let asks = rule.get("name").and_then(Value::as_str) == Some("human");
            let stricter = ["ask", "escalate", "reject", "deny", "terminate"];
            let strict = decision.and_then(Value::as_str).is_some_and(|word| stricter.contains(&word));
            if !asks && !strict {
                let mut shown = rule.clone();
                if let Value::Object(shown) = &mut shown {
                    shown.retain(|key, _| key != "examples");
                }
                self.item(AuthorityKind::Approves, format!("rule {shown}"), rule.clone());
            }
        }
    }

    pub(super) fn limit(&mut self, at: &str, value: &Value) {
        let name = at.strip_prefix("limits.").unwrap_or(at);
        let usual = USUAL_LIMITS.iter().find(|(known, _)| *known == name).map_or(0, |(_, usual)| *usual);
        let raised = match value.as_u64() {
            Some(0) if name == "max_output" => true,
            Some(given) => given > usual,
            None => true,
        };
        if raised {
            let shown = format!("limit `{name}` of a run: {value} instead of {usual}");
            self.item(AuthorityKind::Sandbox, shown, json!([name, value]));
        }
    }

    pub(super) fn unconfirmed(&mut self, at: &str, value: &Value) {
        let patterns = texts(Some(value));
        if !patterns.is_empty() {
            let shown = format!("no confirmation for {} ({at})", patterns.join(", "));
            self.item(AuthorityKind::Approves, shown, value.clone());
        }
    }

    pub(super) fn toolkit(&mut self, _: &str, value: &Value) {
        match value.as_str() {
            Some(reference) if reference.starts_with("mcp:") || reference.ends_with(".FilesystemToolkit") => {
            }
            Some(reference) if reference.starts_with(PYTHON) => self.python_file(reference),
            Some(reference) if reference.starts_with(SCRIPTS) => self.script_files(reference),
            Some(reference) if reference.starts_with(OPENAPI) => self.openapi_file(reference),
            _ => self.item(AuthorityKind::Other, format!("all tools of {value}"), value.clone()),
        }
    }

    /// A file of Python functions, which a worker imports. Trust is bound to its content.
    fn python_file(&mut self, reference: &str) {
        let path = reference.strip_prefix(PYTHON).unwrap_or(reference);
        let path = path.find(".py/").and_then(|at| path.get(..at + 3)).unwrap_or(path);
        let shown = format!("the functions of the Python file {}, in a sandbox", shell_word(path));
        self.item(AuthorityKind::Starts, shown, json!([PYTHON, path]));
        self.scripts(&["python3", path], None);
        self.path("a Python file is there", path);
    }

    /// Scripts, which calls run in the sandbox. Trust is bound to their names and contents.
    fn script_files(&mut self, reference: &str) {
        let pattern = reference.strip_prefix(SCRIPTS).unwrap_or(reference);
        let shown = format!("the scripts {}, in the sandbox", shell_word(pattern));
        let files = toolwright_scripts::matching_files(&self.folder, pattern).unwrap_or_default();
        let names: Vec<String> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
        self.item(AuthorityKind::Starts, shown, json!([SCRIPTS, pattern, names]));
        for (file, name) in files.iter().zip(&names) {
            self.scripts(&["sh", name], None);
            for beside in toolwright_scripts::definitions_beside(file) {
                self.scripts(&["sh", &beside.to_string_lossy()], None);
            }
        }
        self.path("scripts are there", pattern);
    }

    /// What the file opens to its scripts.
    pub(super) fn script_setting(&mut self, at: &str, value: &Value) {
        self.item(AuthorityKind::Reads, format!("scripts: {at} {}", on_one_line(value)), value.clone());
    }

    /// What the file opens to its Python functions.
    pub(super) fn python_setting(&mut self, at: &str, value: &Value) {
        let kind = match at.rsplit('.').next() {
            Some("interpreter") => AuthorityKind::Starts,
            Some("network") => AuthorityKind::Reaches,
            Some("env") => AuthorityKind::Reads,
            Some("read" | "write") => AuthorityKind::Paths,
            _ => AuthorityKind::Other,
        };
        self.item(kind, format!("Python functions: {at} {}", on_one_line(value)), value.clone());
    }

    /// An OpenAPI document, which says where requests go and what they do. Trust is bound to its content.
    fn openapi_file(&mut self, reference: &str) {
        let path = reference.strip_prefix(OPENAPI).unwrap_or(reference);
        let ends = [".yaml/", ".yml/", ".json/"];
        let end = ends.iter().filter_map(|ending| Some(path.find(ending)? + ending.len() - 1)).min();
        let path = end.and_then(|end| path.get(..end)).unwrap_or(path);
        let shown = format!("the API that the OpenAPI document {} describes", shell_word(path));
        let folder = self.folder.clone();
        for document in scripts::named_in(["sh", path], &folder, None) {
            let (content, exact) = match &document.content {
                ScriptContent::Hash(hash) => (hash.get(..12).unwrap_or_default().to_owned(), json!(hash)),
                ScriptContent::Unchecked(why) => (format!("not checked: {why}"), json!(why)),
            };
            let shown = format!("{shown} (content {content})");
            self.item(AuthorityKind::Reaches, shown, json!([OPENAPI, path, exact]));
        }
        self.item(AuthorityKind::Reaches, shown, json!([OPENAPI, path]));
        self.path("an OpenAPI document is there", path);
    }

    /// What the file says about its OpenAPI documents.
    pub(super) fn openapi_setting(&mut self, at: &str, value: &Value) {
        let kind = match at.rsplit('.').next() {
            Some("auth") => AuthorityKind::Reads,
            _ => AuthorityKind::Reaches,
        };
        self.item(kind, format!("OpenAPI: {at} {}", on_one_line(value)), value.clone());
    }

    fn custom(&mut self, tool: &Map<String, Value>) {
        let name = text(tool, "name").unwrap_or("?");
        self.confirmation(name, tool);
        let read_only = tool.get("annotations").and_then(|annotations| annotations.get("read_only"));
        if let Some(value) = read_only.filter(|value| !matches!(value, Value::Bool(false) | Value::Null)) {
            let shown = format!("tool `{name}` counts as read-only");
            self.item(AuthorityKind::Approves, shown, json!([name, value]));
        }
    }

    fn confirmation(&mut self, name: &str, tool: &Map<String, Value>) {
        let own = tool.get("require_confirmation");
        let of_config = tool.get("config").and_then(|config| config.get("require_confirmation"));
        let waived = |value: &&Value| !matches!(value, Value::Bool(true) | Value::Null);
        if let Some(value) = own.filter(waived).or(of_config.filter(waived)) {
            let shown = format!("no confirmation for `{name}` (require_confirmation: {value})");
            self.item(AuthorityKind::Approves, shown, json!([name, value]));
        }
    }

    /// One tool from elsewhere. What its config says is shown whole.
    fn import(&mut self, import: &Map<String, Value>) {
        let reference = text(import, "import_tool").unwrap_or_default();
        let name = text(import, "name").unwrap_or(reference);
        self.confirmation(name, import);
        let config = import.get("config").filter(|config| !config.is_null());
        if reference.starts_with(PYTHON) {
            return self.python_file(reference);
        }
        if reference.starts_with(SCRIPTS) {
            return self.script_files(reference);
        }
        if reference.starts_with(OPENAPI) {
            return self.openapi_file(reference);
        }
        let own = reference.rsplit(['.', '/']).next().unwrap_or(reference);
        let exact = json!([reference, config]);
        let with = config.map(|config| format!(": {}", on_one_line(config))).unwrap_or_default();
        if own == "build_llm_tool" {
            if let Some(config) = config {
                self.shape("config_of_a_model", name, config);
            }
            return;
        }
        if own.starts_with("browser") {
            let shown = format!("a browser, and the pages it is led to ({name}){with}");
            self.item(AuthorityKind::Reaches, shown, exact);
        } else if own == "computer" || own == "desktop_start" {
            let shown = format!("a desktop, and programs on it, in the sandbox ({name}){with}");
            self.item(AuthorityKind::Starts, shown, exact);
        } else if FETCHES.contains(&own) {
            self.item(AuthorityKind::Reaches, format!("pages of the public internet ({name}){with}"), exact);
        } else if let Some((_, keys)) = SEARCHES.iter().find(|(known, _)| *known == own) {
            self.item(AuthorityKind::Reaches, format!("search engine of {name} ({own}){with}"), exact);
            let set: Vec<&str> = ["key_env", "model_key_env"]
                .iter()
                .filter_map(|key| config.and_then(|config| config.get(key)?.as_str()))
                .collect();
            let keys = if set.is_empty() { keys.to_vec() } else { set };
            keys.into_iter().for_each(|key| self.key(key));
        } else if own == "sql_query" {
            let database = config.and_then(|config| config.get("database")?.as_str()).unwrap_or_default();
            let writes = config.and_then(|config| config.get("read_only")) == Some(&Value::Bool(false));
            let how = if writes { "read and written" } else { "read" };
            let outside = self.outside(database).unwrap_or_else(|| database.to_owned());
            self.item(AuthorityKind::Paths, format!("database {outside}, {how} ({name})"), exact);
        } else if RUNS.contains(&own) {
            let shown = format!("commands that a model or a flow writes, in the sandbox ({name}){with}");
            self.item(AuthorityKind::Starts, shown, exact);
        } else if config.is_some() || !(QUIET.contains(&own) || reference.starts_with("mcp:")) {
            self.item(AuthorityKind::Other, format!("{name} ({reference}){with}"), exact);
        }
    }
}

/// The variables that usually hold the key of a vendor.
#[cfg(feature = "models")]
fn usual_keys(vendor: &str) -> &'static [&'static str] {
    toolwright_models::vendor::find(vendor).map_or(&[], |vendor| vendor.key_variables)
}

#[cfg(not(feature = "models"))]
fn usual_keys(_: &str) -> &'static [&'static str] {
    &[]
}

#[cfg(feature = "sandbox")]
impl AuthorityReader {
    /// What the sandboxes of a file give to commands, and their limits.
    pub(super) fn sandboxes(&mut self, file: &super::ToolFile) {
        let named = file.sandboxes().iter().map(|(name, section)| (format!(" of sandbox `{name}`"), section));
        let all: Vec<_> =
            file.sandbox().into_iter().map(|section| (String::new(), section)).chain(named).collect();
        for (which, section) in all {
            self.sandbox(&which, section);
        }
    }

    fn sandbox(&mut self, which: &str, section: &crate::file::SandboxSection) {
        use crate::file::SandboxKind;
        use toolwright_sandbox::{Changes, EnvPolicy, Layer, Network, SandboxLimits};

        // Written out, so that a new key is noticed by the compiler.
        let crate::file::SandboxSection {
            kind: _,
            names_network: _,
            read,
            write,
            network,
            mask: _,
            protect,
            env: EnvPolicy { pass, set },
            limits,
            require,
            changes,
            files,
            setup,
        } = section;
        let commands = |text: String| format!("commands{which} {text}");
        match section.kind() {
            SandboxKind::Local => self.item(
                AuthorityKind::Starts,
                commands("run on this machine, in no sandbox at all".to_owned()),
                json!("local"),
            ),
            SandboxKind::Engine(image) => {
                let shown = commands(format!("run in a container: {image}"));
                self.item(AuthorityKind::Starts, shown, json!(image));
            }
            SandboxKind::Process | SandboxKind::None => {}
        }
        for (paths, what) in [(read, "may be read by commands"), (write, "may be written by commands")] {
            for path in paths.iter().map(|path| path.to_string_lossy().into_owned()) {
                match self.outside(&path) {
                    Some(_) => self.path(&format!("{what}{which}"), &path),
                    None => {
                        let shown = format!("{path} {what}{which}");
                        self.item(AuthorityKind::Sandbox, shown, json!(path));
                    }
                }
            }
        }
        match network {
            Network::Off => {}
            Network::Loopback => {
                let shown = commands("have a loopback network of their own".to_owned());
                self.item(AuthorityKind::Sandbox, shown, json!("loopback"));
            }
            Network::Allow(hosts) => {
                for host in hosts {
                    self.item(AuthorityKind::Reaches, commands(format!("may reach {host}")), json!(host));
                }
            }
        }
        for name in pass {
            self.item(AuthorityKind::Reads, format!("${name}, passed to commands{which}"), json!(name));
        }
        if !set.is_empty() {
            let names: Vec<&str> = set.keys().map(String::as_str).collect();
            let shown = commands(format!("get the variables {}", names.join(", ")));
            self.item(AuthorityKind::Sandbox, shown, json!(set));
        }
        if let Some(protect) = protect {
            let shown = commands("may write files that run programs outside, such as .git/hooks".to_owned());
            self.item(AuthorityKind::Sandbox, shown, json!(format!("{protect:?}")));
        }
        if *changes == Some(Changes::Live) {
            let shown = commands("change files at once, not by a commit at the end of a call".to_owned());
            self.item(AuthorityKind::Sandbox, shown, json!("live"));
        }
        if let Some(require) = require {
            for layer in Layer::DEFAULT_REQUIRED.iter().filter(|layer| !require.contains(layer)) {
                let shown = commands(format!("run also where there is no {layer}"));
                self.item(AuthorityKind::Sandbox, shown, json!(layer.to_string()));
            }
        }
        let SandboxLimits { memory, processes, cpu_seconds, file_size, open_files, scratch, timeout_seconds } =
            limits;
        let usual = SandboxLimits::default();
        for (name, given, usual) in [
            ("memory", *memory, usual.memory),
            ("processes", *processes, usual.processes),
            ("cpu_seconds", *cpu_seconds, usual.cpu_seconds),
            ("file_size", *file_size, usual.file_size),
            ("open_files", *open_files, usual.open_files),
            ("scratch", Some(*scratch), Some(usual.scratch)),
            ("timeout_seconds", *timeout_seconds, usual.timeout_seconds),
        ] {
            let raised = usual.is_some_and(|usual| given.is_none_or(|given| given > usual));
            if raised {
                let amount =
                    |limit: Option<u64>| limit.map_or("no limit".to_owned(), |limit| limit.to_string());
                let shown = format!(
                    "limit `{name}` of commands{which}: {} instead of {}",
                    amount(given),
                    amount(usual)
                );
                self.item(AuthorityKind::Sandbox, shown, json!([name, given]));
            }
        }
        for (path, content) in files {
            let shown = commands(format!("find the file {path}, which is written first"));
            self.item(AuthorityKind::Sandbox, shown, json!([path, content]));
        }
        if let Some(script) = setup {
            self.item(AuthorityKind::Starts, commands(format!("begin with: {script}")), json!(script));
            self.scripts(&[script], None);
        }
    }
}
