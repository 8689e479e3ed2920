//! Tools that a file speaks of and does not have. Whoever asks for one is told why, and gets no other tool of
//! that name.

use toolwright_core::{Patterns, ToolDef, ToolError, ToolOutput, ToolSpec};

use crate::build::FileBuilder;
use crate::server_imports::ImportRule;

/// Tools of a server that the file would have, and why it does not.
#[derive(Debug, Clone)]
pub(crate) struct Absent {
    prefix: String,
    /// Their names behind the prefix.
    names: AbsentNames,
    pub(crate) why: String,
    /// The server is unavailable, which was reported; calls of its tools are not mistakes.
    pub(crate) gone: bool,
}

#[derive(Debug, Clone)]
enum AbsentNames {
    One(String),
    Matching(Patterns),
}

impl Absent {
    /// The tool of this name, if it is one of those that are not there.
    pub(crate) fn find<'a>(all: &'a [Absent], name: &str) -> Option<&'a Absent> {
        all.iter().find(|absent| match (name.strip_prefix(absent.prefix.as_str()), &absent.names) {
            (None, _) => false,
            (Some(own), AbsentNames::One(name)) => own == name,
            (Some(own), AbsentNames::Matching(filter)) => filter.matches(own),
        })
    }
}

impl FileBuilder<'_> {
    /// Notes what an import of a server's tools would bring and does not.
    pub(crate) fn note_absent(&mut self, server: &str, rule: &ImportRule) {
        let server = server.strip_prefix("mcp:").unwrap_or(server);
        let absent = |names, why, gone| Absent { prefix: rule.prefix.clone(), names, why, gone };
        match self.asked.get(server) {
            None => {}
            Some(None) => {
                let why = self.why_gone(server);
                self.absent.push(absent(AbsentNames::Matching(rule.filter.clone()), why, true));
            }
            Some(Some(known)) => {
                let not_offered = known.suspended.iter().chain(&known.left_out);
                let wanted = not_offered.filter(|(own, _)| rule.filter.matches(own));
                self.absent.extend(wanted.map(|(own, why)| {
                    let why =
                        format!("`{own}` of {} is left out: {why}", crate::file_sources::described(server));
                    absent(AbsentNames::One(own.clone()), why, false)
                }));
            }
        }
    }

    fn why_gone(&self, server: &str) -> String {
        match self.states.contains_key(server) {
            true => format!("could not list the tools of {}", crate::file_sources::described(server)),
            false => format!("{} was not started", crate::file_sources::described(server)),
        }
    }

    /// Notes a single missing tool of an unavailable server, under its name in the file.
    pub(crate) fn note_gone(&mut self, server: &str, name: String) {
        let server = server.strip_prefix("mcp:").unwrap_or(server);
        let why = self.why_gone(server);
        self.absent.push(Absent { prefix: String::new(), names: AbsentNames::One(name), why, gone: true });
    }
}

/// Stands in for a tool that is not there: it takes anything, and cannot be called.
pub(crate) fn stand_in(name: &str, why: &str) -> ToolDef {
    let mut spec = ToolSpec::new(name, "");
    spec.parameters = serde_json::json!({"type": "object"});
    let why = why.to_owned();
    ToolDef::dynamic(spec, move |_, _| {
        let why = why.clone();
        async move { Err::<ToolOutput, _>(ToolError::new(why)) }
    })
}

/// Whether a definition is that of a [`stand_in`].
pub(crate) fn takes_anything(spec: &ToolSpec) -> bool {
    spec.parameters == serde_json::json!({"type": "object"})
}
