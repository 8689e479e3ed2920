//! Keys that a program prints (`credential_process`).

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use toolwright_core::ModelError;

use super::source::{Held, held};
use crate::error;

/// Timeout of the program; it may have to prompt a person.
const PATIENCE: Duration = Duration::from_secs(300);

/// The most bytes that it may print.
const MOST: u64 = 1 << 20;

/// Runs the command and reads what it prints.
pub(super) async fn run(command: &str) -> Result<Held, ModelError> {
    let words = words(command).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| {
        error::auth("`credential_process` is not a command: a quote is not closed, or it is empty")
    })?;
    let [name, rest @ ..] = words.as_slice() else {
        return Err(error::auth("`credential_process` is empty"));
    };
    let failed = |what: String| error::auth(format!("the program `{name}`, which is to print keys, {what}"));
    let cannot = |cause: std::io::Error| failed(format!("cannot be run: {cause}")).with_source(cause);
    let mut child = Command::new(name)
        .args(rest)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(cannot)?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let reading = async { tokio::join!(all(out), all(err), child.wait()) };
    let Ok((printed, said, ended)) = tokio::time::timeout(PATIENCE, reading).await else {
        return Err(failed(format!("took more than {PATIENCE:?}")));
    };
    let ended = ended.map_err(cannot)?;
    if !ended.success() {
        let said = error::shown(String::from_utf8_lossy(&said).trim(), &[]);
        return Err(failed(format!("failed ({ended}): {said}")));
    }
    let json: Value = serde_json::from_slice(&printed)
        .map_err(|cause| failed("printed no JSON".to_owned()).with_source(cause))?;
    if json.get("Version").and_then(Value::as_u64) != Some(1) {
        return Err(failed("printed keys of another version than 1".to_owned()));
    }
    held(&printed, ["AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"])
}

/// The beginning of the output. The rest is read and dropped, so that the program does not block on a full
/// pipe.
async fn all(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let Some(mut stream) = stream else { return Vec::new() };
    let mut bytes = Vec::new();
    let _ = (&mut stream).take(MOST).read_to_end(&mut bytes).await;
    let mut rest = vec![0; 8192];
    while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
    bytes
}

/// The words of a command, as a shell splits them: quotes and backslashes, and nothing else. `None` for a
/// quote that stays open.
fn words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some('"'), '\\') => match letters.next()? {
                kept @ ('"' | '\\') => word.get_or_insert_default().push(kept),
                other => word.get_or_insert_default().extend(['\\', other]),
            },
            (None, '\\') => word.get_or_insert_default().push(letters.next()?),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, blank) if blank.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_as_a_shell_splits_them() {
        for (command, want) in [
            ("", Some(vec![])),
            ("a  b\tc", Some(vec!["a", "b", "c"])),
            (r#""a b"'c d' e"#, Some(vec!["a bc d", "e"])),
            (r#"a\ b "\"\\\n" '\n' """#, Some(vec!["a b", r#""\\n"#, r"\n", ""])),
            ("'a", None),
            ("a\\", None),
        ] {
            assert_eq!(
                words(command),
                want.map(|words| words.into_iter().map(str::to_owned).collect()),
                "{command}"
            );
        }
    }
}
