//! A file of tools, parsed: each section has its own type and knows where it stands.
//!
//! Parsing and checking start nothing and read nothing but the file. A
//! [`Session`] opens a file for use.

mod authority;
#[cfg(feature = "sandbox")]
mod granted;
mod known;
#[cfg(feature = "sandbox")]
mod programs;
#[cfg(feature = "python")]
mod python;
#[cfg(feature = "sandbox")]
mod sandbox;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
#[cfg(feature = "sandbox")]
use toolwright_core::ToolError;
use toolwright_core::{DataError, Error, read_data};
use toolwright_lang::{
    Diagnostic, LoadError, Loaded, Needs, Section, Severity, Source, SourceFile, Variable, Wanted,
};
use toolwright_runtime::{Policy, RunLimits};

pub use self::authority::{Authority, AuthorityItem, AuthorityKind};
pub use self::known::KnownTools;
#[cfg(feature = "python")]
pub(crate) use self::python::PythonSection;
#[cfg(all(feature = "mcp", feature = "sandbox"))]
pub(crate) use self::sandbox::open_policy;
#[cfg(feature = "sandbox")]
pub use self::sandbox::{SandboxKind, SandboxPlan, SandboxSection, in_sandbox};
#[cfg(feature = "sandbox")]
pub(crate) use self::sandbox::{closed, give_sandboxes};
pub use crate::environment::Environment;
#[cfg(feature = "sandbox")]
pub use crate::session::Sandboxing;
pub use crate::session::{Caller, Connect, Session, SessionBuilder, UntrustedFile};
#[doc(inline)]
pub use toolwright_core::FileLocation;

/// The models of a file, by name.
#[cfg(feature = "models")]
pub type FileModels = std::collections::BTreeMap<String, toolwright_models::ModelConfig>;

/// A file of tools.
///
/// ```
/// use toolwright::file::{KnownTools, ToolFile};
/// use toolwright::lang::Source;
///
/// let text = "
/// tools:
///   - name: greet
///     do: {eval: Hello!}
/// limits: {tool_calls: 3}
/// policy:
///   - {tools: gret, decision: approve}
/// ";
/// let file = ToolFile::parse(Source::text("greet.yaml", text))?;
/// assert_eq!(file.limits().limits.tool_calls, Some(3));
/// let problems = file.check(&KnownTools::new());
/// assert_eq!(problems[0].line, 7);
/// # Ok::<(), toolwright::Error>(())
/// ```
#[derive(Debug)]
pub struct ToolFile {
    source: SourceFile,
    /// False for a file that nobody named and nobody trusted yet: it is inert.
    trusted: bool,
    policy: Option<Section<Arc<Policy>>>,
    limits: LimitsSection,
    resources: Option<Section<Vec<String>>>,
    title: Option<String>,
    instructions: Option<String>,
    #[cfg(feature = "models")]
    models: FileModels,
    #[cfg(feature = "sandbox")]
    sandbox: Option<Section<SandboxSection>>,
    #[cfg(feature = "sandbox")]
    sandboxes: Option<Section<Vec<(String, SandboxSection)>>>,
    #[cfg(feature = "python")]
    python: PythonSection,
}

/// The `limits` of a file that concern runs.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct LimitsSection {
    /// What a run may spend.
    pub limits: RunLimits,
    /// How many calls of one message run at the same time.
    pub max_parallel: Option<usize>,
    /// How many bytes of an output a model is given.
    pub max_output: Option<usize>,
}

impl ToolFile {
    /// Parses a file with everything it includes. The error has all problems of its form and of its sections;
    /// what concerns its tools is found by [`check`](Self::check).
    pub fn parse(source: impl Into<Source>) -> Result<Self, Error> {
        Ok(Self::parse_all(source).into_result()?)
    }

    /// Parses what can be parsed: sections with problems are left out, and [`error`](Self::error) says which.
    pub fn parse_all(source: impl Into<Source>) -> Self {
        Self::of(SourceFile::parse(source))
    }

    /// The same; `!include ./...` begins in this folder, and not in the file's own.
    pub fn parse_in(source: impl Into<Source>, work_dir: impl Into<PathBuf>) -> Self {
        Self::of(SourceFile::parse_in(source, work_dir))
    }

    /// Parses a file that nobody named. It is inert until [`trust`](Self::trust): it can be checked, and a
    /// session of it cannot be opened. It is not read through links, and reads at most 1 MiB.
    ///
    /// ```
    /// use toolwright::file::{Session, ToolFile, UntrustedFile};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let folder = tempfile::tempdir()?;
    /// std::fs::write(folder.path().join("t.yaml"), "tools: [{name: t, do: {eval: 1}}]")?;
    /// let found = ToolFile::parse_found(folder.path().join("t.yaml"), folder.path());
    /// assert!(found.error().is_none() && !found.is_trusted());
    /// let opened = Session::builder(found).open().await;
    /// assert!(opened.unwrap_err().downcast_ref::<UntrustedFile>().is_some());
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn parse_found(path: impl Into<PathBuf>, work_dir: impl Into<PathBuf>) -> Self {
        ToolFile { trusted: false, ..Self::of(SourceFile::parse_found(path, work_dir)) }
    }

    /// The same file, trusted: a person agreed to its [authority](Self::authority).
    #[must_use]
    pub fn trust(self) -> Self {
        ToolFile { trusted: true, ..self }
    }

    /// Whether the file may be used: it was named, or a person trusted it.
    pub fn is_trusted(&self) -> bool {
        self.trusted
    }

    /// The paths of the file and of what it includes; none for a text.
    pub fn files(&self) -> impl Iterator<Item = &std::path::Path> {
        self.source.files().iter().map(|file| &*file.path)
    }

    fn of(mut source: SourceFile) -> Self {
        let one = |misfit: DataError| vec![misfit];
        let policy = source.section("policy", |value| {
            Policy::from_value(value).map(Arc::new).map_err(|error| error.problems().to_vec())
        });
        let limits = source.section("limits", |value| LimitsSection::read(value).map_err(one));
        let resources = source.section("resources", |value| read_data(&value).map_err(one));
        let mut text = |key| {
            source.section(key, |value| read_data::<String>(&value).map_err(one)).map(|section| section.value)
        };
        let (title, instructions) = (text("title"), text("instructions"));
        #[cfg(feature = "models")]
        let models = source.section("models", |value| {
            toolwright_models::ModelConfig::read(&value).map_err(|error| one(error.misfit().clone()))
        });
        #[cfg(feature = "sandbox")]
        let sandbox = source.section("sandbox", |value| SandboxSection::read(&value).map_err(one));
        #[cfg(feature = "sandbox")]
        let sandboxes = source.section("sandboxes", |value| SandboxSection::read_named(&value).map_err(one));
        #[cfg(feature = "python")]
        let python = source.section("python", |value| PythonSection::read(&value).map_err(one));
        ToolFile {
            source,
            trusted: true,
            policy,
            limits: limits.map(|section| section.value).unwrap_or_default(),
            resources,
            title,
            instructions,
            #[cfg(feature = "models")]
            models: models.map(|section| section.value).unwrap_or_default(),
            #[cfg(feature = "sandbox")]
            sandbox,
            #[cfg(feature = "sandbox")]
            sandboxes,
            #[cfg(feature = "python")]
            python: python.map(|section| section.value).unwrap_or_default(),
        }
    }

    /// The file, unless one of its problems keeps it from being used.
    pub fn into_result(self) -> Result<Self, LoadError> {
        self.error().map_or(Ok(self), Err)
    }

    /// All problems of the form of the file and of its sections, if one of them keeps the file from being
    /// used.
    pub fn error(&self) -> Option<LoadError> {
        self.source.error()
    }

    /// Whether the file has a section of this name.
    pub fn has(&self, section: &str) -> bool {
        self.source.has(section)
    }

    /// The rules about calls.
    pub fn policy(&self) -> Option<&Arc<Policy>> {
        self.policy.as_ref().map(|section| &section.value)
    }

    /// The limits of runs.
    pub fn limits(&self) -> &LimitsSection {
        &self.limits
    }

    /// The files that MCP clients may read, as paths and patterns.
    pub fn resources(&self) -> Option<&Section<Vec<String>>> {
        self.resources.as_ref()
    }

    /// What a server of this file calls itself, for people.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Instructions for the models of MCP clients: when and how to use the tools.
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// The models, by name.
    #[cfg(feature = "models")]
    pub fn models(&self) -> &FileModels {
        &self.models
    }

    /// The default sandbox.
    #[cfg(feature = "sandbox")]
    pub fn sandbox(&self) -> Option<&SandboxSection> {
        self.sandbox.as_ref().map(|section| &section.value)
    }

    /// The other sandboxes, by name.
    #[cfg(feature = "sandbox")]
    pub fn sandboxes(&self) -> &[(String, SandboxSection)] {
        self.sandboxes.as_ref().map(|section| &*section.value).unwrap_or_default()
    }

    /// How the Python functions of the file run.
    #[cfg(feature = "python")]
    pub(crate) fn python(&self) -> &PythonSection {
        &self.python
    }

    /// What a use of the file needs: which servers must be connected, which variables must be set.
    pub fn needs(&self, wanted: &Wanted) -> Needs {
        self.source.needs(wanted)
    }

    /// The environment variables the file declares.
    pub fn variables(&self, known: &KnownTools, needs: &Needs) -> Vec<Variable> {
        self.source.variables(&self.host(known), needs)
    }

    /// The tools of the file as far as they are known without starting anything.
    pub fn compile(&self, known: &KnownTools) -> Loaded {
        let needs = self.needs(&Wanted::everything()).without_variables();
        let bound = self.source.bind(&self.host(known), &needs);
        // A lock beside a file that is not trusted may be a link to anywhere.
        #[cfg(feature = "mcp")]
        let servers = match self.trusted {
            true => known.listed(bound.servers().keys()),
            false => std::collections::HashMap::new(),
        };
        #[cfg(not(feature = "mcp"))]
        let servers = std::collections::HashMap::new();
        bound.compile(&servers)
    }

    /// Everything that can be known without starting anything, in the order of the file. The tools of MCP
    /// servers are those that a lock lists; all others are unknown until a server is connected, and so are
    /// calls of them. A variable that is not set counts as empty.
    pub fn check(&self, known: &KnownTools) -> Vec<Diagnostic> {
        self.check_tools(&self.compile(known))
    }

    /// The same for tools that were made of the file with its servers connected.
    pub fn check_tools(&self, loaded: &Loaded) -> Vec<Diagnostic> {
        let mut problems = loaded.check();
        #[cfg(feature = "sandbox")]
        problems.extend(self.check_sandboxes());
        problems.extend(self.check_policy(loaded));
        problems
    }

    /// What can be parsed may still describe a sandbox that cannot be opened.
    #[cfg(feature = "sandbox")]
    fn check_sandboxes(&self) -> Vec<Diagnostic> {
        let misfit = |error: &ToolError| {
            let info = error.info();
            DataError { hint: info.hint, ..DataError::new(info.message) }
        };
        let mut found = Vec::new();
        if let Some(section) = &self.sandbox {
            let wrong = section.value.check().err().map(|error| misfit(&error).about("`sandbox`"));
            found.extend(wrong.map(|misfit| self.source.diagnostic(section, Severity::Error, misfit)));
        }
        if let Some(section) = &self.sandboxes {
            for (name, each) in &section.value {
                let wrong = each.check().err().map(|error| misfit(&in_sandbox(name, &error)));
                let wrong = wrong.map(|misfit| misfit.inside(name.as_str()));
                found.extend(wrong.map(|misfit| self.source.diagnostic(section, Severity::Error, misfit)));
            }
        }
        found
    }

    /// What the rules say about tools and parameters that do not exist. A parameter that a tool of the file
    /// does not have is a mistake; a tool may come from elsewhere.
    pub fn check_policy(&self, loaded: &Loaded) -> Vec<Diagnostic> {
        let Some(section) = &self.policy else { return Vec::new() };
        let at = |severity: Severity| move |misfit| self.source.diagnostic(section, severity, misfit);
        let tools = section.value.unknown_tools(loaded.tools()).into_iter().map(at(Severity::Warning));
        let parameters =
            section.value.unknown_parameters(loaded.tools()).into_iter().map(at(Severity::Error));
        tools.chain(parameters).collect()
    }

    pub(crate) fn source(&self) -> &SourceFile {
        &self.source
    }

    /// What the program lends to this file.
    pub(crate) fn host(&self, known: &KnownTools) -> toolwright_lang::Host {
        if !self.trusted {
            return known.inert_host();
        }
        let declared = self.source.declared();
        known.host(declared.iter().map(String::as_str))
    }
}

impl LimitsSection {
    /// Splits what a run may spend from what bounds something else: calls at once, outputs, single
    /// expressions.
    fn read(mut value: Value) -> Result<Self, DataError> {
        let mut take = |key: &str| {
            let number = value.as_object_mut().and_then(|limits| limits.remove(key));
            number
                .and_then(|number| number.as_u64())
                .map(|number| usize::try_from(number).unwrap_or(usize::MAX))
        };
        let (max_parallel, max_output) = (take("max_parallel"), take("max_output"));
        // These bound single expressions.
        let _ = (take("steps"), take("memory"));
        let limits = if value.is_null() { RunLimits::default() } else { read_data(&value)? };
        Ok(LimitsSection { limits, max_parallel, max_output })
    }
}
