//! Files of tools: what the program lends to them, and how their problems are shown.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tokio::runtime::Handle;
use toolwright::data::DataTools;
use toolwright::lang::{
    Diagnostic, Host, Imports, Loaded, MissingEnv, Server, Severity, find_dotenv, load, parse_dotenv,
};
use toolwright::mcp::{
    HttpTarget, LockFile, LockedServer, McpServer, Pinning, ServerCommand, ServerStatus, Suspension, Target,
};
use toolwright::tools::Options;
use toolwright::{
    ApprovalRequest, Approver, BoxFuture, Decision, ExecRequest, Limits, Policy, RunBuilder, Secret, Tool,
    ToolError, ToolSource as _, Toolset,
};

use crate::answers::Later;
use crate::report::Usage;
use crate::{commands, models, prompt, report, sandboxes, toolbox};

/// Where approved definitions of the tools of MCP servers are kept.
const LOCK: &str = "tools.lock";

/// The file that is used when none is named.
pub const DEFAULT: &str = "toolwright.yaml";

/// The default file, when there is one here. Using it is said: it was not named.
pub fn default() -> Option<PathBuf> {
    let path = PathBuf::from(DEFAULT);
    let there = path.is_file();
    if there {
        eprintln!("using {DEFAULT}, which is here");
    }
    there.then_some(path)
}

/// An error when a file that was named is not there.
pub fn exists(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    let error = match std::fs::metadata(path).and_then(|found| std::fs::File::open(path).map(|_| found)) {
        Ok(found) if found.is_file() => return Ok(()),
        Ok(found) if found.is_dir() => {
            Usage::new(format!("`{shown}` is a folder")).hint("name a file of tools in it")
        }
        Ok(_) => Usage::new(format!("`{shown}` is not a file")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Usage::new(format!("there is no file `{shown}`"))
                .hint("`toolwright init` writes one to start from")
        }
        Err(error) => Usage::new(format!("cannot read `{shown}`: {error}")),
    };
    Err(error.into())
}

/// Loads a file for running. Its problems are printed; then the error only counts them.
pub fn open(path: &Path) -> anyhow::Result<Loaded> {
    exists(path)?;
    let later = Later::default();
    let host = models::lend(host(MissingEnv::Error, later.clone())?, later.models.clone());
    let loaded = load(path, &host).map_err(|error| refused(error.problems()))?;
    let _ = later.models.set(models::named(Some(&loaded))?);
    if let Some(section) = loaded.section("policy") {
        let _ = later.policy.set(section.value.clone());
    }
    for warning in loaded.problems() {
        eprintln!("{}\n", prompt::printable(&warning.render()));
    }
    Ok(loaded)
}

/// What the program lends to a file: the built-in tools under all their names, and the declared variables.
pub fn host(missing: MissingEnv, later: Later) -> anyhow::Result<Host> {
    let folder = std::env::current_dir()?;
    let dotenv = find_dotenv(&folder).and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let set = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let user = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok()).unwrap_or_default();
    let named: HashMap<String, String> = parse_dotenv(&dotenv).into_iter().collect();
    let data =
        DataTools::new(&folder, move |name| std::env::var(name).ok().or_else(|| named.get(name).cloned()));
    // What is set already wins over the file, as the later entry does here.
    Ok(Host::new()
        .builtins(toolbox::all()?)
        .imports(Elsewhere { data, later })
        .environment(parse_dotenv(&dotenv))
        .environment(set)
        .missing_env(missing)
        .variable("UserName", user)
        .variable("OS", std::env::consts::OS)
        .variable("CurrentDate", today())
        .variable("WorkDir", folder.to_string_lossy())
        .work_dir(folder.clone()))
}

/// Who decides about the calls of a model, and what a run may spend: the rules that are named, else those of the file,
/// else cautious ones; and the limits of the file.
pub fn govern(
    loaded: Option<&Loaded>,
    policy: Option<&Path>,
    builder: RunBuilder,
) -> anyhow::Result<RunBuilder> {
    let builder = builder.policy(commands::ask::policy(policy)?);
    match loaded {
        Some(loaded) if policy.is_none() => apply(loaded, builder),
        Some(loaded) => apply_limits(loaded, builder),
        None => Ok(builder),
    }
}

/// What a file says about runs in which a model makes the calls: its policy and its limits.
pub fn apply(loaded: &Loaded, mut builder: RunBuilder) -> anyhow::Result<RunBuilder> {
    if let Some(policy) = policy(loaded)? {
        builder = builder.policy(policy);
    }
    apply_limits(loaded, builder)
}

/// The rules of a file, if it has any.
pub fn policy(loaded: &Loaded) -> anyhow::Result<Option<Policy>> {
    let Some(section) = loaded.section("policy") else { return Ok(None) };
    let policy = Policy::from_value(section.value.clone());
    Ok(Some(policy.map_err(|error| Usage::new(format!("{}: {error}", section.place)))?))
}

/// A run that a person started, so that its calls are approved, also those that wait for a person's word.
pub fn started_by_a_person(builder: RunBuilder) -> RunBuilder {
    builder.policy(Policy::approve_all()).approver(Person)
}

struct Person;

impl Approver for Person {
    fn name(&self) -> &str {
        "person"
    }

    fn decide<'a>(&'a self, _: &'a ApprovalRequest<'a>) -> BoxFuture<'a, Decision> {
        Box::pin(async { Decision::Approve })
    }
}

/// What a file says about runs a person started: its limits.
pub fn apply_limits(loaded: &Loaded, builder: RunBuilder) -> anyhow::Result<RunBuilder> {
    let builder = builder.limits(limits(loaded)?);
    let at_once = loaded.section("limits").and_then(|section| section.value.get(MAX_PARALLEL)?.as_u64());
    Ok(match at_once {
        Some(calls) => builder.max_parallel(usize::try_from(calls).unwrap_or(usize::MAX)),
        None => builder,
    })
}

/// What a run may spend, as the file says.
pub fn limits(loaded: &Loaded) -> anyhow::Result<Limits> {
    let Some(section) = loaded.section("limits") else { return Ok(Limits::default()) };
    let Value::Object(mut limits) = section.value.clone() else { return Ok(Limits::default()) };
    // It bounds what a run does at once, not what it spends.
    limits.remove(MAX_PARALLEL);
    let limits = serde_json::from_value(Value::Object(limits));
    Ok(limits.map_err(|error| Usage::new(format!("{}: {error}", section.place)))?)
}

/// The key of `limits` that is no limit on spending.
const MAX_PARALLEL: &str = "max_parallel";

/// Prints problems, and says how many there are.
pub fn refused(problems: &[Diagnostic]) -> Usage {
    for problem in problems {
        eprintln!("{}\n", prompt::printable(&problem.render()));
    }
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    report::found(errors)
}

/// Finds tools by the names other systems give them, makes those that look things up as they are set up, and asks MCP
/// servers for theirs.
struct Elsewhere {
    data: DataTools,
    later: Later,
}

impl Imports for Elsewhere {
    fn tool(&self, reference: &str, config: &Value) -> Option<Result<Arc<dyn Tool>, ToolError>> {
        let standard = || {
            toolwright::tools::resolve(reference)?;
            let options = match Options::from_config(config) {
                Ok(options) => options,
                Err(error) => return Some(Err(error)),
            };
            toolwright::tools::resolve_with(reference, &options).map(Ok)
        };
        let tool = standard().or_else(|| self.data.tool(reference, config))?;
        Some(tool.map(|tool| Arc::new(tool) as Arc<dyn Tool>))
    }

    fn toolkit(&self, reference: &str) -> Option<Result<Toolset, ToolError>> {
        let set = toolwright::tools::toolkit(reference)?;
        Some(set.map_err(|error| ToolError::new(error.to_string())))
    }

    /// Starts or reaches the server and lists its tools. It ends with the last of them.
    fn server(&self, name: &str, server: &Server) -> Result<Toolset, ToolError> {
        let target: Target = match server {
            Server::Stdio { command, args, env, cwd, sandbox: None, .. } => {
                let mut command = ServerCommand::new(command).args(args);
                if let Some(folder) = cwd {
                    command = command.folder(folder);
                }
                env.iter().fold(command, |command, (name, value)| command.env(name, value)).into()
            }
            Server::Stdio { command, args, env, cwd, sandbox: Some(policy), .. } => {
                let mut command = ExecRequest::new(std::iter::once(command).chain(args));
                command.cwd.clone_from(cwd);
                command.env.extend(env.clone());
                let opened = sandboxes::open_policy(policy.clone(), command);
                let (sandbox, command) = tokio::task::block_in_place(|| Handle::current().block_on(opened))?;
                Target::Sandboxed { sandbox, command }
            }
            Server::Http { url, headers, sse, timeout, read_timeout, .. } => {
                let mut target = HttpTarget::new(url);
                for (name, value) in headers {
                    target = target.header(name, Secret::new(value.as_str()));
                }
                target = if *sse { target.legacy_sse() } else { target };
                target = timeout.map_or(target.clone(), |time| target.timeout(time));
                read_timeout.map_or(target.clone(), |time| target.sse_read_timeout(time)).into()
            }
        };
        let answers = self.later.answers(server.trust().sampling.as_deref());
        let mut builder = McpServer::builder(name, target).answers(answers);
        if let Some(lock) = locked(name)? {
            builder = builder.pinning(Pinning::Locked(lock));
        }
        let server = builder.build();
        // Files are read once, before anything else happens, so nobody is kept waiting.
        let tools = tokio::task::block_in_place(|| Handle::current().block_on(server.tools()))?;
        let state = server.state();
        for Suspension { tool, changes } in &state.suspended {
            eprintln!("`{tool}` of the server `{name}` is not what {LOCK} approved, and is left out:");
            changes.iter().for_each(|change| eprintln!("    {}", prompt::printable(change)));
        }
        match state.status {
            ServerStatus::Failed { why } => Err(ToolError::new(why)),
            ServerStatus::Configured | ServerStatus::Started { .. } => Ok(tools),
        }
    }
}

/// What `toolwright mcp lock` approved of a server, in the current folder.
fn locked(name: &str) -> Result<Option<LockedServer>, ToolError> {
    let path = Path::new(LOCK);
    if !path.exists() {
        return Ok(None);
    }
    let mut file = LockFile::load(path).map_err(|error| ToolError::new(error.to_string()))?;
    Ok(file.servers.remove(name))
}

/// The date as files see it, in UTC.
fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    toolwright::utc_date(since)
}
