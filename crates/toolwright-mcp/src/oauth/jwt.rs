//! The signed statement with which a client proves itself (RFC 7523).

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::{Value, json};
use toolwright_core::Secret;

use crate::random::random_name;

/// How long a statement is good, in seconds.
const LIFETIME: u64 = 300;

pub(super) fn assertion(client_id: &str, audience: &str, private_key: &Secret) -> Result<String, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let claims = json!({
        "iss": client_id, "sub": client_id, "aud": audience, "iat": now, "exp": now + LIFETIME, "jti": random_name()
    });
    signed(&json!({"alg": "ES256", "typ": "JWT"}), &claims, private_key)
}

fn signed(head: &Value, claims: &Value, private_key: &Secret) -> Result<String, String> {
    let body: String =
        private_key.expose().lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
    let key = STANDARD.decode(body).map_err(|_| "the private key is not PEM".to_owned())?;
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &random)
        .map_err(|_| "the private key is not a P-256 key in PKCS#8".to_owned())?;
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(head), part(claims));
    let signature =
        key.sign(&random, text.as_bytes()).map_err(|_| "the statement cannot be signed".to_owned())?;
    Ok(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair as _, UnparsedPublicKey};

    #[test]
    fn a_statement_can_be_checked_with_the_public_key() {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pem = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(&document)
        );
        let statement = assertion("me", "https://as.example", &Secret::new(pem)).unwrap();
        let (text, signature) = statement.rsplit_once('.').unwrap();
        let key =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key().as_ref());
        public.verify(text.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
        assert!(assertion("me", "x", &Secret::new("no key")).is_err());
    }
}
