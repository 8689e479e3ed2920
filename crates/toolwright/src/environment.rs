//! The variables that a program passes to the library. The library itself reads none.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Returns the value of a variable.
type ReadVariable = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Values of environment variables. They are looked up when they are needed, and only those that are.
///
/// ```
/// use toolwright::model::Environment;
///
/// let environment = Environment::of([("REGION", "eu")]).with("TIER", "free");
/// assert_eq!(environment.get("REGION").as_deref(), Some("eu"));
/// assert_eq!(environment.get("HOME"), None);
/// ```
#[derive(Clone, Default)]
pub struct Environment {
    lookup: Option<Arc<ReadVariable>>,
    /// Values that come before those of the lookup.
    own: Arc<HashMap<String, String>>,
}

impl Environment {
    /// No variable is set.
    pub fn empty() -> Self {
        Environment::default()
    }

    /// The variables of the process, read at the time they are needed.
    pub fn of_process() -> Self {
        Self::from_fn(|name| std::env::var(name).ok())
    }

    /// These variables.
    pub fn of<N: Into<String>, V: Into<String>>(variables: impl IntoIterator<Item = (N, V)>) -> Self {
        let own = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Environment { lookup: None, own: Arc::new(own) }
    }

    /// Variables that are looked up with a function.
    pub fn from_fn(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Environment { lookup: Some(Arc::new(lookup)), own: Arc::default() }
    }

    /// The same, with one variable set to this value.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.own).insert(name.into(), value.into());
        self
    }

    /// The value of a variable; `None` if it is not set.
    pub fn get(&self, name: &str) -> Option<String> {
        self.own.get(name).cloned().or_else(|| self.lookup.as_ref()?(name))
    }
}

/// Shows no values: they may be secret.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}
