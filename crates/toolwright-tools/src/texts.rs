//! The texts of many files, read from the sandbox a few at a time.

use std::hash::{BuildHasher as _, Hasher as _};

use toolwright_core::ToolError;

use crate::options::Call;

/// Files larger than this are passed over.
pub(crate) const LARGEST: u64 = 8 << 20;
/// How much is read from the sandbox at once.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_FILES: usize = 200;

/// Shows every file that holds text, in order; `files` has their sizes. Files that are too large are counted and not read.
pub(crate) async fn each(
    call: &Call,
    files: impl IntoIterator<Item = (String, u64)>,
    mut show: impl FnMut(&str, &str),
) -> Result<usize, ToolError> {
    let mut skipped = 0;
    let mut batch = Vec::new();
    let mut size = 0;
    for (path, bytes) in files {
        if bytes > LARGEST {
            skipped += 1;
            continue;
        }
        if size + bytes > BATCH_BYTES || batch.len() >= BATCH_FILES {
            read(call, &std::mem::take(&mut batch), &mut show).await?;
            size = 0;
        }
        batch.push(path);
        size += bytes;
    }
    read(call, &batch, &mut show).await?;
    Ok(skipped)
}

async fn read(call: &Call, batch: &[String], show: &mut impl FnMut(&str, &str)) -> Result<(), ToolError> {
    if batch.is_empty() {
        return Ok(());
    }
    call.context.check_cancelled()?;
    for (path, text) in batch.iter().zip(contents(call, batch).await?) {
        // A NUL near the start means that this is no text.
        if !text.bytes().take(8192).any(|byte| byte == 0) {
            show(path, &text);
        }
    }
    Ok(())
}

const READ_ALL: &str =
    r#"mark=$1; shift; for f do [ -f "$f" ] && cat -- "$f"; printf '\0%s\0' "$mark"; done"#;

/// The contents of several files, read by one command. A file that cannot be read is empty.
async fn contents(call: &Call, batch: &[String]) -> Result<Vec<String>, ToolError> {
    // Nobody can have put this into a file: it is made up now.
    let mark = format!("{:016x}", std::collections::hash_map::RandomState::new().build_hasher().finish());
    let command: Vec<&str> =
        ["sh", "-c", READ_ALL, "sh", &mark].into_iter().chain(batch.iter().map(String::as_str)).collect();
    let result = call.helper(&command).await?;
    Ok(result.stdout.split(&format!("\0{mark}\0")).take(batch.len()).map(str::to_owned).collect())
}
