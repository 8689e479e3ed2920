//! What Amazon does its own way: signatures of requests, frames of streams, files of credentials, and
//! services that give out keys.
//!
//! Written here on `sha2` and `base64`, which are there anyway: the parts needed are some thousand lines,
//! where Amazon's crates for them bring dozens of further ones.

mod ask;
pub mod event_stream;
pub mod profile;
mod program;
mod sign_on;
pub mod sigv4;
pub mod source;
mod sts;

use std::time::SystemTime;

use reqwest::Url;
use toolwright_core::{ModelError, Secret};

use sigv4::{Credentials, Signing};
use source::CredentialCache;

/// What signs the requests to one service in one region.
#[derive(Debug)]
pub(crate) struct Signer {
    pub(crate) keys: CredentialCache,
    pub(crate) region: String,
    pub(crate) service: &'static str,
}

impl Signer {
    /// The headers that a request needs beside its own, for this moment.
    pub(crate) async fn headers(
        &self,
        url: &Url,
        content_type: &str,
        body: &[u8],
    ) -> Result<Vec<(&'static str, Secret)>, ModelError> {
        let keys = self.keys.get().await?;
        Ok(Self::sign(&keys, &self.region, self.service, url, content_type, body))
    }

    fn sign(
        keys: &Credentials,
        region: &str,
        service: &str,
        url: &Url,
        content_type: &str,
        body: &[u8],
    ) -> Vec<(&'static str, Secret)> {
        let timestamp = sigv4::timestamp(SystemTime::now());
        let signature = sigv4::sign(&Signing {
            method: "POST",
            url,
            headers: &[("content-type", content_type)],
            body,
            region,
            service,
            timestamp: &timestamp,
            credentials: keys,
        });
        let mut headers = vec![
            ("x-amz-date", Secret::new(timestamp)),
            ("authorization", Secret::new(signature.authorization)),
        ];
        headers.extend(keys.session_token.clone().map(|token| ("x-amz-security-token", token)));
        headers
    }
}
