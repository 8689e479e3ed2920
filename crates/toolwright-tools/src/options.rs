//! How a standard tool is set up, and what all of them share while they run.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use toolwright_core::{
    CallTimeout, CallView, DynSandbox, EffectJudge, ErrorKind, ExecRequest, ExecResult, ToolContext, ToolDef,
    ToolError,
};
use toolwright_net::{Proxies, Reach};

use crate::live_output::LiveOutput;

/// A command is stopped so long after its call, whose own error says more; it comes in time to carry the
/// output.
const AFTER_THE_CALL: Duration = Duration::from_millis(5);

/// The longest a command of a tool's own may take: a program given to `awk` can run indefinitely, and a pipe
/// can take the place of a file that is about to be read.
const HELPER_TIME: Duration = Duration::from_secs(300);

/// Longer than any call lasts, and still a time that can be added to a clock.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

/// How a standard tool is set up. The default fits most runs.
///
/// ```
/// use std::time::Duration;
/// use toolwright_tools::{Options, bash};
///
/// let build = bash(&Options::new().in_sandbox("builder").as_user("ci").timeout(Duration::from_secs(60)));
/// assert_eq!(&*build.spec().name, "bash");
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Options {
    sandbox: Option<Arc<str>>,
    user: Option<String>,
    timeout: CallTimeout,
    pub(crate) instance: Option<Arc<str>>,
    wait: Option<Duration>,
    reach: Option<Reach>,
    pub(crate) proxies: Proxies,
}

impl Options {
    /// The default: the run's first sandbox, its own user, the time limit of the tool.
    pub fn new() -> Self {
        Options::default()
    }

    /// Works in the sandbox of that name.
    pub fn in_sandbox(mut self, name: impl Into<Arc<str>>) -> Self {
        self.sandbox = Some(name.into());
        self
    }

    /// Runs commands as that user. Reading and writing files is not affected.
    pub fn as_user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// The longest a call may take; 10 minutes when nothing is said, or as the tool documents. What a command
    /// wrote until then still reaches the model.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = CallTimeout::After(timeout);
        self
    }

    /// Lets a call take as long as it needs.
    pub fn without_timeout(mut self) -> Self {
        self.timeout = CallTimeout::Never;
        self
    }

    /// Keeps state apart from that of other tools of the run: the undo history, memories, the shell of a
    /// session. Under an empty name all tools of the run share it.
    pub fn instance(mut self, name: impl Into<Arc<str>>) -> Self {
        self.instance = Some(name.into());
        self
    }

    /// How long `bash_session` waits for output; 30 seconds when nothing is said.
    pub fn wait_for_output(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Where pages may be fetched from, whatever the run says. Left out, the [`Reach`] that the run has as
    /// its state counts, and without one the public internet.
    pub fn reach(mut self, reach: Reach) -> Self {
        self.reach = Some(reach);
        self
    }

    /// Fetches pages through these proxies; through none when nothing is said. A proxy resolves names itself,
    /// so that behind one only addresses are held to the [reach](Options::reach).
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.proxies = proxies;
        self
    }

    /// The options a file gives as a tool's `config`: `sandbox`, `user`, `timeout` and `wait_for_output` in
    /// seconds, and `instance`, which may be `null`: what all tools of the run share. Whether calls are
    /// confirmed may stand among them; it is not a tool's own business.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolwright_tools::Options;
    ///
    /// assert!(Options::from_config(&json!({"timeout": 60, "user": "ci"})).is_ok());
    /// assert!(Options::from_config(&json!({"timeuot": 60})).is_err());
    /// ```
    pub fn from_config(config: &Value) -> Result<Options, ToolError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Config {
            sandbox: Option<Arc<str>>,
            user: Option<String>,
            timeout: Option<Value>,
            #[serde(default, deserialize_with = "given")]
            instance: Option<Option<Arc<str>>>,
            wait_for_output: Option<f64>,
            #[serde(rename = "require_confirmation")]
            _require_confirmation: Option<bool>,
        }
        if config.is_null() {
            return Ok(Options::new());
        }
        let Some(settings) = config.as_object() else {
            return Err(ToolError::invalid("`config` is a map of settings"));
        };
        let config = Config::deserialize(config).map_err(|error| {
            // The one that is wrong fails by itself too; only it can be named.
            let alone = |key: &String, value: &Value| {
                Config::deserialize(&Value::Object([(key.clone(), value.clone())].into_iter().collect()))
            };
            let wrong = settings.iter().find_map(|(key, value)| Some((key, alone(key, value).err()?)));
            let message = match wrong {
                Some((key, error)) if !error.to_string().contains('`') => format!("`{key}`: {error}"),
                _ => error.to_string(),
            };
            ToolError::invalid(format!("`config`: {}", message.replace("expected f64", "expected a number")))
        })?;
        let time = |name: &str, seconds: Option<f64>| {
            let time = seconds.map(Duration::try_from_secs_f64).transpose();
            time.ok().filter(|time| *time != Some(Duration::ZERO)).ok_or_else(|| {
                ToolError::invalid(format!("`config`: `{name}` must be a number of seconds above zero"))
            })
        };
        Ok(Options {
            sandbox: config.sandbox,
            user: config.user,
            timeout: match config.timeout {
                None => CallTimeout::OfTool,
                Some(Value::String(word)) if word == "none" => CallTimeout::Never,
                Some(seconds) => {
                    let time = seconds.as_f64().and_then(|time| Duration::try_from_secs_f64(time).ok());
                    let time = time.filter(|time| !time.is_zero()).ok_or_else(|| {
                        ToolError::invalid(format!(
                            "`config`: `timeout` must be a number of seconds above zero or `none`, got {seconds}"
                        ))
                    })?;
                    CallTimeout::After(time)
                }
            },
            instance: config.instance.map(Option::unwrap_or_default),
            wait: time("wait_for_output", config.wait_for_output)?,
            ..Options::new()
        })
    }

    pub(crate) fn reach_in(&self, context: &ToolContext) -> Reach {
        let of_run = || context.state::<Reach>().ok().map(|reach| Reach::clone(&reach));
        self.reach.clone().or_else(of_run).unwrap_or(Reach::Public)
    }

    pub(crate) fn page_proxies(&self) -> Proxies {
        self.proxies.clone()
    }

    pub(crate) fn wait(&self) -> Duration {
        self.wait.unwrap_or(Duration::from_secs(30)).min(FOREVER)
    }

    pub(crate) fn instance_name(&self) -> &str {
        self.instance.as_deref().unwrap_or_default()
    }

    pub(crate) fn sandbox_name(&self) -> &str {
        self.sandbox.as_deref().unwrap_or_default()
    }
}

/// A value that was written down, if only as `null`.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(value: D) -> Result<Option<T>, D::Error> {
    T::deserialize(value).map(Some)
}

/// One call of a standard tool: the context, and how the tool was set up.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) context: &'a ToolContext,
    pub(crate) options: &'a Options,
}

impl<'a> Call<'a> {
    pub(crate) fn new(context: &'a ToolContext, options: &'a Options) -> Self {
        Call { context, options }
    }

    pub(crate) fn sandbox(&self) -> Result<Arc<DynSandbox>, ToolError> {
        match &self.options.sandbox {
            Some(name) => self.context.sandbox_named(name),
            None => self.context.sandbox(),
        }
    }

    /// A command as the tool's user.
    pub(crate) fn request<S: Into<String>>(&self, command: impl IntoIterator<Item = S>) -> ExecRequest {
        let mut request = ExecRequest::new(command);
        request.user.clone_from(&self.options.user);
        // What a model asks for may have effects; it runs once.
        request.timeout_retry = false;
        request
    }

    /// A command of the shell as the tool's user. It is a login shell, whose profile knows where programs
    /// are, unless the sandbox says that.
    pub(crate) fn shell(&self, command: &str) -> Result<ExecRequest, ToolError> {
        Ok(match self.sandbox()?.sets_search_path() {
            true => self.request(["bash", "-c", command]),
            false => self.request(["bash", "--login", "-c", command]),
        })
    }

    /// So much time, or less when the tool or the call has less.
    pub(crate) fn time(&self, most: Duration) -> Duration {
        [self.options.timeout.or(None), self.left()].into_iter().flatten().fold(most, Duration::min)
    }

    /// The time of the call. A command ends with it, so that what it has printed until then can be told.
    fn left(&self) -> Option<Duration> {
        self.context.time_left().map(|left| left.saturating_add(AFTER_THE_CALL))
    }

    /// Runs a command to its end, telling its output as it comes.
    pub(crate) async fn run(&self, mut request: ExecRequest) -> Result<ExecResult, ToolError> {
        request.timeout = [request.timeout, self.left()].into_iter().flatten().min();
        let live = LiveOutput::new(self.context);
        let sandbox = self.sandbox()?;
        let result = self.while_wanted(sandbox.exec_live(request, &live)).await;
        live.finish();
        result
    }

    /// Who decides about what this call changes.
    pub(crate) fn judge(&self) -> Option<Arc<dyn EffectJudge>> {
        Some(Arc::new(self.context.clone()))
    }

    /// Runs a command of the tool's own, whose messages are to be understood by us.
    pub(crate) async fn helper(&self, command: &[&str]) -> Result<ExecResult, ToolError> {
        let request = ExecRequest::new(command.iter().copied()).env("LC_ALL", "C.UTF-8");
        let request = request.timeout(self.time(HELPER_TIME));
        let sandbox = self.sandbox()?;
        self.while_wanted(sandbox.exec(request)).await
    }

    /// The folder that a command runs in, as the command sees it.
    pub(crate) async fn folder(&self, cwd: Option<&str>) -> Result<String, ToolError> {
        let mut request = ExecRequest::new(["pwd"]).timeout(self.time(HELPER_TIME));
        request.cwd = cwd.map(str::to_owned);
        let sandbox = self.sandbox()?;
        let result = self.while_wanted(sandbox.exec(request)).await?;
        Ok(result.stdout.trim_end_matches('\n').to_owned())
    }

    /// Work of a sandbox, which is dropped, and so killed, as soon as the call is cancelled. When the call's
    /// time is up the work ends by itself, and hands over what it has.
    pub(crate) async fn while_wanted<T>(
        &self,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        let unwanted = async {
            self.context.cancel_token().cancelled().await;
            if self.context.time_left().is_some_and(|left| left.is_zero()) {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            outcome = work => outcome,
            () = unwanted => Err(ToolError::of(ErrorKind::Cancelled, "the call was cancelled")),
        }
    }
}

/// How long a call of a standard tool may take.
const COMMAND_TIME: Duration = Duration::from_secs(600);

/// How long fetching a page may take.
pub(crate) const FETCH_TIME: Duration = Duration::from_secs(60);

/// Bounds the calls of a tool that works in a sandbox, unless its options set another bound.
pub(crate) fn within_time(tool: ToolDef, options: &Options) -> ToolDef {
    within_documented(tool, options, COMMAND_TIME)
}

/// Bounds the calls of a tool by the time it documents, unless its options set another bound.
pub(crate) fn within_documented(tool: ToolDef, options: &Options, time: Duration) -> ToolDef {
    tool.edit(|_, policy| policy.timeout = options.timeout.or(Some(time)))
}

/// The schema of a result that is an object: what is always there, and what may be.
pub(crate) fn object(always: Value, sometimes: Value) -> Value {
    let mut properties = always.as_object().cloned().unwrap_or_default();
    let required: Vec<String> = properties.keys().cloned().collect();
    properties.extend(sometimes.as_object().cloned().unwrap_or_default());
    json!({"type": "object", "properties": properties, "required": required})
}

/// What an approver is shown of the code in one argument.
pub(crate) fn code_view(language: &'static str, parameter: &str, arguments: &Value) -> CallView {
    let code = arguments.get(parameter).and_then(Value::as_str).unwrap_or_default().trim();
    // The fence is longer than any in the code, so the code cannot end it.
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    CallView::markdown(language, format!("{fence}{language}\n{code}\n{fence}\n"))
}

/// The least or most a count may be, as an error for the model.
pub(crate) fn count(name: &str, value: i64) -> Result<usize, ToolError> {
    usize::try_from(value)
        .map_err(|_| ToolError::invalid(format!("`{name}` is {value} and must not be negative")))
}
