//! Which addresses may be dialled: all of them, those of the public internet, or those that rules open.
//!
//! A page that a search engine or a model names may be anywhere, also on this machine or in the network
//! behind it. Names are judged after they are resolved, and what was judged is what is connected to.

use std::net::{IpAddr, SocketAddr};

use crate::address::is_open;
use crate::hosts::{Host, HostRules};

/// Where connections may go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Reach {
    /// Anywhere: for addresses that a person configured.
    #[default]
    Anywhere,
    /// The public internet only, without this machine's own addresses: for addresses from outside.
    Public,
    /// The hosts of these rules and no others. A name that leads to an address that is not public is refused
    /// unless a rule names the address too.
    Hosts(HostRules),
}

impl Reach {
    /// Whether this address may be connected to, for a host that may be asked for.
    pub fn admits(&self, address: IpAddr, port: u16) -> bool {
        match self {
            Reach::Anywhere => true,
            Reach::Public => is_open(address),
            Reach::Hosts(rules) => rules.allow(&Host::Address(address), port) || is_open(address),
        }
    }

    /// The addresses of a resolved host that may be connected to; an error when there is none among some.
    pub fn admitted(
        &self,
        host: &str,
        port: u16,
        found: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<Vec<SocketAddr>, RefusedAddress> {
        let (mut open, mut closed) = (Vec::new(), None);
        for at in found {
            match self.admits(at.ip(), port) {
                true => open.push(SocketAddr::new(at.ip(), port)),
                false => closed = closed.or(Some(at.ip())),
            }
        }
        match closed {
            Some(address) if open.is_empty() => Err(RefusedAddress::of_name(host, address)),
            _ => Ok(open),
        }
    }
}

/// Why an address is not connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedAddress(pub(crate) String);

impl RefusedAddress {
    fn of_name(host: &str, address: IpAddr) -> Self {
        RefusedAddress(format!("{host} leads to {address}, which is not an address of the public internet"))
    }
}

impl std::fmt::Display for RefusedAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RefusedAddress {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_open_private_addresses_by_their_own_number_only() {
        let rules = ["intranet.example", "10.1.2.3:8080"].map(str::to_owned);
        let hosts = Reach::Hosts(HostRules::parse(&rules).unwrap());
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let refused = hosts.admitted("intranet.example", 80, [at("10.1.2.3:80")]).unwrap_err();
        assert!(refused.to_string().contains("10.1.2.3"), "{refused}");
        let (open, closed) = (at("10.1.2.3:8080"), at("169.254.169.254:8080"));
        assert_eq!(hosts.admitted("intranet.example", 8080, [open, closed]), Ok(vec![open]));
        assert!(Reach::Public.admitted("a.example", 80, [open]).is_err());
        assert_eq!(Reach::Public.admitted("a.example", 80, []), Ok(vec![]));
        assert!(Reach::Anywhere.admits("127.0.0.1".parse().unwrap(), 1));
        assert!(!Reach::Hosts(HostRules::nothing()).admits("10.1.2.3".parse().unwrap(), 8080));
    }
}
