//! [`ToolDef`]: a tool as one value. Closures become tools here, and existing tools are copied with changes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::ToolContext;
use crate::erased::DynTool;
use crate::error::{ErrorKind, ToolError};
use crate::output::{Content, IntoToolOutput, ToolOutput};
use crate::prepare::{Arguments, CallDescription, CallView, Prepared};
use crate::schema;
use crate::tool::{Annotations, BoxFuture, Handoff, RewriteResults, Tool, ToolSpec};
use crate::tool_policy::ToolPolicy;
use crate::toolset::Toolset;

/// A tool as one cheap-to-clone value: its definition, its policy and its code.
///
/// ```
/// use toolwright_core::{ToolContext, ToolDef, ToolError};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Pair {
///     /// First number.
///     x: i64,
///     /// Second number.
///     y: i64,
/// }
///
/// let add = ToolDef::typed("add", "Adds two numbers.", |_: ToolContext, pair: Pair| async move { pair.x + pair.y });
/// assert_eq!(add.spec().parameters["required"], json!(["x", "y"]));
///
/// let renamed = add.with_name("plus").describe_parameter("x", "the left one")?;
/// assert_eq!(renamed.spec().parameters["properties"]["x"]["description"], "the left one");
/// # Ok::<(), ToolError>(())
/// ```
#[derive(Clone)]
pub struct ToolDef {
    inner: Arc<Inner>,
}

#[derive(Clone)]
struct Inner {
    /// The number of the code: copies have the same one.
    identity: u64,
    spec: ToolSpec,
    policy: ToolPolicy,
    /// What is done to arguments before they are checked.
    readers: Vec<ArgumentReader>,
    /// What is done to a call after its arguments were checked, in this order.
    steps: Vec<PrepareStep>,
    rewriter: Option<Arc<dyn RewriteResults>>,
    handoff: Option<Arc<dyn Handoff>>,
    body: ToolBody,
}

type AsyncBody =
    Arc<dyn for<'a> Fn(&'a ToolContext, Value) -> BoxFuture<'a, Result<ToolOutput, ToolError>> + Send + Sync>;

type ArgumentReader = Arc<dyn Fn(Value) -> Result<Value, ToolError> + Send + Sync>;

type PrepareStep = Arc<dyn Fn(Prepared) -> Result<Prepared, ToolError> + Send + Sync>;

#[derive(Clone)]
enum ToolBody {
    Code(AsyncBody),
    Tool(Arc<DynTool>),
    /// Code around the calls of a tool, which prepares them itself.
    Around(Arc<DynTool>, AsyncBody),
}

impl ToolBody {
    /// The tool inside, if there is one.
    fn tool(&self) -> Option<&DynTool> {
        match self {
            ToolBody::Code(_) => None,
            ToolBody::Tool(tool) | ToolBody::Around(tool, _) => Some(&**tool),
        }
    }
}

impl ToolDef {
    /// A tool whose arguments are a type: the schema comes from the type, and unknown arguments are refused.
    /// What it returns has a schema too when it is [`Structured`](crate::Structured). The schema has no
    /// `#[serde(alias)]`: other names are given with [`with_alias`](Self::with_alias).
    pub fn typed<A, F, Fut, R>(name: impl Into<Arc<str>>, description: impl Into<String>, code: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(ToolContext, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoToolOutput,
    {
        let mut spec = ToolSpec::new(name, description).with_parameters_of::<A>();
        spec.output_schema = R::output_schema();
        Self::from_fn(spec, move |context, arguments| {
            let parsed = schema::read_arguments::<A>(arguments);
            let work = parsed.map(|arguments| code(context.clone(), arguments));
            Box::pin(async move { work?.await.into_tool_output() })
        })
    }

    /// A tool from a schema given as data and a closure that takes the arguments as JSON.
    pub fn dynamic<F, Fut, R>(spec: ToolSpec, code: F) -> Self
    where
        F: Fn(ToolContext, Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoToolOutput,
    {
        Self::from_fn(spec, move |context, arguments| {
            let work = code(context.clone(), arguments);
            Box::pin(async move { work.await.into_tool_output() })
        })
    }

    /// A tool that blocks its thread: the runtime runs it where that does no harm, and abandons it on a
    /// time-out.
    pub fn blocking<F, R>(spec: ToolSpec, code: F) -> Self
    where
        F: Fn(ToolContext, Value) -> R + Send + Sync + 'static,
        R: IntoToolOutput,
    {
        let code = Arc::new(code);
        Self::from_fn(spec, move |context, arguments| {
            let (code, context) = (code.clone(), context.clone());
            Box::pin(run_blocking(move || code(context, arguments).into_tool_output()))
        })
    }

    /// The most general form, which the others and `#[tool]` build on.
    pub fn from_fn<F>(spec: ToolSpec, code: F) -> Self
    where
        F: for<'a> Fn(&'a ToolContext, Value) -> BoxFuture<'a, Result<ToolOutput, ToolError>>
            + Send
            + Sync
            + 'static,
    {
        Self::new(new_identity(), spec, ToolPolicy::default(), ToolBody::Code(Arc::new(code)))
    }

    /// The definition of an existing tool; calls go to that tool.
    pub fn of(tool: impl Tool + 'static) -> Self {
        let (spec, policy) = (tool.spec().clone(), tool.policy().clone());
        let identity = tool.identity().unwrap_or_else(new_identity);
        Self::new(identity, spec, policy, ToolBody::Tool(Arc::new(tool)))
    }

    /// The definition of an existing tool, with code around its calls. It counts as the same tool.
    pub(crate) fn around<F>(tool: Arc<DynTool>, code: F) -> Self
    where
        F: for<'a> Fn(&'a ToolContext, Value) -> BoxFuture<'a, Result<ToolOutput, ToolError>>
            + Send
            + Sync
            + 'static,
    {
        let (spec, policy) = (tool.spec().clone(), tool.policy().clone());
        let identity = tool.identity().unwrap_or_else(new_identity);
        Self::new(identity, spec, policy, ToolBody::Around(tool, Arc::new(code)))
    }

    fn new(identity: u64, spec: ToolSpec, policy: ToolPolicy, body: ToolBody) -> Self {
        let (readers, steps) = (Vec::new(), Vec::new());
        let inner = Inner { identity, spec, policy, readers, steps, rewriter: None, handoff: None, body };
        ToolDef { inner: Arc::new(inner) }
    }

    /// Tells tools apart, whatever they are called: copies have the same number.
    pub(crate) fn identity(&self) -> u64 {
        self.inner.identity
    }

    /// A copy that counts as the tool of that number.
    pub(crate) fn with_identity(self, identity: u64) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.inner);
        inner.identity = identity;
        ToolDef { inner: Arc::new(inner) }
    }

    /// The definition that models receive.
    pub fn spec(&self) -> &ToolSpec {
        &self.inner.spec
    }

    /// The call as it is decided about, for tests of a tool and of its viewer.
    ///
    /// ```
    /// use toolwright_core::{ToolDef, ToolSpec};
    ///
    /// let tool = ToolDef::dynamic(ToolSpec::new("ping", "Answers."), |_, _| async { "pong" });
    /// assert!(tool.prepared(serde_json::json!({})).is_ok());
    /// assert!(tool.prepared(serde_json::json!({"host": "a"})).is_err());
    /// ```
    pub fn prepared(&self, arguments: Value) -> Result<Prepared, ToolError> {
        let entry = Toolset::new().with(self.clone())?;
        let entry = entry.find(&self.spec().name)?;
        entry.prepare(arguments, schema::Strictness::Lenient)
    }

    /// A copy under another name.
    #[must_use]
    pub fn with_name(self, name: impl Into<Arc<str>>) -> Self {
        self.edit(|spec, _| spec.name = name.into())
    }

    /// A copy with another description.
    #[must_use]
    pub fn with_description(self, description: impl Into<String>) -> Self {
        self.edit(|spec, _| spec.description = description.into())
    }

    /// A copy in which one parameter is described otherwise. An error when there is no such parameter.
    pub fn describe_parameter(
        self,
        parameter: &str,
        description: impl Into<String>,
    ) -> Result<Self, ToolError> {
        self.check_parameter(parameter)?;
        Ok(self.edit(|spec, _| {
            if let Some(schema) =
                spec.parameters.pointer_mut("/properties").and_then(|all| all.get_mut(parameter))
            {
                if schema.as_bool() == Some(true) {
                    *schema = Value::Object(serde_json::Map::new());
                }
                if let Some(map) = schema.as_object_mut() {
                    map.insert("description".to_owned(), Value::String(description.into()));
                }
            }
        }))
    }

    /// A copy in which a parameter may also be given as `alias`. Models are told only the parameter's own
    /// name; the alias is for callers that know the tool from elsewhere. An error when there is no such
    /// parameter, or one called `alias`.
    ///
    /// ```
    /// use toolwright_core::{ToolContext, ToolDef};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Shell { command: String }
    /// let shell = ToolDef::typed("shell", "Runs.", |_: ToolContext, shell: Shell| async move { shell.command });
    /// let shell = shell.with_alias("cmd", "command")?;
    /// assert!(shell.clone().with_alias("x", "commnad").is_err());
    /// # Ok::<(), toolwright_core::ToolError>(())
    /// ```
    pub fn with_alias(self, alias: &str, parameter: &str) -> Result<Self, ToolError> {
        self.check_parameter(parameter)?;
        if self.spec().parameter_names().any(|name| name == alias) {
            let name = &self.spec().name;
            return Err(ToolError::fatal(format!("tool `{name}` has a parameter `{alias}` already")));
        }
        Ok(self.edit(|_, policy| policy.aliases.push((alias.into(), parameter.into()))))
    }

    /// A copy in which the text of a parameter is known to be run by a shell, so that rules over it judge
    /// every command in the text. An error when there is no such parameter.
    ///
    /// ```
    /// use toolwright_core::{ToolContext, ToolDef};
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Shell { command: String }
    /// let run = |_: ToolContext, shell: Shell| async move { shell.command };
    /// let shell = ToolDef::typed("shell", "Runs.", run).with_shell_parameter("command")?;
    /// assert!(shell.with_shell_parameter("commnad").is_err());
    /// # Ok::<(), toolwright_core::ToolError>(())
    /// ```
    pub fn with_shell_parameter(self, parameter: &str) -> Result<Self, ToolError> {
        self.check_parameter(parameter)?;
        Ok(self.edit(|_, policy| policy.shell.push(parameter.into())))
    }

    /// An error that lists the parameters when this is not one of them.
    fn check_parameter(&self, parameter: &str) -> Result<(), ToolError> {
        let known: Vec<&str> = self.spec().parameter_names().collect();
        if known.contains(&parameter) {
            return Ok(());
        }
        let (name, known) = (&self.spec().name, known.join(", "));
        Err(ToolError::fatal(format!("tool `{name}` has no parameter `{parameter}`; it has: {known}")))
    }

    /// A copy that is said to work inside a sandbox, so that the program's default policy need not ask.
    #[must_use]
    pub fn with_sandboxed(self, sandboxed: bool) -> Self {
        self.edit(|_, policy| policy.sandboxed = sandboxed)
    }

    /// A copy that may, or may not, run beside other calls of a batch.
    #[must_use]
    pub fn with_parallel(self, parallel: bool) -> Self {
        self.edit(|_, policy| policy.parallel = Some(parallel))
    }

    /// A copy that reads its arguments by rules of its own before they are checked against the schema.
    #[must_use]
    pub fn with_reader(
        self,
        read: impl Fn(Value) -> Result<Value, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.change(|inner| inner.readers.push(Arc::new(read)))
    }

    /// A copy with one more step between the check of a call's arguments and the decision about it. The steps
    /// run in the order in which they were added, on every call.
    #[must_use]
    pub fn with_step(
        self,
        step: impl Fn(Prepared) -> Result<Prepared, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.change(|inner| inner.steps.push(Arc::new(step)))
    }

    /// A copy whose calls are shown to approvers by `viewer`, which gets the checked arguments. It runs on
    /// every call, so it should be cheap; when it fails, the call is refused where somebody would be asked.
    #[must_use]
    pub fn with_viewer(
        self,
        viewer: impl Fn(&Value) -> Result<CallView, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.with_step(move |mut prepared| {
            let shown = catch_unwind(AssertUnwindSafe(|| viewer(&prepared.arguments)));
            let shown = shown.unwrap_or_else(|_| Err(ToolError::new("its viewer panicked")));
            prepared.describe(|description| match shown {
                Ok(view) => description.view = view,
                Err(error) => description.view_error = Some(error.message().to_owned()),
            });
            Ok(prepared)
        })
    }

    /// A copy whose calls are described to people by `describe`, which gets the checked arguments. A view
    /// that is empty leaves the one there was.
    #[must_use]
    pub fn with_call_description(
        self,
        describe: impl Fn(&Value) -> CallDescription + Send + Sync + 'static,
    ) -> Self {
        self.with_step(move |mut prepared| {
            let CallDescription { hint, action, confirm, view, view_error } = describe(&prepared.arguments);
            prepared.describe(|description| {
                (description.hint, description.action, description.confirm) = (hint, action, confirm);
                if view != CallView::default() || view_error.is_some() {
                    (description.view, description.view_error) = (view, view_error);
                }
            });
            Ok(prepared)
        })
    }

    /// A copy whose old results are rewritten before each model request: `rewrite(index, total, content)`
    /// gets which of the `total` results of this tool it is, counted from 0, so the last one has `index + 1
    /// == total`.
    #[must_use]
    pub fn with_model_input(
        self,
        rewrite: impl Fn(usize, usize, &[Content]) -> Vec<Content> + Send + Sync + 'static,
    ) -> Self {
        self.change(|inner| inner.rewriter = Some(Arc::new(rewrite)))
    }

    /// A copy whose calls hand the conversation over to an agent.
    #[must_use]
    pub fn with_handoff(self, handoff: Arc<dyn Handoff>) -> Self {
        self.change(|inner| inner.handoff = Some(handoff))
    }

    /// A copy whose calls may take no longer than this.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        self.edit(|_, policy| policy.timeout = Some(timeout))
    }

    /// A copy whose output to a model is bounded to `bytes`; 0 means not at all.
    #[must_use]
    pub fn with_max_output(self, bytes: usize) -> Self {
        self.edit(|_, policy| policy.max_output = Some(bytes))
    }

    /// A copy that belongs to a category.
    #[must_use]
    pub fn with_category(self, category: impl Into<Arc<str>>) -> Self {
        self.edit(|_, policy| policy.category = Some(category.into()))
    }

    /// A copy that says this of its effects.
    #[must_use]
    pub fn with_annotations(self, annotations: Annotations) -> Self {
        self.edit(|spec, _| spec.annotations = annotations)
    }

    /// A copy that promises a structured result of this schema.
    #[must_use]
    pub fn with_output_schema(self, schema: Value) -> Self {
        self.edit(|spec, _| spec.output_schema = Some(schema))
    }

    /// A copy with any change to the definition or the policy.
    #[must_use]
    pub fn edit(self, change: impl FnOnce(&mut ToolSpec, &mut ToolPolicy)) -> Self {
        self.change(|inner| {
            let name = inner.spec.name.clone();
            change(&mut inner.spec, &mut inner.policy);
            if name != inner.spec.name {
                inner.policy.was_called(&name);
            }
        })
    }

    fn change(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.inner);
        change(&mut inner);
        ToolDef { inner: Arc::new(inner) }
    }
}

impl Tool for ToolDef {
    fn spec(&self) -> &ToolSpec {
        &self.inner.spec
    }

    fn policy(&self) -> &ToolPolicy {
        &self.inner.policy
    }

    fn prepare(&self, arguments: Arguments<'_>) -> Result<Prepared, ToolError> {
        let Inner { readers, steps, body, .. } = &*self.inner;
        let arguments = readers.iter().try_fold(arguments, |arguments, read| arguments.read(&**read))?;
        let prepared = match body {
            ToolBody::Code(_) => arguments.check()?,
            ToolBody::Tool(tool) | ToolBody::Around(tool, _) => tool.prepare(arguments)?,
        };
        steps.iter().try_fold(prepared, |prepared, step| step(prepared))
    }

    fn call<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Value,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send {
        self.call_boxed(context, arguments)
    }

    fn call_boxed<'a>(
        &'a self,
        context: &'a ToolContext,
        arguments: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        match &self.inner.body {
            ToolBody::Code(code) | ToolBody::Around(_, code) => code(context, arguments),
            ToolBody::Tool(tool) => (**tool).call(context, arguments),
        }
    }

    fn result_rewriter(&self) -> Option<&dyn RewriteResults> {
        self.inner.rewriter.as_deref().or_else(|| self.inner.body.tool()?.result_rewriter())
    }

    fn handoff(&self) -> Option<&dyn Handoff> {
        self.inner.handoff.as_deref().or_else(|| self.inner.body.tool()?.handoff())
    }

    fn identity(&self) -> Option<u64> {
        Some(self.inner.identity)
    }
}

impl std::fmt::Debug for ToolDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolDef")
            .field("spec", &self.inner.spec)
            .field("policy", &self.inner.policy)
            .finish_non_exhaustive()
    }
}

/// A number that no other tool has.
pub(crate) fn new_identity() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Runs code that blocks on the threads kept for it. A panic there becomes a fatal error.
pub async fn run_blocking(
    work: impl FnOnce() -> Result<ToolOutput, ToolError> + Send + 'static,
) -> Result<ToolOutput, ToolError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => Err(panic_error(&*error.into_panic())),
        Err(_) => Err(ToolError::of(ErrorKind::Cancelled, "the runtime is shutting down")),
    }
}

/// The fatal error for a panic in a tool.
pub fn panic_error(payload: &(dyn std::any::Any + Send)) -> ToolError {
    panic_of("the tool", payload)
}

/// The fatal error for a panic in code that is not a tool's.
#[doc(hidden)]
pub fn panic_of(whose: &str, payload: &(dyn std::any::Any + Send)) -> ToolError {
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    ToolError::fatal(format!("{whose} panicked: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(serde::Deserialize, JsonSchema)]
    struct One {
        x: i64,
    }

    fn double() -> ToolDef {
        ToolDef::typed("double", "Doubles.", |_: ToolContext, one: One| async move { one.x * 2 })
    }

    #[tokio::test]
    async fn definitions_are_copied_with_changes() {
        let changed = double().with_name("f").with_description("d").describe_parameter("x", "the x").unwrap();
        assert_eq!(
            changed.spec().parameters,
            json!({
                "type": "object", "properties": {"x": {"type": "integer", "description": "the x"}},
                "required": ["x"], "additionalProperties": false
            })
        );
        assert_eq!((&*changed.spec().name, changed.spec().description.as_str()), ("f", "d"));
        let again = changed.clone().with_parallel(false);
        assert_eq!((&*again.spec().name, again.policy().is_parallel()), ("f", false), "earlier changes stay");
        assert!(changed.policy().is_parallel(), "the original is as it was");
        let error = changed.describe_parameter("q", "no").unwrap_err();
        assert_eq!(error.message(), "tool `f` has no parameter `q`; it has: x");
        assert_eq!(again.call(&ToolContext::detached(), json!({"x": 4})).await.unwrap().to_text(), "8");
    }

    #[tokio::test]
    async fn the_definition_of_any_tool_can_be_read_back() {
        let tool: Arc<DynTool> = Arc::new(double());
        let def = ToolDef::of(tool).with_name("twice");
        assert_eq!(def.spec().parameter_names().collect::<Vec<_>>(), ["x"]);
        assert_eq!(def.call(&ToolContext::detached(), json!({"x": 2})).await.unwrap().to_text(), "4");
    }
}
