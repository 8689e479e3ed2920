//! The requests of OAuth 2.1: register, be sent back with a code, trade it for a token, renew the token.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use toolwright_core::{Secret, text};
use toolwright_net::reqwest::{Client, Url};

use super::discovery::{Far, Metadata, ProtectedResource, body};
use super::store::{Registration, StoredGrant, Tokens};
use super::{Browser, Machine, failed, jwt};
use crate::error::{McpError, McpErrorKind};
use crate::random::random_name;

/// How long an authorization server may take to answer.
pub(super) const TIME: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    #[serde(default)]
    token_type: String,
    #[serde(default)]
    expires_in: Option<f64>,
    #[serde(default)]
    refresh_token: Option<String>,
}

#[derive(Deserialize)]
struct OauthErrorBody {
    error: String,
    #[serde(default)]
    error_description: String,
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    #[serde(default)]
    client_secret: Option<String>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
}

/// Why there is no token.
pub(super) struct NoToken {
    pub(super) error: McpError,
    /// True when the authorization server does not know the client, or does not any more.
    pub(super) client_unknown: bool,
    /// True when what was to be traded is worth nothing any more. Anything else may be better another time.
    pub(super) grant_gone: bool,
}

impl From<McpError> for NoToken {
    fn from(error: McpError) -> Self {
        NoToken { error, client_unknown: false, grant_gone: false }
    }
}

impl From<NoToken> for McpError {
    fn from(none: NoToken) -> Self {
        none.error
    }
}

/// Registers the client (RFC 7591).
pub(super) async fn register(
    http: &Client,
    metadata: &Metadata,
    name: &str,
    redirect_uri: String,
    scopes: &[String],
) -> Result<Registration, McpError> {
    let Some(endpoint) = &metadata.registration_endpoint else {
        return Err(failed("the authorization server takes no new clients; give it a client id"));
    };
    let method = match metadata.methods.as_slice() {
        [] => "none",
        known => ["none", "client_secret_basic", "client_secret_post"]
            .into_iter()
            .find(|method| known.iter().any(|known| known == method))
            .unwrap_or("none"),
    };
    let mut about = json!({
        "client_name": name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "native"
    });
    // Servers may allow a client nothing beyond what it registered for.
    if let Some(about) = about.as_object_mut().filter(|_| !scopes.is_empty()) {
        about.insert("scope".to_owned(), scopes.join(" ").into());
    }
    let request = http.post(endpoint.clone()).header("content-type", "application/json");
    let response = request.timeout(TIME).body(about.to_string()).send().await;
    let response = response.map_err(|_| failed("cannot reach the place to register"))?;
    let accepted = response.status().is_success();
    let answer = body(response).await?;
    let registered = serde_json::from_slice::<Registered>(&answer).ok().filter(|_| accepted);
    let registered = registered.ok_or_else(|| match metadata.guessed {
        true => failed("the server wants a token, and does not say where to get one"),
        false => refused("the registration", &answer),
    })?;
    Ok(Registration {
        issuer: metadata.issuer.clone(),
        client_id: registered.client_id,
        client_secret: registered.client_secret.map(Secret::new),
        method: registered.token_endpoint_auth_method,
        redirect_uri,
        scopes: scopes.to_vec(),
    })
}

/// Sends the person to the authorization server, and trades the code it sends back.
pub(super) async fn as_person(
    http: &Client,
    metadata: &Metadata,
    client: &Registration,
    browser: &dyn Browser,
    resource: &ProtectedResource,
    scopes: &[String],
) -> Result<Tokens, NoToken> {
    let Some(endpoint) = &metadata.authorization_endpoint else {
        return Err(failed("the authorization server has no page to go to").into());
    };
    let (state, verifier) = (random_name(), format!("{}{}", random_name(), random_name()));
    let proof = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
    let mut page = endpoint.clone();
    {
        let mut query = page.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.client_id)
            .append_pair("redirect_uri", &client.redirect_uri)
            .append_pair("state", &state)
            .append_pair("code_challenge", &proof)
            .append_pair("code_challenge_method", "S256");
        if !scopes.is_empty() {
            query.append_pair("scope", &scopes.join(" "));
        }
        if let Some(name) = &resource.name {
            query.append_pair("resource", name);
        }
    }
    let back = browser.visit(page.as_str()).await.map_err(|why| failed(&why))?;
    let code = code(&back, client, metadata, &state)?;
    let mut form = vec![
        ("grant_type", "authorization_code".to_owned()),
        ("code", code),
        ("redirect_uri", client.redirect_uri.clone()),
        ("code_verifier", verifier),
    ];
    form.extend(resource.name.clone().map(|name| ("resource", name)));
    token(http, &metadata.token_endpoint, form, proven(client, &metadata.methods)).await
}

/// The code in the address the browser was sent back to, when everything else in it is right.
fn code(back: &str, client: &Registration, metadata: &Metadata, state: &str) -> Result<String, McpError> {
    let url = Url::parse(back).map_err(|_| failed("the browser came back to no valid address"))?;
    let expected =
        Url::parse(&client.redirect_uri).map_err(|_| failed("the redirect URI is not a valid address"))?;
    if (url.origin(), url.path()) != (expected.origin(), expected.path()) {
        return Err(failed("the browser came back to another address"));
    }
    let said =
        |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    if said("state").as_deref() != Some(state) {
        return Err(failed("the answer is not to our question (`state`)"));
    }
    // Compared character by character: a trailing slash makes another issuer (RFC 9207).
    match said("iss") {
        Some(issuer) if issuer == metadata.issuer => {}
        Some(_) => return Err(failed("the answer comes from another authorization server (`iss`)")),
        None if metadata.says_issuer => return Err(failed("the answer does not say who gave it (`iss`)")),
        None => {}
    }
    if let Some(error) = said("error") {
        let more = said("error_description").unwrap_or_default();
        let shown = toolwright_core::text::visible(&text::clip(&format!("{error} {more}"), 500));
        return Err(failed(&format!("the authorization server refused: {shown}")));
    }
    said("code").ok_or_else(|| failed("the answer has no code"))
}

/// Gets a token for the client itself.
pub(super) async fn as_machine(
    http: &Client,
    metadata: &Metadata,
    machine: &Machine,
    resource: &ProtectedResource,
    scopes: &[String],
) -> Result<Tokens, NoToken> {
    let mut form = vec![("grant_type", "client_credentials".to_owned())];
    if !scopes.is_empty() {
        form.push(("scope", scopes.join(" ")));
    }
    form.extend(resource.name.clone().map(|name| ("resource", name)));
    let proof = match machine {
        Machine::Secret { client_id, client_secret } => {
            let client = Registration {
                issuer: metadata.issuer.clone(),
                client_id: client_id.clone(),
                client_secret: Some(client_secret.clone()),
                method: None,
                redirect_uri: String::new(),
                scopes: Vec::new(),
            };
            proven(&client, &metadata.methods)
        }
        Machine::Key { client_id, private_key } => {
            let assertion =
                jwt::assertion(client_id, &metadata.issuer, private_key).map_err(|why| failed(&why))?;
            let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer".to_owned();
            let form = vec![
                ("client_id", client_id.clone()),
                ("client_assertion_type", kind),
                ("client_assertion", assertion),
            ];
            Proof { header: None, form }
        }
    };
    token(http, &metadata.token_endpoint, form, proof).await
}

/// Trades a refresh token for a new access token.
pub(super) async fn renewed(
    Far { http, reach, proxies }: &Far,
    kept: &StoredGrant,
    tokens: &Tokens,
) -> Result<Tokens, NoToken> {
    let (Some(refresh), Some(client), Some(endpoint)) =
        (&tokens.refresh, &kept.registration, &kept.token_endpoint)
    else {
        return Err(failed("the token cannot be renewed").into());
    };
    let endpoint = Url::parse(endpoint).ok().filter(|url| proxies.refusal(reach, url).is_none());
    let endpoint = endpoint.ok_or_else(|| failed("the token cannot be renewed"))?;
    let mut form =
        vec![("grant_type", "refresh_token".to_owned()), ("refresh_token", refresh.expose().to_owned())];
    form.extend(kept.resource.clone().map(|name| ("resource", name)));
    let mut renewed = token(http, &endpoint, form, proven(client, &[])).await?;
    // A server that sends no new refresh token wants the old one to be used again.
    renewed.refresh = renewed.refresh.or_else(|| Some(refresh.clone()));
    Ok(renewed)
}

/// How a client proves itself.
struct Proof {
    header: Option<String>,
    form: Vec<(&'static str, String)>,
}

fn proven(client: &Registration, methods: &[String]) -> Proof {
    let id = ("client_id", client.client_id.clone());
    let Some(secret) = &client.client_secret else { return Proof { header: None, form: vec![id] } };
    let known = |method: &str| methods.iter().any(|known| known == method);
    let method = match client.method.as_deref() {
        Some(method) => method,
        None if methods.is_empty() || known("client_secret_basic") => "client_secret_basic",
        None if known("client_secret_post") => "client_secret_post",
        None => "none",
    };
    match method {
        "client_secret_post" => {
            Proof { header: None, form: vec![id, ("client_secret", secret.expose().to_owned())] }
        }
        "none" => Proof { header: None, form: vec![id] },
        _ => {
            let pair = format!("{}:{}", encoded(&client.client_id), encoded(secret.expose()));
            // Servers made with the official Python package look for the name in the form even then.
            Proof { header: Some(format!("Basic {}", STANDARD.encode(pair))), form: vec![id] }
        }
    }
}

async fn token(
    http: &Client,
    endpoint: &Url,
    mut form: Vec<(&'static str, String)>,
    proof: Proof,
) -> Result<Tokens, NoToken> {
    form.extend(proof.form);
    let content: Vec<String> =
        form.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    let mut request = http
        .post(endpoint.clone())
        .header("content-type", "application/x-www-form-urlencoded")
        .header("accept", "application/json")
        .timeout(TIME);
    if let Some(header) = proof.header {
        request = request.header("authorization", header);
    }
    let response = request.body(content.join("&")).send().await;
    // That nobody answers says nothing about what is asked for.
    let unreachable = |why: &str| McpError::new(McpErrorKind::Closed, format!("no authorization: {why}"));
    let response = response.map_err(|_| unreachable("cannot reach the place for tokens"))?;
    if response.status().is_server_error() || response.status() == 429 {
        return Err(unreachable("the place for tokens is busy or out of order").into());
    }
    let status = response.status();
    let accepted = status.is_success();
    let answer =
        body(response).await.map_err(|_| unreachable("the answer of the place for tokens broke off"))?;
    let token = serde_json::from_slice::<TokenAnswer>(&answer).ok().filter(|_| accepted);
    let token = token.ok_or_else(|| {
        let answer = without_secrets(&answer, &form);
        let Ok(refusal) = serde_json::from_slice::<OauthErrorBody>(&answer) else {
            return match status.as_u16() {
                // So servers refuse, whatever words they have for it. A person may be asked then.
                400 | 401 => refused("the request for a token", &answer).into(),
                // A page in place of an answer, as of a gateway, says nothing about what is asked for either.
                _ => unreachable("the place for tokens gave no answer that can be read").into(),
            };
        };
        // The second is what servers made with the official Python package said before its version 2.
        let client_unknown = ["invalid_client", "unauthorized_client"].contains(&refusal.error.as_str());
        let grant_gone = client_unknown || refusal.error == "invalid_grant";
        NoToken { error: refused("the request for a token", &answer), client_unknown, grant_gone }
    })?;
    if !token.token_type.is_empty() && !token.token_type.eq_ignore_ascii_case("bearer") {
        return Err(failed("unsupported token type").into());
    }
    let fits = |token: &str| !token.is_empty() && token.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
    if !fits(&token.access_token) {
        return Err(failed("the token has characters that a header cannot carry, or none").into());
    }
    Ok(Tokens::new(token.access_token, token.refresh_token, token.expires_in))
}

/// What an authorization server answered, without what it repeats of what it was sent.
fn without_secrets(answer: &[u8], form: &[(&str, String)]) -> Vec<u8> {
    let secret = ["refresh_token", "code", "code_verifier", "client_secret", "client_assertion"];
    let sent = form.iter().filter(|(name, value)| secret.contains(name) && value.len() >= 6);
    let text = String::from_utf8_lossy(answer).into_owned();
    sent.fold(text, |text, (_, value)| text.replace(value, "[secret]")).into_bytes()
}

/// Form encoding of one value (RFC 3986's unreserved characters stay).
fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

fn refused(what: &str, answer: &[u8]) -> McpError {
    let why = serde_json::from_slice::<OauthErrorBody>(answer)
        .map(|refusal| format!(": {} {}", refusal.error, refusal.error_description))
        .unwrap_or_default();
    failed(&format!("{what} was refused{}", toolwright_core::text::visible(&text::clip(why.trim_end(), 500))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(says_issuer: bool) -> Metadata {
        Metadata {
            issuer: "https://as.example".into(),
            authorization_endpoint: None,
            token_endpoint: Url::parse("https://as.example/token").unwrap(),
            registration_endpoint: None,
            scopes: Vec::new(),
            methods: Vec::new(),
            knows_client_addresses: false,
            says_issuer,
            guessed: false,
        }
    }

    fn check(query: &str, says_issuer: bool) -> Result<String, String> {
        let client = Registration {
            issuer: String::new(),
            client_id: "c".into(),
            client_secret: None,
            method: None,
            redirect_uri: "http://127.0.0.1:5/callback".into(),
            scopes: Vec::new(),
        };
        let back = format!("http://127.0.0.1:5/callback?{query}");
        code(&back, &client, &metadata(says_issuer), "s").map_err(|error| error.to_string())
    }

    #[test]
    fn a_code_counts_only_in_the_right_answer() {
        assert_eq!(check("code=1&state=s", false), Ok("1".into()));
        assert_eq!(check("code=1&state=s&iss=https%3A%2F%2Fas.example", true), Ok("1".into()));
        for (query, says) in [
            ("code=1", false),
            ("code=1&state=x", false),
            ("code=1&state=s", true),
            ("code=1&state=s&iss=https%3A%2F%2Fas.example%2F", false),
            ("code=1&state=s&iss=https%3A%2F%2Fevil.example", false),
            ("state=s", false),
            ("error=access_denied&state=s", false),
        ] {
            assert!(check(query, says).is_err(), "{query}");
        }
    }

    #[test]
    fn values_are_encoded_for_forms() {
        assert_eq!(encoded("a b&c=d/é~"), "a%20b%26c%3Dd%2F%C3%A9~");
    }
}
