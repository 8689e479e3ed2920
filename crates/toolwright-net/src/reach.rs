//! Which addresses may be dialled: all of them, or only those of the public internet.
//!
//! A page that a search engine or a model names may stand anywhere, also on this machine or in the network
//! behind it. Names are checked after they are resolved, and what was checked is what is connected to.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

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

/// Blocks of version 4 that are not the public internet, with the length of their prefix. The sandbox's proxy
/// has the same table (`sandbox/src/proxy/address.rs`); `testdata/net/addresses.json` holds both to it.
const CLOSED: [([u8; 4], u32); 16] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// Blocks within `2000::/3` that are not the public internet, or carry a version 4 address inside.
const CLOSED_6: [(u128, u32); 4] =
    [(0x2001_0000 << 96, 23), (0x2001_0db8 << 96, 32), (0x2002_0000 << 96, 16), (0x3fff_0000 << 96, 20)];

/// True for public addresses: not this machine, not a private or special network, not a
/// cloud's services for its machines. Everything that is not surely public is not.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let number = u32::from(address);
    !CLOSED.iter().any(|(block, length)| (number ^ u32::from(Ipv4Addr::from(*block))) >> (32 - length) == 0)
}

/// Only `2000::/3` is handed out. Mapped and translated addresses are outside of it.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let number = u128::from(address);
    let within = |block: u128, length: u32| (number ^ block) >> (128 - length) == 0;
    within(0x2000 << 112, 3) && !CLOSED_6.iter().any(|(block, length)| within(*block, *length))
}

/// Resolves names, and leaves out what is not public. The proxy of a company has a name in its own network.
pub(crate) struct PublicNames {
    pub(crate) proxies: Vec<String>,
}

impl Resolve for PublicNames {
    fn resolve(&self, name: Name) -> Resolving {
        let of_a_proxy = self.proxies.iter().any(|proxy| proxy.eq_ignore_ascii_case(name.as_str()));
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let fine = |found: &SocketAddr| of_a_proxy || is_public(found.ip());
            let public: Vec<_> = found.iter().copied().filter(fine).collect();
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
        #[derive(serde::Deserialize)]
        struct Vector {
            name: String,
            address: IpAddr,
            public: bool,
        }
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/net/addresses.json");
        let vectors: Vec<Vector> = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        for Vector { name, address, public } in vectors {
            assert_eq!(is_public(address), public, "{name}: {address}");
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
