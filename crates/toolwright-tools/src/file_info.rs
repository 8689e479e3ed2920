//! `file_info`: what is known about a file without reading it.

use schemars::JsonSchema;
use serde::Serialize;
use toolwright_core::time::Civil;
use toolwright_core::{Structured, ToolContext, ToolError, WorkspacePath, tool};

use crate::options::{Call, Options, within_time};
use crate::paths::{self, About, FileKind};

/// What is known. Everything but `exists` is left out when nothing is there.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Info")]
struct FileFacts {
    exists: bool,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
}

#[derive(Serialize, JsonSchema)]
struct Details {
    /// `file`, `directory`, `symlink` or `other`.
    #[serde(rename = "type")]
    kind: &'static str,
    size: u64,
    permissions: String,
    owner: String,
    group: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    modified: String,
    accessed: String,
    is_readable: bool,
    is_writable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'static str>,
}

/// Say what a path leads to: type, size, permissions, owner and times (UTC).
#[tool(category = "files", sandboxed, read_only, finish = within_time)]
pub async fn file_info(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file or folder.
    #[tool(alias("file_path", "filename"))]
    path: WorkspacePath,
) -> Result<Structured<FileFacts>, ToolError> {
    let about = paths::find(&Call::new(context, options), &path).await?.about;
    let details = about.map(|about| details(&path, &about));
    Ok(Structured(FileFacts { exists: details.is_some(), details }))
}

fn details(path: &str, about: &About) -> Details {
    let kind = match about.kind {
        _ if about.is_link => "symlink",
        FileKind::File => "file",
        FileKind::Folder => "directory",
        FileKind::Other => "other",
    };
    Details {
        kind,
        size: about.size,
        permissions: permissions(about.mode),
        owner: about.owner.clone(),
        group: about.group.clone(),
        created: about.created.map(time),
        modified: time(about.modified),
        accessed: time(about.accessed),
        is_readable: about.readable,
        is_writable: about.writable,
        mime_type: (about.kind == FileKind::File).then(|| mime_type(path)),
    }
}

/// `rwxr-x---`.
fn permissions(mode: u32) -> String {
    "rwxrwxrwx"
        .chars()
        .zip((0..9).rev())
        .map(|(letter, bit)| if mode >> bit & 1 == 1 { letter } else { '-' })
        .collect()
}

/// Seconds since 1970 as `2026-01-31T12:00:00Z`.
pub(crate) fn time(seconds: i64) -> String {
    format!("{}Z", Civil::of(seconds))
}

/// By the ending of the name, as web servers do.
fn mime_type(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_lowercase()).unwrap_or_default();
    match ending.as_str() {
        "txt" | "log" | "text" | "conf" | "ini" => "text/plain",
        "md" | "markdown" => "text/markdown",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "js" | "mjs" => "text/javascript",
        "py" => "text/x-python",
        "rs" => "text/rust",
        "c" | "h" => "text/x-c",
        "sh" => "application/x-sh",
        "json" => "application/json",
        "toml" => "application/toml",
        "yaml" | "yml" => "application/yaml",
        "xml" => "text/xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        "tar" => "application/x-tar",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "webp" => "image/webp",
        "mp3" => "audio/mpeg",
        "wav" => "audio/x-wav",
        "mp4" => "video/mp4",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_permissions_read_as_people_write_them() {
        assert_eq!(time(0), "1970-01-01T00:00:00Z");
        assert_eq!(time(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(time(1_767_225_599), "2025-12-31T23:59:59Z");
        assert_eq!(time(-1), "1969-12-31T23:59:59Z");
        assert_eq!((permissions(0o100_644), permissions(0o4750)), ("rw-r--r--".into(), "rwxr-x---".into()));
        assert_eq!(
            (mime_type("a/B.MD"), mime_type(".hidden/x")),
            ("text/markdown", "application/octet-stream")
        );
    }
}
