//! Which files that appeared are files that disappeared: a move keeps the size and the time of the last
//! change.

use std::collections::HashMap;

use crate::journal::{CommitStep, StepAction};

/// The step that removed the file, for each step that put it elsewhere. Only pairs without another candidate
/// count.
pub(crate) fn pairs<'s>(steps: impl Iterator<Item = (usize, &'s CommitStep)>) -> HashMap<usize, usize> {
    type Key = (u64, i64);
    let mut removed: HashMap<Key, Vec<usize>> = HashMap::new();
    let mut added: HashMap<Key, Vec<usize>> = HashMap::new();
    for (number, step) in steps {
        match (&step.action, &step.before) {
            (StepAction::Remove, Some(before)) if before.is_file() && before.size > 0 => {
                removed.entry((before.size, before.modified)).or_default().push(number);
            }
            (StepAction::PutFile { size, modified, .. }, None) if *size > 0 => {
                added.entry((*size, *modified)).or_default().push(number);
            }
            _ => {}
        }
    }
    let pair = |(key, to): (Key, Vec<usize>)| match (to.as_slice(), removed.get(&key).map(Vec::as_slice)) {
        ([to], Some([from])) => Some((*to, *from)),
        _ => None,
    };
    added.into_iter().filter_map(pair).collect()
}
