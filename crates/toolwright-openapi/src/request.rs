//! The request of one call, as data: nothing is sent here.

use crate::multipart::FormPart;

/// A request that is ready to be sent, but for files and secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiRequest {
    /// The method, in capitals.
    pub method: String,
    /// The address, escaped.
    pub url: String,
    /// The headers. `Content-Type` is that of the body.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: RequestBody,
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestBody {
    /// None at all.
    Empty,
    /// These bytes.
    Bytes {
        /// Their type.
        content_type: String,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A file of the workspace.
    File {
        /// Its type.
        content_type: String,
        /// Its path.
        path: String,
    },
    /// The parts of a form; see [`multipart`](crate::multipart).
    Multipart(Vec<FormPart>),
}

impl ApiRequest {
    /// Adds a pair to the query; both halves are escaped already.
    pub(crate) fn add_query(&mut self, name: &str, value: &str) {
        self.url.push(if self.url.contains('?') { '&' } else { '?' });
        self.url.push_str(name);
        self.url.push('=');
        self.url.push_str(value);
    }

    pub(crate) fn set_header(&mut self, name: &str, value: &str) {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn add_cookie(&mut self, name: &str, value: &str) {
        match self.headers.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case("cookie")) {
            Some((_, cookies)) => *cookies = format!("{cookies}; {name}={value}"),
            None => self.headers.push(("cookie".to_owned(), format!("{name}={value}"))),
        }
    }
}
