//! Signature version 4: proves possession of a secret key without sending it.

use std::fmt::Write as _;
use std::time::SystemTime;

use reqwest::Url;
use sha2::{Digest as _, Sha256};
use toolwright_core::Secret;
use toolwright_core::time::Civil;

/// Who signs.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The name of the key.
    pub access_key: String,
    /// The key.
    pub secret_key: Secret,
    /// What temporary keys come with.
    pub session_token: Option<Secret>,
}

/// What is signed.
#[derive(Debug, Clone, Copy)]
pub struct Signing<'a> {
    /// The method, in capitals.
    pub method: &'a str,
    /// The address. Its path is as it is sent: a `:` in a model's name is `%3A` there.
    pub url: &'a Url,
    /// The headers to sign beside `host`, `x-amz-date` and `x-amz-security-token`.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: &'a [u8],
    /// The region, such as `us-east-1`.
    pub region: &'a str,
    /// The service, such as `bedrock`.
    pub service: &'a str,
    /// The moment, as [`timestamp`] writes it.
    pub timestamp: &'a str,
    /// Who signs.
    pub credentials: &'a Credentials,
}

/// A signature, and the steps to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The request in the form that is hashed.
    pub canonical_request: String,
    /// What the key signs.
    pub string_to_sign: String,
    /// The signature.
    pub signature: String,
    /// The header `authorization`.
    pub authorization: String,
}

/// Signs a request.
pub fn sign(what: &Signing<'_>) -> Signature {
    let headers = headers(what);
    let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(";");
    let mut canonical_request = format!("{}\n{}\n{}\n", what.method, path(what.url), query(what.url));
    for (name, value) in &headers {
        let _ = writeln!(canonical_request, "{name}:{value}");
    }
    let _ = write!(canonical_request, "\n{names}\n{}", hex(&Sha256::digest(what.body)));

    let day = what.timestamp.get(..8).unwrap_or(what.timestamp);
    let scope = format!("{day}/{}/{}/aws4_request", what.region, what.service);
    let hashed = hex(&Sha256::digest(canonical_request.as_bytes()));
    let string_to_sign = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{hashed}", what.timestamp);

    let first = format!("AWS4{}", what.credentials.secret_key.expose());
    let parts = [day, what.region, what.service, "aws4_request"];
    let key = parts.iter().fold(first.into_bytes(), |key, part| hmac(&key, part.as_bytes()).to_vec());
    let signature = hex(&hmac(&key, string_to_sign.as_bytes()));
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
        what.credentials.access_key
    );
    Signature { canonical_request, string_to_sign, signature, authorization }
}

/// A moment as signatures write it: `20260102T030405Z`.
pub fn timestamp(at: SystemTime) -> String {
    Civil::of_system(at).to_string().replace(['-', ':'], "") + "Z"
}

/// The headers that are signed, by name, with their white space folded.
fn headers(what: &Signing<'_>) -> Vec<(String, String)> {
    let fold = |text: &str| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    let host = what.url.host_str().unwrap_or_default();
    let host = what.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let mut all = vec![("host".to_owned(), host), ("x-amz-date".to_owned(), what.timestamp.to_owned())];
    let token = what.credentials.session_token.as_ref();
    all.extend(token.map(|token| ("x-amz-security-token".to_owned(), token.expose().to_owned())));
    let own = what.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), fold(value)));
    // What is on the way is not signed: it may change there.
    let fixed = |name: &str| {
        !matches!(name, "connection" | "expect" | "transfer-encoding" | "user-agent" | "x-amzn-trace-id")
    };
    all.extend(own.filter(|(name, _)| fixed(name) && !all_has(name)));
    all.sort();
    all
}

/// The names that are always there.
fn all_has(name: &str) -> bool {
    matches!(name, "host" | "x-amz-date" | "x-amz-security-token")
}

/// The path, encoded once more than it is sent.
fn path(url: &Url) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    // Several slashes in a row count as one.
    let mut last = 0;
    let path = url.path().bytes().filter(|byte| std::mem::replace(&mut last, *byte) != b'/' || *byte != b'/');
    path.map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The query, sorted.
fn query(url: &Url) -> String {
    let query = url.query().unwrap_or_default();
    let mut pairs: Vec<(&str, &str)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .collect();
    pairs.sort_unstable();
    let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// A keyed hash, RFC 2104.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let hashed: [u8; 32];
    let key = if key.len() > 64 {
        hashed = Sha256::digest(key).into();
        &hashed
    } else {
        key
    };
    let padded = |with: u8| {
        let mut block = [with; 64];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_keyed_hash_is_that_of_the_standard() {
        // RFC 4231, cases 2 and 6.
        assert_eq!(
            hex(&hmac(b"Jefe", b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hex(&hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        let at = |seconds| timestamp(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "19700101T000000Z");
        assert_eq!(at(951_782_399), "20000228T235959Z");
        assert_eq!(at(951_868_799), "20000229T235959Z");
        assert_eq!(at(1_767_323_045), "20260102T030405Z");
        assert_eq!(at(4_107_542_399), "21000228T235959Z");
        assert_eq!(at(4_107_542_400), "21000301T000000Z");
    }
}
