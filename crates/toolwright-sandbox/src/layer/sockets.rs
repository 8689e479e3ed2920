//! Sockets of the host in the folders that are shown. A command could talk to what listens there, and a read-only mount
//! does not stop it; so they are masked, unless the policy names the socket itself.

use std::fs;
use std::path::{Path, PathBuf};

/// The most sockets that are looked at.
const MOST: usize = 1000;

/// The sockets below these paths that are bound now. One that is bound later is not known here.
pub(crate) fn of_the_host(shown: &[&Path]) -> Vec<PathBuf> {
    if shown.is_empty() {
        return Vec::new();
    }
    listed(&fs::read_to_string("/proc/self/net/unix").unwrap_or_default(), shown)
}

/// The path is all that follows the seventh field, and is missing where there is none.
fn listed(table: &str, shown: &[&Path]) -> Vec<PathBuf> {
    let path = |line: &str| {
        let mut rest = line;
        for _ in 0..7 {
            rest = rest.trim_start_matches(' ').split_once(' ')?.1;
        }
        rest.starts_with('/').then(|| PathBuf::from(rest))
    };
    let below = |path: &Path| shown.iter().any(|one| path.starts_with(one) && path != *one);
    let named = |path: &Path| shown.contains(&path);
    let mut found: Vec<PathBuf> =
        table.lines().skip(1).filter_map(path).filter(|path| below(path) && !named(path)).collect();
    found.sort();
    found.dedup();
    found.truncate(MOST);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_shown_folders_are_found_whatever_their_name() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                     ffff: 00000002 00000000 00010000 0001 01 123 /srv/app/a socket\n\
                     ffff: 00000002 00000000 00010000 0001 01    24 /srv/app/a socket\n\
                     ffff: 00000003 00000000 00000000 0001 03 25\n\
                     ffff: 00000002 00000000 00010000 0001 01 26 @/srv/app/abstract\n\
                     ffff: 00000002 00000000 00010000 0001 01 27 /srv/application/b\n\
                     ffff: 00000002 00000000 00010000 0001 01 28 /srv/app/named\n";
        let found = listed(table, &[Path::new("/srv/app"), Path::new("/srv/app/named")]);
        assert_eq!(found, [PathBuf::from("/srv/app/a socket")]);
    }
}
