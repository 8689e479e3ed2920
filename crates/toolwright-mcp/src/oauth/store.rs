//! Where tokens are kept: a file that only its owner can read, or nowhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolwright_core::Secret;
use toolwright_util::FileAccess;

/// A token that ends within this time is renewed before it is used.
const MARGIN: Duration = Duration::from_secs(30);

/// How long another program may take to renew a token before it is not waited for any more: longer than a
/// request may.
const TURN: Duration = Duration::from_secs(35);

/// The largest file that is read.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Where tokens are kept.
#[derive(Debug, Clone)]
pub struct TokenStore {
    path: Option<Arc<Path>>,
}

/// What is kept for one server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredGrant {
    #[serde(default)]
    pub(super) issuer: Option<String>,
    #[serde(default)]
    pub(super) resource: Option<String>,
    #[serde(default)]
    pub(super) token_endpoint: Option<String>,
    #[serde(default)]
    pub(super) asked_scopes: Vec<String>,
    #[serde(default)]
    pub(super) registration: Option<Registration>,
    /// Whether the last page that was shown under that name sent nobody back.
    #[serde(default)]
    pub(super) suspect: bool,
    #[serde(default)]
    pub(super) tokens: Option<Tokens>,
}

/// What an authorization server knows the client by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Registration {
    pub(super) issuer: String,
    pub(super) client_id: String,
    #[serde(default, with = "maybe_secret")]
    pub(super) client_secret: Option<Secret>,
    #[serde(default)]
    pub(super) method: Option<String>,
    pub(super) redirect_uri: String,
    /// What it said it would ask for; some servers allow nothing else.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
}

/// The tokens for one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Tokens {
    #[serde(with = "secret")]
    pub(super) access: Secret,
    #[serde(default, with = "maybe_secret")]
    pub(super) refresh: Option<Secret>,
    /// When the access token ends, in seconds since 1970.
    #[serde(default)]
    until: Option<u64>,
}

impl Tokens {
    pub(super) fn new(access: String, refresh: Option<String>, seconds: Option<f64>) -> Self {
        let until = seconds.filter(|seconds| (0.0..1e10).contains(seconds)).map(|seconds| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1e10")]
            let seconds = seconds as u64;
            now() + seconds
        });
        Tokens { access: Secret::new(access), refresh: refresh.map(Secret::new), until }
    }

    /// True when the token is about to expire and can be renewed.
    pub(super) fn is_stale(&self) -> bool {
        self.refresh.is_some() && self.until.is_some_and(|until| until < now() + MARGIN.as_secs())
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl TokenStore {
    /// Keeps tokens for as long as the program runs.
    pub fn in_memory() -> Self {
        TokenStore { path: None }
    }

    /// Keeps tokens in this file, which is made readable for its owner only.
    pub fn in_file(path: impl Into<PathBuf>) -> Self {
        TokenStore { path: Some(path.into().into()) }
    }

    fn all(path: &Path) -> Result<BTreeMap<String, StoredGrant>, String> {
        let about = match std::fs::metadata(path) {
            Ok(about) => about,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(format!("cannot read `{}`: {error}", path.display())),
        };
        if about.len() > MAX_FILE {
            return Err(format!("`{}` is too large", path.display()));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            if about.permissions().mode() & 0o077 != 0 {
                let path = path.display();
                return Err(format!("others can read `{path}`, which holds tokens; run `chmod 600 {path}`"));
            }
        }
        let text =
            std::fs::read(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
        serde_json::from_slice(&text)
            .map_err(|error| format!("`{}` is not a token store: {error}", path.display()))
    }

    pub(super) fn load(&self, server: &str) -> Result<Option<StoredGrant>, String> {
        let Some(path) = &self.path else { return Ok(None) };
        Ok(Self::all(path)?.remove(server))
    }

    /// Keeps what belongs to a server.
    pub(super) fn save(&self, server: &str, kept: &StoredGrant) -> Result<(), String> {
        self.rewrite(|all| {
            all.insert(server.to_owned(), kept.clone());
        })
    }

    /// Changes what is kept of a server, if anything is.
    pub(super) fn change(&self, server: &str, change: impl FnOnce(&mut StoredGrant)) -> Result<(), String> {
        self.rewrite(|all| {
            if let Some(kept) = all.get_mut(server) {
                change(kept);
            }
        })
    }

    /// Replaces the file whole.
    fn rewrite(&self, change: impl FnOnce(&mut BTreeMap<String, StoredGrant>)) -> Result<(), String> {
        let Some(path) = &self.path else { return Ok(()) };
        let unwritable = |error: std::io::Error| format!("cannot write `{}`: {error}", path.display());
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(unwritable)?;
        }
        // Others keep tokens here too: what was read is what is changed.
        let _turn = Self::turn(path).map_err(unwritable)?;
        let mut all = Self::all(path)?;
        change(&mut all);
        let text = serde_json::to_vec_pretty(&all).map_err(|error| error.to_string())?;
        toolwright_util::replace(path, &text, FileAccess::Owner).map_err(unwritable)
    }

    /// A lock that is held by one writer of the file at a time.
    fn turn(path: &Path) -> std::io::Result<std::fs::File> {
        let file = Self::private().create(true).truncate(false).open(path.with_extension("lock"))?;
        file.lock()?;
        Ok(file)
    }

    /// A turn at renewing the tokens of a server, until it is dropped: programs that share the file do so one
    /// after the other. `None` where there is nothing to share, or the turn does not come. The file itself
    /// stays free meanwhile.
    pub(super) async fn renewing(&self, server: &str) -> Option<std::fs::File> {
        let path = self.path.as_ref()?;
        let hash = Sha256::digest(server.as_bytes());
        let name: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let path = path.with_extension(format!("{name}.lock"));
        let file = Self::private().create(true).truncate(false).open(path).ok()?;
        let since = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Some(file),
                Err(std::fs::TryLockError::WouldBlock) if since.elapsed() < TURN => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(_) => return None,
            }
        }
    }

    /// Opens for writing what nobody else may read.
    fn private() -> std::fs::OpenOptions {
        let mut options = std::fs::OpenOptions::new();
        options.write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options
    }
}

mod secret {
    use serde::{Deserialize as _, Deserializer, Serializer};
    use toolwright_core::Secret;

    pub(super) fn serialize<S: Serializer>(secret: &Secret, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(secret.expose())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Secret, D::Error> {
        Ok(Secret::new(String::deserialize(from)?))
    }
}

mod maybe_secret {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use toolwright_core::Secret;

    pub(super) fn serialize<S: Serializer>(secret: &Option<Secret>, to: S) -> Result<S::Ok, S::Error> {
        secret.as_ref().map(Secret::expose).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Secret>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(Secret::new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_from_a_file_that_only_the_owner_can_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/tokens.json");
        let store = TokenStore::in_file(&path);
        assert_eq!(store.load("https://a"), Ok(None));
        let tokens = Tokens::new("secret".into(), Some("more".into()), Some(3600.0));
        let kept = StoredGrant { tokens: Some(tokens), ..StoredGrant::default() };
        store.save("https://a", &kept).unwrap();
        store.save("https://b", &StoredGrant::default()).unwrap();
        assert_eq!(store.load("https://a"), Ok(Some(kept)));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
            assert!(store.load("https://a").unwrap_err().contains("chmod 600"));
        }
    }

    #[test]
    fn tokens_of_many_servers_are_kept_at_the_same_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        let threads = (0..4).map(|thread| {
            let store = TokenStore::in_file(&path);
            std::thread::spawn(move || {
                for server in 0..10 {
                    store.save(&format!("https://{thread}/{server}"), &StoredGrant::default()).unwrap();
                }
            })
        });
        threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(TokenStore::all(&path).unwrap().len(), 40);
        let names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "the store and its lock: {names:?}");
    }

    #[test]
    fn a_token_is_stale_when_it_ends_soon_and_can_be_renewed() {
        assert!(!Tokens::new("a".into(), Some("r".into()), Some(3600.0)).is_stale());
        assert!(Tokens::new("a".into(), Some("r".into()), Some(5.0)).is_stale());
        assert!(!Tokens::new("a".into(), None, Some(5.0)).is_stale());
        assert!(!Tokens::new("a".into(), Some("r".into()), Some(f64::NAN)).is_stale());
    }
}
