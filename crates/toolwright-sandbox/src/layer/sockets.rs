//! Sockets of the host in the folders that are shown. A command could talk to what listens there, and a read-only mount
//! does not stop it; so they are masked, unless the policy names the socket itself.
//!
//! The kernel lists bound sockets by the names they were bound under. A name that was relative, or that leads nowhere any
//! more because its socket was moved, does not say where the socket is: then the folders are searched.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The most sockets that are masked.
const MOST: usize = 1000;
/// The most entries of folders that are looked at in a search, outer folders first.
const MOST_ENTRIES: usize = 20_000;

/// The sockets below these paths that are bound now. One that is bound later is not known here. What is `masked` is not
/// searched.
pub(crate) fn of_the_host(shown: &[&Path], masked: &[PathBuf]) -> Vec<PathBuf> {
    if shown.is_empty() {
        return Vec::new();
    }
    let table = fs::read("/proc/self/net/unix").unwrap_or_default();
    let table = String::from_utf8_lossy(&table);
    let mut found = BTreeSet::new();
    let mut unknown = false;
    for socket in bound(&table) {
        match place_of(Path::new(socket.name)) {
            Place::Known(path) => drop(found.insert(path)),
            Place::OutOfReach => {}
            Place::Unknown => unknown |= !socket.connected,
        }
    }
    if unknown {
        search(shown, masked, &mut found);
    }
    let below = |path: &PathBuf| shown.iter().any(|one| path.starts_with(one) && path != one);
    let named = |path: &PathBuf| shown.contains(&path.as_path());
    found.into_iter().filter(|path| below(path) && !named(path)).take(MOST).collect()
}

/// A socket in the kernel's list.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Bound<'a> {
    name: &'a str,
    /// Nobody else can connect to it: it is what a listening socket, whose name it carries, has accepted.
    connected: bool,
}

/// The name is all that follows the seventh field, and is missing where there is none; that of an abstract socket begins
/// with `@`.
fn bound(table: &str) -> BTreeSet<Bound<'_>> {
    fn socket(line: &str) -> Option<Bound<'_>> {
        let (mut rest, mut state) = (line, "");
        for at in 1..=7 {
            let (field, more) = rest.trim_start_matches(' ').split_once(' ')?;
            state = if at == 6 { field } else { state };
            rest = more;
        }
        (!rest.starts_with('@')).then_some(Bound { name: rest, connected: state == "03" })
    }
    table.lines().skip(1).filter_map(socket).collect()
}

enum Place {
    Known(PathBuf),
    /// In a folder that this user cannot look into, and so cannot show.
    OutOfReach,
    Unknown,
}

fn place_of(name: &Path) -> Place {
    if name.is_relative() {
        return Place::Unknown;
    }
    match fs::canonicalize(name) {
        Ok(path) if fs::metadata(&path).is_ok_and(|about| about.file_type().is_socket()) => {
            Place::Known(path)
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Place::OutOfReach,
        _ => Place::Unknown,
    }
}

/// Looks for sockets, following no link.
fn search(shown: &[&Path], masked: &[PathBuf], found: &mut BTreeSet<PathBuf>) {
    let mut folders: VecDeque<PathBuf> = shown.iter().map(|path| path.to_path_buf()).collect();
    let mut left = MOST_ENTRIES;
    while let Some(folder) = folders.pop_front() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            if left == 0 {
                return;
            }
            left -= 1;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_socket() {
                found.insert(entry.path());
            } else if kind.is_dir() && !masked.contains(&entry.path()) {
                folders.push_back(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_whatever_they_hold() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                     ffff: 00000002 00000000 00010000 0001 01 123 /srv/app/a socket\n\
                     ffff: 00000002 00000000 00010000 0001 01    24 /srv/app/a socket\n\
                     ffff: 00000003 00000000 00000000 0001 03 25\n\
                     ffff: 00000003 00000000 00000000 0001 03 25 /srv/app/b\n\
                     ffff: 00000002 00000000 00010000 0001 01 26 @/srv/app/abstract\n\
                     ffff: 00000002 00000000 00010000 0001 01 27 relative\n";
        let found: Vec<_> = bound(table).into_iter().map(|one| (one.name, one.connected)).collect();
        assert_eq!(found, [("/srv/app/a socket", false), ("/srv/app/b", true), ("relative", false)]);
    }
}
