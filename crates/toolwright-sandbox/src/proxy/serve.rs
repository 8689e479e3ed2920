//! One connection: a head, a decision, a dial, and then bytes.

use std::io;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::hello::{Hello, MAX_HELLO};
use super::request::{self, MAX_HEAD, Request, RequestKind};
use super::rules::Host;
use super::{Desk, lock};

/// How long a head, a name or a dial may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How long nothing may move in either direction.
const IDLE: Duration = Duration::from_secs(300);
const CHUNK: usize = 16 * 1024;
/// How TLS says that there is no such host here, so that a client can tell its user.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 1, 0, 2, 2, 112];

pub(super) async fn connection(mut client: TcpStream, desk: &Desk) {
    if let Err((status, words)) = answer(&mut client, desk).await {
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
        let _ = timeout(Duration::from_millis(500), drain(&mut client)).await;
    }
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

async fn answer(client: &mut TcpStream, desk: &Desk) -> Result<(), request::Refusal> {
    let read = timeout(PATIENCE, read_head(client)).await;
    let (head, early) = read.map_err(|_| (400, "the head did not arrive in time"))??;
    let Request { host, port, kind } = request::parse(&head)?;
    let mut server = dial(&desk.addresses(&host, port).await?).await?;
    match kind {
        RequestKind::Tunnel => {
            let open = client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await;
            if open.is_ok()
                && let Err(words) = tunnel(client, &mut server, early, &host).await
            {
                desk.record(&host, port, Some(words));
                let _ = timeout(PATIENCE, client.write_all(&UNRECOGNIZED_NAME)).await;
            }
        }
        RequestKind::Forward { head, body } => {
            // Exactly one request goes out: what follows its body is not ours to send.
            let early =
                early.get(..early.len().min(usize::try_from(body).unwrap_or(usize::MAX))).unwrap_or_default();
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
    }
    Ok(())
}

/// Reads to the empty line; what came after it is returned apart.
async fn read_head(client: &mut TcpStream) -> Result<(Vec<u8>, Vec<u8>), request::Refusal> {
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

async fn dial(addresses: &[SocketAddr]) -> Result<TcpStream, request::Refusal> {
    for address in addresses {
        if let Ok(Ok(stream)) = timeout(PATIENCE, TcpStream::connect(address)).await {
            let _ = stream.set_nodelay(true);
            return Ok(stream);
        }
    }
    Err((502, "the host does not answer"))
}

/// Carries bytes both ways once the first of them are in order; the error says why they are not.
async fn tunnel(
    client: &mut TcpStream,
    server: &mut TcpStream,
    early: Vec<u8>,
    host: &Host,
) -> Result<(), &'static str> {
    let active = Mutex::new(Instant::now());
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let up = async {
        let first = first_words(&mut from_client, early, host, &active).await.map_err(Some)?;
        to_server.write_all(&first).await.map_err(|_| None)?;
        pump(&mut from_client, &mut to_server, &active).await.map_err(|_| None)?;
        to_server.shutdown().await.map_err(|_| None)
    };
    // Some servers speak first.
    let down = async {
        pump(&mut from_server, &mut to_client, &active).await.map_err(|_| None)?;
        to_client.shutdown().await.map_err(|_| None)
    };
    match tokio::try_join!(up, down) {
        Err(Some(words)) => Err(words),
        _ => Ok(()),
    }
}

/// Reads until it is clear what the tunnel is for.
async fn first_words(
    client: &mut (impl AsyncRead + Unpin),
    mut first: Vec<u8>,
    host: &Host,
    active: &Mutex<Instant>,
) -> Result<Vec<u8>, &'static str> {
    let mut piece = [0; 4096];
    loop {
        let hello = Hello::read(&first);
        if hello != Hello::Unfinished {
            return hello.refusal(host).map_or(Ok(first), Err);
        }
        // A client that began a TLS message has to finish it; a silent one may still be reading.
        let patience = if first.is_empty() { IDLE } else { PATIENCE };
        match timeout(patience, client.read(&mut piece)).await {
            Ok(Ok(count)) if count > 0 => first.extend_from_slice(piece.get(..count).unwrap_or_default()),
            Ok(_) if first.is_empty() => return Ok(first),
            Err(_) if first.is_empty() && lock(active).elapsed() < IDLE => {}
            Err(_) if first.is_empty() => return Err("nothing was said in the tunnel"),
            _ => return Err("the tunnel begins with a message of TLS that has no end"),
        }
        if first.len() > 2 * MAX_HELLO {
            return Err("the tunnel begins with a message of TLS that has no end");
        }
    }
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
