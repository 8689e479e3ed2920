//! Sockets of the host in the folders that are shown. A command could talk to what listens there, and a
//! read-only mount does not stop it; so they are masked, unless the policy names the socket itself.
//!
//! The kernel lists bound sockets by the names they were bound under, and tells the file system and the inode
//! of each. A name that was relative, or that leads to something else now because the socket was moved, does
//! not say where the socket is: then the folders are searched, if they are of that file system. Commands
//! could have moved it, and could make the search long; so one that finds no end is an error.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::mounts::Mounts;
use crate::sys::diag::{self, Local};

/// The most sockets that a search may find; every one of them costs a mount.
const MOST: usize = 5000;
/// The most entries of folders that are looked at in a search.
const MOST_ENTRIES: usize = 1_000_000;

/// The sockets below these paths that are bound now. One that is bound later is not known here. What is
/// `masked` is not searched. The error says what cannot be found and what to do.
pub(crate) fn of_the_host(
    shown: &[&Path],
    masked: &[PathBuf],
    mounts: &Mounts,
) -> Result<Vec<PathBuf>, String> {
    if shown.is_empty() {
        return Ok(Vec::new());
    }
    let (mut found, mut unknown) = match diag::local_sockets() {
        Ok(sockets) => {
            let devices = mounts.devices(shown);
            placed(sockets.iter().filter(|socket| devices.contains(&socket.device)))
        }
        // A kernel that has no such list has a shorter one.
        Err(_) => listed(&fs::read("/proc/self/net/unix").unwrap_or_default()),
    };
    if let Some(name) = unknown.take() {
        search(shown, masked, &mut found).map_err(|too_many| {
            format!(
                "a program of the host has a socket (`{}`) that may be in a folder that is shown, and it cannot be found \
                 among more than {too_many}: end that program, remove what is not needed, or name folders in `mask`, \
                 which are not searched",
                name.escape_debug()
            )
        })?;
    }
    let below = |path: &PathBuf| shown.iter().any(|one| path.starts_with(one) && path != one);
    let named = |path: &PathBuf| shown.contains(&path.as_path());
    Ok(found.into_iter().filter(|path| below(path) && !named(path)).collect())
}

/// Where sockets are, and the name of one that is somewhere else than its name says.
type Placed = (BTreeSet<PathBuf>, Option<String>);

fn placed<'a>(sockets: impl Iterator<Item = &'a Local>) -> Placed {
    let (mut found, mut unknown) = (BTreeSet::new(), None);
    for socket in sockets {
        // Under a second name it is reached as well.
        let own = |about: &fs::Metadata| about.ino() as u32 == socket.inode && about.nlink() == 1;
        match place_of(&socket.name, own) {
            SocketLocation::Known(path) => drop(found.insert(path)),
            SocketLocation::OutOfReach => {}
            SocketLocation::Unknown if socket.connected => {}
            SocketLocation::Unknown => unknown = Some(String::from_utf8_lossy(&socket.name).into_owned()),
        }
    }
    (found, unknown)
}

/// From the list in `/proc`: the name is all that follows the seventh field, and is missing where there is
/// none. One that begins with `@` may be abstract, or a file of that name in some folder.
fn listed(table: &[u8]) -> Placed {
    fn socket(line: &[u8]) -> Option<(&[u8], bool)> {
        let (mut rest, mut state): (&[u8], &[u8]) = (line, &[]);
        for at in 1..=7 {
            rest = rest.trim_ascii_start();
            let end = rest.iter().position(|byte| *byte == b' ')?;
            state = if at == 6 { rest.get(..end)? } else { state };
            rest = rest.get(end + 1..)?;
        }
        Some((rest, state == b"03"))
    }
    let (mut found, mut unknown) = (BTreeSet::new(), None);
    if table.is_empty() {
        unknown = Some("no list of sockets can be read".to_owned());
    }
    for (name, connected) in table.split(|byte| *byte == b'\n').skip(1).filter_map(socket) {
        match place_of(name, |about| about.nlink() == 1) {
            SocketLocation::Known(path) => drop(found.insert(path)),
            SocketLocation::OutOfReach => {}
            SocketLocation::Unknown if connected => {}
            SocketLocation::Unknown => unknown = Some(String::from_utf8_lossy(name).into_owned()),
        }
    }
    (found, unknown)
}

/// Where a socket of the host is.
enum SocketLocation {
    Known(PathBuf),
    /// In a folder that this user cannot look into, and so cannot show.
    OutOfReach,
    Unknown,
}

fn place_of(name: &[u8], is_it: impl Fn(&fs::Metadata) -> bool) -> SocketLocation {
    let name = Path::new(OsStr::from_bytes(name));
    if name.is_relative() {
        return SocketLocation::Unknown;
    }
    match fs::canonicalize(name) {
        Ok(path)
            if fs::symlink_metadata(&path)
                .is_ok_and(|about| about.file_type().is_socket() && is_it(&about)) =>
        {
            SocketLocation::Known(path)
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => SocketLocation::OutOfReach,
        _ => SocketLocation::Unknown,
    }
}

/// Looks for sockets, following no link. The error says of what there are too many.
fn search(shown: &[&Path], masked: &[PathBuf], found: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    let mut folders: VecDeque<PathBuf> = shown.iter().map(|path| path.to_path_buf()).collect();
    let (mut entries_left, mut sockets_left) = (MOST_ENTRIES, MOST);
    while let Some(folder) = folders.pop_front() {
        // What this user cannot look into cannot be shown.
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            entries_left = entries_left.checked_sub(1).ok_or(format!("{MOST_ENTRIES} files"))?;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_socket() {
                sockets_left = sockets_left.checked_sub(1).ok_or(format!("{MOST} sockets"))?;
                found.insert(entry.path());
            } else if kind.is_dir() && !masked.contains(&entry.path()) {
                folders.push_back(entry.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_whatever_they_hold() {
        let path = std::env::temp_dir().join(format!("toolwright a socket {:x}", crate::sys::random_u64()));
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let head = "Num       RefCount Protocol Flags    Type St Inode Path\n";
        let line =
            |state: &str, name: &str| format!("ffff: 00000002 00000000 00010000 0001 {state}    24{name}\n");
        let known = line("01", &format!(" {}", path.display()));
        let found = listed(format!("{head}{known}{}{}", line("03", ""), line("03", " relative")).as_bytes());
        assert_eq!(found, (BTreeSet::from([path.canonicalize().unwrap()]), None));
        for name in ["relative", "@may-be-abstract", "/toolwright/is/gone"] {
            let (_, unknown) = listed(format!("{head}{known}{}", line("01", &format!(" {name}"))).as_bytes());
            assert_eq!(unknown.as_deref(), Some(name));
        }
        assert!(listed(b"").1.is_some());
        std::fs::remove_file(path).unwrap();
    }
}
