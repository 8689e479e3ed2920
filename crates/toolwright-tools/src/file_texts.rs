//! The texts of many files, read from the sandbox a few at a time.

use std::hash::{BuildHasher as _, Hasher as _};

use serde_json::Value;
use toolwright_core::ToolError;

use crate::options::Call;

/// Files larger than this are passed over.
pub(crate) const LARGEST: u64 = 8 << 20;
/// How much is read from the sandbox at once.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_FILES: usize = 200;

/// The files that were not looked at.
#[derive(Default)]
pub(crate) struct LeftOut {
    too_large: usize,
    not_read: usize,
}

impl LeftOut {
    /// How many there are, by name of the reason.
    pub(crate) fn told(&self) -> impl Iterator<Item = (String, Value)> {
        let all = [("files_too_large", self.too_large), ("files_not_read", self.not_read)];
        all.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count.into()))
    }
}

/// Shows every file that holds text, in order; `files` has their sizes. Files that are too large or cannot be
/// read are counted.
pub(crate) async fn each(
    call: &Call<'_>,
    files: impl IntoIterator<Item = (String, u64)>,
    mut show: impl FnMut(&str, &str),
) -> Result<LeftOut, ToolError> {
    let mut left_out = LeftOut::default();
    let mut batch = Vec::new();
    let mut size = 0;
    for (path, bytes) in files {
        if bytes > LARGEST {
            left_out.too_large += 1;
            continue;
        }
        if size + bytes > BATCH_BYTES || batch.len() >= BATCH_FILES {
            left_out.not_read += read(call, &std::mem::take(&mut batch), &mut show).await?;
            size = 0;
        }
        batch.push(path);
        size += bytes;
    }
    left_out.not_read += read(call, &batch, &mut show).await?;
    Ok(left_out)
}

/// Shows the files of a batch, and says how many could not be read.
async fn read(
    call: &Call<'_>,
    batch: &[String],
    show: &mut impl FnMut(&str, &str),
) -> Result<usize, ToolError> {
    if batch.is_empty() {
        return Ok(0);
    }
    call.context.check_cancelled()?;
    let mut not_read = 0;
    for (path, text) in batch.iter().zip(contents(call, batch).await?) {
        match text.strip_suffix(READ) {
            // A NUL near the start means that this is not text.
            Some(text) if text.bytes().take(8192).any(|byte| byte == 0) => {}
            Some(text) => show(path, text),
            None => not_read += 1,
        }
    }
    Ok(not_read)
}

/// Stands after a file that was read.
const READ: char = '+';
const READ_ALL: &str =
    r#"mark=$1; shift; for f do [ -f "$f" ] && cat -- "$f" && printf +; printf '\0%s\0' "$mark"; done"#;

/// The contents of several files, read by one command. A file that cannot be read lacks its mark: one whose
/// name is not UTF-8 or too long for the system, or that belongs to somebody else.
async fn contents(call: &Call<'_>, batch: &[String]) -> Result<Vec<String>, ToolError> {
    // Nobody can have put this into a file: it is made up now.
    let mark = format!("{:016x}", std::collections::hash_map::RandomState::new().build_hasher().finish());
    let command: Vec<&str> =
        ["sh", "-c", READ_ALL, "sh", &mark].into_iter().chain(batch.iter().map(String::as_str)).collect();
    let result = call.helper(&command).await?;
    Ok(result.stdout.split(&format!("\0{mark}\0")).take(batch.len()).map(str::to_owned).collect())
}
