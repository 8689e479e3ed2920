//! Files of observed inputs and outputs.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads the records of a vector file: a JSON list, or an object with a list under `vectors` or `records`.
pub fn load<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, VectorError> {
    let problem = |text: String| VectorError { path: path.to_owned(), problem: text };
    let text = std::fs::read_to_string(path).map_err(|error| problem(error.to_string()))?;
    let file: Value = serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?;
    let list = match file {
        Value::Array(list) => list,
        Value::Object(mut map) => match map.remove("vectors").or_else(|| map.remove("records")) {
            Some(Value::Array(list)) => list,
            _ => return Err(problem("there is no list under `vectors` or `records`".to_owned())),
        },
        _ => return Err(problem("the file is neither a list nor an object".to_owned())),
    };
    list.into_iter()
        .enumerate()
        .map(|(index, record)| {
            serde_json::from_value(record).map_err(|error| problem(format!("record {index}: {error}")))
        })
        .collect()
}

/// Why a vector file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorError {
    path: PathBuf,
    problem: String,
}

impl std::fmt::Display for VectorError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot read the vectors in `{}`: {}", self.path.display(), self.problem)
    }
}

impl std::error::Error for VectorError {}

/// The result of running a file of vectors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// A file that gets one JSON line for each record that is checked, as soon as it is: `{"id", "failure"}`.
    pub report: Option<PathBuf>,
    /// Records that gave what was observed.
    pub passed: usize,
    /// Records that gave something else, in words.
    pub failures: Vec<String>,
    /// Records that were not tried.
    pub skipped: usize,
}

impl Tally {
    /// Counts a record that gave what was observed.
    pub fn pass(&mut self) {
        self.passed += 1;
    }

    /// Counts a record that was not tried.
    pub fn skip(&mut self) {
        self.skipped += 1;
    }

    /// Counts a record that gave something else.
    pub fn fail(&mut self, id: &str, wanted: impl std::fmt::Display, got: impl std::fmt::Display) {
        let failure = format!("FAILED {id}\n  wanted: {wanted}\n  got:    {got}");
        self.note(id, Some(&failure));
        self.failures.push(failure);
    }

    /// Counts a record by comparing.
    pub fn check<T: PartialEq + std::fmt::Debug>(&mut self, id: &str, wanted: &T, got: &T) {
        if wanted != got {
            return self.fail(id, format!("{wanted:?}"), format!("{got:?}"));
        }
        self.note(id, None);
        self.pass();
    }

    /// Written at once: if a later record makes the runner panic, this one is still known.
    fn note(&self, id: &str, failure: Option<&str>) {
        let Some(path) = &self.report else { return };
        let line = format!("{}\n", serde_json::json!({"id": id, "failure": failure}));
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        // Nobody reads the report of a folder that is gone.
        let _ = file.and_then(|mut file| std::io::Write::write_all(&mut file, line.as_bytes()));
    }

    /// The closing line: `N passed, N failed, N skipped`.
    pub fn closing_line(&self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failures.len(), self.skipped)
    }
}
