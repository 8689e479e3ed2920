//! Shared by the backends that use our own launcher: requests become jobs, jobs become results.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolwright_core::{
    EffectJudge, ErrorKind, ExecRequest, ExecResult, MAX_READ_FILE, OutputSink, SandboxProcess, SpawnRequest,
    ToolError, ToolOutput,
};

use super::exec::{self, Each, Finish, Sink};
use super::spawn;
use super::staged::{self, OpenStage};
use crate::env;
use crate::launcher::client::{LauncherSession, unavailable};
use crate::launcher::wire::{Job, Settle, Setup, Work};
use crate::policy::{Changes, SandboxPolicy};

/// How long reading or writing a file may take.
pub(crate) const FILE_PATIENCE: Duration = Duration::from_secs(120);

/// A running launcher, with the paths and names that commands see inside.
#[derive(Debug, Clone)]
pub(crate) struct LauncherHandle {
    pub(crate) session: Arc<LauncherSession>,
    pub(crate) policy: SandboxPolicy,
    /// Where commands and relative paths begin, as commands see it: the workspace, or the folder that was
    /// named instead.
    pub(crate) workspace: PathBuf,
    pub(crate) home: String,
    pub(crate) user: String,
    pub(crate) layers: Vec<String>,
}

impl LauncherHandle {
    /// Starts the launcher off the async threads.
    pub(crate) async fn start(setup: Setup) -> Result<LauncherSession, ToolError> {
        let start = move || {
            let started = LauncherSession::start(&setup);
            if let (Err(_), None, Some(private)) = (&started, &setup.policy.workspace, &setup.workspace) {
                // A launcher that never ran cannot have removed it.
                let _ = std::fs::remove_dir(private);
            }
            started
        };
        tokio::task::spawn_blocking(start)
            .await
            .map_err(|error| unavailable("the start was interrupted").with_source(error))?
    }

    pub(crate) fn job(
        &self,
        request: &ExecRequest,
        look_up: impl Fn(&str) -> Option<String>,
    ) -> Result<Job, ToolError> {
        if let Some(user) = request.user.as_deref().filter(|user| *user != self.user) {
            let message =
                format!("cannot run as `{}`: there is only the user `{}`", user.escape_debug(), self.user);
            return Err(ToolError::of(ErrorKind::Permission, message));
        }
        validate(request)?;
        let env = env::build(&self.policy.env, &request.env, &self.home, &self.user, look_up);
        Ok(Job {
            work: Work::Exec { command: request.command.clone() },
            cwd: request.cwd.as_ref().map_or(self.workspace.clone(), |cwd| self.workspace.join(cwd)),
            env: env.into_iter().map(|(name, value)| format!("{name}={value}")).collect(),
            terminal: None,
            announce: false,
            stage: None,
            grace: 0,
        })
    }

    /// The time a command gets: what it asks for, at most what the policy gives.
    fn timeout(&self, asked: Option<Duration>) -> Option<Duration> {
        let most = self.policy.limits.timeout_seconds.map(Duration::from_secs);
        [asked, most].into_iter().flatten().min()
    }

    pub(crate) async fn exec(
        &self,
        request: ExecRequest,
        sink: Option<&dyn OutputSink>,
        judge: Option<&Arc<dyn EffectJudge>>,
    ) -> Result<ExecResult, ToolError> {
        let mut job = self.job(&request, look_up)?;
        let stage = OpenStage::begin(&self.session, judge);
        job.stage = stage.as_ref().map(OpenStage::number);
        let timeout = self.timeout(request.timeout);
        let input = request.input.as_deref();
        let ended = exec::command(&self.session, &job, input, timeout, sink, &self.layers, |_| 0).await;
        let Some(stage) = stage else { return ended };
        // A command that failed or was stopped has changed what it has changed.
        let settled = stage.settle(Settle::Last).await;
        let (mut result, effect) = (ended?, settled?);
        let notes = effect.kept_back_text();
        if !notes.is_empty() {
            if !result.stderr.is_empty() && !result.stderr.ends_with('\n') {
                result.stderr.push('\n');
            }
            result.stderr.push_str(&notes);
        }
        result.effect = Some(effect);
        Ok(result)
    }

    pub(crate) async fn spawn(
        &self,
        request: SpawnRequest,
        judge: Option<&Arc<dyn EffectJudge>>,
    ) -> Result<SandboxProcess, ToolError> {
        let mut job = self.job(&request.exec, look_up)?;
        job.terminal = request.terminal;
        job.announce = true;
        let stage = OpenStage::begin(&self.session, judge);
        job.stage = stage.as_ref().map(OpenStage::number);
        spawn::start(self.session.clone(), job, self.layers.clone(), spawn::At::Here, stage).await
    }

    fn file_job(&self, path: &str, work: impl FnOnce(PathBuf) -> Work) -> Result<Job, ToolError> {
        if path.is_empty() || path.contains('\0') {
            return Err(ToolError::invalid("a path cannot be empty or contain a NUL byte"));
        }
        Ok(Job {
            work: work(PathBuf::from(path)),
            cwd: self.workspace.clone(),
            env: Vec::new(),
            terminal: None,
            announce: false,
            stage: None,
            grace: 0,
        })
    }

    pub(crate) async fn write_file(
        &self,
        path: &str,
        contents: &[u8],
        judge: Option<&Arc<dyn EffectJudge>>,
    ) -> Result<(), ToolError> {
        let size = contents.len() as u64;
        let mut job = self.file_job(path, |path| Work::Write { path, size })?;
        let stage = OpenStage::begin(&self.session, judge);
        job.stage = stage.as_ref().map(OpenStage::number);
        let deadline = Some(Instant::now() + FILE_PATIENCE);
        let ended = exec::run(&self.session, &job, Some(contents), deadline, ignore(), ignore()).await?;
        match (ended, stage) {
            (Finish::Ended(0), None) => Ok(()),
            (Finish::Ended(0), Some(stage)) => staged::written(&stage.settle(Settle::Last).await?, path),
            (ended, _) => Err(self.write_failure(&job, ended, path)),
        }
    }

    fn write_failure(&self, job: &Job, ended: Finish, path: &str) -> ToolError {
        match ended {
            Finish::Failed(_, libc::EROFS | libc::EBUSY | libc::EACCES) if self.is_protected(path) => {
                staged::protected(path)
            }
            other => file_failure(job, other),
        }
    }

    /// Whether the policy lets a path be written but for `protect`.
    fn is_protected(&self, path: &str) -> bool {
        let path = self.workspace.join(path);
        let own = self.policy.workspace.iter().filter(|_| !self.policy.read_only);
        let inside = |folder: &PathBuf| {
            path.starts_with(folder)
                && self.policy.protect.iter().any(|one| path.starts_with(folder.join(one)))
        };
        own.chain(&self.policy.write).any(inside)
    }

    pub(crate) async fn read_file(&self, path: &str) -> Result<Vec<u8>, ToolError> {
        let job = self.file_job(path, |path| Work::Read { path, limit: MAX_READ_FILE as u64 })?;
        let deadline = Some(Instant::now() + FILE_PATIENCE);
        let mut contents = Vec::new();
        let take = |bytes: &[u8]| {
            // The worker keeps the limit; this end does not take its word for it.
            let room = MAX_READ_FILE - contents.len().min(MAX_READ_FILE);
            contents.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        };
        match exec::run(&self.session, &job, None, deadline, Each::new(take), ignore()).await? {
            Finish::Ended(0) => Ok(contents),
            other => {
                let error = file_failure(&job, other);
                Err(match error.kind() {
                    ErrorKind::OutputLimit => {
                        error.with_partial(ToolOutput::text(String::from_utf8_lossy(&contents)))
                    }
                    _ => error,
                })
            }
        }
    }
}

/// Refuses a policy whose changes would have to be staged.
pub(crate) fn only_live(policy: &SandboxPolicy, kind: &str) -> Result<(), ToolError> {
    if policy.changes == Changes::Live {
        return Ok(());
    }
    let message = format!("the `{kind}` sandbox writes to folders themselves: `changes` can only be `live`");
    Err(unavailable(message).hint("the `process` sandbox can stage changes"))
}

/// Discards output.
pub(crate) fn ignore() -> impl Sink {
    Each::new(|_: &[u8]| {})
}

fn file_failure(job: &Job, finish: Finish) -> ToolError {
    match finish {
        Finish::Failed(stage, errno) => exec::failure(job, stage, errno),
        Finish::TimedOut => ToolError::of(ErrorKind::Timeout, "reading or writing the file took too long"),
        Finish::Ended(code) if code == -libc::SIGXFSZ => {
            ToolError::of(ErrorKind::Limit, "the file is larger than the sandbox allows")
        }
        Finish::Ended(_) => unavailable("the sandbox ended while the file was being read or written"),
    }
}

/// Refuses a request that no system could run as it stands.
pub(crate) fn validate(request: &ExecRequest) -> Result<(), ToolError> {
    if request.command.is_empty() {
        return Err(ToolError::invalid("the command is empty"));
    }
    let texts = request.command.iter().chain(request.env.keys()).chain(request.env.values());
    if texts.chain(&request.cwd).chain(&request.user).any(|text| text.contains('\0')) {
        return Err(ToolError::invalid("a command, variable, folder or user cannot contain a NUL byte"));
    }
    match request.env.keys().find(|name| name.is_empty() || name.contains('=')) {
        Some(name) => {
            Err(ToolError::invalid(format!("`{}` is not the name of a variable", name.escape_debug())))
        }
        None => Ok(()),
    }
}

/// The one place where a backend reads the caller's environment, name by name.
pub(crate) fn look_up(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A new private folder for a sandbox without a workspace of its own. Its monitor removes it, which outlives
/// a runtime that is killed.
pub(crate) fn private_folder() -> Result<PathBuf, ToolError> {
    use std::os::unix::fs::DirBuilderExt;
    let path = std::env::temp_dir().join(format!("toolwright-{:016x}", crate::sys::random_u64()));
    std::fs::DirBuilder::new()
        .mode(0o700)
        .create(&path)
        .map_err(|error| unavailable("cannot make a private workspace").with_source(error))?;
    Ok(path)
}

/// The names of layers, as results carry them.
pub(crate) fn layer_names(session: &LauncherSession) -> Vec<String> {
    session.layers.iter().map(|layer| layer.as_str().to_owned()).collect()
}

/// A workspace path without links, so that inside and outside agree on its name.
pub(crate) fn real(path: &Path) -> Result<PathBuf, ToolError> {
    let path = exists(path)?;
    if path.is_dir() {
        return Ok(path);
    }
    Err(unavailable(format!("`{}` is not a folder", path.display())))
}

/// A path without links to something that exists.
pub(crate) fn exists(path: &Path) -> Result<PathBuf, ToolError> {
    std::fs::canonicalize(path)
        .map_err(|error| unavailable(format!("`{}` cannot be used", path.display())).with_source(error))
}
