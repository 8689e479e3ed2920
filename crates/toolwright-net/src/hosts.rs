//! Which hosts are open: rules as people write them, and the one form a host is compared in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Ports that are open when a rule does not name one.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// A host in its one form: lower case, no final dot, addresses as addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A name.
    Name(String),
    /// An address.
    Address(IpAddr),
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Address(address) => write!(f, "{address}"),
        }
    }
}

impl Host {
    /// Reads a host as it stands in a URL. Whatever another program might read differently is refused.
    pub fn parse(text: &str) -> Result<Host, &'static str> {
        if let Some(inside) = text.strip_prefix('[') {
            let inside = inside.strip_suffix(']').ok_or("a bracket is missing")?;
            return inside
                .parse::<Ipv6Addr>()
                .map(|one| Host::Address(one.into()))
                .map_err(|_| "not an address");
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.is_empty() || name.len() > 253 {
            return Err("not the name of a host");
        }
        let label = |label: &str| {
            let plain = |one: u8| one.is_ascii_alphanumeric() || one == b'-' || one == b'_';
            !label.is_empty() && label.len() <= 63 && label.bytes().all(plain)
        };
        if !name.split('.').all(label) {
            return Err("not the name of a host");
        }
        // `127.1`, `0x7f.1` and `2130706433` are addresses to some programs. Only the plain form is one here.
        let last = name.rsplit('.').next().unwrap_or_default();
        let number = last.bytes().all(|one| one.is_ascii_digit())
            || last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|one| one.is_ascii_hexdigit()));
        if number {
            return name
                .parse::<Ipv4Addr>()
                .map(|one| Host::Address(one.into()))
                .map_err(|_| "an address in an odd form");
        }
        Ok(Host::Name(name))
    }

    /// The addresses of a host that needs no look-up: an address itself, and this machine by the one name
    /// that can lead nowhere else.
    pub fn fixed_addresses(&self, port: u16) -> Option<Vec<SocketAddr>> {
        match self {
            Host::Address(address) => Some(vec![SocketAddr::new(*address, port)]),
            Host::Name(name) if name == "localhost" => {
                Some(vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()])
            }
            Host::Name(_) => None,
        }
    }
}

/// Splits `host:port`; a host without one gets `usual`.
pub fn split_port(text: &str, usual: Option<u16>) -> Result<(&str, u16), &'static str> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };
    let port = match port {
        Some(port) if !port.is_empty() && port.len() <= 5 && port.bytes().all(|one| one.is_ascii_digit()) => {
            port.parse::<u16>().ok()
        }
        Some(_) => None,
        None => usual,
    };
    match port {
        Some(0) | None => Err("a port from 1 to 65535 is missing"),
        Some(port) => Ok((host, port)),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    Exactly(Host),
    /// Everything below this name, not the name itself.
    Below(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct HostRule {
    pattern: HostPattern,
    port: Option<u16>,
    /// Any protocol, not only TLS and HTTP.
    raw: bool,
}

impl HostRule {
    fn covers(&self, host: &Host, port: u16) -> bool {
        let open = self.port.map_or(USUAL_PORTS.contains(&port), |open| open == port);
        open && match (&self.pattern, host) {
            (HostPattern::Exactly(one), host) => one == host,
            (HostPattern::Below(name), Host::Name(host)) => {
                host.strip_suffix(name.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (HostPattern::Below(_), Host::Address(_)) => false,
        }
    }
}

/// How a rule that opens every protocol ends.
const RAW: &str = "/raw";

/// The hosts that a policy opens: `example.com`, `*.example.com`, `example.com:8443`, an address; with `/raw`
/// at the end for protocols other than TLS and HTTP. Without a port, 80 and 443 are open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRules(Vec<HostRule>);

impl HostRules {
    /// Rules that open nothing.
    pub fn nothing() -> Self {
        HostRules::default()
    }

    /// Reads the rules of a policy; the first that means nothing is the error.
    pub fn parse(texts: &[String]) -> Result<HostRules, String> {
        if texts.is_empty() {
            return Err("a list of hosts without a host opens nothing; say `network: off`".to_owned());
        }
        texts
            .iter()
            .map(|text| rule(text).map_err(|why| format!("`{}`: {why}", text.escape_debug())))
            .collect::<Result<_, _>>()
            .map(HostRules)
    }

    /// Whether a rule is for exactly this host, whatever the port.
    pub fn name(&self, host: &str) -> bool {
        let Ok(host) = Host::parse(host) else { return false };
        self.0.iter().any(|rule| matches!(&rule.pattern, HostPattern::Exactly(one) if *one == host))
    }

    /// Whether a host may be asked for.
    pub fn allow(&self, host: &Host, port: u16) -> bool {
        self.0.iter().any(|rule| rule.covers(host, port))
    }

    /// Whether any protocol may be used with a host.
    pub fn allow_raw(&self, host: &Host, port: u16) -> bool {
        self.0.iter().any(|rule| rule.raw && rule.covers(host, port))
    }
}

fn rule(text: &str) -> Result<HostRule, &'static str> {
    let (text, raw) = text.strip_suffix(RAW).map_or((text, false), |text| (text, true));
    let (host, port) = match split_port(text, Some(1)) {
        Ok((host, _)) if host == text => (text, None),
        Ok((host, port)) => (host, Some(port)),
        Err(why) => return Err(why),
    };
    let pattern = match host.strip_prefix("*.") {
        Some(name) => match Host::parse(name)? {
            Host::Name(name) if name.contains('.') => HostPattern::Below(name),
            _ => return Err("a star stands for names below a name of at least two parts"),
        },
        None => HostPattern::Exactly(Host::parse(host)?),
    };
    Ok(HostRule { pattern, port, raw })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_one_form_and_odd_ones_none() {
        let name = |text: &str| Host::Name(text.to_owned());
        assert_eq!(Host::parse("EXAMPLE.com."), Ok(name("example.com")));
        assert_eq!(Host::parse("a_b-c.example"), Ok(name("a_b-c.example")));
        assert_eq!(Host::parse("127.0.0.1"), Ok(Host::Address([127, 0, 0, 1].into())));
        assert_eq!(Host::parse("[::1]"), Ok(Host::Address(Ipv6Addr::LOCALHOST.into())));
        for odd in [
            "",
            ".",
            "..",
            "a..b",
            "127.1",
            "0x7f.1",
            "2130706433",
            "0177.0.0.1",
            "1.2.3.4.5",
            "0x7f000001",
            "a b",
            "a\0b",
            "a\r\nb",
            "a%2eb",
            "user@host",
            "h\u{f6}st",
            "host\u{3002}com",
            "[::1",
            "::1",
            "a/b",
            "a\\b",
            "fe80::1%eth0",
            "[fe80::1%eth0]",
        ] {
            assert!(Host::parse(odd).is_err(), "{odd:?} was taken for a host");
        }
        assert!(Host::parse(&"a".repeat(64)).is_err() && Host::parse(&"a.".repeat(200)).is_err());
    }

    #[test]
    fn rules_open_what_they_name_and_nothing_else() {
        let rules =
            |texts: &[&str]| HostRules::parse(&texts.iter().map(|one| one.to_string()).collect::<Vec<_>>());
        let open =
            rules(&["example.com", "*.wild.example.org", "api.example.net:8443", "10.0.0.5:5432"]).unwrap();
        let ask = |host: &str, port| open.allow(&Host::parse(host).unwrap(), port);
        for (host, port) in [
            ("example.com", 443),
            ("Example.COM.", 80),
            ("a.wild.example.org", 443),
            ("a.b.wild.example.org", 443),
            ("api.example.net", 8443),
            ("10.0.0.5", 5432),
        ] {
            assert!(ask(host, port), "{host}:{port}");
        }
        for (host, port) in [
            ("example.com", 22),
            ("www.example.com", 443),
            ("notexample.com", 443),
            ("example.com.evil.net", 443),
            ("wild.example.org", 443),
            ("evilwild.example.org", 443),
            ("api.example.net", 443),
            ("10.0.0.5", 443),
            ("10.0.0.6", 5432),
        ] {
            assert!(!ask(host, port), "{host}:{port}");
        }
        for nothing in [
            "*",
            "*.com",
            "*.*.example.com",
            "a.*.com",
            "http://example.com",
            "example.com/path",
            "example.com/raw/raw",
            "example.com:0",
        ] {
            assert!(rules(&[nothing]).is_err(), "{nothing} was taken for a rule");
        }
        assert!(rules(&[]).is_err());
        let raw = rules(&["db.example:5432/raw", "web.example"]).unwrap();
        let host = |name: &str| Host::parse(name).unwrap();
        assert!(raw.allow(&host("db.example"), 5432) && raw.allow_raw(&host("db.example"), 5432));
        assert!(raw.allow(&host("web.example"), 443) && !raw.allow_raw(&host("web.example"), 443));
        assert!(!raw.allow_raw(&host("db.example"), 443));
    }
}
