//! Files of tools: what the program lends to them, and how their problems are shown.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use toolwright::data::DataTools;
use toolwright::file::{self, Importer};
use toolwright::lang::{Host, Loaded, MissingEnv, find_dotenv, load, load_all, parse_dotenv};
use toolwright::mcp::{Changes, Suspension};
use toolwright::text::clip;
use toolwright::{Policy, Redactor, RunBuilder, RunLimits, ToolError, Toolset};

use crate::answers::{Asked, Later};
use crate::console::Console;
use crate::report::Usage;
use crate::{commands, models, prompt, report, tokens, toolbox, trust, unset};

/// Where approved definitions of the tools of MCP servers are kept.
const LOCK: &str = "tools.lock";
/// The most bytes shown of one change in a tool that is left out.
const MOST_SHOWN: usize = 2000;

/// The file that is used when none is named.
pub const DEFAULT: &str = "toolwright.yaml";

/// The default file, when there is one here. Using it is said: it was not named.
pub fn default(console: &Console) -> Option<PathBuf> {
    let path = PathBuf::from(DEFAULT);
    let there = path.is_file();
    if there {
        console.say(format_args!("using {DEFAULT}, which is here"));
    }
    there.then(|| found(path))
}

/// The file that is used, once it was found and not named.
static FOUND: OnceLock<PathBuf> = OnceLock::new();

/// Who is told that the tools of a server changed.
static CHANGES: OnceLock<Changes> = OnceLock::new();

/// Has the clients of a server of ours told, from now on, that the tools of the file's servers changed.
pub fn tell_clients(changes: Changes) {
    let _ = CHANGES.set(changes);
}

/// A run with the tools of the file that match, or the built-in ones; those of servers as they are at any time.
pub fn run_with(loaded: Option<&Loaded>, patterns: &[String]) -> anyhow::Result<(RunBuilder, Toolset)> {
    let all = loaded.map_or_else(toolbox::all, |loaded| Ok(loaded.tools().clone()))?;
    let tools = commands::tools::chosen(all, patterns)?;
    let current = loaded.and_then(|loaded| loaded.current_tools(self::patterns(patterns)));
    Ok((file::following(current, &tools), tools))
}

/// The patterns that were given; without any, one for everything.
pub fn patterns(given: &[String]) -> Vec<&str> {
    if given.is_empty() { vec!["*"] } else { given.iter().map(String::as_str).collect() }
}

/// Notes that a file was not named by the person: a stranger may have put it there, so what it opens waits for the person's
/// word.
pub fn found(path: PathBuf) -> PathBuf {
    FOUND.get_or_init(|| path.clone());
    path
}

/// The file that was found and not named, when one is used.
pub fn only_found() -> Option<&'static Path> {
    FOUND.get().map(PathBuf::as_path)
}

/// The default file, when there is one here that says something about a sandbox or limits: that holds for built-in tools too.
/// Its servers are not started. A file that cannot be read might say it: that is an error.
pub fn around(console: &Console) -> anyhow::Result<Option<Loaded>> {
    let path = Path::new(DEFAULT);
    if !path.is_file() {
        return Ok(None);
    }
    let loaded = load_all(
        path,
        &host(console, path, MissingEnv::Empty, Later::new(console, Asked::Console))?.offline(),
    );
    if let Some(error) = loaded.malformed() {
        let refused = report::refused(error.problems());
        let hint =
            format!("the sandbox and the limits of {DEFAULT} hold for built-in tools too; mend or move it");
        return Err(refused.hint(hint).into());
    }
    let says = ["sandbox", "limits"].iter().any(|section| loaded.section(section).is_some());
    if says {
        console.say(format_args!("using the sandbox and the limits of {DEFAULT}, which is here"));
        found(path.to_path_buf());
    }
    Ok(says.then_some(loaded))
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

/// Loads a file for running. Its problems are in the error.
pub fn open(console: &Console, path: &Path) -> anyhow::Result<Loaded> {
    open_with(console, path, |host| host)
}

/// The same, with more to lend to the file.
pub fn open_with(console: &Console, path: &Path, lend: impl FnOnce(Host) -> Host) -> anyhow::Result<Loaded> {
    let loaded = read(console, path, Asked::Console, MissingEnv::Error, lend)?;
    warn(console, &loaded);
    warn_of_short_secrets(console, &loaded)?;
    Ok(loaded)
}

/// The same for a program that serves MCP clients: what the file's servers ask is passed on to the client.
pub fn open_for_clients(console: &Console, path: &Path) -> anyhow::Result<Loaded> {
    let loaded = read(console, path, Asked::Client, MissingEnv::Error, |host| host)?;
    warn(console, &loaded);
    warn_of_short_secrets(console, &loaded)?;
    Ok(loaded)
}

/// Loads a file for showing its tools. Nobody is asked for variables that are not set: they are empty, which is said.
pub fn open_listed(console: &Console, path: &Path) -> anyhow::Result<Loaded> {
    let loaded = read(console, path, Asked::Console, MissingEnv::Empty, |host| host)?;
    warn(console, &loaded);
    tell_of_unset(console, &loaded);
    Ok(loaded)
}

/// Loads a file for what it says beside its tools. Nothing is started.
pub fn open_sections(console: &Console, path: &Path) -> anyhow::Result<Loaded> {
    let loaded = read(console, path, Asked::Console, MissingEnv::Empty, Host::offline)?;
    tell_of_unset(console, &loaded);
    Ok(loaded)
}

/// Loads a file for running its flows where nothing else is run: no server is started, and the tools of servers are not there
/// or take anything.
pub fn open_offline(
    console: &Console,
    path: &Path,
    lend: impl FnOnce(Host) -> Host,
) -> anyhow::Result<Loaded> {
    read(console, path, Asked::Console, MissingEnv::Error, |host| lend(host).offline())
}

fn read(
    console: &Console,
    path: &Path,
    asked: Asked,
    missing: MissingEnv,
    lend: impl FnOnce(Host) -> Host,
) -> anyhow::Result<Loaded> {
    exists(path)?;
    let later = Later::new(console, asked);
    let host =
        lend(models::lend(console, host(console, path, missing, later.clone())?, later.models.clone()));
    let host = match missing {
        MissingEnv::Error => unset::ask(console, path, host)?,
        MissingEnv::Empty => host,
    };
    let loaded = load(path, &host).map_err(|error| report::refused(error.problems()))?;
    let _ = later.models.set(models::named(Some(&loaded))?);
    if let Some(section) = loaded.section("policy") {
        let _ = later.policy.set(section.value.clone());
    }
    Ok(loaded)
}

/// Says what is odd in a file that can be used.
fn warn(console: &Console, loaded: &Loaded) {
    for warning in loaded.problems() {
        console.say(format_args!("{}\n", prompt::printable(&warning.render())));
    }
}

/// Says which secrets of a file are too short to be kept out of records.
fn warn_of_short_secrets(console: &Console, loaded: &Loaded) -> anyhow::Result<()> {
    let dotenv: HashMap<String, String> = dotenv(&std::env::current_dir()?).into_iter().collect();
    let value = |name: &str| std::env::var(name).ok().or_else(|| dotenv.get(name).cloned());
    // An empty value is no secret, so it is not among them.
    let set = loaded.env().iter().filter(|variable| variable.secret && variable.is_set);
    let set = set.filter(|variable| value(&variable.name).as_deref() != Some(""));
    for (variable, secret) in set.zip(loaded.secrets()) {
        if secret.expose().len() < Redactor::SHORTEST {
            let (name, shortest) = (&variable.name, Redactor::SHORTEST);
            console.say(format_args!("warning: the secret `{name}` has fewer than {shortest} bytes, so it is not kept out of records"));
        }
    }
    Ok(())
}

/// Says which variables of a file count as empty.
fn tell_of_unset(console: &Console, loaded: &Loaded) {
    let unset = loaded.env().iter().filter(|variable| !variable.is_set);
    let names: Vec<String> = unset.map(|variable| format!("`{}`", variable.name)).collect();
    if !names.is_empty() {
        let verb = if names.len() == 1 { "is" } else { "are" };
        let told = format!("{} {verb} not set, and taken as empty here", names.join(", "));
        console.say(prompt::printable(&clip(&told, 200)));
    }
}

/// Says how many tools only the chat has: whoever misses them elsewhere should know why.
pub fn tell_of_chat(console: &Console, loaded: &Loaded) {
    let of_chat = loaded.chat().map(|chat| chat.tools.names()).into_iter().flatten();
    let alone = of_chat.filter(|name| loaded.tools().get(name).is_none()).count();
    if alone > 0 {
        let verb = if alone == 1 { "is" } else { "are" };
        let tools = report::counted(alone as u64, "tool");
        console.say(format_args!(
            "{tools} {verb} for `toolwright chat` alone (`chat.tools`, `auto_import_scope: chat`)"
        ));
    }
}

/// An error for a tool that only a section of the file has. A built-in one of the same name is another tool: the file may have put its own in
/// its place to be asked first.
pub fn not_of_a_section(loaded: &Loaded, name: &str, built_in: bool) -> Result<(), Usage> {
    let of_chat = loaded.chat().is_some_and(|chat| chat.tools.get(name).is_some());
    let of_cli = loaded.cli().is_some_and(|cli| cli.tools().get(name).is_some());
    let (section, command) = match (of_chat, of_cli) {
        _ if loaded.tools().get(name).is_some() => return Ok(()),
        (true, _) => ("chat", "chat"),
        (false, true) => ("cli", "run"),
        (false, false) => return Ok(()),
    };
    let otherwise = if built_in { "; without the file, the built-in one is called" } else { "" };
    let error =
        Usage::new(format!("`{name}` of this file is for `toolwright {command}` alone (`{section}.tools`)"));
    Err(error.hint(format!("define it under `tools` to call it from here{otherwise}")))
}

/// Says which tools of the file its chat does not have: a `chat` section has those it names.
pub fn tell_of_left_out(console: &Console, loaded: &Loaded) {
    let Some(chat) = loaded.chat() else { return };
    let left_out: Vec<&str> = loaded.tools().names().filter(|name| chat.tools.get(name).is_none()).collect();
    if left_out.is_empty() {
        return;
    }
    let has = match chat.tools.len() {
        0 => "no tools".to_owned(),
        count => report::counted(count as u64, "tool"),
    };
    let names = toolwright::text::clip(&left_out.join(", "), 200);
    console.say(prompt::printable(&format!(
        "the chat has {has} (`chat.tools`), and not these of the file: {names}"
    )));
}

/// What the program lends to the file at `path`: the built-in tools under all their names, and the declared variables.
pub fn host(console: &Console, path: &Path, missing: MissingEnv, later: Later) -> anyhow::Result<Host> {
    let folder = std::env::current_dir()?;
    let set = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let dotenv = dotenv(&folder);
    let named: HashMap<String, String> = dotenv.iter().cloned().collect();
    let data =
        DataTools::new(&folder, move |name| std::env::var(name).ok().or_else(|| named.get(name).cloned()));
    // What is set already wins over the file, as the later entry does here.
    Ok(Host::new()
        .builtins(toolbox::all()?)
        .imports(importer(console, path, data, later))
        .applies(file::APPLIED.iter().copied())
        .environment(dotenv)
        .environment(set)
        .missing_env(missing)
        .variable("UserName", user_name())
        .variable("OS", system())
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
    Ok(file::policy(loaded).map_err(wrong)?)
}

/// A run that a person started, so that its calls are approved, also those that wait for a person's word. The calls of models
/// inside them are decided about as in `ask`.
pub fn started_by_a_person(
    console: &Console,
    loaded: Option<&Loaded>,
    builder: RunBuilder,
) -> anyhow::Result<RunBuilder> {
    let builder = govern(loaded, None, builder)?.started_by_person();
    Ok(match console.person() {
        Some(person) => builder.person(person),
        None => builder,
    })
}

/// What a file says about runs of any kind: its limits.
pub fn apply_limits(loaded: &Loaded, builder: RunBuilder) -> anyhow::Result<RunBuilder> {
    Ok(file::apply_limits(loaded, builder).map_err(wrong)?)
}

/// What a run may spend, as the file says.
pub fn limits(loaded: &Loaded) -> anyhow::Result<RunLimits> {
    Ok(file::limits(loaded).map_err(wrong)?)
}

/// A section that is not what it should be.
pub fn wrong(error: ToolError) -> Usage {
    Usage::from(error.info())
}

/// Finds what the file at `path` imports: other systems' names, tools that look things up, MCP servers as they were approved.
fn importer(console: &Console, path: &Path, data: DataTools, later: Later) -> Importer {
    let (trusting, oauth, suspended) = (console.clone(), console.clone(), console.clone());
    let importer = match only_found() {
        None => Importer::new(),
        Some(file) => Importer::new().allow(move |name, server| trust::server(&trusting, file, name, server)),
    };
    importer
        .data(data)
        .proxies(toolbox::proxies())
        .answers(move |server| later.answers(server.trust().sampling.as_deref()))
        // Whoever started us without a terminal, as MCP clients do, cannot be asked.
        .oauth(move || tokens::options(&oauth))
        // Clients start us in folders of their own choice, so the folder of the file comes first.
        .lock(path.with_file_name(LOCK))
        .lock(LOCK)
        .on_suspended(move |server, Suspension { tool, changes }, lock| {
            let why = match lock {
                Some(lock) => format!("is not what {} approved", lock.display()),
                None => "is not what it was when the server was started".to_owned(),
            };
            // A definition may be a megabyte; `mcp lock` shows it whole.
            let changes: String =
                changes.iter().map(|change| format!("    {}\n", clip(change, MOST_SHOWN))).collect();
            suspended.notice(&prompt::printable(&format!(
                "`{tool}` of the server `{server}` {why}, and is left out:\n{changes}    \
                 approve it with `toolwright mcp lock --name {server}`, and start again"
            )));
        })
        .on_listed(|| CHANGES.get().into_iter().for_each(Changes::tools))
}

/// The variables of the `.env` file in use.
fn dotenv(folder: &Path) -> Vec<(String, String)> {
    let file = find_dotenv(folder).or_else(dotenv_of_llm_workers);
    let text = file.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    parse_dotenv(&text, |name| std::env::var(name).ok())
}

/// The `.env` file in which llm-workers keeps its answers, used where no folder on the way up has one.
pub fn dotenv_of_llm_workers() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty())?;
    Some(Path::new(&home).join(".config/llm-workers/.env")).filter(|file| file.is_file())
}

/// Who runs the program: as the environment says, in the order in which Python looks, else as the system knows the user. Containers
/// and `cron` set neither variable.
fn user_name() -> String {
    let set = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    ["LOGNAME", "USER"].iter().find_map(set).or_else(known_user).unwrap_or_default()
}

/// The name of the user in the system's list.
fn known_user() -> Option<String> {
    let id = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    })
}

/// The operating system by the name it gives itself, which is what files compare with.
fn system() -> &'static str {
    match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Darwin",
        "windows" => "Windows",
        other => other,
    }
}

/// The date as files see it, in UTC.
fn today() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    toolwright::utc_date(since)
}
