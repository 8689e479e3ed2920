//! The names of files that llm-workers caches results in, so that tools which share its cache find them.

use md5::{Digest as _, Md5};
use toolwright_expr::Value;

/// The key of a value in the cache of llm-workers: the MD5 of its leaves as text, the keys of dicts in order
/// among them. It is a checksum, not a signature: deliberate collisions are possible.
///
/// ```
/// use toolwright_expr::Value;
///
/// assert_eq!(toolwright_lang::cache_key(&Value::str("abc")), "900150983cd24fb0d6963f7d28e17f72");
/// ```
pub fn cache_key(value: &Value) -> String {
    let mut hasher = Md5::new();
    add(value, &mut hasher);
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Values are never nested deeper than the evaluator lets them be.
fn add(value: &Value, hasher: &mut Md5) {
    match value {
        Value::Dict(dict) => {
            let mut entries: Vec<_> =
                dict.entries().iter().map(|(key, value)| (key.to_string(), value.clone())).collect();
            entries.sort_by(|(left, _), (right, _)| left.cmp(right));
            for (key, value) in &entries {
                hasher.update(key);
                add(value, hasher);
            }
        }
        Value::List(list) => list.snapshot().iter().for_each(|item| add(item, hasher)),
        leaf => hasher.update(leaf.to_string()),
    }
}
