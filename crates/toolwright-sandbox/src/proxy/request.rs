//! The head of a request, read so strictly that the next server cannot read it differently.

use toolwright_net::{Host, split_port};

/// The longest head.
pub(super) const MAX_HEAD: usize = 16 * 1024;
const MAX_FIELDS: usize = 100;

/// A request to the proxy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ProxyRequest {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) kind: RequestKind,
}

/// The two kinds of request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// Bytes in both directions.
    Tunnel,
    /// One plain request.
    Forward(Forward),
}

/// One request as the server gets it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Forward {
    pub(super) head: String,
    /// The bytes of its body.
    pub(super) body: u64,
    /// Whether it asks for a WebSocket: when the server agrees, bytes follow in both directions.
    pub(super) upgrade: bool,
}

/// Why a request is not carried out: the status, and words for people.
pub(super) type ProxyRefusal = (u16, &'static str);

const fn bad(words: &'static str) -> ProxyRefusal {
    (400, words)
}

/// The parts of a head.
struct RequestHead<'h> {
    method: &'h str,
    target: &'h str,
    version: &'h str,
    fields: Vec<(&'h str, &'h str)>,
}

/// Reads a request to the proxy, the empty line included.
pub(super) fn parse(head: &[u8]) -> Result<ProxyRequest, ProxyRefusal> {
    let head = RequestHead::read(head)?;
    if head.method == "CONNECT" {
        let (host, port) = split_port(head.target, None).map_err(bad)?;
        let host = Host::parse(host).map_err(bad)?;
        return Ok(ProxyRequest { host, port, kind: RequestKind::Tunnel });
    }
    let rest =
        head.target.strip_prefix("http://").ok_or(bad("a proxy wants `http://host/path`, or CONNECT"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (host, port) = split_port(authority, Some(80)).map_err(bad)?;
    let host = Host::parse(host).map_err(bad)?;
    let forward = head.forward(path, authority, &host, port, 80)?;
    Ok(ProxyRequest { host, port, kind: RequestKind::Forward(forward) })
}

/// Reads a request inside a tunnel, which must be for the host and the port that the tunnel was opened to.
pub(super) fn parse_inside(head: &[u8], host: &Host, port: u16) -> Result<Forward, ProxyRefusal> {
    let head = RequestHead::read(head)?;
    if !head.target.starts_with('/') {
        return Err(bad("a request in a tunnel is for a path"));
    }
    let authority = match host {
        Host::Address(std::net::IpAddr::V6(address)) => format!("[{address}]:{port}"),
        host => format!("{host}:{port}"),
    };
    // Without a port, the field means the usual one; clients of tunnels leave out the tunnel's too.
    head.forward(head.target, authority.strip_suffix(":80").unwrap_or(&authority), host, port, port)
}

impl<'h> RequestHead<'h> {
    fn read(head: &'h [u8]) -> Result<Self, ProxyRefusal> {
        let head = std::str::from_utf8(head).map_err(|_| bad("the head is not text"))?;
        let head = head.strip_suffix("\r\n\r\n").ok_or(bad("the head has no end"))?;
        if head
            .bytes()
            .any(|one| one == 0 || (one < 0x20 && !matches!(one, b'\r' | b'\n' | b'\t')) || one == 0x7f)
        {
            return Err(bad("a control character in the head"));
        }
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let fields = lines.map(field).collect::<Result<Vec<_>, _>>()?;
        if head.replace("\r\n", "").contains(['\r', '\n']) {
            return Err(bad("a line that ends oddly"));
        }
        if fields.len() > MAX_FIELDS {
            return Err((431, "too many fields"));
        }
        let words: Vec<&str> = first.split(' ').collect();
        let [method, target, version] = *words.as_slice() else { return Err(bad("not a request")) };
        if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
            return Err((505, "only HTTP/1.1 and HTTP/1.0 are supported"));
        }
        if method.is_empty() || method.len() > 32 || !method.bytes().all(|one| one.is_ascii_uppercase()) {
            return Err(bad("not a method"));
        }
        Ok(RequestHead { method, target, version, fields })
    }

    fn values(&self, name: &str) -> Vec<&'h str> {
        let named = self.fields.iter().filter(|(one, _)| one.eq_ignore_ascii_case(name));
        named.map(|(_, value)| *value).collect()
    }

    /// The request as the server gets it. `usual` is the port of a `Host` field without one.
    fn forward(
        &self,
        path: &str,
        authority: &str,
        host: &Host,
        port: u16,
        usual: u16,
    ) -> Result<Forward, ProxyRefusal> {
        if path.contains('#') || !path.bytes().all(|one| one.is_ascii_graphic()) {
            return Err(bad("an odd path"));
        }
        match self.values("host").as_slice() {
            [] if self.version == "HTTP/1.0" => {}
            [field] => {
                let (named, at) = split_port(field, Some(usual)).map_err(bad)?;
                if Host::parse(named).map_err(bad)? != *host || at != port {
                    return Err(bad("the Host field names another host"));
                }
            }
            _ => return Err(bad("one Host field is needed")),
        }
        if !self.values("transfer-encoding").is_empty() {
            return Err((411, "a body needs a Content-Length"));
        }
        let body = match self.values("content-length").as_slice() {
            [] => 0,
            [one]
                if !one.is_empty() && one.len() <= 15 && one.bytes().all(|digit| digit.is_ascii_digit()) =>
            {
                one.parse().map_err(|_| bad("an odd Content-Length"))?
            }
            _ => return Err(bad("an odd Content-Length")),
        };
        let upgrade = self.method == "GET"
            && body == 0
            && matches!(self.values("upgrade").as_slice(), [one] if one.eq_ignore_ascii_case("websocket"));
        let (slash, method) = (if path.starts_with('/') { "" } else { "/" }, self.method);
        let connection = if upgrade { "Upgrade\r\nUpgrade: websocket" } else { "close" };
        let mut head =
            format!("{method} {slash}{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: {connection}\r\n");
        const OURS: [&str; 8] = [
            "host",
            "connection",
            "proxy-connection",
            "proxy-authorization",
            "keep-alive",
            "te",
            "trailer",
            "upgrade",
        ];
        for (name, value) in
            self.fields.iter().filter(|(name, _)| !OURS.iter().any(|one| one.eq_ignore_ascii_case(name)))
        {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        Ok(Forward { head, body, upgrade })
    }
}

fn field(line: &str) -> Result<(&str, &str), ProxyRefusal> {
    let (name, value) = line.split_once(':').ok_or(bad("a field without a colon"))?;
    let token = |one: u8| one.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&one);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(bad("a field with an odd name"));
    }
    Ok((name, value.trim_matches([' ', '\t'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(head: &str) -> u16 {
        parse(head.as_bytes()).err().map_or(0, |(status, _)| status)
    }

    #[test]
    fn a_tunnel_and_a_page_are_understood() {
        let request = parse(b"CONNECT Example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!(
            request,
            ProxyRequest { host: Host::Name("example.com".into()), port: 443, kind: RequestKind::Tunnel }
        );
        let request = parse(
            b"POST http://example.com:8080?q=1 HTTP/1.1\r\nHost: EXAMPLE.com:8080\r\nProxy-Authorization: x\r\n\
              Accept: */*\r\nContent-Length: 3\r\n\r\n",
        )
        .unwrap();
        let head = "POST /?q=1 HTTP/1.1\r\nHost: example.com:8080\r\nConnection: close\r\nAccept: */*\r\n\
                    Content-Length: 3\r\n\r\n";
        let forward = Forward { head: head.to_owned(), body: 3, upgrade: false };
        assert_eq!(request.kind, RequestKind::Forward(forward));
        assert_eq!((request.host, request.port), (Host::Name("example.com".into()), 8080));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for target in [
            "example.com",
            "example.com:0",
            "example.com:65536",
            "example.com:+443",
            "a b:443",
            "a@b.com:443",
            "exa%6dple.com:443",
            "127.1:443",
            "[::1:443",
            "h\u{f6}st:443",
            "a\0b:443",
            ":443",
        ] {
            assert_eq!(status(&format!("CONNECT {target} HTTP/1.1\r\n\r\n")), 400, "{target:?}");
        }
        let get = |rest: &str| status(&format!("GET http://example.com/ HTTP/1.1\r\n{rest}\r\n"));
        assert_eq!(get("Host: example.com\r\n"), 0);
        for rest in [
            "",
            "Host: example.com\r\nHost: example.com\r\n",
            "Host: other.com\r\n",
            "Host: example.com:81\r\n",
            "Host: example.com\r\nContent-Length: 1\r\nContent-Length: 1\r\n",
            "Host: example.com\r\nContent-Length: +1\r\n",
            "Host: example.com\r\nContent-Length: 1, 1\r\n",
            "Host: example.com\r\nX : y\r\n",
            "Host: example.com\r\n folded: y\r\n",
            "Host: example.com\r\nX: a\nY: b\r\n",
            "Host: example.com\r\nX: a\rY: b\r\n",
            "Host: example.com\r\nno colon\r\n",
            "Host: example.com\r\nX: \u{1}\r\n",
        ] {
            assert_eq!(get(rest), 400, "{rest:?}");
        }
        assert_eq!(get("Host: example.com\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n"), 411);
        assert_eq!(get(&"X: y\r\n".repeat(200)), 431);
        for first in [
            "GET / HTTP/1.1",
            "GET https://example.com/ HTTP/1.1",
            "GET ftp://example.com/ HTTP/1.1",
            "get http://example.com/ HTTP/1.1",
            "GET  http://example.com/ HTTP/1.1",
            "GET http://a@example.com/ HTTP/1.1",
            "GET http://example.com\\@evil/ HTTP/1.1",
            "GET http://example.com/#x HTTP/1.1",
            "\u{5}\u{1}\0",
            "",
        ] {
            assert_eq!(status(&format!("{first}\r\nHost: example.com\r\n\r\n")), 400, "{first:?}");
        }
        assert_eq!(status("GET http://example.com/ HTTP/2.0\r\nHost: example.com\r\n\r\n"), 505);
    }

    #[test]
    fn a_request_inside_a_tunnel_is_for_its_host() {
        let host = Host::parse("example.com").unwrap();
        let inside = |text: &str, port: u16| parse_inside(text.as_bytes(), &host, port);
        let head = "GET /x HTTP/1.1\r\nHost: example.com:8080\r\nConnection: close\r\nX: y\r\n\r\n";
        let forward =
            inside("GET /x HTTP/1.1\r\nHost: example.com:8080\r\nTE: x\r\nX: y\r\n\r\n", 8080).unwrap();
        assert_eq!(forward, Forward { head: head.to_owned(), body: 0, upgrade: false });
        let socket =
            "GET /s HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        let forward = inside(socket, 80).unwrap();
        assert_eq!((forward.head.as_str(), forward.upgrade), (socket, true));
        for text in [
            "GET /x HTTP/1.1\r\nHost: evil.example\r\n\r\n",
            "GET /x HTTP/1.1\r\nHost: example.com:81\r\n\r\n",
            "GET http://evil.example/x HTTP/1.1\r\nHost: example.com\r\n\r\n",
            "CONNECT evil.example:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
            "GET /x HTTP/1.1\r\n\r\n",
            "PRI * HTTP/2.0\r\n\r\n",
        ] {
            assert!(inside(text, 80).is_err(), "{text:?}");
        }
    }
}
