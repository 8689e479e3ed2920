//! Resources that somebody watches, and that the server itself looks at from time to time because nobody
//! tells it when they change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::{Changes, Inner, Resources, Watching};
use crate::jsonrpc::{BUSY, INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError};
use toolwright_util::lock;

/// How often they are looked at.
const PAUSE: Duration = Duration::from_secs(1);

/// The most resources that are looked at for all clients together.
const MAX_LOOKED_AT: usize = 10_000;

/// The longest address that is remembered.
const MAX_URI: usize = 8 * 1024;

/// What is watched, by address.
#[derive(Clone, Default)]
pub(super) struct Watches(Arc<Mutex<Looking>>);

#[derive(Default)]
struct Looking {
    watched: HashMap<String, WatchedResource>,
    /// Whether somebody looks. That begins with the first resource and ends after the last.
    begun: bool,
}

struct WatchedResource {
    clients: usize,
    mark: Option<u64>,
}

impl Inner {
    /// Watches a resource for a client, as long as the guard lives.
    pub(super) fn watch(&self, uri: &str, stateless: bool) -> Result<Watch, RpcError> {
        if uri.len() > MAX_URI {
            return Err(RpcError::new(INVALID_PARAMS, format!("an address has at most {MAX_URI} bytes")));
        }
        let unknown = || {
            let code = if stateless { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
            RpcError::new(code, "there is no such resource")
        };
        let looking = match &self.resources {
            Some(resources) if resources.watching() == Watching::Polled => {
                Some(self.watches.add(resources, &self.hub.changes(), uri, unknown)?)
            }
            _ => None,
        };
        Ok(Watch { _looking: looking })
    }
}

impl Watches {
    fn looking(&self) -> MutexGuard<'_, Looking> {
        lock(&self.0)
    }

    fn add(
        &self,
        resources: &Arc<dyn Resources>,
        changes: &Changes,
        uri: &str,
        unknown: impl FnOnce() -> RpcError,
    ) -> Result<Looked, RpcError> {
        // Looked at before anything is promised, so that no change after the promise is missed.
        let mark = resources.mark(uri).ok_or_else(unknown)?;
        let mut looking = self.looking();
        if let Some(watched) = looking.watched.get_mut(uri) {
            watched.clients += 1;
        } else {
            if looking.watched.len() >= MAX_LOOKED_AT {
                return Err(RpcError::new(BUSY, "too many resources are watched"));
            }
            looking.watched.insert(uri.to_owned(), WatchedResource { clients: 1, mark: Some(mark) });
        }
        if !std::mem::replace(&mut looking.begun, true) {
            tokio::spawn(self.clone().look(resources.clone(), changes.clone()));
        }
        drop(looking);
        Ok(Looked { watches: self.clone(), uri: uri.to_owned() })
    }

    /// Looks at everything that is watched, again and again, until nothing is.
    async fn look(self, resources: Arc<dyn Resources>, changes: Changes) {
        loop {
            tokio::time::sleep(PAUSE).await;
            let uris: Vec<String> = {
                let mut looking = self.looking();
                if looking.watched.is_empty() {
                    looking.begun = false;
                    return;
                }
                looking.watched.keys().cloned().collect()
            };
            let resources = resources.clone();
            let marks = tokio::task::spawn_blocking(move || {
                let mark = |uri: String| (resources.mark(&uri), uri);
                uris.into_iter().map(mark).collect::<Vec<_>>()
            });
            for (mark, uri) in marks.await.unwrap_or_default() {
                let changed = self.looking().watched.get_mut(&uri).is_some_and(|watched| {
                    let before = std::mem::replace(&mut watched.mark, mark);
                    before != mark
                });
                if changed {
                    changes.resource(uri);
                }
            }
        }
    }
}

/// Keeps a resource watched.
pub(super) struct Watch {
    _looking: Option<Looked>,
}

struct Looked {
    watches: Watches,
    uri: String,
}

impl Drop for Looked {
    fn drop(&mut self) {
        let mut looking = self.watches.looking();
        if let Some(watched) = looking.watched.get_mut(&self.uri) {
            watched.clients -= 1;
            if watched.clients == 0 {
                looking.watched.remove(&self.uri);
            }
        }
    }
}
