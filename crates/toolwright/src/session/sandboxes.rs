//! The sandboxes of a session.

use std::sync::Arc;

use toolwright_core::{DynSandbox, ToolError};
use toolwright_lang::Loaded;
use toolwright_net::Reach;
use toolwright_runtime::RunBuilder;

use super::Session;
use crate::file::{SandboxSection, closed, give_sandboxes, in_sandbox};

/// What to make of the sandboxes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sandboxing {
    /// Those the file describes must open. Without a `sandbox` section a process sandbox is opened when a
    /// tool needs one; where that fails, calls of such tools are refused with the reason. A program with a
    /// process sandbox begins with `sandbox::launcher::main_if_launcher`.
    #[default]
    AsNeeded,
    /// The default one must open. Another that cannot be opened is reported, and calls that need it are
    /// refused.
    Required,
    /// One that cannot be opened is reported, and calls that need it are refused.
    WherePossible,
    /// None is opened.
    Never,
}

/// Hears what an opened session does without.
pub(super) type OnNotice = Arc<dyn Fn(&str) + Send + Sync>;

/// The sandboxes of a session.
#[derive(Clone)]
pub(super) struct Sandboxes {
    default: Option<Arc<DynSandbox>>,
    named: Vec<(String, Arc<DynSandbox>)>,
    /// Where tools that fetch pages may go, when the default sandbox's network says so.
    reach: Option<Reach>,
    on_notice: Option<OnNotice>,
}

impl Sandboxes {
    pub(super) fn new(on_notice: Option<OnNotice>) -> Self {
        Sandboxes { default: None, named: Vec::new(), reach: None, on_notice }
    }

    pub(super) fn give(&self, mut builder: RunBuilder) -> RunBuilder {
        if let Some(reach) = &self.reach {
            builder = builder.state(reach.clone());
        }
        give_sandboxes(builder, self.default.clone(), self.named.clone())
    }

    /// What the machine cannot give is reported.
    async fn open_if_possible(&self, section: &SandboxSection, which: &str) -> Option<Arc<DynSandbox>> {
        section.open_bare().await.unwrap_or_else(|error| {
            if let Some(told) = &self.on_notice {
                told(&format!("no sandbox{which}: {error:#}"));
            }
            None
        })
    }
}

impl Session {
    /// Opens the sandboxes, with their files and setup scripts. `default` stands in place of what the file
    /// says about the default one. [`SessionBuilder::open`](super::SessionBuilder::open) does this; a program
    /// that opened the file with [`Sandboxing::Never`] can do it once it knows which of the tools it uses.
    pub async fn open_sandboxes(
        &mut self,
        default: Option<SandboxSection>,
        how: Sandboxing,
    ) -> Result<(), ToolError> {
        let described = default.as_ref().or(self.file.sandbox());
        let section = described.cloned().unwrap_or_default();
        self.sandboxes.reach = section.reach()?;
        let opened = match how {
            Sandboxing::Never => return Ok(()),
            Sandboxing::AsNeeded if described.is_some() => section.open().await?,
            // A tool that needs none is not kept from its work; a call of one that does is told why there is
            // none.
            Sandboxing::AsNeeded if needs_sandbox(&self.loaded) => {
                section.open().await.unwrap_or_else(|why| Some(closed(why)))
            }
            Sandboxing::AsNeeded => None,
            Sandboxing::Required => {
                self.check_named()?;
                section.open().await?
            }
            Sandboxing::WherePossible => {
                section.check()?;
                self.check_named()?;
                let opened = self.sandboxes.open_if_possible(&section, "").await;
                if let Some(sandbox) = &opened {
                    section.prepare(sandbox).await?;
                }
                opened
            }
        };
        self.sandboxes.default = opened;
        for (name, section) in self.file.clone().sandboxes() {
            let told = |error: ToolError| in_sandbox(name, &error);
            let opened = match how {
                Sandboxing::AsNeeded => section.open_bare().await.map_err(told)?,
                _ => self.sandboxes.open_if_possible(section, &format!(" `{name}`")).await,
            };
            if let Some(sandbox) = opened {
                section.prepare(&sandbox).await.map_err(told)?;
                self.sandboxes.named.push((name.clone(), sandbox));
            }
        }
        Ok(())
    }

    fn check_named(&self) -> Result<(), ToolError> {
        let mut named = self.file.sandboxes().iter();
        named.try_for_each(|(name, section)| section.check().map_err(|error| in_sandbox(name, &error)))
    }
}

fn needs_sandbox(loaded: &Loaded) -> bool {
    let chat = loaded.chat().map(|chat| &chat.tools);
    let sets = std::iter::once(loaded.tools()).chain(chat).chain([loaded.prompts()]);
    sets.flat_map(|tools| tools.iter()).any(|entry| entry.tool.policy().sandboxed)
}

impl std::fmt::Debug for Sandboxes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandboxes").field("named", &self.named.len()).finish_non_exhaustive()
    }
}
