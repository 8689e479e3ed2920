//! Sources of temporary credentials, and the cache that holds them until they expire.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use reqwest::{Method, Url};
use serde_json::Value;
use toolwright_core::{ModelError, Secret};
use toolwright_net::Proxies;
use toolwright_util::lock;

use super::ask::{self, CredentialRequest};
use super::profile::Keys;
use super::sigv4::Credentials;
use super::{program, sign_on, sts};
use crate::error;

/// Where temporary credentials come from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum CredentialSource {
    /// A program prints them: this command, as a shell splits it into words.
    Process(String),
    /// A role assumed with other keys.
    Role {
        /// The role.
        role: AssumedRole,
        /// The other keys.
        keys: Keys,
    },
    /// A role assumed with the web identity token in a file.
    WebIdentity {
        /// The role.
        role: AssumedRole,
        /// The file, which is read each time.
        token_file: PathBuf,
    },
    /// Single sign-on.
    SignOn(SignOn),
    /// The service beside a container.
    Container(Container),
    /// The service of a machine of Amazon's.
    Machine(Machine),
}

/// A role to assume.
#[derive(Debug, Clone)]
pub struct AssumedRole {
    /// Its name.
    pub arn: String,
    /// The session name.
    pub session: Option<String>,
    /// The external id that the owner of the role requires.
    pub external_id: Option<String>,
    /// For how long.
    pub seconds: Option<String>,
    /// The region of the service that is asked.
    pub region: String,
    /// Its address.
    pub address: String,
}

/// Single sign-on, after `aws sso login`.
#[derive(Debug, Clone)]
pub struct SignOn {
    /// The profile that configures it.
    pub profile: String,
    /// Where people sign on; tokens are known by it.
    pub start: String,
    /// The account.
    pub account: String,
    /// The role in it.
    pub role: String,
    /// The folder with the tokens.
    pub tokens: PathBuf,
    /// Where credentials are requested.
    pub portal: String,
    /// Where tokens are renewed.
    pub renewal: String,
}

/// The service beside a container.
#[derive(Debug, Clone)]
pub struct Container {
    /// Its address.
    pub address: String,
    /// What it wants to hear.
    pub token: Option<Secret>,
    /// The same in a file, which comes first and is read each time.
    pub token_file: Option<PathBuf>,
}

/// The service of a machine of Amazon's.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its address.
    pub address: String,
}

/// Keys, and until when they hold.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) credentials: Credentials,
    pub(crate) until: Option<SystemTime>,
}

/// How long before their end keys are fetched anew.
const AHEAD: Duration = Duration::from_secs(300);

/// Pause before the next renewal after one failed, while the current keys are still valid.
const PAUSE: Duration = Duration::from_secs(30);

/// How often a service beside the program, or the machine's own, is asked.
const TRIES: u32 = 3;

/// Has keys, and fetches others before they end.
#[derive(Debug)]
pub(crate) struct CredentialCache {
    keys: Keys,
    proxies: Proxies,
    held: tokio::sync::Mutex<()>,
    last: std::sync::Mutex<Option<Arc<Held>>>,
    /// When keys could not be fetched, last.
    failed: std::sync::Mutex<Option<Instant>>,
}

impl CredentialCache {
    pub(crate) fn new(keys: Keys, proxies: Proxies) -> Self {
        let (last, failed) = (std::sync::Mutex::new(None), std::sync::Mutex::new(None));
        CredentialCache { keys, proxies, held: tokio::sync::Mutex::new(()), last, failed }
    }

    /// The current keys. Concurrent callers share one request.
    pub(crate) async fn get(&self) -> Result<Credentials, ModelError> {
        let Keys::Fetched(source) = &self.keys else {
            return of(&self.keys, &self.proxies).await.map(|held| held.credentials);
        };
        if let Some(held) = self.last(AHEAD) {
            return Ok(held.credentials.clone());
        }
        let _one = self.held.lock().await;
        if let Some(held) = self.last(AHEAD) {
            return Ok(held.credentials.clone());
        }
        let Some(old) = self.last(Duration::ZERO) else {
            return source.fetch(&self.proxies).await.map(|held| self.keep(held));
        };
        // What is held still does for a while: it is not outlived by waiting for others, nor does each
        // request wait anew.
        if lock(&self.failed).is_some_and(|failed| failed.elapsed() < PAUSE) {
            return Ok(old.credentials.clone());
        }
        let left = old.until.and_then(|until| until.duration_since(SystemTime::now()).ok());
        match tokio::time::timeout(left.unwrap_or_default() / 2, source.fetch(&self.proxies)).await {
            Ok(Ok(held)) => Ok(self.keep(held)),
            Ok(Err(_)) | Err(_) => {
                *lock(&self.failed) = Some(Instant::now());
                Ok(old.credentials.clone())
            }
        }
    }

    fn keep(&self, held: Held) -> Credentials {
        let credentials = held.credentials.clone();
        *lock(&self.last) = Some(Arc::new(held));
        credentials
    }

    /// What must not be seen of the keys.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let held = self.last(Duration::ZERO);
        let credentials = match &self.keys {
            Keys::Given(given) => Some(given),
            _ => held.as_ref().map(|held| &held.credentials),
        };
        let secrets =
            credentials.map(|keys| std::iter::once(&keys.secret_key).chain(&keys.session_token).cloned());
        secrets.into_iter().flatten().collect()
    }

    /// The keys that were fetched last, if they hold for that long.
    fn last(&self, ahead: Duration) -> Option<Arc<Held>> {
        let then = SystemTime::now() + ahead;
        lock(&self.last).clone().filter(|held| held.until.is_none_or(|until| until > then))
    }
}

/// The keys, whether they are here or have to be fetched.
pub(super) async fn of(keys: &Keys, proxies: &Proxies) -> Result<Held, ModelError> {
    match keys {
        Keys::Given(credentials) => Ok(Held { credentials: credentials.clone(), until: None }),
        Keys::Fetched(source) => Box::pin(source.fetch(proxies)).await,
        _ => Err(error::auth("there are no keys")),
    }
}

impl CredentialSource {
    async fn fetch(&self, proxies: &Proxies) -> Result<Held, ModelError> {
        match self {
            CredentialSource::Process(command) => program::run(command).await,
            CredentialSource::Role { role, keys } => {
                sts::with_keys(role, &of(keys, proxies).await?.credentials, proxies).await
            }
            CredentialSource::WebIdentity { role, token_file } => {
                sts::with_token(role, token_file, proxies).await
            }
            CredentialSource::SignOn(sign_on) => sign_on::keys(sign_on, proxies).await,
            CredentialSource::Container(container) => container.keys().await,
            CredentialSource::Machine(machine) => machine.keys().await,
        }
    }
}

impl Container {
    /// Whether an address may be sent the token: with TLS, on this machine, or one of those that Amazon gives
    /// to the service.
    pub(super) fn may_be_asked(address: &str) -> bool {
        const SERVICES: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];
        let Ok(url) = Url::parse(address) else { return false };
        let host = url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let here = host == "localhost"
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        url.scheme() == "https" || (url.scheme() == "http" && (here || SERVICES.contains(&host)))
    }

    async fn keys(&self) -> Result<Held, ModelError> {
        let token = match &self.token_file {
            Some(file) => Some(Secret::new(in_file(file)?)),
            None => self.token.clone(),
        };
        let headers: Vec<_> = token.into_iter().map(|token| ("authorization", token)).collect();
        let asked = CredentialRequest {
            method: Method::GET,
            address: &self.address,
            headers: &headers,
            body: String::new(),
        };
        let body = ask::near(&asked, TRIES).await?;
        held(&body, ["AccessKeyId", "SecretAccessKey", "Token", "Expiration"])
    }
}

impl Machine {
    /// Whether this is a machine of Amazon's, as its firmware says.
    pub(super) fn is_amazons() -> bool {
        let says = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
        says("/sys/class/dmi/id/sys_vendor").trim() == "Amazon EC2"
            || says("/sys/hypervisor/uuid").to_ascii_lowercase().starts_with("ec2")
    }

    async fn keys(&self) -> Result<Held, ModelError> {
        let lasts = [("x-aws-ec2-metadata-token-ttl-seconds", Secret::new("21600"))];
        let address = format!("{}/latest/api/token", self.address);
        let asked = CredentialRequest {
            method: Method::PUT,
            address: &address,
            headers: &lasts,
            body: String::new(),
        };
        let token = ask::near(&asked, 1).await?;
        let token = [("x-aws-ec2-metadata-token", Secret::new(String::from_utf8_lossy(&token).trim()))];
        let get = async |path: &str| {
            let address = format!("{}/latest/meta-data/iam/security-credentials/{path}", self.address);
            ask::near(
                &CredentialRequest {
                    method: Method::GET,
                    address: &address,
                    headers: &token,
                    body: String::new(),
                },
                TRIES,
            )
            .await
        };
        let roles = get("").await.map_err(|cause| match cause.kind() {
            toolwright_core::ModelErrorKind::Auth => {
                error::auth("this machine has no role").with_source(cause)
            }
            _ => cause,
        })?;
        let roles = String::from_utf8_lossy(&roles).into_owned();
        let role = roles.lines().next().unwrap_or_default().trim();
        held(&get(role).await?, ["AccessKeyId", "SecretAccessKey", "Token", "Expiration"])
    }
}

/// The text of a file with a token.
pub(super) fn in_file(file: &Path) -> Result<String, ModelError> {
    let cannot = |cause: std::io::Error| {
        error::auth(format!("cannot read the token in `{}`: {cause}", file.display())).with_source(cause)
    };
    Ok(std::fs::read_to_string(file).map_err(cannot)?.trim().to_owned())
}

/// Keys in a JSON object: their id, the key, the token, and until when they hold.
pub(super) fn held(json: &[u8], [id, key, token, until]: [&str; 4]) -> Result<Held, ModelError> {
    let json: Value = serde_json::from_slice(json).unwrap_or_default();
    let text = |name: &str| json.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let lacking = |name: &str| error::auth(format!("the keys that were fetched have no `{name}`"));
    let until = match (text(until), json.get(until).and_then(Value::as_u64)) {
        (Some(said), _) => Some(moment(said).ok_or_else(|| {
            error::auth(format!("the keys that were fetched expire at {said:?}, which is not a time"))
        })?),
        (None, Some(millis)) => SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis)),
        (None, None) => None,
    };
    let credentials = Credentials {
        access_key: text(id).ok_or_else(|| lacking(id))?.to_owned(),
        secret_key: Secret::new(text(key).ok_or_else(|| lacking(key))?),
        session_token: text(token).map(Secret::new),
    };
    Ok(Held { credentials, until })
}

/// A time such as `2026-01-02T03:04:05Z`, also with parts of a second, or an offset.
pub(super) fn moment(text: &str) -> Option<SystemTime> {
    let (date, clock) = text.trim().split_once('T')?;
    let number = |part: &str| (part.len() == 2).then(|| part.parse::<u8>().ok().map(i64::from))?;
    let mut date = date.split('-');
    let year = date.next().filter(|year| year.len() == 4)?.parse::<u16>().ok()?;
    let (month, day) = (number(date.next()?)?, number(date.next()?)?);
    let end =
        clock.find(|letter: char| !letter.is_ascii_digit() && !":.".contains(letter)).unwrap_or(clock.len());
    let (clock, zone) = clock.split_at(end);
    let mut clock = clock.split('.').next()?.split(':');
    let (hour, minute, second) = (number(clock.next()?)?, number(clock.next()?)?, number(clock.next()?)?);
    let ahead = match zone {
        "" | "Z" | "z" | "UTC" => 0,
        _ => {
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let ahead = number(hours)? * 3600 + number(minutes)? * 60;
            match zone.get(..1)? {
                "+" => ahead,
                "-" => -ahead,
                _ => return None,
            }
        }
    };
    let moment = toolwright_core::time::Civil { year: year.into(), month, day, hour, minute, second };
    let seconds = u64::try_from(moment.seconds() - ahead).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_as_amazon_writes_them() {
        let seconds =
            |text: &str| Some(moment(text)?.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
        for text in [
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.678Z",
            "2026-01-02T03:04:05UTC",
            "2026-01-02T03:04:05",
            "2026-01-02T05:04:05+02:00",
            "2026-01-01T21:34:05-05:30",
        ] {
            assert_eq!(seconds(text), Some(1_767_323_045), "{text}");
        }
        for text in [
            "",
            "T",
            "2026-01-02",
            "2026-1-2T03:04:05Z",
            "2026-01-02T03:04Z",
            "2026-01-02T03:04:05 soon",
            "é-é-éT",
            "2026-01-02T03:04:05é1:00",
        ] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn only_services_of_amazon_and_of_this_machine_are_asked_without_tls() {
        for (address, may) in [
            ("https://keys.example/x", true),
            ("http://localhost:1/x", true),
            ("http://127.0.0.1/x", true),
            ("http://169.254.170.23/v1/credentials", true),
            ("http://[fd00:ec2::23]/v1/credentials", true),
            ("http://keys.example/x", false),
            ("http://169.254.169.254/x", false),
            ("file:///x", false),
            ("x", false),
        ] {
            assert_eq!(Container::may_be_asked(address), may, "{address}");
        }
    }
}
