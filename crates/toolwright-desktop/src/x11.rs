//! A client of the X protocol over any pair of streams. Requests are sent without waiting; replies are routed
//! by number, and each is bounded before memory is allocated for it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use x11rb_protocol::connect::Connect;
use x11rb_protocol::protocol::xproto::{QueryExtensionRequest, Setup};
use x11rb_protocol::x11_utils::{ReplyRequest, Request, TryParse as _};

/// How long a server may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest reply: the pixels of the largest screen.
const MAX_REPLY: usize = 4 * crate::display::MAX_PIXELS + 4096;
/// The length of events, errors and the heads of replies.
const PACKET: usize = 32;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum XError {
    /// The connection ended.
    Closed,
    /// The server does not answer.
    Timeout,
    /// The server refused the request, with this code.
    Refused(u8),
    /// The server sent what the protocol does not allow.
    Broken(String),
}

impl fmt::Display for XError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            XError::Closed => f.write_str("the display is gone"),
            XError::Timeout => write!(f, "the display did not answer in {} s", ANSWER_TIMEOUT.as_secs()),
            XError::Refused(code) => write!(f, "the display refused a request (X error {code})"),
            XError::Broken(why) => write!(f, "the display broke the X protocol: {why}"),
        }
    }
}

/// A connection to an X server. It ends when the last handle is dropped.
pub(crate) struct XConnection {
    state: Arc<Mutex<ConnectionState>>,
    out: mpsc::UnboundedSender<Vec<u8>>,
    events: watch::Receiver<XEvents>,
    pub(crate) setup: Setup,
}

/// What happened, counted by kind.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct XEvents {
    /// Reports that something was drawn.
    pub(crate) damage: u64,
    /// Changes of the keyboard mapping.
    pub(crate) mapping: u64,
}

#[derive(Default)]
struct ConnectionState {
    /// The number of the last request.
    sequence: u16,
    pending: HashMap<u16, oneshot::Sender<Result<Vec<u8>, XError>>>,
    /// The event code of damage reports.
    damage_event: Option<u8>,
    closed: Option<XError>,
}

impl XConnection {
    /// Opens a connection with the authority cookie of the display.
    pub(crate) async fn open(
        mut reader: Box<dyn AsyncRead + Send + Unpin>,
        mut writer: Box<dyn AsyncWrite + Send + Unpin>,
        cookie: &[u8],
    ) -> Result<XConnection, XError> {
        let name = if cookie.is_empty() { Vec::new() } else { b"MIT-MAGIC-COOKIE-1".to_vec() };
        let (mut connect, greeting) = Connect::with_authorization(name, cookie.to_vec());
        let handshake = async {
            writer.write_all(&greeting).await?;
            writer.flush().await?;
            loop {
                // The whole setup is at most 256 KiB: its length is 16 bits.
                let count = reader.read(connect.buffer()).await?;
                if count == 0 {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                if connect.advance(count) {
                    return Ok::<_, std::io::Error>(());
                }
            }
        };
        timeout(ANSWER_TIMEOUT, handshake).await.map_err(|_| XError::Timeout)?.map_err(|_| XError::Closed)?;
        let setup = connect.into_setup().map_err(|error| XError::Broken(error.to_string()))?;
        let (out, requests) = mpsc::unbounded_channel();
        let (told, events) = watch::channel(XEvents::default());
        let state = Arc::new(Mutex::new(ConnectionState::default()));
        tokio::spawn(write_requests(writer, requests));
        tokio::spawn(read_packets(reader, state.clone(), told));
        Ok(XConnection { state, out, events, setup })
    }

    /// Counts of events; changes with each.
    pub(crate) fn events(&self) -> watch::Receiver<XEvents> {
        self.events.clone()
    }

    /// Events with this code are reports of damage.
    pub(crate) fn count_damage(&self, code: u8) {
        lock(&self.state).damage_event = Some(code);
    }

    pub(crate) fn is_closed(&self) -> bool {
        lock(&self.state).closed.is_some()
    }

    /// The opcode and the first event code of an extension.
    pub(crate) async fn extension(&self, name: &'static str) -> Result<Option<(u8, u8)>, XError> {
        let reply = self.ask(QueryExtensionRequest { name: name.as_bytes().into() }, 0).await?;
        Ok(reply.present.then_some((reply.major_opcode, reply.first_event)))
    }

    /// Sends a request that has no reply. It never waits, so that a `Drop` can call it.
    pub(crate) fn send(&self, request: impl Request, opcode: u8) {
        self.post(request, opcode, None);
    }

    /// Sends a request and waits for its reply.
    pub(crate) async fn ask<R: ReplyRequest>(&self, request: R, opcode: u8) -> Result<R::Reply, XError> {
        let (sender, receiver) = oneshot::channel();
        self.post(request, opcode, Some(sender));
        let bytes = match timeout(ANSWER_TIMEOUT, receiver).await {
            Err(_) => return Err(XError::Timeout),
            Ok(Err(_)) => return Err(XError::Closed),
            Ok(Ok(answer)) => answer?,
        };
        let parsed = R::Reply::try_parse(&bytes);
        parsed.map(|(reply, _)| reply).map_err(|error| XError::Broken(error.to_string()))
    }

    fn post(
        &self,
        request: impl Request,
        opcode: u8,
        reply: Option<oneshot::Sender<Result<Vec<u8>, XError>>>,
    ) {
        let (bytes, _) = request.serialize(opcode);
        // Requests must leave in the order of their numbers.
        let mut state = lock(&self.state);
        state.sequence = state.sequence.wrapping_add(1);
        if let Some(reply) = reply {
            match &state.closed {
                Some(error) => drop(reply.send(Err(error.clone()))),
                None => {
                    let number = state.sequence;
                    state.pending.insert(number, reply);
                }
            }
        }
        let _ = self.out.send(bytes);
    }
}

async fn write_requests(
    mut writer: Box<dyn AsyncWrite + Send + Unpin>,
    mut requests: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    while let Some(mut bytes) = requests.recv().await {
        while let Ok(more) = requests.try_recv() {
            bytes.extend(more);
        }
        if writer.write_all(&bytes).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

/// Reads until the connection ends, then fails what still waits.
async fn read_packets(
    mut reader: Box<dyn AsyncRead + Send + Unpin>,
    state: Arc<Mutex<ConnectionState>>,
    told: watch::Sender<XEvents>,
) {
    let ended = loop {
        if let Err(error) = read_packet(&mut reader, &state, &told).await {
            break error;
        }
    };
    let mut state = lock(&state);
    state.closed = Some(ended.clone());
    for (_, reply) in state.pending.drain() {
        let _ = reply.send(Err(ended.clone()));
    }
}

async fn read_packet(
    reader: &mut (dyn AsyncRead + Send + Unpin),
    state: &Mutex<ConnectionState>,
    told: &watch::Sender<XEvents>,
) -> Result<(), XError> {
    let mut head = [0; PACKET];
    reader.read_exact(&mut head).await.map_err(|_| XError::Closed)?;
    let [
        kind,
        code,
        low,
        high,
        length @ ..,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
    ] = head;
    let number = u16::from_ne_bytes([low, high]);
    // Replies and generic events are longer than their heads.
    let more = match kind {
        1 | 35 => usize::try_from(u32::from_ne_bytes(length)).unwrap_or(usize::MAX).saturating_mul(4),
        _ => 0,
    };
    if more > MAX_REPLY {
        return Err(XError::Broken(format!("a reply of {more} bytes")));
    }
    if kind == 1 && !lock(state).pending.contains_key(&number) {
        return Err(XError::Broken("a reply to no request".to_owned()));
    }
    let mut packet = vec![0; PACKET + more];
    let (start, rest) = packet.split_at_mut(PACKET);
    start.copy_from_slice(&head);
    reader.read_exact(rest).await.map_err(|_| XError::Closed)?;
    let reply = match kind {
        0 => Err(XError::Refused(code)),
        1 => Ok(packet),
        34 => {
            told.send_modify(|events| events.mapping += 1);
            return Ok(());
        }
        event => {
            if lock(state).damage_event == Some(event & 0x7f) {
                told.send_modify(|events| events.damage += 1);
            }
            return Ok(());
        }
    };
    if let Some(waiting) = lock(state).pending.remove(&number) {
        let _ = waiting.send(reply);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::DuplexStream;
    use x11rb_protocol::protocol::xproto::GetInputFocusRequest;
    use x11rb_protocol::x11_utils::Serialize as _;

    /// A connection whose other end is the test.
    async fn connected() -> (XConnection, DuplexStream) {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(ours);
        let opening =
            tokio::spawn(async move { XConnection::open(Box::new(reader), Box::new(writer), b"").await });
        let mut greeting = [0; 12];
        theirs.read_exact(&mut greeting).await.unwrap();
        let mut setup = Setup {
            status: 1,
            protocol_major_version: 11,
            protocol_minor_version: 0,
            length: 0,
            release_number: 0,
            resource_id_base: 0,
            resource_id_mask: 0,
            motion_buffer_size: 0,
            maximum_request_length: 0,
            image_byte_order: 0.into(),
            bitmap_format_bit_order: 0.into(),
            bitmap_format_scanline_unit: 32,
            bitmap_format_scanline_pad: 32,
            min_keycode: 8,
            max_keycode: 255,
            vendor: Vec::new(),
            pixmap_formats: Vec::new(),
            roots: Vec::new(),
        };
        setup.length = u16::try_from((setup.serialize().len() - 8) / 4).unwrap();
        theirs.write_all(&setup.serialize()).await.unwrap();
        (opening.await.unwrap().unwrap(), theirs)
    }

    async fn answered(packet: &[u8]) -> XError {
        let (connection, mut server) = connected().await;
        let asking = connection.ask(GetInputFocusRequest, 0);
        let serving = async {
            let mut request = [0; 4];
            server.read_exact(&mut request).await.unwrap();
            server.write_all(packet).await.unwrap();
        };
        tokio::join!(asking, serving).0.unwrap_err()
    }

    #[tokio::test]
    async fn a_server_cannot_make_us_allocate_or_answer_what_was_not_asked() {
        let reply = |number: u16, length: u32| {
            let mut packet = vec![0; PACKET];
            packet[0] = 1;
            packet[2..4].copy_from_slice(&number.to_ne_bytes());
            packet[4..8].copy_from_slice(&length.to_ne_bytes());
            packet
        };
        assert_eq!(
            answered(&reply(1, u32::MAX)).await,
            XError::Broken("a reply of 17179869180 bytes".to_owned())
        );
        assert_eq!(answered(&reply(7, 0)).await, XError::Broken("a reply to no request".to_owned()));
        let mut refused = vec![0; PACKET];
        refused[1] = 3;
        refused[2..4].copy_from_slice(&1_u16.to_ne_bytes());
        assert_eq!(answered(&refused).await, XError::Refused(3));
    }

    #[tokio::test]
    async fn the_end_of_the_server_ends_what_waits_and_what_comes_after() {
        let (connection, server) = connected().await;
        let (answer, ()) = tokio::join!(connection.ask(GetInputFocusRequest, 0), async { drop(server) });
        assert_eq!(answer.err(), Some(XError::Closed));
        assert!(connection.is_closed());
        assert_eq!(connection.ask(GetInputFocusRequest, 0).await.err(), Some(XError::Closed));
    }
}
