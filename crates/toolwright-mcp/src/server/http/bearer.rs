//! Tokens of an authorization server: the server as an OAuth resource server (RFC 9728, RFC 9068).
//!
//! A token is believed when the authorization server signed it, it has not ended, and it was made for this
//! server: one that was made for another server is refused, so that nobody can pass on what they were given.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use serde_json::{Value, json};
use toolwright_net::reqwest::{self, Url};
use toolwright_net::{Dial, Proxies, Reach};

use toolwright_util::lock;

/// How long keys are believed before they are asked for again.
const KEYS_LIFETIME: Duration = Duration::from_secs(600);

/// How often an unknown key makes us ask again.
const KEYS_PAUSE: Duration = Duration::from_secs(10);

/// How far clocks may differ, in seconds.
const LEEWAY: u64 = 60;

/// The longest token, and the longest document of the authorization server.
const MAX_TOKEN: usize = 16 * 1024;
const MAX_DOCUMENT: usize = 256 * 1024;

/// Which tokens are good.
#[derive(Debug, Clone)]
pub struct ResourceServer {
    /// The authorization server.
    pub issuer: String,
    /// The name of this server, which a token must be made for: its public address.
    pub audience: String,
    /// The scopes a token must have.
    pub scopes: Vec<String>,
}

pub(super) struct Bearer {
    about: ResourceServer,
    http: reqwest::Client,
    keys: Mutex<Keys>,
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Default, Clone)]
struct Keys {
    known: Arc<Vec<JsonWebKey>>,
    fetched: Option<Instant>,
    /// When the authorization server was last asked, and whether it answered.
    tried: Option<(Instant, bool)>,
}

/// A public key, as JWK writes it.
#[derive(Deserialize)]
struct JsonWebKey {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    n: Option<String>,
    #[serde(default)]
    e: Option<String>,
    #[serde(default)]
    x: Option<String>,
    #[serde(default)]
    y: Option<String>,
}

#[derive(Deserialize)]
struct JwtHeader {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    /// What must be understood to believe the token; nothing is.
    #[serde(default)]
    crit: Option<Value>,
}

/// Why a token is not good.
#[derive(Debug, PartialEq)]
pub(super) enum Bad {
    Token,
    Scope,
    /// The authorization server cannot be asked.
    Unavailable,
}

impl Bearer {
    pub(super) fn new(about: ResourceServer, proxies: &Proxies) -> std::io::Result<Self> {
        let bad = |why: &str| std::io::Error::new(std::io::ErrorKind::InvalidInput, why.to_owned());
        let url = Url::parse(&about.issuer).map_err(|_| bad("the issuer is not an address"))?;
        let local = crate::oauth::is_local(&url);
        if url.scheme() != "https" && !local {
            return Err(bad("the issuer must be an https address"));
        }
        if !Url::parse(&about.audience).is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
            return Err(bad(
                "the audience must be the public address of this server, such as https://tools.example.com/mcp",
            ));
        }
        let (time, proxies) = (Duration::from_secs(10), proxies.leading_to(&url));
        let https = url.scheme() == "https" || proxies.need_tls();
        let dial = Dial { https, connect: time, read: time, proxies, reach: Reach::Anywhere };
        let http = dial.client().map_err(|error| bad(&error.to_string()))?;
        Ok(Bearer { about, http, keys: Mutex::default(), fetching: tokio::sync::Mutex::default() })
    }

    /// What clients read to find the authorization server.
    pub(super) fn description(&self) -> Value {
        json!({
            "resource": self.about.audience,
            "authorization_servers": [self.about.issuer],
            "bearer_methods_supported": ["header"],
            "scopes_supported": self.about.scopes
        })
    }

    /// Where that description is.
    pub(super) fn description_url(&self, path: &str) -> Option<String> {
        let mut url = Url::parse(&self.about.audience).ok()?;
        url.set_path(&format!("/.well-known/oauth-protected-resource{path}"));
        Some(url.into())
    }

    pub(super) fn scopes(&self) -> String {
        self.about.scopes.join(" ")
    }

    /// Checks a token, and says whose it is.
    pub(super) async fn check(&self, token: &str) -> Result<Arc<str>, Bad> {
        if token.len() > MAX_TOKEN {
            return Err(Bad::Token);
        }
        let (text, signature) = token.rsplit_once('.').ok_or(Bad::Token)?;
        let (head, claims) = text.split_once('.').ok_or(Bad::Token)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| Bad::Token);
        let head: JwtHeader = serde_json::from_slice(&decode(head)?).map_err(|_| Bad::Token)?;
        let claims: Value = serde_json::from_slice(&decode(claims)?).map_err(|_| Bad::Token)?;
        if head.crit.is_some() {
            return Err(Bad::Token);
        }
        let signature = decode(signature)?;
        if !self.signed(&head, text.as_bytes(), &signature).await? {
            return Err(Bad::Token);
        }
        self.claimed(&claims)
    }

    fn claimed(&self, claims: &Value) -> Result<Arc<str>, Bad> {
        let text = |key: &str| claims.get(key).and_then(Value::as_str);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let for_us = match claims.get("aud") {
            Some(Value::String(audience)) => *audience == self.about.audience,
            Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(&self.about.audience)),
            _ => false,
        };
        let lives = claims
            .get("exp")
            .and_then(Value::as_f64)
            .is_some_and(|end| end > now.saturating_sub(LEEWAY) as f64);
        let begun =
            claims.get("nbf").and_then(Value::as_f64).is_none_or(|start| start <= (now + LEEWAY) as f64);
        if text("iss") != Some(&self.about.issuer) || !for_us || !lives || !begun {
            return Err(Bad::Token);
        }
        // RFC 9068 says `scope`, one text; some authorization servers say `scp`, as a text or a list.
        let listed =
            claims.get("scp").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let texts = ["scope", "scp"].into_iter().filter_map(text).chain(listed);
        let scopes: Vec<&str> = texts.flat_map(str::split_whitespace).collect();
        if !self.about.scopes.iter().all(|scope| scopes.contains(&scope.as_str())) {
            return Err(Bad::Scope);
        }
        let subject = text("sub").or_else(|| text("client_id")).ok_or(Bad::Token)?;
        Ok(format!("{} {subject}", self.about.issuer).into())
    }

    /// Whether the authorization server signed this. Keys that are not known are asked for, but not too
    /// often.
    async fn signed(&self, head: &JwtHeader, text: &[u8], signature: &[u8]) -> Result<bool, Bad> {
        if let Some(verdict) = self.keys().verdict(head, text, signature) {
            return verdict;
        }
        let _one = self.fetching.lock().await;
        // The first request has fetched the keys for all that waited.
        if let Some(verdict) = self.keys().verdict(head, text, signature) {
            return verdict;
        }
        let known = self.fetch().await;
        let found = known.is_some();
        let keys = {
            let mut keys = self.keys();
            *keys = Keys {
                known: known.unwrap_or_else(|| keys.known.clone()),
                fetched: if found { Some(Instant::now()) } else { keys.fetched },
                tried: Some((Instant::now(), found)),
            };
            keys.clone()
        };
        keys.verdict(head, text, signature).unwrap_or(Err(Bad::Unavailable))
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        lock(&self.keys)
    }

    async fn fetch(&self) -> Option<Arc<Vec<JsonWebKey>>> {
        let issuer = Url::parse(&self.about.issuer).ok()?;
        let path = issuer.path().trim_end_matches('/').to_owned();
        let places = [
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("{path}/.well-known/openid-configuration"),
        ];
        for place in places {
            let mut url = issuer.clone();
            url.set_path(&place);
            let Some(document) = self.document(url).await else { continue };
            if document.get("issuer").and_then(Value::as_str) != Some(&self.about.issuer) {
                return None;
            }
            let keys = Url::parse(document.get("jwks_uri")?.as_str()?).ok()?;
            if keys.scheme() != issuer.scheme() {
                return None;
            }
            let mut keys = self.document(keys).await?;
            let known: Vec<Value> = serde_json::from_value(keys.get_mut("keys")?.take()).ok()?;
            // A kind of key we do not know must not hide the others.
            let known: Vec<JsonWebKey> =
                known.into_iter().take(100).filter_map(|key| serde_json::from_value(key).ok()).collect();
            return Some(Arc::new(known));
        }
        None
    }

    async fn document(&self, url: Url) -> Option<Value> {
        let mut response = self.http.get(url).timeout(Duration::from_secs(10)).send().await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            if body.len() + chunk.len() > MAX_DOCUMENT {
                return None;
            }
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).ok()
    }
}

impl Keys {
    /// What these keys say about a signature; `None` when the authorization server is to be asked first.
    fn verdict(&self, head: &JwtHeader, text: &[u8], signature: &[u8]) -> Option<Result<bool, Bad>> {
        let fresh = self.fetched.is_some_and(|at| at.elapsed() < KEYS_LIFETIME);
        if fresh && self.known.iter().any(|key| key.verifies(head, text, signature)) {
            return Some(Ok(true));
        }
        let (_, found) = self.tried.filter(|(at, _)| at.elapsed() < KEYS_PAUSE)?;
        Some(if found { Ok(false) } else { Err(Bad::Unavailable) })
    }
}

impl JsonWebKey {
    /// The kind of key decides which signatures it can make, never the token.
    fn verifies(&self, head: &JwtHeader, text: &[u8], signature: &[u8]) -> bool {
        if head.kid.is_some() && self.kid.is_some() && head.kid != self.kid {
            return false;
        }
        let part = |part: &Option<String>| URL_SAFE_NO_PAD.decode(part.as_deref()?).ok();
        match (self.kty.as_str(), head.alg.as_str()) {
            ("RSA", "RS256") => {
                let (Some(n), Some(e)) = (part(&self.n), part(&self.e)) else { return false };
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&signature::RSA_PKCS1_2048_8192_SHA256, text, signature).is_ok()
            }
            ("EC", "ES256") => {
                let (Some(x), Some(y)) = (part(&self.x), part(&self.y)) else { return false };
                let point = [&[4], x.as_slice(), y.as_slice()].concat();
                let key = UnparsedPublicKey::new(&signature::ECDSA_P256_SHA256_FIXED, point);
                key.verify(text, signature).is_ok()
            }
            ("OKP", "EdDSA") => {
                let Some(x) = part(&self.x) else { return false };
                UnparsedPublicKey::new(&signature::ED25519, x).verify(text, signature).is_ok()
            }
            _ => false,
        }
    }
}
