//! The file that was meant, when the one that was named is not there.
//!
//! The names come from a listing inside the sandbox, so it reveals nothing that a command could not have
//! seen.

use toolwright_core::{ErrorKind, ToolError, nearest_word};

use crate::options::Call;
use crate::{paths, walk};

/// The deepest folder of a path that is there, the name that is missing in it, and the names it has: the
/// first two thousand.
const LIST: &str = r#"
d=$(dirname -- "$1"); n=$(basename -- "$1")
while [ ! -d "$d" ] && [ "$d" != / ] && [ "$d" != . ]; do n=$(basename -- "$d"); d=$(dirname -- "$d"); done
printf '%s\0%s\0' "$d" "$n"
case $d in [/.]*) ;; *) d=./$d ;; esac
find -H "$d" -mindepth 1 -maxdepth 1 -printf "$2" 2>/dev/null | head -z -n 2000
"#;

/// The same error; when it says that nothing is at the path and something of a like name is there, with a
/// hint.
pub(crate) async fn with_hint(call: &Call<'_>, path: &str, error: ToolError) -> ToolError {
    if error.kind() != ErrorKind::FileNotFound || error.hint_text().is_some() {
        return error;
    }
    let Ok(listed) = call.helper(&["sh", "-c", LIST, "sh", path, walk::BELOW]).await else { return error };
    let mut lines = listed.stdout.split('\0');
    let (Some(folder), Some(missing)) = (lines.next(), lines.next()) else { return error };
    let names: Vec<String> = lines.filter_map(walk::read).map(|item| item.path).collect();
    match nearest_word(missing, names.iter().map(String::as_str)) {
        Some(name) => error.hint(format!("did you mean {}?", paths::join(folder, name))),
        None => error,
    }
}
