//! Files that are replaced whole.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use crate::random::random_name;

/// Makes a file with these options, under a name nobody can guess, and puts it in the place of another. A
/// link that stands there is replaced, never followed.
pub(crate) fn replace(path: &Path, bytes: &[u8], options: &mut OpenOptions) -> std::io::Result<()> {
    let beside = path.with_file_name(format!(".toolwright-{}.tmp", random_name()));
    let mut file = options.write(true).create_new(true).open(&beside)?;
    let replaced =
        file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| std::fs::rename(&beside, path));
    if replaced.is_err() {
        // Half a file may hold tokens too.
        let _ = std::fs::remove_file(&beside);
    }
    replaced
}
