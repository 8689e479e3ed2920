//! What the lock beside a found file says about the tools of its servers.

use std::collections::BTreeSet;
use std::path::Path;

use toolwright::file::{Authority, AuthorityKind};
use toolwright::mcp::{LockFile, inspect_definition};

/// How many bytes of a lock are read before trust.
const MAX_LOCK: u64 = 1 << 20;

/// Adds what a person should read of the definitions in the lock. A link is not followed, and what cannot be
/// read is an item too.
pub fn add_findings(lock: &Path, authority: &mut Authority) {
    let Ok(found) = std::fs::symlink_metadata(lock) else { return };
    let name = lock.display();
    if !found.is_file() || found.len() > MAX_LOCK {
        authority.add(AuthorityKind::Other, &format!("{name} is not read: it is a link, or too large"));
        return;
    }
    let Ok(file) = LockFile::load(lock) else {
        authority.add(AuthorityKind::Other, &format!("{name} cannot be read"));
        return;
    };
    for (server, locked) in &file.servers {
        let others = file.servers.iter().filter(|(other, _)| *other != server);
        let others: BTreeSet<String> = others.flat_map(|(_, other)| other.tools.keys().cloned()).collect();
        let others = others.into_iter().filter(|tool| !locked.tools.contains_key(tool)).collect();
        for (tool, definition) in &locked.tools {
            for finding in inspect_definition(&definition.definition, &others) {
                let text = format!("{name}: `{tool}` of the server `{server}` has {finding}");
                authority.add(AuthorityKind::Other, &text);
            }
        }
    }
}
