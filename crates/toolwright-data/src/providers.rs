//! Several search engines in the order in which they are asked: the first that finds something answers, and
//! the answer names it and those that failed.

use std::sync::Arc;

use tokio::sync::Semaphore;
use toolwright_core::{ErrorKind, ToolError};

use crate::search::{Search, SearchAnswer, SearchRequest};

/// An engine and the name it is reported under.
#[derive(Clone)]
struct SearchProvider {
    name: String,
    engine: Arc<dyn Search>,
}

/// Engines in order, with at most so many requests at the same time.
#[derive(Clone)]
pub struct SearchProviders {
    providers: Vec<SearchProvider>,
    permits: Arc<Semaphore>,
    /// What a person can set up, for the error when there is no engine or none answers.
    hint: Option<String>,
}

/// What engines found, which of them answered, and why the others did not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProvidersAnswer {
    /// What was found.
    pub found: SearchAnswer,
    /// The engine that answered.
    pub answered: String,
    /// Engines that were asked before it, each with the reason.
    pub failed: Vec<(String, String)>,
}

impl ProvidersAnswer {
    /// `answered: brave; failed: searxng (cannot reach localhost)`.
    pub fn account(&self) -> String {
        let failed = self.failed.iter().map(|(name, why)| format!("{name} ({why})"));
        let silent = self.found.notes.iter().cloned();
        let failed: Vec<String> = failed.chain(silent).collect();
        match failed.is_empty() {
            true => format!("answered: {}", self.answered),
            false => format!("answered: {}; failed: {}", self.answered, failed.join(", ")),
        }
    }
}

impl SearchProviders {
    /// No engine yet; at most so many requests at the same time.
    pub fn new(max_connections: usize) -> Self {
        let permits = Arc::new(Semaphore::new(max_connections.max(1)));
        SearchProviders { providers: Vec::new(), permits, hint: None }
    }

    /// Adds an engine, which is asked after those before it.
    #[must_use]
    pub fn provider(mut self, name: impl Into<String>, engine: Arc<dyn Search>) -> Self {
        self.providers.push(SearchProvider { name: name.into(), engine });
        self
    }

    /// What to set up when no engine answers.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The names in order.
    pub fn names(&self) -> Vec<&str> {
        self.providers.iter().map(|provider| provider.name.as_str()).collect()
    }

    /// Asks one engine after another until one finds something. An error when none answers at all.
    pub async fn ask(&self, request: SearchRequest<'_>) -> Result<ProvidersAnswer, ToolError> {
        let mut failed: Vec<(String, String)> = Vec::new();
        let mut empty: Option<(String, SearchAnswer)> = None;
        let mut last = None;
        for SearchProvider { name, engine } in &self.providers {
            let permit = self.permits.acquire().await;
            let outcome = engine.answer(request).await;
            drop(permit);
            match outcome {
                Ok(found) if !found.is_empty() => {
                    return Ok(ProvidersAnswer { found, answered: name.clone(), failed });
                }
                Ok(found) => {
                    failed.push((name.clone(), "found nothing".to_owned()));
                    empty = empty.or(Some((name.clone(), found)));
                }
                Err(error) => {
                    failed.push((name.clone(), error.message().to_owned()));
                    last = Some(error);
                }
            }
        }
        if let Some((answered, found)) = empty {
            failed.retain(|(name, _)| *name != answered);
            return Ok(ProvidersAnswer { found, answered, failed });
        }
        let account: Vec<String> = failed.iter().map(|(name, why)| format!("{name} ({why})")).collect();
        let message = match account.is_empty() {
            true => "no search engine is set up".to_owned(),
            false => format!("no search engine answered: {}", account.join(", ")),
        };
        let kind = match (&last, failed.len()) {
            (None, _) => ErrorKind::Permission,
            (Some(error), 1) => error.kind(),
            _ => ErrorKind::Unknown,
        };
        let mut error = ToolError::of(kind, message);
        if let Some(hint) = &self.hint {
            error = error.hint(hint.clone());
        }
        Err(match last {
            Some(cause) => error.with_source(cause),
            None => error,
        })
    }
}

impl std::fmt::Debug for SearchProviders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SearchProviders").field("providers", &self.names()).finish_non_exhaustive()
    }
}
