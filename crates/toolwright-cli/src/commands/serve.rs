//! `toolwright serve`: the tools, offered to MCP clients on stdin and stdout or over HTTP.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use toolwright::Run;
use toolwright::events::{Event, EventKind};
use toolwright::file::ToolFile;
use toolwright::file::{Caller, Sandboxing};
use toolwright::lang::{Severity, Wanted};
use toolwright::mcp::{
    ClientPerson, FileResources, HttpOptions, Implementation, ResourceServer, Server, StateKey, TaskSupport,
    ToolPrompts,
};
use toolwright::run::RunBuilder;
use toolwright::tool::{CancelToken, Secret};

use crate::args::{RecordArgs, Serve, ServeHttp};
use crate::commands::serve_reload::Reloading;
use crate::console::Console;
use crate::opening::{FileChoice, Opened, Opening, ParsedFile};
use crate::prompt::printable;
use crate::report::Usage;
use crate::runs::record::About;
use crate::server_questions::QuestionRoute;
use crate::{commands, report, runs, toolbox};

/// A call that takes longer than this goes on as a task, for clients that know tasks.
const LONG: Duration = Duration::from_secs(20);

/// By then the first client has said hello and listed the tools.
const SETTLED: Duration = Duration::from_secs(2);

pub async fn run(mut what: Serve, console: &Console) -> anyhow::Result<()> {
    what.file = what.file.or(what.also_file.take());
    let prepared = match prepare(&what, console, 0).await {
        Ok(prepared) => prepared,
        Err(error) => {
            if what.http.http.is_none() && !console.stdin().is_terminal() {
                // The client may not show its user what is written on stderr.
                let _ = Server::refuse_stdio(&report::in_one_text(&error)).await;
            }
            return Err(error);
        }
    };
    let server = prepared.server(&what, console)?;
    let mut reloading = Reloading::new(&what, console, &server, prepared);
    match what.http.http {
        Some(address) => tokio::select! {
            served = over_http(console, server, address, &what.http) => served?,
            never = reloading.follow() => match never {},
        },
        None => {
            settle();
            tokio::select! {
                served = server.serve_stdio() => served?,
                _ = commands::told_to_stop() => reloading.cancel(),
                never = reloading.follow() => match never {},
            }
        }
    }
    reloading.finish()
}

/// Everything that one state of the file offers.
pub(super) struct Prepared {
    pub(super) opened: Opened,
    pub(super) tools: Offered,
    pub(super) prompts: Option<Offered>,
}

/// Opens the file, and makes the runs that clients reach; their records are numbered when there are more.
pub(super) async fn prepare(what: &Serve, console: &Console, number: u32) -> anyhow::Result<Prepared> {
    let choice = what.file.clone().map(FileChoice::named);
    let wanted = Wanted::tools(&what.tools).and_prompts();
    let opening = Opening {
        wanted,
        policy: what.policy.as_deref(),
        asked: QuestionRoute::Client,
        ..Opening::default()
    };
    let mut opened = opening.open(console, ParsedFile::of(console, choice.as_ref()).await?).await?;
    if let Some(loaded) = opened.loaded() {
        let problems = opened.parsed.file.check_tools(loaded);
        if problems.iter().any(|problem| problem.severity == Severity::Error) {
            return Err(report::refused(&problems).into());
        }
    }
    let tools = commands::tools::chosen(opened.tools()?, &what.tools)?;
    let prompts = opened.session.loaded().prompts().clone();
    let needs_sandbox = tools.iter().chain(prompts.iter()).any(|entry| entry.tool.policy().sandboxed);
    let sandboxing = if needs_sandbox { Sandboxing::WherePossible } else { Sandboxing::Never };
    opened.sandboxes(&what.sandbox, sandboxing).await?;
    let record = numbered(&what.record, number);
    let (builder, _) = opened.run(Caller::Model, &what.tools)?;
    let builder = builder.person(Arc::new(ClientPerson::default()));
    let tools = Offered::new(console, builder, "serve", &record, what, &opened)?;
    let prompts = match prompts.is_empty() {
        true => None,
        false => {
            let builder = opened.session.run_with(Caller::Model, prompts);
            let builder = builder.person(Arc::new(ClientPerson::picking_prompts()));
            Some(Offered::new(console, builder, "serve: prompts", &beside(&record), what, &opened)?)
        }
    };
    Ok(Prepared { opened, tools, prompts })
}

impl Prepared {
    /// A server that offers it.
    fn server(&self, what: &Serve, console: &Console) -> anyhow::Result<Server> {
        let log = console.clone();
        let mut server = Server::new(self.tools.run.dispatch()).on_log(move |text| log.say(printable(text)));
        self.announce_to(&server);
        if what.http.state_key_env.is_none() {
            // A task lives in the instance that runs it, and another one may be asked about it.
            server = server.tasks(["*"], TaskSupport::After(LONG));
        }
        if let Some(prompts) = &self.prompts {
            server = server.prompts(ToolPrompts::new(prompts.run.dispatch()));
        }
        let Some(path) = self.opened.path() else { return Ok(server) };
        let file = self.opened.session.file();
        if let Some(instructions) = file.instructions() {
            server = server.instructions(instructions);
        }
        let mut info = Implementation::new("toolwright", env!("CARGO_PKG_VERSION"));
        info.title = file.title().map(str::to_owned);
        with_resources(server.info(info), file, path)
    }

    /// Announces changes in the tools of the file's own servers.
    pub(super) fn announce_to(&self, server: &Server) {
        let changes = server.changes();
        self.opened.session.on_listed(move || changes.tools());
    }
}

/// A run that clients reach, and its record.
pub(super) struct Offered {
    pub(super) run: Run,
    /// Where it is recorded, when that is worth nothing without a call.
    record: Option<PathBuf>,
    called: Arc<AtomicBool>,
}

impl Offered {
    /// Records the calls of a client on stdio. A server on HTTP may run for months, so it is recorded only
    /// when told where.
    fn new(
        console: &Console,
        builder: RunBuilder,
        command: &str,
        record: &RecordArgs,
        what: &Serve,
        opened: &Opened,
    ) -> anyhow::Result<Self> {
        let called = Arc::new(AtomicBool::new(false));
        if what.http.http.is_some() && record.transcript.is_none() {
            return Ok(Offered { run: builder.build()?, record: None, called });
        }
        let used = opened.used();
        let about = About { command, file: used.as_ref() };
        let (builder, id) = runs::record::record(console, builder, record, &about, opened.session.secrets())?;
        let calling = called.clone();
        let builder = builder.on_event(move |event: &Event| {
            if matches!(event.kind, EventKind::CallStarted { .. }) {
                calling.store(true, Ordering::Relaxed);
            }
        });
        let record = id.and_then(|id| Some(runs::folder()?.join(format!("{id}.jsonl"))));
        Ok(Offered { run: builder.build()?, record, called })
    }

    /// Ends the run. A client that only looked is not worth keeping.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        self.run.finish(toolwright::run::RunEnd::Done)?;
        if let Some(path) = self.record.filter(|_| !self.called.load(Ordering::Relaxed)) {
            let _ = runs::remove(&path);
        }
        Ok(())
    }
}

/// Where prompts are recorded: they are a run of their own, so a file that was named for the tools has one
/// beside it, `calls.prompts.jsonl` beside `calls.jsonl`.
fn beside(record: &RecordArgs) -> RecordArgs {
    let transcript = record.transcript.as_ref().map(|path| path.with_extension("prompts.jsonl"));
    RecordArgs { transcript, ..record.clone() }
}

/// Where the runs of a changed file are recorded: `calls.2.jsonl` after `calls.jsonl`.
fn numbered(record: &RecordArgs, number: u32) -> RecordArgs {
    let named = record.transcript.as_ref();
    let transcript = named.map(|path| match number {
        0 => path.clone(),
        number => path.with_extension(format!("{}.jsonl", number + 1)),
    });
    RecordArgs { transcript, ..record.clone() }
}

/// The files that a file of tools lets clients read.
fn with_resources(server: Server, file: &ToolFile, path: &Path) -> anyhow::Result<Server> {
    let Some(section) = file.resources() else { return Ok(server) };
    let folder = std::path::absolute(path)?.parent().map(Path::to_owned).unwrap_or_default();
    let resources = FileResources::new(folder, section.value.clone());
    let resources = resources.map_err(|error| {
        let usage = Usage::new(format!("{}: {}", section.location, error.message()));
        usage.hint(error.hint_text().unwrap_or_default())
    })?;
    Ok(server.resources(resources))
}

async fn over_http(
    console: &Console,
    server: Server,
    address: SocketAddr,
    what: &ServeHttp,
) -> anyhow::Result<()> {
    let token = what.token_env.as_deref().map(secret).transpose()?;
    if token.is_none() && what.oauth.is_none() && !what.open && !address.ip().is_loopback() {
        let problem = Usage::new(format!("other machines can reach {address}, and no token is asked for"));
        return Err(problem.hint("name the variable with a token: --token-env NAME; or take those of an authorization server: --oauth ISSUER; or say --open").into());
    }
    let server = match &what.state_key_env {
        Some(name) => {
            let key = StateKey::from_bytes(secret(name)?.expose().as_bytes());
            let short = || {
                let least = StateKey::MIN_BYTES;
                let problem = Usage::new(format!("the key in `{name}` has fewer than {least} bytes"));
                problem.hint("make one with `openssl rand -hex 32`, and give it to every instance")
            };
            server.state_key(key.ok_or_else(short)?)
        }
        None => server,
    };
    let mut options = HttpOptions::default();
    options.hosts.clone_from(&what.allow_host);
    options.origins.clone_from(&what.allow_origin);
    options.token = token;
    if let (Some(issuer), Some(audience)) = (&what.oauth, &what.audience) {
        let (issuer, audience) = (issuer.clone(), audience.clone());
        options.resource_server = Some(ResourceServer { issuer, audience, scopes: what.scope.clone() });
    }
    options.proxies = toolbox::proxies();
    options.rate = what.rate;
    options.max_body = what.max_body;
    options.max_connections = what.max_connections;
    options.max_connections_each = what.max_connections_each;
    let listening = server.listen(address, options).await;
    let listening = listening.map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidInput => Usage::new(format!("--oauth: {error}")).into(),
        std::io::ErrorKind::AddrInUse => anyhow::Error::from(
            Usage::new(format!("cannot listen on {address}: another program does"))
                .hint("choose another port; port 0 picks a free one"),
        ),
        _ => anyhow::anyhow!("cannot listen on {address}: {error}"),
    })?;
    report::address(console, &format!("http://{}/mcp", listening.address()))?;
    settle();
    let stop = CancelToken::new();
    let (on_signal, console) = (stop.clone(), console.clone());
    tokio::spawn(async move {
        commands::told_to_stop().await;
        console.say("stopping: what is under way is finished first; Ctrl-C again stops at once");
        on_signal.cancel();
        commands::told_to_stop().await;
        std::process::exit(1);
    });
    listening.run(stop).await;
    Ok(())
}

/// Gives back the pages of the program that only starting needed: once the server is ready, and again when
/// its first client has said hello, which takes some of them too.
fn settle() {
    tokio::spawn(async {
        toolwright_sandbox::release_program_pages();
        tokio::time::sleep(SETTLED).await;
        toolwright_sandbox::release_program_pages();
    });
}

/// The value of a variable that must not be shown.
fn secret(name: &str) -> anyhow::Result<Secret> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    let missing = || {
        let problem = Usage::new(format!("the variable `{name}` is not set"));
        problem.hint(format!("for example: export {name}=$(openssl rand -hex 32)"))
    };
    Ok(Secret::new(value.ok_or_else(missing)?))
}
