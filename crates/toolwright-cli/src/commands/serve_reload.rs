//! `serve` follows the file that it serves: when the file changes and is sound, its tools are replaced, and
//! clients get `list_changed`. A file that cannot be used leaves everything as it was.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use toolwright::mcp::Server;

use super::serve::{Prepared, prepare};
use crate::args::Serve;
use crate::console::Console;
use crate::prompt::printable;
use crate::report;

/// How often the files are looked at. A file is read when it was the same twice: an editor may still write.
const PAUSE: Duration = Duration::from_secs(1);

/// What tells one state of a file from another: when it was changed, and how long it is.
type FileState = Option<(SystemTime, u64)>;

/// The file as it is offered, and the state of it before that: calls may still run there.
pub(super) struct Reloading<'s> {
    what: &'s Serve,
    console: &'s Console,
    server: Server,
    now: Prepared,
    before: Option<Prepared>,
    /// How often the file was replaced.
    changes: u32,
}

impl<'s> Reloading<'s> {
    /// Follows the file of a server.
    pub(super) fn new(what: &'s Serve, console: &'s Console, server: &Server, now: Prepared) -> Self {
        Reloading { what, console, server: server.clone(), now, before: None, changes: 0 }
    }

    /// Replaces the tools whenever the file changed; never ends.
    pub async fn follow(&mut self) -> Infallible {
        if self.now.opened.path().is_none() {
            return std::future::pending().await;
        }
        let mut used = states(&self.files());
        let mut last = used.clone();
        loop {
            tokio::time::sleep(PAUSE).await;
            let now = states(&self.files());
            let still = now == last;
            last.clone_from(&now);
            if now == used || !still {
                continue;
            }
            used = now;
            match prepare(self.what, self.console, self.changes + 1).await {
                Ok(prepared) => {
                    self.replace(prepared);
                    // It may include other files now.
                    used = states(&self.files());
                    last.clone_from(&used);
                }
                Err(error) => self.console.say(printable(&format!(
                    "the file changed and cannot be used, so the tools stay as they were: {}",
                    report::in_one_text(&error)
                ))),
            }
        }
    }

    fn replace(&mut self, new: Prepared) {
        let file = |prepared: &Prepared| {
            let file = prepared.opened.session.file();
            let text = |text: Option<&str>| text.map(str::to_owned);
            let resources = file.resources().map(|section| section.value.clone());
            (text(file.title()), text(file.instructions()), resources, prepared.prompts.is_some())
        };
        if file(&self.now) != file(&new) || new.prompts.is_some() {
            self.console.say("the tools of the changed file are offered; start the client again for its prompts, resources and instructions");
        } else {
            self.console.say("the tools of the changed file are offered");
        }
        self.changes += 1;
        new.announce_to(&self.server);
        self.server.replace(new.tools.run.dispatch());
        let old = self.before.replace(std::mem::replace(&mut self.now, new));
        // What it still runs was begun two changes ago.
        old.map_or(Ok(()), end).unwrap_or_else(|error| self.console.say(printable(&format!("{error:#}"))));
    }

    /// The files that the served file consists of.
    fn files(&self) -> Vec<PathBuf> {
        self.now.opened.parsed.file.files().map(Path::to_owned).collect()
    }

    /// Stops the calls that are under way.
    pub fn cancel(&self) {
        for prepared in self.before.iter().chain([&self.now]) {
            prepared.tools.run.cancel();
            prepared.prompts.iter().for_each(|prompts| prompts.run.cancel());
        }
    }

    /// Ends the runs.
    pub fn finish(self) -> anyhow::Result<()> {
        self.before.map_or(Ok(()), end)?;
        end(self.now)
    }
}

fn end(prepared: Prepared) -> anyhow::Result<()> {
    prepared.prompts.map_or(Ok(()), super::serve::Offered::finish)?;
    prepared.tools.finish()
}

fn states(files: &[PathBuf]) -> Vec<FileState> {
    let state = |path: &PathBuf| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.modified().ok()?, found.len()))
    };
    files.iter().map(state).collect()
}
