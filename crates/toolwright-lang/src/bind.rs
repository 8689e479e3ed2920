//! A file with the values of its variables: `env`, the shared data and the MCP servers are evaluated.
//!
//! What the intended use does not need is left out: a variable that is not set is then no problem, and
//! neither is data that would be made of it.

use std::sync::Arc;

use indexmap::IndexMap;
use toolwright_expr::Value;

use crate::diag::{FileSpan, LoadError, Problems};
use crate::env::{self, FileSecret, Variable};
use crate::exec::Globals;
use crate::file_sources;
use crate::host::{Host, Server};
use crate::models;
use crate::needs::Needs;
use crate::parse::SourceFile;
use crate::sections;
use crate::shape;
use crate::yaml::Node;

/// A file with the values of its variables. The servers it needs are known, and none of them has been
/// started.
pub struct BoundFile {
    pub(crate) root: Arc<Node>,
    pub(crate) problems: Problems,
    pub(crate) host: Host,
    pub(crate) variables: Vec<Variable>,
    pub(crate) secrets: Vec<FileSecret>,
    pub(crate) globals: Arc<Globals>,
    pub(crate) data: IndexMap<Arc<str>, Value>,
    pub(crate) servers: IndexMap<String, Server>,
    /// What the file's names for models stand for.
    pub(crate) models: IndexMap<String, String>,
    pub(crate) unread: Vec<(&'static str, FileSpan)>,
}

impl SourceFile {
    /// Evaluates what depends on variables, with the values the host has for them.
    pub fn bind(&self, host: &Host, needs: &Needs) -> BoundFile {
        let (root, mut problems) = (self.root.clone(), self.problems.clone());
        let host = with_limits(&root, host);
        let (variables, secrets, env) = env::read(&mut problems, &root, &host, needs);
        let mut globals = Globals::new();
        globals.insert("env", env);
        let servers = sections::servers(&mut problems, &root, &globals, needs);
        let data = sections::data(&mut problems, &root, &mut globals, &host, needs);
        let models = models::read(&mut problems, &root);
        BoundFile {
            root,
            problems,
            host,
            variables,
            secrets,
            globals: Arc::new(globals),
            data,
            servers,
            models,
            unread: self.unread(),
        }
    }
}

impl BoundFile {
    /// The MCP servers, by name, with their templates evaluated. Which of them are needed, [`Needs::server`]
    /// says.
    pub fn servers(&self) -> &IndexMap<String, Server> {
        &self.servers
    }

    /// The files of Python functions that tools are imported from, each as its name among the servers and its
    /// path as it is written.
    pub fn python_files(&self) -> Vec<(String, String)> {
        let named = |name: String| Some((name.clone(), file_sources::python_path(&name)?.to_owned()));
        file_sources::files(&self.root).into_iter().filter_map(named).collect()
    }

    /// The OpenAPI documents that tools are imported from, in the same way.
    pub fn openapi_files(&self) -> Vec<(String, String)> {
        let named = |name: String| Some((name.clone(), file_sources::openapi_path(&name)?.to_owned()));
        file_sources::files(&self.root).into_iter().filter_map(named).collect()
    }

    /// The scripts that tools are imported from, each as its name among the servers and the pattern as it is
    /// written.
    pub fn scripts(&self) -> Vec<(String, String)> {
        let named = |name: String| Some((name.clone(), file_sources::script_pattern(&name)?.to_owned()));
        file_sources::files(&self.root).into_iter().filter_map(named).collect()
    }

    /// All problems so far, if one of them keeps the file from being used: nothing need be started for it
    /// then.
    pub fn error(&self) -> Option<LoadError> {
        self.problems.as_error()
    }
}

impl std::fmt::Debug for BoundFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoundFile").field("servers", &self.servers.keys()).finish_non_exhaustive()
    }
}

/// The host with what the file says about single expressions. What does not fit was reported with its shape.
fn with_limits(root: &Node, host: &Host) -> Host {
    let Some(section) = root.get("limits") else { return host.clone() };
    let number =
        |key: &str| section.get(key).and_then(shape::count).and_then(|count| u64::try_from(count).ok());
    let mut limits = host.limits.clone();
    limits.expression.steps = number("steps").unwrap_or(limits.expression.steps);
    limits.expression.bytes = number("memory").unwrap_or(limits.expression.bytes);
    host.clone().limits(limits)
}
