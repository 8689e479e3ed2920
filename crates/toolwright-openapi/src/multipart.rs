//! `multipart/form-data`, byte for byte the same for the same parts.

use sha2::{Digest as _, Sha256};

/// One part of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormPart {
    /// The name of the field.
    pub name: String,
    /// The type of the content; text without one.
    pub content_type: Option<String>,
    /// What it holds.
    pub content: PartContent,
}

/// What a part holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartContent {
    /// These bytes.
    Bytes(Vec<u8>),
    /// A file of the workspace, to be read by the sender of the request.
    File(String),
    /// The bytes of a file, with the name it is sent under.
    FileBytes(String, Vec<u8>),
}

/// The content type and the bytes of a form. The boundary is a hash of the parts, so that no part can hold
/// it.
/// A [`File`](PartContent::File) that was not read counts as empty.
pub fn multipart(parts: &[FormPart]) -> (String, Vec<u8>) {
    let mut hash = Sha256::new();
    for part in parts {
        let (file, bytes) = content(part);
        for piece in [part.name.as_bytes(), file.unwrap_or_default().as_bytes(), bytes] {
            hash.update(u64::try_from(piece.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(piece);
        }
    }
    let boundary: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let mut out = Vec::new();
    for part in parts {
        let (file, bytes) = content(part);
        out.extend(
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"", quoted(&part.name))
                .bytes(),
        );
        if let Some(file) = file {
            out.extend(format!("; filename=\"{}\"", quoted(file)).bytes());
        }
        out.extend(b"\r\n");
        if let Some(kind) = part.content_type.as_deref().or(file.map(|_| "application/octet-stream")) {
            out.extend(format!("Content-Type: {}\r\n", kind.replace(['\r', '\n'], " ")).bytes());
        }
        out.extend(b"\r\n");
        out.extend(bytes);
        out.extend(b"\r\n");
    }
    out.extend(format!("--{boundary}--\r\n").bytes());
    (format!("multipart/form-data; boundary={boundary}"), out)
}

fn content(part: &FormPart) -> (Option<&str>, &[u8]) {
    match &part.content {
        PartContent::Bytes(bytes) => (None, bytes),
        PartContent::File(path) => (Some(file_name(path)), &[]),
        PartContent::FileBytes(path, bytes) => (Some(file_name(path)), bytes),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// As browsers escape names in the header of a part.
fn quoted(text: &str) -> String {
    text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}
