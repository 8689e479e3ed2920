//! Which authorization server guards an MCP server, and how it is spoken to.
//!
//! Documents come from the server, so they are hostile: bounded, over https except on this machine, and
//! believed only where what they say of themselves is where they were found.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toolwright_net::reqwest::{Client, Response, StatusCode, Url};
use toolwright_net::{Proxies, Reach, is_open};

use super::{Challenge, failed};
use crate::error::McpError;

/// The longest document that is read.
const MAX_DOCUMENT: usize = 256 * 1024;

/// What dials authorization servers, and where to.
pub(super) struct Far {
    pub(super) http: Client,
    pub(super) reach: Reach,
    pub(super) proxies: Proxies,
}

/// What is protected.
pub(super) struct ProtectedResource {
    /// The name of the server, to be sent exactly as it was published; none before 2025-06-18.
    pub(super) name: Option<String>,
    /// The scopes it knows.
    pub(super) scopes: Vec<String>,
    /// Its authorization server.
    issuer: Option<String>,
}

#[derive(Deserialize)]
struct ResourceDocument {
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// An authorization server.
#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<Url>,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) scopes: Vec<String>,
    /// How clients may prove themselves; empty when it does not say.
    pub(super) methods: Vec<String>,
    pub(super) knows_client_addresses: bool,
    /// True when every answer of it says who it is.
    pub(super) says_issuer: bool,
    /// True when nobody described it, and it is looked for where such servers used to be.
    pub(super) guessed: bool,
}

#[derive(Deserialize)]
struct MetadataDocument {
    issuer: String,
    #[serde(default)]
    authorization_endpoint: Option<String>,
    token_endpoint: String,
    #[serde(default)]
    registration_endpoint: Option<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Vec<String>,
    #[serde(default)]
    grant_types_supported: Vec<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    #[serde(default)]
    client_id_metadata_document_supported: bool,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// Reads what the server says of itself (RFC 9728). Servers older than that guard themselves.
pub(super) async fn resource(
    http: &Client,
    server: &Url,
    challenge: &Challenge,
) -> Result<ProtectedResource, McpError> {
    let mut places = Vec::new();
    match &challenge.resource_metadata {
        Some(place) => {
            let place =
                Url::parse(place).map_err(|_| failed("the server's description has no valid address"))?;
            if place.origin() != server.origin() {
                return Err(failed("the server's description is on another site"));
            }
            places.push(place);
        }
        None => {
            let path = server.path().trim_end_matches('/');
            if !path.is_empty() {
                places.push(at(server, &format!("/.well-known/oauth-protected-resource{path}")));
            }
            places.push(at(server, "/.well-known/oauth-protected-resource"));
        }
    }
    for place in places {
        let Some(document) = fetch::<ResourceDocument>(http, &place).await? else { continue };
        let named = Url::parse(&document.resource).ok();
        if !named.is_some_and(|named| covers(&named, server)) {
            return Err(failed("the server's description is that of another server"));
        }
        return Ok(ProtectedResource {
            name: Some(document.resource),
            scopes: document.scopes_supported,
            issuer: document.authorization_servers.into_iter().next(),
        });
    }
    Ok(ProtectedResource { name: None, scopes: Vec::new(), issuer: None })
}

/// Reads what an authorization server says of itself (RFC 8414, OpenID Connect Discovery).
pub(super) async fn metadata(
    Far { http, reach, proxies }: &Far,
    server: &Url,
    resource: &ProtectedResource,
) -> Result<Metadata, McpError> {
    let refused = |url: &Url| proxies.refusal(reach, url).is_some();
    let root = at(server, "/");
    let own = root.as_str().trim_end_matches('/').to_owned();
    let issuer = resource.issuer.clone().unwrap_or_else(|| own.clone());
    let url = Url::parse(&issuer).map_err(|_| failed("the authorization server has no valid address"))?;
    allowed(&url, server, refused)?;
    let path = url.path().trim_end_matches('/');
    let places = if path.is_empty() {
        vec![
            "/.well-known/oauth-authorization-server".to_owned(),
            "/.well-known/openid-configuration".to_owned(),
        ]
    } else {
        vec![
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("/.well-known/openid-configuration{path}"),
            format!("{path}/.well-known/openid-configuration"),
        ]
    };
    for place in places {
        let Some(document) = fetch::<MetadataDocument>(http, &at(&url, &place)).await? else { continue };
        if document.issuer != issuer {
            return Err(failed("the authorization server's description is that of another one"));
        }
        return checked(document, server, refused);
    }
    if resource.issuer.is_some() {
        return Err(failed(&format!("the authorization server {url} does not describe itself")));
    }
    // Before 2025-06-18 a server was its own authorization server, at fixed places.
    Ok(Metadata {
        issuer: own,
        authorization_endpoint: Some(at(server, "/authorize")),
        token_endpoint: at(server, "/token"),
        registration_endpoint: Some(at(server, "/register")),
        scopes: Vec::new(),
        methods: Vec::new(),
        knows_client_addresses: false,
        says_issuer: false,
        guessed: true,
    })
}

fn checked(
    document: MetadataDocument,
    server: &Url,
    refused: impl Fn(&Url) -> bool,
) -> Result<Metadata, McpError> {
    let endpoint = |text: &str| -> Result<Url, McpError> {
        let url =
            Url::parse(text).map_err(|_| failed("an address of the authorization server is not valid"))?;
        allowed(&url, server, &refused)?;
        Ok(url)
    };
    let by_code = document.grant_types_supported.is_empty()
        || document.grant_types_supported.iter().any(|grant| grant == "authorization_code");
    let proof = document.code_challenge_methods_supported.iter().any(|method| method == "S256");
    if by_code && document.authorization_endpoint.is_some() && !proof {
        return Err(failed("the authorization server does not support PKCE with S256"));
    }
    Ok(Metadata {
        authorization_endpoint: document.authorization_endpoint.as_deref().map(endpoint).transpose()?,
        token_endpoint: endpoint(&document.token_endpoint)?,
        registration_endpoint: document.registration_endpoint.as_deref().map(endpoint).transpose()?,
        issuer: document.issuer,
        scopes: document.scopes_supported,
        methods: document.token_endpoint_auth_methods_supported,
        knows_client_addresses: document.client_id_metadata_document_supported,
        says_issuer: document.authorization_response_iss_parameter_supported,
        guessed: false,
    })
}

/// Where a server may send us: one on the public internet nowhere else, one on this machine or in a network
/// of its own anywhere. A name that cannot be resolved is taken for a public one.
pub(super) async fn reach_of(server: &Url) -> Reach {
    let port = server.port_or_known_default().unwrap_or(443);
    let host = server.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let private = match host.parse() {
        Ok(address) => !is_open(address),
        Err(_) => match tokio::net::lookup_host((host, port)).await {
            Ok(mut addresses) => addresses.any(|address| !is_open(address.ip())),
            Err(_) => false,
        },
    };
    if private { Reach::Anywhere } else { Reach::Public }
}

/// Whether a description with this name is that of the server: the same site, and the same path or one above
/// it.
fn covers(named: &Url, server: &Url) -> bool {
    let (above, below) = (named.path().trim_end_matches('/'), server.path());
    let inside = below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    named.origin() == server.origin() && inside && named.fragment().is_none()
}

/// Secrets go over https, except to this machine when the server is on it too.
fn allowed(url: &Url, server: &Url, refused: impl Fn(&Url) -> bool) -> Result<(), McpError> {
    let fine = match url.scheme() {
        "https" => !refused(url),
        "http" => is_local(url) && is_local(server),
        _ => false,
    };
    if fine { Ok(()) } else { Err(failed(&format!("`{}` is not a safe address", clipped(url)))) }
}

pub(crate) fn is_local(url: &Url) -> bool {
    matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"))
}

fn clipped(url: &Url) -> String {
    toolwright_core::text::visible(&toolwright_core::text::clip(url.as_str(), 200))
}

fn at(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// Fetches a document; `None` when there is none.
async fn fetch<T: DeserializeOwned>(http: &Client, place: &Url) -> Result<Option<T>, McpError> {
    let request = http.get(place.clone()).header("accept", "application/json");
    let response = request.timeout(super::grant::TIME).send().await;
    let response = response.map_err(|_| failed(&format!("cannot reach {}", clipped(place))))?;
    if response.status() != StatusCode::OK {
        return Ok(None);
    }
    let body = body(response).await?;
    // A site that answers everything with a page has no such document either.
    Ok(serde_json::from_slice(&body).ok())
}

/// A whole body, within its bounds.
pub(super) async fn body(mut response: Response) -> Result<Vec<u8>, McpError> {
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= MAX_DOCUMENT => body.extend_from_slice(&chunk),
            Ok(Some(_)) => return Err(failed("a document of the authorization server is too long")),
            Ok(None) => return Ok(body),
            Err(_) => return Err(failed("the connection to the authorization server broke")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_description_is_for_its_own_server_only() {
        let server = url("https://a.example/mcp/v1");
        for good in
            ["https://a.example", "https://a.example/", "https://a.example/mcp", "https://a.example/mcp/v1"]
        {
            assert!(covers(&url(good), &server), "{good}");
        }
        for bad in [
            "https://b.example/mcp/v1",
            "http://a.example/mcp/v1",
            "https://a.example/mc",
            "https://a.example/x",
        ] {
            assert!(!covers(&url(bad), &server), "{bad}");
        }
    }

    #[test]
    fn secrets_go_over_https_or_stay_here() {
        let allowed = |to: &str, server: &str| allowed(&url(to), &url(server), |_| false);
        assert!(allowed("https://a.example/token", "https://b.example").is_ok());
        assert!(allowed("http://localhost:1/token", "http://127.0.0.1:2/mcp").is_ok());
        assert!(allowed("http://169.254.169.254/token", "http://localhost/mcp").is_err());
        assert!(allowed("http://localhost:1/token", "https://b.example").is_err());
        assert!(allowed("file:///etc/passwd", "http://localhost/mcp").is_err());
    }

    #[tokio::test]
    async fn a_public_server_sends_nobody_into_the_network_behind() {
        for (server, reach) in [
            ("https://93.184.216.34/mcp", Reach::Public),
            ("https://[2606:2800:220:1::1]/mcp", Reach::Public),
            ("http://127.0.0.1:3000/mcp", Reach::Anywhere),
            ("http://localhost:3000/mcp", Reach::Anywhere),
            ("https://10.1.2.3/mcp", Reach::Anywhere),
            ("https://no-such-name.invalid/mcp", Reach::Public),
        ] {
            assert_eq!(reach_of(&url(server)).await, reach, "{server}");
        }
        let server = url("https://93.184.216.34/mcp");
        let proxies = Proxies::all("http://proxy.corp:3128").unwrap();
        let allowed =
            |to: &str| allowed(&url(to), &server, |to| proxies.refusal(&Reach::Public, to).is_some()).is_ok();
        for place in [
            "https://169.254.169.254/token",
            "https://10.0.0.1/token",
            "https://[::1]/token",
            "https://proxy.corp/token",
        ] {
            assert!(!allowed(place), "{place}");
        }
        assert!(allowed("https://as.example/token"));
    }
}
