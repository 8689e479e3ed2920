//! Files of tools in a program: a run that keeps to what the file says about runs.
//!
//! [`lang::load`](crate::lang::load) gives the tools of a file and carries its `policy`, `limits` and `sandbox` as data, so
//! it refuses a file that has them unless the program says that it applies them. A [`ToolFile`] does.

#[cfg(any(feature = "mcp", feature = "tools", feature = "data"))]
mod imports;
#[cfg(feature = "sandbox")]
mod programs;
#[cfg(feature = "sandbox")]
mod sandbox;

use serde_json::Value;
use toolwright_core::{Misfit, ToolError, Toolset, read_data};
use toolwright_lang::{CurrentTools, Diagnostic, Host, LoadError, Loaded, Source};
use toolwright_runtime::{Policy, Run, RunBuilder, RunLimits};

#[cfg(any(feature = "mcp", feature = "tools", feature = "data"))]
pub use self::imports::Importer;
#[cfg(feature = "sandbox")]
pub use self::sandbox::{Plan, SandboxKind, SandboxSection, give_sandboxes, in_sandbox, open_policy};

/// The sections that a [`ToolFile`] applies to its runs.
pub const APPLIED: &[&str] = if cfg!(feature = "sandbox") {
    &["policy", "limits", "sandbox", "sandboxes"]
} else {
    &["policy", "limits"]
};

/// The keys of `limits` that are no limit on what is spent.
const MAX_PARALLEL: &str = "max_parallel";
const MAX_OUTPUT: &str = "max_output";

/// What bounds something else than all that a run spends: what it does at once, what a model is given, single expressions.
const OTHERS: [&str; 4] = [MAX_PARALLEL, MAX_OUTPUT, "steps", "memory"];

/// A file of tools, and the runs it describes.
///
/// ```
/// use serde_json::json;
/// use toolwright::ToolCall;
/// use toolwright::file::ToolFile;
/// use toolwright::lang::{Host, Source};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let text = "
/// tools:
///   - name: greet
///     do: {eval: Hello!}
/// policy:
///   - {tools: greet, decision: reject, reason: nobody is to be greeted}
/// ";
/// let file = ToolFile::load(Source::text("greet.yaml", text), Host::new())?;
/// let run = file.run().await?.build()?;
/// let refused = run.call(ToolCall::new("1", "greet", json!({}))).await?;
/// assert_eq!(refused.error.unwrap().message, "nobody is to be greeted");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct ToolFile {
    loaded: Loaded,
}

impl ToolFile {
    /// Loads a file with what the program lends to it. All problems that keep it from being used are told at once.
    pub fn load(source: impl Into<Source>, host: Host) -> Result<Self, LoadError> {
        let loaded = toolwright_lang::load(source, &host.applies(APPLIED.iter().copied()))?;
        Ok(ToolFile { loaded })
    }

    /// What stands in the file: tools, prompts, the chat, data, secrets. Runs are made by [`run`](Self::run).
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// A run with the tools, the policy and the limits of the file, in the sandboxes it asks for. Without a `sandbox`
    /// section a process sandbox is opened when a tool needs one; where none can be had, the calls of such tools are
    /// refused, and told why. A program with a process sandbox begins with `sandbox::launcher::main_if_launcher`. Without a `policy` every call is approved, unless the builder is told otherwise.
    pub async fn run(&self) -> Result<RunBuilder, ToolError> {
        let current = self.loaded.current_tools(["*"]);
        let mut builder = apply_limits(&self.loaded, following(current, self.loaded.tools()))?;
        if let Some(policy) = policy(&self.loaded)? {
            builder = builder.policy(policy);
        }
        #[cfg(feature = "sandbox")]
        {
            let needed = self.loaded.tools().iter().any(|entry| entry.tool.settings().sandboxed);
            let opened = match SandboxSection::of(&self.loaded)? {
                Some(section) => section.open().await?,
                // A tool that does not need one is not kept from its work; whoever does is told why there is none.
                None if needed => {
                    let opened = SandboxSection::default().open().await;
                    opened.unwrap_or_else(|why| Some(sandbox::closed(why)))
                }
                None => None,
            };
            let mut others = Vec::new();
            for (name, section) in SandboxSection::named(&self.loaded)? {
                let opened = section.open().await.map_err(|error| in_sandbox(&name, &error))?;
                others.extend(opened.map(|sandbox| (name, sandbox)));
            }
            builder = give_sandboxes(builder, opened, others);
        }
        Ok(builder)
    }
}

/// A run with tools of a file as they are now; with those it was loaded with, when no server can change them.
pub fn following(current: Option<CurrentTools>, loaded: &Toolset) -> RunBuilder {
    let builder = Run::builder(loaded.clone());
    match current {
        Some(current) => builder.tools_from(current),
        None => builder,
    }
}

/// The policy of a file, if it has one.
pub fn policy(loaded: &Loaded) -> Result<Option<Policy>, ToolError> {
    read_policy(loaded).map_err(|misfits| {
        let told = misfits.into_iter().map(|misfit| at(loaded, POLICY, misfit)).reduce(and);
        told.unwrap_or_else(|| ToolError::invalid("the policy is wrong"))
    })
}

/// Everything that is wrong with the sections of a file that are about runs, each where it stands in the file. What only shows when
/// a sandbox is planned is found by [`SandboxSection::check`].
pub fn section_problems(loaded: &Loaded) -> Vec<Diagnostic> {
    let mut found: Vec<(&str, Misfit)> = Vec::new();
    found.extend(read_policy(loaded).err().into_iter().flatten().map(|misfit| (POLICY, misfit)));
    #[cfg(feature = "models")]
    found.extend(read_models(loaded).err().map(|misfit| (MODELS, misfit)));
    #[cfg(feature = "sandbox")]
    found.extend(sandbox::misfits(loaded));
    let told = found.into_iter().filter_map(|(name, misfit)| {
        let named =
            [format!("`{name}`"), format!("`{name}.")].iter().any(|word| misfit.message.contains(word));
        let misfit = if named { misfit } else { misfit.about(format_args!("`{name}`")) };
        Some(loaded.problem_in(loaded.section(name)?, misfit))
    });
    told.collect()
}

const POLICY: &str = "policy";

fn read_policy(loaded: &Loaded) -> Result<Option<Policy>, Vec<Misfit>> {
    let Some(section) = loaded.section(POLICY) else { return Ok(None) };
    Policy::from_value(section.value.clone()).map(Some).map_err(|error| {
        let told = error.problems().iter().cloned().map(|misfit| misfit.about("`policy`"));
        told.collect()
    })
}

/// What a run may spend, as the file says.
pub fn limits(loaded: &Loaded) -> Result<RunLimits, ToolError> {
    let Some(section) = loaded.section("limits") else { return Ok(RunLimits::default()) };
    let mut limits = section.value.clone();
    if let Value::Object(limits) = &mut limits {
        OTHERS.iter().for_each(|other| drop(limits.remove(*other)));
    }
    if limits.is_null() {
        return Ok(RunLimits::default());
    }
    read_data(&limits).map_err(|misfit| at(loaded, "limits", misfit))
}

/// Lets a run spend what the file says, do as much at once, and give a model as much of an output.
pub fn apply_limits(loaded: &Loaded, builder: RunBuilder) -> Result<RunBuilder, ToolError> {
    let mut builder = builder.limits(limits(loaded)?);
    let number = |key: &str| {
        let number = loaded.section("limits").and_then(|section| section.value.get(key)?.as_u64());
        number.map(|number| usize::try_from(number).unwrap_or(usize::MAX))
    };
    if let Some(calls) = number(MAX_PARALLEL) {
        builder = builder.max_parallel(calls);
    }
    if let Some(bytes) = number(MAX_OUTPUT) {
        builder = builder.max_output(bytes);
    }
    Ok(builder)
}

/// The models of a file, by name.
#[cfg(feature = "models")]
pub fn models(loaded: &Loaded) -> Result<Models, ToolError> {
    read_models(loaded).map_err(|misfit| at(loaded, MODELS, misfit))
}

#[cfg(feature = "models")]
type Models = std::collections::BTreeMap<String, toolwright_models::ModelConfig>;

#[cfg(feature = "models")]
const MODELS: &str = "models";

#[cfg(feature = "models")]
fn read_models(loaded: &Loaded) -> Result<Models, Misfit> {
    let Some(section) = loaded.section(MODELS) else { return Ok(Models::new()) };
    toolwright_models::ModelConfig::read(&section.value).map_err(|error| error.misfit().clone())
}

/// What is wrong with a section, with the place of it.
fn at(loaded: &Loaded, name: &str, misfit: Misfit) -> ToolError {
    let Some(section) = loaded.section(name) else { return misfit.into() };
    let Diagnostic { file, line, column, message, hint, .. } = loaded.problem_in(section, misfit);
    let error = ToolError::invalid(format!("{file}:{line}:{column}: {message}"));
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Two errors in one, the hint of the first with it.
fn and(first: ToolError, second: ToolError) -> ToolError {
    let error = ToolError::invalid(format!("{}; {}", first.message(), second.message()));
    match first.hint_text().or(second.hint_text()) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolwright_core::{ErrorKind, ToolCall, ToolResult};

    use super::*;

    const TOOL: &str = "tools: [{name: t, do: {eval: ran}}]";

    fn load(sections: &str) -> Result<ToolFile, LoadError> {
        ToolFile::load(Source::text("t.yaml", format!("{TOOL}\n{sections}")), Host::new())
    }

    async fn call(sections: &str) -> ToolResult {
        let run = load(sections).unwrap().run().await.unwrap().build().unwrap();
        run.call(ToolCall::new("1", "t", json!({}))).await.unwrap()
    }

    #[tokio::test]
    async fn a_run_keeps_to_the_policy_and_the_limits_of_the_file() {
        assert_eq!(call("").await.to_text(), "ran");
        let refused = call("policy: [{tools: t, decision: reject, reason: not today}]").await.error.unwrap();
        assert_eq!((refused.kind, refused.message.as_str()), (ErrorKind::Approval, "not today"));
        assert_eq!(call("limits: {tool_calls: 0}").await.error.unwrap().kind, ErrorKind::Limit);
        assert_eq!(call("limits: {max_output: 2}").await.truncated.map(|cut| cut.limit), Some(2));
        assert_eq!(call("limits: {max_output: 3}").await.to_text(), "ran");
    }

    #[tokio::test]
    async fn what_is_wrong_with_a_section_is_told_with_its_place() {
        for sections in ["policy: [{tools: t, decision: maybe}]", "limits: {turns: many}"] {
            let told = match load(sections) {
                Ok(file) => file.run().await.err().unwrap().to_string(),
                Err(error) => error.to_string(),
            };
            assert!(told.contains("t.yaml:2:"), "{told}");
        }
        let two = ToolFile::load(
            Source::text("t.yaml", "tools: [{name: t, do: {evil: 1}}]\npolcy: []"),
            Host::new(),
        );
        let told = two.unwrap_err().to_string();
        assert!(told.contains("evil") && told.contains("polcy"), "all problems are told: {told}");
    }

    #[cfg(all(feature = "sandbox", feature = "tools"))]
    #[tokio::test]
    async fn the_sandbox_the_file_asks_for_is_opened_or_told() {
        let file = |sandbox: &str| {
            let text = format!("tools: [{{import_tool: bash}}]\nsandbox: {sandbox}\n");
            ToolFile::load(Source::text("t.yaml", text), Host::new().imports(Importer::new())).unwrap()
        };
        let echo = || ToolCall::new("1", "bash", json!({"command": "echo hello"}));
        // Tests have no launcher, so none can be had here: an error, never a quiet run without one.
        for kind in ["process", "local"] {
            assert_eq!(file(kind).run().await.err().unwrap().kind(), ErrorKind::SandboxUnavailable, "{kind}");
        }
        let none = file("none").run().await.unwrap().build().unwrap();
        assert_eq!(none.call(echo()).await.unwrap().error.unwrap().kind, ErrorKind::SandboxUnavailable);
        // Nobody asked for one, so the run is made; whoever needs it hears why there is none.
        let text = "tools: [{import_tool: bash}]\n";
        let file_without = ToolFile::load(Source::text("t.yaml", text), Host::new().imports(Importer::new()));
        let run = file_without.unwrap().run().await.unwrap().build().unwrap();
        let refused = run.call(echo()).await.unwrap().error.unwrap();
        assert_eq!(refused.kind, ErrorKind::SandboxUnavailable);
        assert!(refused.message.contains("launcher"), "{refused:?}");
        let wrong = file("{kind: local, read: [/]}").run().await.err().unwrap();
        assert!(wrong.message().contains("isolates nothing"), "{wrong}");
        let wrong = file("none\nsandboxes: {victim: {kind: local, read: [/]}}").run().await.err().unwrap();
        assert!(wrong.message().starts_with("the sandbox `victim`: "), "{wrong}");
        for (said, told) in [
            ("[victim]", "t.yaml:3:12: `sandboxes` is a map"),
            ("{default: local}", "t.yaml:3:13: `default` is"),
            ("{victim: {kidn: local}}", "t.yaml:3:22: `sandboxes.victim`: unknown key `kidn`"),
        ] {
            let wrong = file(&format!("none\nsandboxes: {said}")).run().await.err().unwrap();
            assert!(wrong.message().starts_with(told), "{wrong}");
        }
    }

    #[cfg(feature = "mcp")]
    mod servers {
        use super::*;

        /// A server in shell with one tool, `go`.
        const SERVER: &str = r#"answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
read -r l; answer 1 '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}'
read -r l; read -r l; answer 2 '{"tools":[{"name":"go","inputSchema":{"type":"object"}}]}'
read -r l; answer 3 '{"content":[{"type":"text","text":"gone"}]}'
cat > /dev/null"#;

        fn load() -> (tempfile::TempDir, Result<ToolFile, LoadError>) {
            let folder = tempfile::tempdir().unwrap();
            let script = folder.path().join("server.sh");
            std::fs::write(&script, SERVER).unwrap();
            let text = format!(
                "mcp: {{s: {{transport: stdio, command: /bin/sh, args: [{}], auto_import_scope: shared}}}}\n",
                script.display()
            );
            (folder, ToolFile::load(Source::text("t.yaml", text), Host::new().imports(Importer::new())))
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn the_mcp_servers_of_a_file_are_started() {
            let (_folder, file) = load();
            let run = file.unwrap().run().await.unwrap().build().unwrap();
            let said = run.call(ToolCall::new("1", "s_go", json!({}))).await.unwrap();
            assert_eq!(said.to_text(), "gone");
        }

        #[tokio::test]
        async fn a_runtime_with_one_thread_is_told_apart_and_does_not_hang() {
            let (_folder, file) = load();
            let told = format!("{:?}", file.map(|file| file.loaded().problems().to_vec()));
            assert!(told.contains("several threads"), "{told}");
        }
    }
}
