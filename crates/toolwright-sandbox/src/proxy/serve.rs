//! One connection: a head, a decision, a dial, and then bytes.

use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use toolwright_net::Host;

use super::client_hello::{Hello, MAX_HELLO, NOT_READABLE};
use super::request::{self, Forward, MAX_HEAD, ProxyRequest, RequestKind};
use super::{Desk, lock};

/// How long a head, a name or a dial may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How long nothing may move in either direction.
const IDLE: Duration = Duration::from_secs(300);
const CHUNK: usize = 16 * 1024;
/// How TLS says that there is no such host here, so that a client can tell its user.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 1, 0, 2, 2, 112];

pub(super) async fn connection(mut client: TcpStream, desk: &Desk) {
    if let Err(refusal) = answer(&mut client, desk).await {
        refuse(&mut client, refusal).await;
    }
}

/// Writes why a request is not carried out, as a response.
async fn refuse(client: &mut TcpStream, (status, words): request::ProxyRefusal) {
    let body = format!("toolwright: {words}\n");
    let text = format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: text/plain\r\nX-Toolwright-Refused: {words}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        phrase(status),
        body.len()
    );
    let _ = timeout(PATIENCE, client.write_all(text.as_bytes())).await;
    // Closing with unread bytes would reset the connection before the answer is read.
    let _ = client.shutdown().await;
    let _ = timeout(Duration::from_millis(500), drain(client)).await;
}

fn phrase(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        403 => "Forbidden",
        411 => "Length Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        504 => "Gateway Timeout",
        _ => "Not Possible",
    }
}

async fn drain(client: &mut TcpStream) {
    let mut left = [0; CHUNK];
    for _ in 0..64 {
        if !client.read(&mut left).await.is_ok_and(|count| count > 0) {
            return;
        }
    }
}

async fn answer(client: &mut TcpStream, desk: &Desk) -> Result<(), request::ProxyRefusal> {
    let read = timeout(PATIENCE, read_head(client)).await;
    let (head, early) = read.map_err(|_| (400, "the head did not arrive in time"))??;
    let ProxyRequest { host, port, kind } = request::parse(&head)?;
    let mut server = dial(&desk.addresses(&host, port).await?).await?;
    match kind {
        RequestKind::Tunnel => {
            if client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.is_err() {
                return Ok(());
            }
            if desk.rules.allow_raw(&host, port) {
                both_ways(client, &mut server, &early).await;
                return Ok(());
            }
            match opening(client, early, &host, port).await {
                Ok(Opening::Tls(first)) => both_ways(client, &mut server, &first).await,
                Ok(Opening::Http(request, early)) => forward(client, &mut server, request, early).await,
                Ok(Opening::Nothing) => {}
                Err(closing) => {
                    desk.record(&host, port, Some(closing.reason()));
                    match closing {
                        Closing::Tls(_) => {
                            let _ = timeout(PATIENCE, client.write_all(&UNRECOGNIZED_NAME)).await;
                        }
                        Closing::Http(refusal) => refuse(client, refusal).await,
                        Closing::Other(_) => {}
                    }
                }
            }
        }
        RequestKind::Forward(request) => forward(client, &mut server, request, early).await,
    }
    Ok(())
}

/// Sends one request and carries its response back. What follows its body is not sent: it could be for
/// another host. `early` is what came after the head.
async fn forward(client: &mut TcpStream, server: &mut TcpStream, request: Forward, early: Vec<u8>) {
    let Forward { head, body, upgrade } = request;
    if upgrade {
        let _ = upgraded(client, server, &head, &early).await;
        return;
    }
    let early = early.get(..early.len().min(usize::try_from(body).unwrap_or(usize::MAX))).unwrap_or_default();
    let left = body - early.len() as u64;
    let active = Mutex::new(Instant::now());
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let send = async {
        to_server.write_all(head.as_bytes()).await?;
        to_server.write_all(early).await?;
        pump((&mut from_client).take(left), &mut to_server, &active).await?;
        // The answer ends the connection, not the request.
        std::future::pending::<io::Result<()>>().await
    };
    tokio::select! {
        _ = send => {}
        _ = pump(&mut from_server, &mut to_client, &active) => {}
    }
}

/// Asks for a WebSocket. Bytes of the client follow only once the server has agreed: to any other server they
/// would be a second request.
async fn upgraded(
    client: &mut TcpStream,
    server: &mut TcpStream,
    head: &str,
    early: &[u8],
) -> io::Result<()> {
    server.write_all(head.as_bytes()).await?;
    let (mut response, mut piece) = (Vec::new(), [0; 2048]);
    let agreed = loop {
        let count = timeout(IDLE, server.read(&mut piece)).await.map_err(|_| io::ErrorKind::TimedOut)??;
        let fresh = piece.get(..count).unwrap_or_default();
        response.extend_from_slice(fresh);
        client.write_all(fresh).await?;
        if count == 0 || response.len() > MAX_HEAD {
            break false;
        }
        if response.windows(4).any(|four| four == b"\r\n\r\n") {
            break response.starts_with(b"HTTP/1.1 101 ");
        }
    };
    if agreed {
        both_ways(client, server, early).await;
        return Ok(());
    }
    let active = Mutex::new(Instant::now());
    pump(server, client, &active).await
}

/// Reads to the empty line; what came after it is returned apart.
async fn read_head(client: &mut TcpStream) -> Result<(Vec<u8>, Vec<u8>), request::ProxyRefusal> {
    let mut head = Vec::with_capacity(1024);
    let mut piece = [0; 2048];
    loop {
        let count = client.read(&mut piece).await.unwrap_or(0);
        if count == 0 {
            return Err((400, "the head has no end"));
        }
        // The end may lie across two pieces.
        let from = head.len().saturating_sub(3);
        head.extend_from_slice(piece.get(..count).unwrap_or_default());
        let fresh = head.get(from..).unwrap_or_default();
        if let Some(at) = fresh.windows(4).position(|four| four == b"\r\n\r\n") {
            let early = head.split_off(from + at + 4);
            return Ok((head, early));
        }
        if head.len() > MAX_HEAD {
            return Err((431, "the head is too long"));
        }
        // Only HTTP requests are accepted; other protocols are refused at once.
        if head.first().is_some_and(|one| !one.is_ascii_uppercase()) {
            return Err((400, "not a request"));
        }
    }
}

async fn dial(addresses: &[SocketAddr]) -> Result<TcpStream, request::ProxyRefusal> {
    for address in addresses {
        if let Ok(Ok(stream)) = timeout(PATIENCE, TcpStream::connect(address)).await {
            let _ = stream.set_nodelay(true);
            return Ok(stream);
        }
    }
    Err((502, "the host does not answer"))
}

/// Carries bytes in both directions; `first` are those that the client has sent already.
async fn both_ways(client: &mut TcpStream, server: &mut TcpStream, first: &[u8]) {
    let active = Mutex::new(Instant::now());
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = async {
        to_server.write_all(first).await?;
        pump(&mut from_client, &mut to_server, &active).await?;
        to_server.shutdown().await
    };
    let down = async {
        pump(&mut from_server, &mut to_client, &active).await?;
        to_client.shutdown().await
    };
    let _ = tokio::try_join!(up, down);
}

/// How a tunnel begins.
enum Opening {
    /// With a first message of TLS for the tunnel's host, and what came after it.
    Tls(Vec<u8>),
    /// With a request for the tunnel's host, and what came after its head.
    Http(Forward, Vec<u8>),
    /// The client left.
    Nothing,
}

/// Why a tunnel is closed, and in which protocol the client is notified.
enum Closing {
    Tls(&'static str),
    Http(request::ProxyRefusal),
    Other(&'static str),
}

impl Closing {
    fn reason(&self) -> &'static str {
        match self {
            Closing::Tls(reason) | Closing::Other(reason) | Closing::Http((_, reason)) => reason,
        }
    }
}

/// Reads until it is clear what the tunnel carries. Until then the server is sent nothing, and nothing of it
/// is passed on.
async fn opening(
    client: &mut TcpStream,
    mut first: Vec<u8>,
    host: &Host,
    port: u16,
) -> Result<Opening, Closing> {
    const ENDLESS: &str = "the tunnel begins with a message that has no end";
    let mut piece = [0; 4096];
    loop {
        match first.first() {
            None => {}
            Some(byte) if byte.is_ascii_uppercase() => {
                if !may_be_request(&first) {
                    return Err(Closing::Other(NOT_READABLE));
                }
                if let Some(at) = first.windows(4).position(|four| four == b"\r\n\r\n") {
                    let early = first.split_off(at + 4);
                    let request = request::parse_inside(&first, host, port).map_err(Closing::Http)?;
                    return Ok(Opening::Http(request, early));
                }
                if first.len() > MAX_HEAD {
                    return Err(Closing::Http((431, "the head is too long")));
                }
            }
            Some(_) => {
                let hello = Hello::read(&first);
                if hello != Hello::Unfinished {
                    return match (hello.refusal(host), hello) {
                        (None, _) => Ok(Opening::Tls(first)),
                        (Some(reason), Hello::Other) => Err(Closing::Other(reason)),
                        (Some(reason), _) => Err(Closing::Tls(reason)),
                    };
                }
                if first.len() > 2 * MAX_HELLO {
                    return Err(Closing::Tls(ENDLESS));
                }
            }
        }
        // A client that began a message has to finish it.
        let patience = if first.is_empty() { IDLE } else { PATIENCE };
        match timeout(patience, client.read(&mut piece)).await {
            Ok(Ok(count)) if count > 0 => first.extend_from_slice(piece.get(..count).unwrap_or_default()),
            Ok(_) if first.is_empty() => return Ok(Opening::Nothing),
            Err(_) if first.is_empty() => return Err(Closing::Other("nothing was sent in the tunnel")),
            _ if may_be_request(&first) => return Err(Closing::Http((400, ENDLESS))),
            _ => return Err(Closing::Tls(ENDLESS)),
        }
    }
}

/// Whether bytes begin with a method and a space, as far as they go. `SSH-2.0` does not.
fn may_be_request(bytes: &[u8]) -> bool {
    let method = bytes.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    (1..=32).contains(&method) && bytes.get(method).is_none_or(|byte| *byte == b' ')
}

/// Copies until the end, an error, or a time in which nothing moved in either direction.
async fn pump(
    mut from: impl AsyncRead + Unpin,
    to: &mut (impl AsyncWrite + Unpin),
    active: &Mutex<Instant>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = match timeout(IDLE, from.read(&mut buffer)).await {
            Ok(count) => count?,
            Err(_) if lock(active).elapsed() < IDLE => continue,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        };
        let bytes = buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(());
        }
        timeout(IDLE, to.write_all(bytes)).await.map_err(|_| io::ErrorKind::TimedOut)??;
        *lock(active) = Instant::now();
    }
}
