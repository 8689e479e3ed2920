//! Our server as an OAuth resource server: only tokens that were made for it are taken.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use toolwright_core::{CancelToken, Secret, Toolset};
use toolwright_mcp::{Client, ClientOptions, HttpOptions, HttpTarget, Proxies, ResourceServer, Server};
use toolwright_runtime::Run;

use crate::http_client::{answer, scripted};

const AUDIENCE: &str = "https://tools.example.com/mcp";

fn new_key() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap()
}

fn token(key: &EcdsaKeyPair, head: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(head), part(claims));
    let signature = key.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[tokio::test]
async fn only_tokens_made_for_this_server_are_taken() {
    let key = new_key();
    let point = key.public_key().as_ref().to_vec();
    let jwk = json!({
        "kty": "EC", "crv": "P-256", "kid": "1",
        "x": URL_SAFE_NO_PAD.encode(&point[1..33]), "y": URL_SAFE_NO_PAD.encode(&point[33..])
    });
    let issuer_server = scripted(move |head, _| {
        let host =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("host: ").map(str::to_owned));
        let own = format!("http://{}", host.unwrap_or_default());
        let document = match head.split(' ').nth(1).unwrap_or_default() {
            "/.well-known/oauth-authorization-server" => {
                json!({"issuer": own, "jwks_uri": format!("{own}/keys")})
            }
            "/keys" => json!({"keys": [{"kty": "unknown"}, {"kty": "EC"}, jwk]}),
            _ => return answer("404 Not Found", "", ""),
        };
        answer("200 OK", "Content-Type: application/json\r\n", &document.to_string())
    })
    .await;
    let issuer = issuer_server.url.strip_suffix("/mcp").unwrap().to_owned();
    let run = Run::builder(Toolset::new()).build().unwrap();
    let mut options = HttpOptions::default();
    options.resource_server = Some(ResourceServer {
        issuer: issuer.clone(),
        audience: AUDIENCE.to_owned(),
        scopes: vec!["tools".to_owned()],
    });
    let server = Server::new(run.dispatch()).listen("127.0.0.1:0".parse().unwrap(), options).await.unwrap();
    let url = format!("http://{}/mcp", server.address());
    let stop = CancelToken::new();
    let _stop = stop.clone().drop_guard();
    tokio::spawn(server.run(stop));

    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let good = json!({
        "iss": issuer, "aud": AUDIENCE, "sub": "ada", "exp": now + 300, "scope": "other tools"
    });
    let with = |key: &str, value: Value| {
        let mut claims = good.clone();
        claims[key] = value;
        claims
    };
    let es256 = json!({"alg": "ES256", "kid": "1"});
    let status = async |token: &str| {
        let client = toolwright_net::client(
            false,
            std::time::Duration::from_secs(60),
            std::time::Duration::from_secs(60),
        );
        let request =
            client.unwrap().post(&url).bearer_auth(token).header("content-type", "application/json");
        let response = request.body("{}").send().await.unwrap();
        let challenge =
            response.headers().get("www-authenticate").map(|said| said.to_str().unwrap().to_owned());
        (response.status().as_u16(), challenge.unwrap_or_default())
    };
    // The body is not a message, so an accepted token leads to 400.
    assert_eq!(status(&token(&key, &es256, &good)).await.0, 400);
    assert_eq!(status(&token(&key, &es256, &with("aud", json!(["x", AUDIENCE])))).await.0, 400);
    for scopes in [json!("other tools"), json!(["other", "tools"])] {
        let mut claims = with("scp", scopes);
        claims.as_object_mut().unwrap().remove("scope");
        assert_eq!(status(&token(&key, &es256, &claims)).await.0, 400, "{claims}");
    }
    for claims in [
        with("aud", json!("https://other.example.com/mcp")),
        with("aud", json!(format!("{AUDIENCE}/"))),
        with("aud", Value::Null),
        with("iss", json!("https://evil.example.com")),
        with("exp", json!(now - 300)),
        with("exp", Value::Null),
        with("nbf", json!(now + 3600)),
        with("sub", Value::Null),
    ] {
        let (code, challenge) = status(&token(&key, &es256, &claims)).await;
        assert_eq!(code, 401, "{claims}");
        let place =
            "resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\"";
        assert!(challenge.contains("invalid_token") && challenge.contains(place), "{challenge}");
    }
    let mut listed = with("scp", json!(["other", {"tools": "tools"}]));
    listed["scope"] = json!("other");
    for claims in [with("scope", json!("other")), listed] {
        let (code, challenge) = status(&token(&key, &es256, &claims)).await;
        assert!(
            code == 403 && challenge.contains("insufficient_scope") && challenge.contains("scope=\"tools\""),
            "{challenge}"
        );
    }
    let other_key = token(&new_key(), &es256, &good);
    let no_algorithm = token(&key, &json!({"alg": "none"}), &good);
    let unsigned = format!("{}.", token(&key, &es256, &good).rsplit_once('.').unwrap().0);
    for forged in [other_key.as_str(), &no_algorithm, &unsigned, "a.b.c", "x", &"x".repeat(20_000)] {
        assert_eq!(status(forged).await.0, 401);
    }
    let target = HttpTarget::new(&url)
        .header("Authorization", Secret::new(format!("Bearer {}", token(&key, &es256, &good))));
    Client::dial(&target, ClientOptions::default()).await.unwrap().list_tools().await.unwrap();
}

#[tokio::test]
async fn the_keys_are_asked_for_through_a_proxy() {
    let proxy = scripted(|_, _| answer("502 Bad Gateway", "", "")).await;
    let run = Run::builder(Toolset::new()).build().unwrap();
    let mut options = HttpOptions::default();
    let issuer = "https://issuer.invalid".to_owned();
    options.resource_server =
        Some(ResourceServer { issuer: issuer.clone(), audience: AUDIENCE.to_owned(), scopes: Vec::new() });
    options.proxies = Proxies::all(proxy.url.strip_suffix("/mcp").unwrap()).unwrap();
    let server = Server::new(run.dispatch()).listen("127.0.0.1:0".parse().unwrap(), options).await.unwrap();
    let url = format!("http://{}/mcp", server.address());
    let stop = CancelToken::new();
    let _stop = stop.clone().drop_guard();
    tokio::spawn(server.run(stop));
    let claims = json!({"iss": issuer, "aud": AUDIENCE, "sub": "ada", "exp": 1});
    let token = Secret::new(format!("Bearer {}", token(&new_key(), &json!({"alg": "ES256"}), &claims)));
    let target = HttpTarget::new(url).header("authorization", token);
    Client::dial(&target, ClientOptions::default()).await.unwrap_err();
    let asked = proxy.requests.lock().unwrap().clone();
    assert!(asked.iter().all(|request| request.starts_with("CONNECT issuer.invalid:443 ")), "{asked:?}");
    assert!(!asked.is_empty());
}
