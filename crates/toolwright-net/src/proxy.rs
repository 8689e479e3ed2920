//! Proxies, from the settings of a program or the usual environment variables.
//!
//! Nothing here reads the environment by itself; the caller passes the values of variables. Sandboxed tools
//! never get here: they have no network but the one of their sandbox.

use std::net::IpAddr;

use reqwest::{NoProxy, Proxy, Url};

use crate::Reach;

/// This machine, as `NO_PROXY` would list it: a proxy has another one.
const HERE: &str = "localhost,127.0.0.0/8,::1";

/// Which proxies to go through.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<Url>,
    https: Option<Url>,
    /// Hosts that are reached without one, as `NO_PROXY` lists them.
    except: String,
    /// Why nothing can be dialled through them.
    unusable: Option<ProxyError>,
}

/// Why a proxy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyError(String);

impl std::fmt::Display for ProxyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ProxyError {}

impl Proxies {
    /// None: every host is dialled itself.
    pub fn none() -> Self {
        Proxies::default()
    }

    /// One for all addresses; its URL may hold a user name and a password.
    pub fn all(address: &str) -> Result<Self, ProxyError> {
        let url = read("the proxy", address)?;
        Ok(Proxies { http: Some(url.clone()), https: Some(url), ..Proxies::none() })
    }

    /// Without a proxy to these hosts: names (which stand for all names that end with them), addresses,
    /// networks such as `10.0.0.0/8`, separated by commas; `*` is every host.
    #[must_use]
    pub fn except(mut self, hosts: impl Into<String>) -> Self {
        self.except = hosts.into();
        self
    }

    /// What the usual variables say: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, or the same in
    /// small letters, which count more. This machine is reached without one.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let said = |name: &str| {
            let small = variable(&name.to_ascii_lowercase()).filter(|value| !value.trim().is_empty());
            small.or_else(|| variable(name).filter(|value| !value.trim().is_empty()))
        };
        let proxy =
            |name: &str| said(name).or_else(|| said("ALL_PROXY")).map(|text| read(name, &text)).transpose();
        Ok(Proxies {
            http: proxy("HTTP_PROXY")?,
            https: proxy("HTTPS_PROXY")?,
            except: said("NO_PROXY").map_or(HERE.to_owned(), |hosts| format!("{hosts},{HERE}")),
            unusable: None,
        })
    }

    /// Like [`from_environment`](Self::from_environment), but an unusable proxy is an error only when
    /// something is dialled, for callers that may never dial.
    pub fn from_environment_when_dialled(variable: impl Fn(&str) -> Option<String>) -> Self {
        let unusable = |error| Proxies { unusable: Some(error), ..Proxies::none() };
        Proxies::from_environment(variable).unwrap_or_else(unusable)
    }

    /// Those on the way to an address; none on the way to this machine.
    #[must_use]
    pub fn leading_to(&self, url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let here = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
        if here { Proxies::none() } else { self.clone() }
    }

    /// The same for addresses of which some may be on this machine: it is reached without one.
    #[must_use]
    pub fn not_for_this_machine(mut self) -> Self {
        self.except = match self.except.as_str() {
            "" => HERE.to_owned(),
            hosts => format!("{hosts},{HERE}"),
        };
        self
    }

    /// Says why an address may not be dialled: what [`Reach::refusal`] says, and for addresses that come from
    /// outside that it is one of these proxies, whose names are resolved wherever they lead.
    pub fn refusal(&self, reach: &Reach, url: &Url) -> Option<String> {
        let is_proxy = |host: &str| self.names().iter().any(|name| name.eq_ignore_ascii_case(host));
        let named = || match url.host_str() {
            Some(host) if *reach == Reach::Public && is_proxy(host) => Some(format!("{host} is the proxy")),
            _ => None,
        };
        reach.refusal(url).or_else(named)
    }

    /// True when every host is dialled itself.
    pub fn is_empty(&self) -> bool {
        self.http.is_none() && self.https.is_none()
    }

    /// True when one is spoken to with TLS.
    pub fn need_tls(&self) -> bool {
        [&self.http, &self.https].into_iter().flatten().any(|proxy| proxy.scheme() == "https")
    }

    /// The host of the proxy for addresses such as this one, the exceptions aside.
    pub fn host_for(&self, url: &Url) -> Option<&str> {
        let proxy = if url.scheme() == "https" { &self.https } else { &self.http };
        proxy.as_ref()?.host_str()
    }

    /// The passwords in the addresses, which must not be shown.
    pub fn passwords(&self) -> impl Iterator<Item = &str> {
        [&self.http, &self.https].into_iter().flatten().filter_map(Url::password)
    }

    /// Why nothing can be dialled through them.
    pub(crate) fn unusable(&self) -> Option<&ProxyError> {
        self.unusable.as_ref()
    }

    /// The names of the proxies themselves.
    pub(crate) fn names(&self) -> Vec<String> {
        let hosts = [&self.http, &self.https].into_iter().flatten().filter_map(Url::host_str);
        hosts.map(str::to_owned).collect()
    }

    pub(crate) fn to_reqwest(&self) -> Result<Vec<Proxy>, reqwest::Error> {
        let except = NoProxy::from_string(&self.except);
        let http = self.http.iter().map(|url| Proxy::http(url.clone()));
        let https = self.https.iter().map(|url| Proxy::https(url.clone()));
        http.chain(https).map(|proxy| Ok(proxy?.no_proxy(except.clone()))).collect()
    }
}

/// An address may hold a password, so it is not shown.
impl std::fmt::Debug for Proxies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let host = |url: &Option<Url>| url.as_ref().and_then(|url| url.host_str().map(str::to_owned));
        f.debug_struct("Proxies")
            .field("http", &host(&self.http))
            .field("https", &host(&self.https))
            .field("except", &self.except)
            .finish()
    }
}

/// A proxy's address; one without a scheme is `http`, as everywhere.
fn read(what: &str, text: &str) -> Result<Url, ProxyError> {
    let text = text.trim();
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&whole).ok().filter(Url::has_host);
    let url = url.ok_or_else(|| ProxyError(format!("{what} is not an address such as http://proxy:3128")))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => {
            Err(ProxyError(format!("{what} is a `{other}` proxy; only http and https proxies can be used")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &'static [(&str, &str)]) -> Result<Proxies, ProxyError> {
        Proxies::from_environment(|name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_is_read_as_everywhere() {
        assert!(environment(&[("HTTPS_PROXY", " "), ("NO_PROXY", "x")]).unwrap().is_empty());
        let both = environment(&[
            ("https_proxy", "low:1"),
            ("HTTPS_PROXY", "high:2"),
            ("ALL_PROXY", "http://all:3"),
        ]);
        let both = both.unwrap();
        assert_eq!(both.https.unwrap().as_str(), "http://low:1/");
        assert_eq!(both.http.unwrap().as_str(), "http://all:3/");
        assert_eq!(both.except, HERE);
        let except = environment(&[("no_proxy", "a.example")]).unwrap().except;
        assert_eq!(except, format!("a.example,{HERE}"));
    }

    #[test]
    fn this_machine_never_is_behind_a_proxy() {
        let proxies = Proxies::all("http://proxy:1").unwrap();
        for url in ["http://localhost:3/", "http://127.0.0.9/", "https://[::1]/"] {
            assert!(proxies.leading_to(&Url::parse(url).unwrap()).is_empty(), "{url}");
        }
        assert_eq!(proxies.leading_to(&Url::parse("http://10.0.0.1/").unwrap()), proxies);
    }

    #[test]
    fn a_proxy_is_no_page_for_who_is_sent_there() {
        let proxies = Proxies::all("http://proxy.corp:3128").unwrap();
        let refusal = |reach: Reach, url: &str| proxies.refusal(&reach, &Url::parse(url).unwrap());
        for url in ["http://proxy.corp/", "https://PROXY.corp:8443/status", "http://10.0.0.1/", "file:///x"] {
            assert!(refusal(Reach::Public, url).is_some(), "{url}");
        }
        assert_eq!(refusal(Reach::Public, "http://example.com/"), None);
        assert_eq!(refusal(Reach::Anywhere, "http://proxy.corp/"), None);
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_repeating_it() {
        let error = environment(&[("HTTPS_PROXY", "socks5://u:secret@x:1")]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "HTTPS_PROXY is a `socks5` proxy; only http and https proxies can be used"
        );
        assert!(Proxies::all("http://").is_err());
        let shown = format!("{:?}", Proxies::all("http://u:secret@x:1").unwrap());
        assert!(!shown.contains("secret"), "{shown}");
    }
}
