//! Who may ask: hosts, origins, tokens, and how often.
//!
//! A page on the web can make a browser send requests to this machine under any host name it owns (DNS
//! rebinding), so the `Host` header must name this server, and an `Origin` header must belong to it or be
//! allowed by name.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use ring::hmac;

use super::HttpOptions;
use crate::random::random_bytes;
use toolwright_util::lock;

/// How many clients' rates are remembered.
const MAX_CLIENTS: usize = 10_000;

pub(super) struct Gate {
    hosts: Vec<String>,
    origins: Vec<String>,
    token: Option<TokenMark>,
    rate: Option<f64>,
    /// Whether tokens say who a client is.
    named: bool,
    spent: Mutex<HashMap<Arc<str>, Bucket>>,
}

/// A token, known only by its mark under a key of this process, so that comparing it takes the same time for
/// every wrong guess.
struct TokenMark {
    key: hmac::Key,
    mark: hmac::Tag,
}

#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    /// The same bucket later: it fills up again, to twice the rate.
    fn at(self, now: Instant, rate: f64) -> Bucket {
        let rested = now.duration_since(self.at).as_secs_f64();
        Bucket { left: (self.left + rested * rate).min(rate * 2.0), at: now }
    }
}

/// Why a request is not let in.
#[derive(Debug, PartialEq)]
pub(super) enum GateRefusal {
    Host,
    Origin,
    NoToken,
    WrongToken,
    TooFewScopes,
    AuthorizationUnreachable,
    TooOften,
}

impl Gate {
    pub(super) fn new(address: SocketAddr, options: &HttpOptions) -> Self {
        let mut hosts: Vec<String> = options.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        if address.ip().is_loopback() || address.ip().is_unspecified() {
            hosts.extend(["localhost", "127.0.0.1", "[::1]"].map(str::to_owned));
        }
        if !address.ip().is_unspecified() {
            hosts.push(host_of(address.ip()));
        }
        let origins =
            options.origins.iter().map(|origin| origin.trim_end_matches('/').to_ascii_lowercase()).collect();
        let token = options.token.as_ref().map(|token| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, &random_bytes::<32>());
            let mark = hmac::sign(&key, token.expose().as_bytes());
            TokenMark { key, mark }
        });
        let rate = options.rate.map(|rate| f64::from(rate.max(1)));
        let named = options.resource_server.is_some();
        Gate { hosts, origins, token, rate, named, spent: Mutex::default() }
    }

    /// Checks where the request thinks it goes, and which page made it. Gives the origin when it is another
    /// site's.
    pub(super) fn check_place(&self, headers: &HeaderMap) -> Result<Option<String>, GateRefusal> {
        let host = text(headers, HOST).ok_or(GateRefusal::Host)?.to_ascii_lowercase();
        if !self.knows(&host) {
            return Err(GateRefusal::Host);
        }
        self.check_origin(headers, &host)
    }

    /// Checks which page made the request, and takes the host for what it says.
    pub(super) fn check_origin(
        &self,
        headers: &HeaderMap,
        host: &str,
    ) -> Result<Option<String>, GateRefusal> {
        if !headers.contains_key(ORIGIN) {
            return Ok(None);
        }
        let origin = text(headers, ORIGIN).ok_or(GateRefusal::Origin)?.to_ascii_lowercase();
        if self.origins.contains(&origin) {
            return Ok(Some(origin));
        }
        let own = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        if own == Some(host) { Ok(None) } else { Err(GateRefusal::Origin) }
    }

    /// A name with or without a port. An allowed name that has a port itself allows that port only.
    fn knows(&self, host: &str) -> bool {
        let without_port = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() => name,
            _ => host,
        };
        self.hosts.iter().any(|known| known == host || known == without_port)
    }

    /// Checks the token. Gives who asks: one name for all who know the token, or the address where there is
    /// none.
    pub(super) fn check_token(&self, headers: &HeaderMap, from: IpAddr) -> Result<Arc<str>, GateRefusal> {
        let Some(token) = &self.token else { return Ok(from.to_string().into()) };
        match hmac::verify(&token.key, bearer(headers)?.as_bytes(), token.mark.as_ref()) {
            Ok(()) => Ok("token".into()),
            Err(_) => Err(GateRefusal::WrongToken),
        }
    }

    /// Counts a request against the rate of its client: by address where all share one token or need none,
    /// and by identity where tokens name one.
    pub(super) fn check_rate(&self, client: &Arc<str>, from: IpAddr) -> Result<(), GateRefusal> {
        match self.named {
            true => self.count(client.clone()),
            false => self.count(place_of(from).to_string().into()),
        }
    }

    /// Counts a request with a wrong token, or none where one is needed.
    pub(super) fn count_guess(&self, from: IpAddr) -> Result<(), GateRefusal> {
        self.count(stranger(from))
    }

    /// Whether an address has guessed too often. Then no token of it is looked at, the right one no more than
    /// others: otherwise it could be found by trying.
    pub(super) fn check_guesses(&self, from: IpAddr) -> Result<(), GateRefusal> {
        let Some(rate) = self.rate else { return Ok(()) };
        let spent = lock(&self.spent);
        match spent.get(&stranger(from)) {
            Some(bucket) if bucket.at(Instant::now(), rate).left < 1.0 => Err(GateRefusal::TooOften),
            _ => Ok(()),
        }
    }

    fn count(&self, client: Arc<str>) -> Result<(), GateRefusal> {
        let Some(rate) = self.rate else { return Ok(()) };
        let mut spent = lock(&self.spent);
        let now = Instant::now();
        let full = Bucket { left: rate * 2.0, at: now };
        if spent.len() >= MAX_CLIENTS && !spent.contains_key(&client) {
            // A bucket that is full again need not be kept.
            spent.retain(|_, bucket| now.duration_since(bucket.at).as_secs_f64() < 2.0);
            if spent.len() >= MAX_CLIENTS {
                return Err(GateRefusal::TooOften);
            }
        }
        let bucket = spent.entry(client).or_insert(full);
        *bucket = bucket.at(now, rate);
        if bucket.left < 1.0 {
            return Err(GateRefusal::TooOften);
        }
        bucket.left -= 1.0;
        Ok(())
    }
}

/// The token a request presents.
pub(super) fn bearer(headers: &HeaderMap) -> Result<&str, GateRefusal> {
    let given = text(headers, AUTHORIZATION).ok_or(GateRefusal::NoToken)?;
    let (scheme, given) = given.split_once(' ').ok_or(GateRefusal::NoToken)?;
    if scheme.eq_ignore_ascii_case("bearer") { Ok(given.trim()) } else { Err(GateRefusal::NoToken) }
}

/// Whose connection it is: one customer of a provider has a whole network of IPv6 addresses.
pub(super) fn place_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & (u128::MAX << 64)).into()),
        address => address,
    }
}

/// The name under which wrong tokens of an address are counted; no client has it.
fn stranger(from: IpAddr) -> Arc<str> {
    format!("? {}", place_of(from)).into()
}

fn host_of(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// The value of a header that is there once.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwright_core::Secret;

    fn gate(change: impl FnOnce(&mut HttpOptions)) -> Gate {
        let mut options = HttpOptions::default();
        change(&mut options);
        Gate::new("127.0.0.1:3000".parse().unwrap(), &options)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_this_machine_is_a_host() {
        let gate = gate(|_| {});
        for good in ["localhost", "localhost:3000", "127.0.0.1:1", "[::1]:3000", "LOCALHOST:3000"] {
            assert_eq!(gate.check_place(&headers(&[("host", good)])), Ok(None), "{good}");
        }
        for bad in [
            "evil.example.com",
            "localhost.evil.com",
            "127.0.0.1.nip.io:3000",
            "",
            "localhost:3000:1",
            "[::2]",
        ] {
            assert_eq!(gate.check_place(&headers(&[("host", bad)])), Err(GateRefusal::Host), "{bad}");
        }
        assert_eq!(gate.check_place(&HeaderMap::new()), Err(GateRefusal::Host));
        let twice = headers(&[("host", "localhost"), ("host", "evil.example.com")]);
        assert_eq!(gate.check_place(&twice).is_err(), twice.get_all("host").iter().count() > 1);
    }

    #[test]
    fn pages_of_other_sites_need_permission() {
        let gate = gate(|options| options.origins.push("https://app.example.com/".into()));
        let place = |origin| gate.check_place(&headers(&[("host", "localhost:3000"), ("origin", origin)]));
        assert_eq!(place("http://localhost:3000"), Ok(None));
        assert_eq!(place("https://app.example.com"), Ok(Some("https://app.example.com".into())));
        for bad in
            ["http://evil.example.com", "null", "http://localhost:8080", "https://app.example.com.evil.com"]
        {
            assert_eq!(place(bad), Err(GateRefusal::Origin), "{bad}");
        }
    }

    #[test]
    fn a_token_is_needed_where_one_is_set() {
        let gate = gate(|options| options.token = Some(Secret::new("s3cret")));
        let check = |value| gate.check_token(&headers(&[("authorization", value)]), [10, 0, 0, 1].into());
        assert!(check("Bearer s3cret").is_ok());
        assert!(check("bearer s3cret").is_ok());
        assert_eq!(check("Bearer s3cre"), Err(GateRefusal::WrongToken));
        assert_eq!(check("Basic s3cret"), Err(GateRefusal::NoToken));
        assert_eq!(gate.check_token(&HeaderMap::new(), [10, 0, 0, 1].into()), Err(GateRefusal::NoToken));
    }

    #[test]
    fn each_client_has_a_rate_of_its_own() {
        let gate = gate(|options| options.rate = Some(1));
        let check = |last| gate.check_rate(&"".into(), [10, 0, 0, last].into());
        assert_eq!((check(1), check(1), check(1)), (Ok(()), Ok(()), Err(GateRefusal::TooOften)));
        assert_eq!(check(2), Ok(()));
        // All addresses of one network are one client.
        let check = |address: &str| gate.check_rate(&"".into(), address.parse().unwrap());
        assert_eq!((check("2001:db8::1"), check("2001:db8::2")), (Ok(()), Ok(())));
        assert_eq!(check("2001:db8::3:4"), Err(GateRefusal::TooOften));
        assert_eq!(check("2001:db8:0:1::1"), Ok(()));
        // An address of the older kind may come in the clothes of the newer.
        assert_eq!(check("::ffff:10.0.0.1"), Err(GateRefusal::TooOften));
    }

    #[test]
    fn a_client_with_a_token_of_its_own_is_one_client_wherever_it_is() {
        let gate = gate(|options| {
            options.rate = Some(1);
            let (issuer, audience) = ("https://as.example.com".into(), "https://rs.example.com".into());
            options.resource_server = Some(super::super::ResourceServer { issuer, audience, scopes: vec![] });
        });
        let check = |who: &str, last| gate.check_rate(&who.into(), [10, 0, 0, last].into());
        assert_eq!((check("ada", 1), check("ada", 2)), (Ok(()), Ok(())));
        assert_eq!(check("ada", 3), Err(GateRefusal::TooOften));
        assert_eq!(check("bob", 3), Ok(()));
    }

    #[test]
    fn who_guesses_too_often_is_not_listened_to() {
        let gate = gate(|options| options.rate = Some(1));
        let (guesser, other) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        assert_eq!(gate.check_guesses(guesser), Ok(()));
        assert_eq!((gate.count_guess(guesser), gate.count_guess(guesser)), (Ok(()), Ok(())));
        assert_eq!(gate.check_guesses(guesser), Err(GateRefusal::TooOften));
        assert_eq!(gate.check_guesses(other), Ok(()));
    }
}
