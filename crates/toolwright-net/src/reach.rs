//! Which addresses may be dialled: all of them, or only those of the public internet.
//!
//! A page that a search engine or a model names may stand anywhere, also on this machine or in the network behind it.
//! Names are checked after they are resolved, and what was checked is what is connected to.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Where connections may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// Anywhere: for addresses that a person configured.
    #[default]
    Anywhere,
    /// The public internet only: for addresses that come from outside.
    Public,
}

impl Reach {
    /// Says why an address may not be dialled. Names are judged when they are resolved; this judges the rest.
    pub fn refusal(self, url: &Url) -> Option<String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Some(format!("`{}` is not a scheme that is dialled; use http or https", url.scheme()));
        }
        let host = url.host_str().unwrap_or_default();
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        match literal {
            Ok(address) if self == Reach::Public && !is_public(address) => Some(refused(host)),
            _ => None,
        }
    }
}

fn refused(host: &str) -> String {
    format!("{host} is not an address of the public internet")
}

/// True for addresses that anybody on the internet may have: not this machine, not a private or special network.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inside) => is_public_v4(inside),
            None => is_public_v6(address),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast();
    // This network, shared address space, protocol assignments, benchmarks, and what is reserved.
    let reserved = a == 0
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
        || a >= 240;
    !special && !reserved
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    // Only 2000::/3 is handed out, and not the parts for protocols (2001::/23, Teredo among them) and documentation.
    let protocols = first == 0x2001 && second < 0x0200;
    let documentation = (first == 0x2001 && second == 0x0db8) || (first == 0x3fff && second < 0x1000);
    first & 0xe000 == 0x2000 && !protocols && !documentation
}

/// The IPv4 address that an IPv6 address stands for: mapped, translated (64:ff9b::/96) or tunnelled (2002::/16).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match (a, b) {
        (0x2002, high) => Some(v4(high, c)),
        (0x64, 0xff9b) if (c, d, e, f) == (0, 0, 0, 0) => Some(v4(g, h)),
        _ => address.to_ipv4_mapped(),
    }
}

/// Resolves names, and leaves out what is not public.
pub(crate) struct PublicNames;

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let public: Vec<_> = found.iter().copied().filter(|found| is_public(found.ip())).collect();
            if public.is_empty() && !found.is_empty() {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, refused(name.as_str())).into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for address in [
            "1.1.1.1",
            "93.184.216.34",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.8",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::1",
            "fc00::1",
            "fe80::1",
            "ff02::1",
            "2001:db8::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
            "2001:10::1",
            "2001:2::1",
            "3fff::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn literal_addresses_and_other_schemes_are_refused_before_dialling() {
        let refusal = |url: &str| Reach::Public.refusal(&Url::parse(url).unwrap());
        for url in ["http://127.0.0.1/", "http://[::1]:80/", "http://2130706433/", "file:///etc/passwd"] {
            assert!(refusal(url).is_some(), "{url}");
        }
        assert_eq!(refusal("https://example.com/x"), None);
        assert_eq!(Reach::Anywhere.refusal(&Url::parse("http://127.0.0.1/").unwrap()), None);
    }
}
