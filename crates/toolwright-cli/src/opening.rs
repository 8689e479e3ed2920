//! From a file to a session: the one way in which every command opens its file.
//!
//! The file is parsed; one that was found is inert until the person trusts it. What the program lends to it
//! is put together, the person is asked for the variables that are needed and not set, and the servers and
//! sandboxes that are needed are started.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use toolwright::data::DataTools;
use toolwright::events::Redactor;
use toolwright::file::{
    Caller, Connect, Environment, KnownTools, Sandboxing, Session, SessionBuilder, ToolFile,
};
use toolwright::lang::{LoadError, Loaded, Source, Wanted};
use toolwright::mcp::Suspension;
use toolwright::run::RunBuilder;
use toolwright::{Error, Policy, ToolError, Toolset};
use toolwright_core::text::clip;

use crate::args::SandboxArgs;
use crate::commands::{ask, tools};
use crate::console::Console;
use crate::models::Named;
use crate::report::{self, Usage};
use crate::runs::record::UsedFile;
use crate::server_questions::{FileAnswers, QuestionRoute};
use crate::{files, models, oauth_setup, policies, prompt, prompt_env, sandboxes, toolbox, trust};

/// Where approved definitions of the tools of MCP servers are kept.
pub const LOCK: &str = "tools.lock";

/// The most bytes shown of one change in a tool that is left out.
const MOST_SHOWN: usize = 2000;

/// A file of tools, and whether the person named it.
#[derive(Debug, Clone)]
pub struct FileChoice {
    pub path: PathBuf,
    /// It was found and not named: a stranger may have put it there, so it is inert until it is trusted.
    pub found: bool,
    /// The content of a found file that was used before, by the person's own record.
    pub used_before: Option<String>,
}

impl FileChoice {
    /// A file that the person named.
    pub fn named(path: impl Into<PathBuf>) -> Self {
        FileChoice { path: path.into(), found: false, used_before: None }
    }

    /// A file that nobody named.
    pub fn found(path: impl Into<PathBuf>) -> Self {
        FileChoice { path: path.into(), found: true, used_before: None }
    }

    /// Parses the file, and has it trusted if it was found. Its problems are in the error.
    pub async fn parse(&self, console: &Console) -> anyhow::Result<ParsedFile> {
        if !self.found {
            files::exists(&self.path)?;
        }
        let parsed = self.parse_inert()?;
        match parsed.file.error() {
            Some(error) => Err(report::refused(error.problems()).into()),
            None => parsed.trusted(console).await,
        }
    }

    /// Parses what can be parsed. A file that was found is inert: it can be checked, and not used.
    pub fn parse_inert(&self) -> anyhow::Result<ParsedFile> {
        let (path, folder) = (self.path.clone(), std::env::current_dir()?);
        let file = match self.found {
            true => ToolFile::parse_found(path, folder),
            false => ToolFile::parse_in(path, folder),
        };
        Ok(ParsedFile { choice: Some(self.clone()), file: Arc::new(file) })
    }
}

/// A file that was parsed; without a choice, an empty one for the built-in tools.
#[derive(Clone)]
pub struct ParsedFile {
    pub choice: Option<FileChoice>,
    pub file: Arc<ToolFile>,
}

impl ParsedFile {
    /// The file that was chosen, or an empty one.
    pub async fn of(console: &Console, choice: Option<&FileChoice>) -> anyhow::Result<Self> {
        match choice {
            Some(choice) => choice.parse(console).await,
            None => Ok(ParsedFile {
                choice: None,
                file: Arc::new(ToolFile::parse_all(Source::text("no file", ""))),
            }),
        }
    }

    /// The same file, once the person trusts it. One that was named is trusted.
    pub async fn trusted(self, console: &Console) -> anyhow::Result<Self> {
        let Some(choice) = self.choice.as_ref().filter(|_| !self.file.is_trusted()) else { return Ok(self) };
        trust::ask(console, choice, &self.file).await?;
        self.trust()
    }

    /// The same file, trusted if the person did so before; nobody is asked.
    pub fn trusted_already(self) -> anyhow::Result<Self> {
        match &self.choice {
            Some(choice) if !self.file.is_trusted() && trust::is_agreed(choice, &self.file)? => self.trust(),
            _ => Ok(self),
        }
    }

    fn trust(self) -> anyhow::Result<Self> {
        // Nothing else holds the file yet.
        let file = Arc::try_unwrap(self.file).map_err(|_| anyhow::anyhow!("the file is in use already"))?;
        Ok(ParsedFile { choice: self.choice, file: Arc::new(file.trust()) })
    }

    /// Its models.
    pub fn models(&self) -> Named {
        self.file.models().clone()
    }

    /// The variables that the file may see: none while it is inert.
    pub fn environment(&self) -> anyhow::Result<Environment> {
        match self.file.is_trusted() {
            true => files::environment(self.choice.is_some()),
            false => Ok(Environment::empty()),
        }
    }

    /// What the program lends to the file: the built-in tools under all their names, and values of variables.
    pub fn known(&self, environment: Environment) -> anyhow::Result<KnownTools> {
        let folder = std::env::current_dir()?;
        let own = environment.clone();
        let user_name = if self.file.is_trusted() { files::user_name() } else { String::new() };
        let known = KnownTools::new()
            .builtins(toolbox::all()?)
            .data(DataTools::new(&folder, move |name| own.get(name)))
            .proxies(toolbox::proxies())
            .environment(environment)
            .variable("UserName", user_name)
            .variable("OS", files::system())
            .variable("CurrentDate", files::today())
            .variable("WorkDir", folder.to_string_lossy());
        // Clients start us in folders of their own choice, so the folder of the file comes first.
        let beside = self.choice.iter().map(|choice| choice.path.with_file_name(LOCK));
        Ok(beside.chain([LOCK.into()]).fold(known, KnownTools::lock))
    }
}

/// How a command uses its file.
pub struct Opening<'a> {
    pub wanted: Wanted,
    pub connect: Connect,
    /// Whom the servers of the file ask.
    pub asked: QuestionRoute,
    /// Variables that are not set are asked for; otherwise they count as empty, which is reported.
    pub runs: bool,
    pub policy: Option<&'a Path>,
    /// What rules ask about is approved.
    pub yes: bool,
    /// The command line of a batch program.
    pub arguments: Option<Value>,
}

impl Default for Opening<'_> {
    fn default() -> Self {
        Opening {
            wanted: Wanted::everything(),
            connect: Connect::Required,
            asked: QuestionRoute::Console,
            runs: true,
            policy: None,
            yes: false,
            arguments: None,
        }
    }
}

impl Opening<'_> {
    /// Opens a file; what is odd in it is reported. Its sandboxes are opened later, when it is known which
    /// tools are used.
    pub async fn open(self, console: &Console, parsed: ParsedFile) -> anyhow::Result<Opened> {
        let rules = RuleSources::read(self.policy)?;
        let environment = parsed.environment()?;
        let known = parsed.known(environment.clone())?;
        let needs = parsed.file.needs(&self.wanted);
        let environment = match self.runs {
            true => prompt_env::ask(console, &parsed.file.variables(&known, &needs), environment)?,
            false => environment,
        };
        let mut known = known.environment(environment.clone());
        if let Some(arguments) = &self.arguments {
            known = known.arguments(arguments);
        }
        let mut builder = session(console, &parsed, self.asked, &rules)
            .known(known)
            .wanted(self.wanted)
            .connect(self.connect);
        if !self.runs {
            builder = builder.without_variables();
        }
        builder = rules.policies.into_iter().fold(builder, SessionBuilder::policy);
        builder = rules.standing.into_iter().fold(builder, SessionBuilder::standing_policy);
        builder = rules.managed.into_iter().fold(builder, SessionBuilder::mandatory_policy);
        builder = builder.default_policy(Policy::cautious()).assume_yes(self.yes);
        let session = builder.sandboxing(Sandboxing::Never).open().await.map_err(refused)?;
        if self.connect != Connect::Never {
            warn(console, session.loaded());
        }
        match self.runs {
            true if self.connect != Connect::Never => {
                warn_of_short_secrets(console, session.loaded(), &environment);
            }
            true => {}
            false => files::tell_of_unset(console, session.loaded()),
        }
        let uses_tools = parsed.choice.is_some();
        Ok(Opened { session, parsed, uses_tools })
    }
}

/// Makes tools of a file with its servers connected, as far as that is possible.
pub async fn connected(console: &Console, parsed: &ParsedFile, known: KnownTools) -> Loaded {
    let rules = RuleSources::default();
    session(console, parsed, QuestionRoute::Console, &rules).known(known).without_variables().compile().await
}

/// The rules about calls beside those of the file.
#[derive(Default)]
struct RuleSources {
    /// Those of the command line.
    policies: Vec<Arc<Policy>>,
    /// The person's own.
    standing: Vec<Arc<Policy>>,
    /// Those of the machine.
    managed: Option<Arc<Policy>>,
}

impl RuleSources {
    fn read(named: Option<&Path>) -> anyhow::Result<Self> {
        let named = named.map(|path| ask::policy(Some(path))).transpose()?;
        Ok(RuleSources {
            policies: named.map(Arc::new).into_iter().collect(),
            standing: policies::user()?.map(Arc::new).into_iter().collect(),
            managed: policies::managed()?.map(Arc::new),
        })
    }

    /// Those of the file and of persons.
    fn all(&self, file: &ToolFile) -> Vec<Arc<Policy>> {
        self.policies.iter().chain(&self.standing).chain(file.policy()).cloned().collect()
    }
}

/// A session of the program: who answers and allows what its servers ask, and which models there are.
fn session(
    console: &Console,
    parsed: &ParsedFile,
    asked: QuestionRoute,
    rules: &RuleSources,
) -> SessionBuilder {
    let answers = FileAnswers {
        console: console.clone(),
        asked,
        models: parsed.models(),
        policies: rules.all(&parsed.file),
        managed: rules.managed.clone(),
    };
    let named = parsed.models();
    let [models, oauth, notices, suspended] = std::array::from_fn(|_| console.clone());
    Session::builder(parsed.file.clone())
        .models(move |name| models::lent(&models, name, &named))
        .answers(move |server| answers.to(server.trust().sampling.as_deref()))
        // Whoever started us without a terminal, as MCP clients do, cannot be asked.
        .oauth(move || oauth_setup::options(&oauth))
        .on_notice(move |text| notices.say(text))
        .on_suspended(move |server, suspension, lock| {
            tell_of_suspended(&suspended, server, suspension, lock);
        })
}

fn refused(error: Error) -> anyhow::Error {
    if let Some(error) = error.downcast_ref::<LoadError>() {
        return report::refused(error.problems()).into();
    }
    match error.downcast::<ToolError>() {
        Ok(error) => Usage::from(error.info()).into(),
        Err(other) => other.into(),
    }
}

fn tell_of_suspended(console: &Console, server: &str, suspension: &Suspension, lock: Option<&Path>) {
    let Suspension { tool, changes } = suspension;
    let why = match lock {
        Some(lock) => format!("is not what {} approved", lock.display()),
        None => "is not what it was when the server was started".to_owned(),
    };
    // A definition may be a megabyte; `mcp lock` shows it whole.
    let changes: String =
        changes.iter().map(|change| format!("    {}\n", clip(change, MOST_SHOWN))).collect();
    console.notice(&prompt::printable(&format!(
        "`{tool}` of the server `{server}` {why}, and is left out:\n{changes}    \
         approve it with `toolwright mcp lock --name {server}`, and start again"
    )));
}

/// Says what is odd in a file that can be used.
fn warn(console: &Console, loaded: &Loaded) {
    for warning in loaded.problems() {
        console.say(format_args!("{}\n", prompt::printable(&warning.render())));
    }
}

/// Says which secrets of a file are too short to be kept out of records.
fn warn_of_short_secrets(console: &Console, loaded: &Loaded, environment: &Environment) {
    for variable in loaded.env().iter().filter(|variable| variable.secret) {
        // An empty value is not a secret.
        let value = environment.get(&variable.name).unwrap_or_default();
        if !value.is_empty() && value.len() < Redactor::SHORTEST {
            let (name, shortest) = (&variable.name, Redactor::SHORTEST);
            console.say(format_args!(
                "warning: the secret `{name}` has fewer than {shortest} bytes, so it is not kept out of records"
            ));
        }
    }
}

/// A file that is open, or the built-in tools where no file is used.
pub struct Opened {
    pub session: Session,
    pub parsed: ParsedFile,
    /// Whether the tools of the file are used, and not only what it says about runs.
    pub uses_tools: bool,
}

impl Opened {
    /// The content of the file, if its tools are used.
    pub fn loaded(&self) -> Option<&Loaded> {
        self.uses_tools.then(|| self.session.loaded())
    }

    /// The path of the file, if its tools are used.
    pub fn path(&self) -> Option<&Path> {
        self.parsed.choice.as_ref().filter(|_| self.uses_tools).map(|choice| &*choice.path)
    }

    /// The file as records name it, if its tools are used.
    pub fn used(&self) -> Option<UsedFile> {
        let path = self.path()?.to_owned();
        Some(UsedFile { path, content: self.parsed.file.content_digest() })
    }

    /// The tools of the file, or the built-in ones.
    pub fn tools(&self) -> anyhow::Result<Toolset> {
        match self.loaded() {
            Some(loaded) => Ok(loaded.tools().clone()),
            None => Ok(toolbox::all()?),
        }
    }

    /// A run with those tools that match; those of servers as they are at any time.
    pub fn run(&self, caller: Caller, patterns: &[String]) -> anyhow::Result<(RunBuilder, Toolset)> {
        let tools = tools::chosen(self.tools()?, patterns)?;
        let builder = match self.loaded() {
            Some(_) => self.session.run_matching(caller, &files::patterns(patterns)),
            None => self.session.run_with(caller, tools.clone()),
        };
        Ok((builder, tools))
    }

    /// Opens the sandboxes that the command line and the file ask for.
    pub async fn sandboxes(&mut self, args: &SandboxArgs, how: Sandboxing) -> anyhow::Result<()> {
        let asked = sandboxes::of(args, &self.parsed.file);
        if how != Sandboxing::Never {
            sandboxes::check(&asked)?;
        }
        self.session.open_sandboxes(Some(asked.all()), how).await.map_err(sandboxes::refused)?;
        Ok(())
    }
}

/// The part of a file that these patterns choose, and its sandboxes where they are available: what a model
/// works with.
pub async fn for_model(
    console: &Console,
    choice: Option<&FileChoice>,
    patterns: &[String],
    policy: Option<&Path>,
    yes: bool,
    sandbox: &SandboxArgs,
) -> anyhow::Result<Opened> {
    let opening = Opening { wanted: Wanted::tools(patterns), policy, yes, ..Opening::default() };
    let mut opened = opening.open(console, ParsedFile::of(console, choice).await?).await?;
    opened.sandboxes(sandbox, Sandboxing::WherePossible).await?;
    Ok(opened)
}
