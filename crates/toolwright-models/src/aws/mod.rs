//! What Amazon does its own way: signatures of requests, frames of streams, and files of credentials.
//!
//! Written here on `sha2` and `base64`, which are there anyway: the parts needed are some four hundred lines, where
//! Amazon's crates for them bring fifteen further ones.

pub mod event_stream;
pub mod profile;
pub mod sigv4;

use std::time::SystemTime;

use reqwest::Url;
use toolwright_core::Secret;

use sigv4::{Credentials, Signing};

/// What signs the requests to one service in one region.
#[derive(Debug, Clone)]
pub(crate) struct Signer {
    pub(crate) credentials: Credentials,
    pub(crate) region: String,
    pub(crate) service: &'static str,
}

impl Signer {
    /// The headers that a request needs beside its own, for this moment.
    pub(crate) fn headers(&self, url: &Url, content_type: &str, body: &[u8]) -> Vec<(&'static str, Secret)> {
        let timestamp = sigv4::timestamp(SystemTime::now());
        let signature = sigv4::sign(&Signing {
            method: "POST",
            url,
            headers: &[("content-type", content_type)],
            body,
            region: &self.region,
            service: self.service,
            timestamp: &timestamp,
            credentials: &self.credentials,
        });
        let mut headers = vec![
            ("x-amz-date", Secret::new(timestamp)),
            ("authorization", Secret::new(signature.authorization)),
        ];
        headers.extend(self.credentials.session_token.clone().map(|token| ("x-amz-security-token", token)));
        headers
    }
}
