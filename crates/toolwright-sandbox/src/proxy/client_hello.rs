//! The first message of TLS, read for the one thing it says in the open: which host is meant.
//!
//! A client that opens a tunnel to one host and names another inside it would reach what the other end also
//! serves, and no rule was applied to that.

use toolwright_net::Host;

/// The most that is read of the first message.
pub(super) const MAX_HELLO: usize = 64 * 1024;

/// Why a tunnel whose beginning is neither TLS nor HTTP is closed.
pub(super) const NOT_READABLE: &str =
    "the tunnel carries neither TLS nor HTTP; a rule such as `host:port/raw` opens other protocols";

/// What the first bytes of a tunnel are, so far.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hello {
    /// It may become a first message of TLS; more is needed.
    Unfinished,
    /// Another protocol, or another message of TLS: some servers drop an alert and go on to read the first
    /// message behind it.
    Other,
    /// A first message, and the host it names.
    For(Option<Host>),
    /// It begins like TLS and continues with bytes that no server has to accept.
    Broken,
}

impl Hello {
    /// Why a tunnel to `host` must not begin like this, if it must not.
    pub(super) fn refusal(&self, host: &Host) -> Option<&'static str> {
        match (self, host) {
            (Hello::Unfinished | Hello::Broken, _) => {
                Some("the tunnel begins with a message of TLS that has no end")
            }
            (Hello::Other, _) => Some(NOT_READABLE),
            // The policy names the address, and with it everything that answers there.
            (Hello::For(_), Host::Address(_)) => None,
            (Hello::For(None), Host::Name(_)) => Some("the tunnel does not say which host it is for"),
            (Hello::For(Some(inside)), host) if inside == host => None,
            (Hello::For(Some(_)), _) => Some("the tunnel is for another host than it was opened to"),
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Hello {
        match message(bytes) {
            Ok(message) => match server_name(&message) {
                Some(name) => name,
                None => Hello::Broken,
            },
            Err(other) => other,
        }
    }
}

/// The message in its records, of which there may be several.
fn message(mut bytes: &[u8]) -> Result<Vec<u8>, Hello> {
    const HANDSHAKE: u8 = 22;
    const CLIENT_HELLO: u8 = 1;
    let mut message = Vec::new();
    loop {
        match bytes {
            [] | [HANDSHAKE] => return Err(Hello::Unfinished),
            [HANDSHAKE, 3, ..] => {}
            // The next record must continue the message.
            _ if message.is_empty() => return Err(Hello::Other),
            _ => return Err(Hello::Broken),
        }
        let Some((length, rest)) = bytes.get(3..).and_then(number::<2>) else {
            return Err(Hello::Unfinished);
        };
        if length == 0 || length > 1 << 14 {
            return Err(Hello::Broken);
        }
        message.extend_from_slice(rest.get(..length.min(rest.len())).unwrap_or_default());
        if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Err(Hello::Broken);
        }
        if let Some((whole, body)) = message.get(1..).and_then(number::<3>) {
            if whole > MAX_HELLO {
                return Err(Hello::Broken);
            }
            if let Some(body) = body.get(..whole) {
                return Ok(body.to_vec());
            }
        }
        bytes = rest.get(length..).ok_or(Hello::Unfinished)?;
    }
}

/// The host in the body of a first message; `None` when the body is not one.
fn server_name(body: &[u8]) -> Option<Hello> {
    // Version and random.
    let rest = body.get(34..)?;
    let (_session, rest) = piece::<1>(rest)?;
    let (_ciphers, rest) = piece::<2>(rest)?;
    let (_compression, rest) = piece::<1>(rest)?;
    if rest.is_empty() {
        return Some(Hello::For(None));
    }
    let (mut extensions, _) = piece::<2>(rest)?;
    let mut host = None;
    while !extensions.is_empty() {
        let (kind, rest) = number::<2>(extensions)?;
        let (value, rest) = piece::<2>(rest)?;
        extensions = rest;
        if kind == 0 {
            let (names, _) = piece::<2>(value)?;
            let (name, more) = piece::<2>(names.strip_prefix(&[0])?)?;
            // Exactly one name: with several it is undefined which one the server uses.
            if !more.is_empty() || host.is_some() {
                return None;
            }
            host = Some(Host::parse(std::str::from_utf8(name).ok()?).ok()?);
        }
    }
    Some(Hello::For(host))
}

/// A number of `N` bytes, and what follows it.
fn number<const N: usize>(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (digits, rest) = bytes.split_at_checked(N)?;
    Some((digits.iter().fold(0, |number, digit| number << 8 | usize::from(*digit)), rest))
}

/// Bytes with their length, a number of `N` bytes, before them; and what follows.
fn piece<const N: usize>(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number::<N>(bytes)?;
    rest.split_at_checked(length)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn sized(bytes: &[u8], digits: usize) -> Vec<u8> {
        let length = bytes.len().to_be_bytes();
        [&length[length.len() - digits..], bytes].concat()
    }

    /// A first message that names these hosts, in records of at most `record` bytes.
    pub(crate) fn hello(names: &[&str], record: usize) -> Vec<u8> {
        let mut extensions = vec![0, 43, 0, 3, 2, 3, 4];
        for name in names {
            let name = [&[0], sized(name.as_bytes(), 2).as_slice()].concat();
            extensions.extend([0, 0]);
            extensions.extend(sized(&sized(&name, 2), 2));
        }
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend(sized(&[9; 32], 1));
        body.extend(sized(&[0x13, 1], 2));
        body.extend(sized(&[0], 1));
        body.extend(sized(&extensions, 2));
        let message = [&[1], sized(&body, 3).as_slice()].concat();
        message.chunks(record).flat_map(|piece| [&[22, 3, 1], sized(piece, 2).as_slice()].concat()).collect()
    }

    fn named(name: &str) -> Hello {
        Hello::For(Some(Host::parse(name).unwrap()))
    }

    #[test]
    fn the_host_is_found_however_the_message_is_cut() {
        for record in [1, 3, 50, 10_000] {
            let bytes = hello(&["Api.Example.com"], record);
            assert_eq!(Hello::read(&bytes), named("api.example.com"), "records of {record}");
            for end in 0..bytes.len() {
                assert_eq!(Hello::read(&bytes[..end]), Hello::Unfinished, "records of {record}, {end} bytes");
            }
        }
        assert_eq!(Hello::read(&hello(&[], 10_000)), Hello::For(None));
    }

    #[test]
    fn what_cannot_be_read_in_one_way_is_broken() {
        assert_eq!(Hello::read(&hello(&["a.example", "b.example"], 10_000)), Hello::Broken);
        assert_eq!(Hello::read(&hello(&["a.example\0.b.example"], 10_000)), Hello::Broken);
        assert_eq!(Hello::read(&hello(&[""], 10_000)), Hello::Broken);
        assert_eq!(Hello::read(&[22, 3, 1, 0xff, 0xff, 1]), Hello::Broken);
        assert_eq!(Hello::read(&[22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff]), Hello::Broken);
        assert_eq!(Hello::read(&[22, 3, 1, 0, 1, 2]), Hello::Broken);
        let mut cut = hello(&["a.example"], 10);
        cut[15] = 23;
        assert_eq!(Hello::read(&cut), Hello::Broken);
        // Any byte may be wrong; nothing but an answer comes of it.
        let whole = hello(&["a.example"], 60);
        for at in 0..whole.len() {
            for value in [0, 1, 127, 255] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let _ = Hello::read(&bytes);
            }
        }
    }

    #[test]
    fn everything_but_a_first_message_is_another_protocol() {
        let alert = [&[21, 3, 1, 0, 2, 1, 90], hello(&["evil.example"], 10_000).as_slice()].concat();
        for bytes in [b"SSH-2.0-x\r\n".as_slice(), b"GET / HTTP/1.1\r\n", &[22, 2], &[0x80, 1], &alert] {
            assert_eq!(Hello::read(bytes), Hello::Other);
        }
        assert_eq!(Hello::read(&[]), Hello::Unfinished);
    }

    #[test]
    fn a_tunnel_is_for_the_host_it_was_opened_to() {
        let (name, address) = (Host::parse("a.example").unwrap(), Host::parse("192.0.2.1").unwrap());
        for (hello, host, open) in [
            (named("a.example"), &name, true),
            (named("b.example"), &name, false),
            (named("sub.a.example"), &name, false),
            (named("192.0.2.1"), &name, false),
            (Hello::For(None), &name, false),
            (Hello::Broken, &name, false),
            (Hello::Other, &name, false),
            (Hello::Other, &address, false),
            (Hello::For(None), &address, true),
            (named("b.example"), &address, true),
            (Hello::Broken, &address, false),
        ] {
            assert_eq!(hello.refusal(host).is_none(), open, "{hello:?} to {host}");
        }
    }
}
