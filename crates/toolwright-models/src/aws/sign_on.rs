//! Single sign-on: `aws sso login` leaves a token in a file, which is changed for keys, and renewed where
//! that is possible.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use reqwest::{Method, Url};
use serde_json::{Value, json};
use toolwright_core::time::Civil;
use toolwright_core::{ModelError, ModelErrorKind, Secret};
use toolwright_net::Proxies;

use super::ask::{self, CredentialRequest};
use super::source::{Held, SignOn, held, moment};
use crate::error;

/// The most files that are looked at, and the most bytes of one.
const MOST_FILES: usize = 1000;
const MOST_BYTES: u64 = 1 << 20;

/// How long before its end a token is renewed.
const AHEAD: Duration = Duration::from_secs(300);

/// Keys for the role.
pub(super) async fn keys(sign_on: &SignOn, proxies: &Proxies) -> Result<Held, ModelError> {
    let token = token(sign_on, proxies).await?;
    let bad = |_| error::request("the address of the portal for single sign-on is not valid");
    let mut url = Url::parse(&format!("{}/federation/credentials", sign_on.portal)).map_err(bad)?;
    url.query_pairs_mut().append_pair("role_name", &sign_on.role).append_pair("account_id", &sign_on.account);
    let headers = [("x-amz-sso_bearer_token", Secret::new(token))];
    let asked = CredentialRequest {
        method: Method::GET,
        address: url.as_str(),
        headers: &headers,
        body: String::new(),
    };
    let answer = ask::far(&asked, proxies).await.map_err(|problem| match problem.kind() {
        ModelErrorKind::Auth => error::auth(format!("{problem}; {}", again(sign_on))).with_source(problem),
        _ => problem,
    })?;
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let keys = answer.get("roleCredentials").unwrap_or(&Value::Null).to_string();
    held(keys.as_bytes(), ["accessKeyId", "secretAccessKey", "sessionToken", "expiration"])
}

/// What a person can do.
fn again(sign_on: &SignOn) -> String {
    format!("`aws sso login --profile {}` signs on anew", sign_on.profile)
}

/// The token that was left, renewed when it is about to end.
async fn token(sign_on: &SignOn, proxies: &Proxies) -> Result<String, ModelError> {
    let missing = || error::auth(format!("nobody has signed on at {}: {}", sign_on.start, again(sign_on)));
    let (file, kept) = newest(sign_on).ok_or_else(missing)?;
    let text = |name: &str| kept.get(name).and_then(Value::as_str).unwrap_or_default();
    let until = moment(text("expiresAt"));
    let holds = |ahead: Duration| until.is_some_and(|until| until > SystemTime::now() + ahead);
    if holds(AHEAD) {
        return Ok(text("accessToken").to_owned());
    }
    match renewed(sign_on, &kept, proxies).await {
        Ok(renewed) => {
            // Others use the file too; without it they would have to sign on anew. Where it cannot be
            // written, as in a container that mounts it read-only, the token is still used for now.
            drop(save(&file, &renewed));
            Ok(renewed.get("accessToken").and_then(Value::as_str).unwrap_or_default().to_owned())
        }
        Err(_) if holds(Duration::ZERO) => Ok(text("accessToken").to_owned()),
        Err(problem) if problem.kind() == ModelErrorKind::Unavailable => Err(problem),
        Err(problem) => {
            let text = format!("the sign-on at {} has ended: {}", sign_on.start, again(sign_on));
            Err(error::auth(text).with_source(problem))
        }
    }
}

/// The token for this place, and its file: one that holds or can be renewed goes before one that has ended,
/// then the one that holds longest.
fn newest(sign_on: &SignOn) -> Option<(PathBuf, Value)> {
    let files = fs::read_dir(&sign_on.tokens).ok()?.flatten().take(MOST_FILES).map(|file| file.path());
    let tokens = files.filter_map(|file| {
        let about = fs::metadata(&file).ok()?;
        let small = about.is_file() && about.len() <= MOST_BYTES;
        let kept: Value = serde_json::from_slice(&small.then(|| fs::read(&file).ok())??).ok()?;
        let text = |name: &str| kept.get(name)?.as_str();
        let fits = text("startUrl") == Some(&*sign_on.start) && text("accessToken").is_some();
        let until = moment(text("expiresAt")?)?;
        let lives = until > SystemTime::now() || text("refreshToken").is_some();
        fits.then_some(((lives, until), file, kept))
    });
    let (_, file, kept) = tokens.max_by_key(|(rank, ..)| *rank)?;
    Some((file, kept))
}

/// What the file will hold when the token is renewed.
async fn renewed(sign_on: &SignOn, kept: &Value, proxies: &Proxies) -> Result<Value, ModelError> {
    let part = |name: &str| {
        kept.get(name).and_then(Value::as_str).ok_or_else(|| error::auth("it cannot be renewed"))
    };
    let body = json!({
        "grantType": "refresh_token",
        "clientId": part("clientId")?,
        "clientSecret": part("clientSecret")?,
        "refreshToken": part("refreshToken")?,
    });
    let address = format!("{}/token", sign_on.renewal);
    let headers = [("content-type", Secret::new("application/json"))];
    let asked = CredentialRequest {
        method: Method::POST,
        address: &address,
        headers: &headers,
        body: body.to_string(),
    };
    let answer: Value = serde_json::from_slice(&ask::far(&asked, proxies).await?).unwrap_or_default();
    let token =
        answer.get("accessToken").and_then(Value::as_str).ok_or_else(|| error::auth("no token came back"))?;
    let seconds = answer.get("expiresIn").and_then(Value::as_u64).unwrap_or_default().min(1 << 32);
    let until = Civil::of_system(SystemTime::now() + Duration::from_secs(seconds));
    let mut kept = kept.as_object().cloned().unwrap_or_default();
    kept.insert("accessToken".to_owned(), token.into());
    kept.insert("expiresAt".to_owned(), format!("{until}Z").into());
    if let Some(next) = answer.get("refreshToken").filter(|next| next.is_string()) {
        kept.insert("refreshToken".to_owned(), next.clone());
    }
    Ok(kept.into())
}

/// Replaces a file that only its owner may read.
fn save(file: &Path, kept: &Value) -> std::io::Result<()> {
    toolwright_util::replace(file, kept.to_string().as_bytes(), toolwright_util::FileAccess::Owner)
}
