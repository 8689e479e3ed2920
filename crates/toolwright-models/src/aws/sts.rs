//! Roles: the Security Token Service returns temporary credentials to callers that may assume one.

use std::path::Path;
use std::time::SystemTime;

use reqwest::{Method, Url};
use toolwright_core::{ModelError, Secret};
use toolwright_net::Proxies;

use super::Signer;
use super::ask::{self, CredentialRequest, in_tag};
use super::sigv4::Credentials;
use super::source::{AssumedRole, Held, in_file, moment};
use crate::error;

const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// Takes a role on with other keys.
pub(super) async fn with_keys(
    role: &AssumedRole,
    keys: &Credentials,
    proxies: &Proxies,
) -> Result<Held, ModelError> {
    let body = form(role, "AssumeRole", None);
    let bad = |_| error::request("the address of the service for roles is not valid");
    let url = Url::parse(&role.address).map_err(bad)?;
    let headers = Signer::sign(keys, &role.region, "sts", &url, FORM, body.as_bytes());
    ask(role, body, headers, proxies).await
}

/// Takes a role on with the token in a file. The request is not signed.
pub(super) async fn with_token(
    role: &AssumedRole,
    file: &Path,
    proxies: &Proxies,
) -> Result<Held, ModelError> {
    let body = form(role, "AssumeRoleWithWebIdentity", Some(&in_file(file)?));
    ask(role, body, Vec::new(), proxies).await
}

fn form(role: &AssumedRole, action: &str, token: Option<&str>) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let session = role.session.clone().unwrap_or_else(|| format!("toolwright-{now}"));
    let fields = [
        ("Action", Some(action)),
        ("Version", Some("2011-06-15")),
        ("RoleArn", Some(&*role.arn)),
        ("RoleSessionName", Some(&*session)),
        ("ExternalId", role.external_id.as_deref().filter(|_| token.is_none())),
        ("DurationSeconds", role.seconds.as_deref()),
        ("WebIdentityToken", token),
    ];
    let fields = fields.into_iter().filter_map(|(name, value)| Some(format!("{name}={}", escaped(value?))));
    fields.collect::<Vec<_>>().join("&")
}

fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

async fn ask(
    role: &AssumedRole,
    body: String,
    mut headers: Vec<(&'static str, Secret)>,
    proxies: &Proxies,
) -> Result<Held, ModelError> {
    headers.push(("content-type", Secret::new(FORM)));
    let asked = CredentialRequest { method: Method::POST, address: &role.address, headers: &headers, body };
    let answer = ask::far(&asked, proxies).await?;
    let xml = String::from_utf8_lossy(&answer);
    let part = |name: &str| {
        let lacking = || error::auth(format!("the answer for the role `{}` has no `{name}`", role.arn));
        in_tag(&xml, name).filter(|text| !text.is_empty()).ok_or_else(lacking)
    };
    let credentials = Credentials {
        access_key: part("AccessKeyId")?,
        secret_key: Secret::new(part("SecretAccessKey")?),
        session_token: Some(Secret::new(part("SessionToken")?)),
    };
    let until = part("Expiration")?;
    let unclear = || {
        error::auth(format!("the keys of the role `{}` expire at {until:?}, which is not a time", role.arn))
    };
    Ok(Held { credentials, until: Some(moment(&until).ok_or_else(unclear)?) })
}
