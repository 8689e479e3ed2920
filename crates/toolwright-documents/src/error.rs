//! Why a document could not be read.

use std::fmt;

/// A document that could not be read at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentError {
    kind: DocumentErrorKind,
    message: String,
    hint: Option<String>,
}

/// What is wrong with a document.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentErrorKind {
    /// No reader for this kind of file.
    Unsupported,
    /// The file is encrypted: a password is needed, or the given one is wrong.
    Encrypted,
    /// The bytes are not what the kind demands.
    Damaged,
    /// A bound was reached before the first page: size, depth, decompressed size or time.
    Limit,
    /// No such page, sheet or cell.
    Range,
    /// The process that reads crashed, was stopped, or could not be started.
    Reader,
}

impl DocumentErrorKind {
    /// The name used between processes and in `--json`.
    pub fn name(self) -> &'static str {
        match self {
            DocumentErrorKind::Unsupported => "unsupported",
            DocumentErrorKind::Encrypted => "encrypted",
            DocumentErrorKind::Damaged => "damaged",
            DocumentErrorKind::Limit => "limit",
            DocumentErrorKind::Range => "range",
            DocumentErrorKind::Reader => "reader",
        }
    }

    /// The kind of a name; unknown names are damage.
    pub fn from_name(name: &str) -> Self {
        match name {
            "unsupported" => DocumentErrorKind::Unsupported,
            "encrypted" => DocumentErrorKind::Encrypted,
            "limit" => DocumentErrorKind::Limit,
            "range" => DocumentErrorKind::Range,
            "reader" => DocumentErrorKind::Reader,
            _ => DocumentErrorKind::Damaged,
        }
    }
}

impl DocumentError {
    /// An error of a kind.
    pub fn new(kind: DocumentErrorKind, message: impl Into<String>) -> Self {
        DocumentError { kind, message: message.into(), hint: None }
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(DocumentErrorKind::Unsupported, message)
    }

    pub(crate) fn encrypted(message: impl Into<String>) -> Self {
        Self::new(DocumentErrorKind::Encrypted, message)
    }

    pub(crate) fn damaged(message: impl Into<String>) -> Self {
        Self::new(DocumentErrorKind::Damaged, message)
    }

    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self::new(DocumentErrorKind::Limit, message)
    }

    pub(crate) fn range(message: impl Into<String>) -> Self {
        Self::new(DocumentErrorKind::Range, message)
    }

    /// Adds what to do about it.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What is wrong.
    pub fn kind(&self) -> DocumentErrorKind {
        self.kind
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for DocumentError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for DocumentError {}
