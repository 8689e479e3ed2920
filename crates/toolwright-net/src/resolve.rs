//! Resolving names for HTTP clients, so that only judged addresses are connected to.

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::address::{is_own, is_public};
use crate::hosts::Host;
use crate::reach::Reach;

impl Reach {
    /// Says why an address may not be dialled. Names are judged when they are resolved; this judges the rest.
    pub fn refusal(&self, url: &Url) -> Option<String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Some(format!("`{}` is not a scheme that is dialled; use http or https", url.scheme()));
        }
        let text = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or_default();
        let host = Host::parse(text);
        match (self, host) {
            (Reach::Anywhere, _) => None,
            (Reach::Public, Ok(Host::Address(address))) if !is_public(address) => {
                Some(format!("{text} is not an address of the public internet"))
            }
            (Reach::Public, Ok(Host::Address(address))) if is_own(address) => {
                Some(format!("{text} is an address of this machine"))
            }
            (Reach::Public, _) => None,
            (Reach::Hosts(rules), Ok(host)) if rules.allow(&host, port) => None,
            (Reach::Hosts(_), _) => {
                Some(format!("{text}:{port} is not among the hosts that `network` opens (`--allow-net`)"))
            }
        }
    }
}

/// Resolves names for connections to one port, and leaves out what may not be reached. The proxy of a company
/// has a name in its own network.
pub(crate) struct JudgedNames {
    pub(crate) reach: Reach,
    pub(crate) port: u16,
    pub(crate) proxies: Vec<String>,
}

impl Resolve for JudgedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let of_a_proxy = self.proxies.iter().any(|proxy| proxy.eq_ignore_ascii_case(name.as_str()));
        let (reach, port) = match of_a_proxy {
            // Its own port is in its address.
            true => (Reach::Anywhere, 0),
            false => (self.reach.clone(), self.port),
        };
        Box::pin(async move {
            // Rules named this machine; a resolver might lead its name elsewhere.
            if let (Reach::Hosts(_), Ok(host @ Host::Name(_))) = (&reach, Host::parse(name.as_str()))
                && let Some(here) = host.fixed_addresses(port)
            {
                return Ok(Box::new(here.into_iter()) as Addrs);
            }
            let found = tokio::net::lookup_host((name.as_str(), port)).await?;
            let open = reach.admitted(name.as_str(), port, found)?;
            Ok(Box::new(open.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostRules;

    #[test]
    fn literal_addresses_and_other_schemes_are_refused_before_dialling() {
        let refusal = |reach: &Reach, url: &str| reach.refusal(&Url::parse(url).unwrap());
        for url in ["http://127.0.0.1/", "http://[::1]:80/", "http://2130706433/", "file:///etc/passwd"] {
            assert!(refusal(&Reach::Public, url).is_some(), "{url}");
        }
        assert_eq!(refusal(&Reach::Public, "https://example.com/x"), None);
        assert_eq!(refusal(&Reach::Anywhere, "http://127.0.0.1/"), None);
        let rules = ["docs.example", "127.0.0.1:8080"].map(str::to_owned);
        let hosts = Reach::Hosts(HostRules::parse(&rules).unwrap());
        for url in ["http://docs.example/", "https://DOCS.example/x", "http://127.0.0.1:8080/"] {
            assert_eq!(refusal(&hosts, url), None, "{url}");
        }
        for url in ["http://127.0.0.1/", "http://docs.example:8080/", "https://example.com/", "file:///x"] {
            assert!(refusal(&hosts, url).is_some(), "{url}");
        }
        assert!(refusal(&Reach::Hosts(HostRules::nothing()), "https://example.com/").is_some());
    }
}
