//! The server: who may ask, and what each answer carries.

use std::convert::Infallible;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use toolwright_net::{Lobby, LobbyGuest};

use super::api::{Api, ApiResponse};

/// At most so many connections at a time; a browser uses six.
const MAX_CONNECTIONS: usize = 64;
/// At most so many of them whose requests have not shown the token.
const MAX_STRANGERS: usize = 16;
/// How long a connection may be one of those.
const FIRST_REQUEST: Duration = Duration::from_secs(10);

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What the server needs to know.
pub struct Viewer {
    api: Api,
    /// The first part of every path.
    token: String,
    /// The names it answers to.
    hosts: [String; 2],
}

impl Viewer {
    /// A viewer on a port, with a transcript that stands elsewhere, if any.
    pub fn new(port: u16, extra: Option<PathBuf>) -> anyhow::Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let hosts = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        Ok(Viewer { api: Api::new(extra), token, hosts })
    }

    /// Where the page is.
    pub fn address(&self) -> String {
        format!("http://{}/{}/", self.hosts[0], self.token)
    }
}

type ViewerResponse = Response<BoxBody<Bytes, Infallible>>;

/// Answers until the future is dropped.
pub async fn serve(listener: TcpListener, viewer: Arc<Viewer>) -> std::io::Result<()> {
    let permits = Arc::new(tokio::sync::Semaphore::new(MAX_CONNECTIONS));
    let lobby = Lobby::new(MAX_STRANGERS);
    loop {
        let (stream, _) = match listener.accept().await {
            Ok(accepted) => accepted,
            // One failed accept does not stop the server; running out of descriptors may be temporary.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(permit) = permits.clone().acquire_owned().await else { return Ok(()) };
        let (viewer, guest) = (viewer.clone(), lobby.enter());
        tokio::spawn(async move {
            let (_permit, guest) = (permit, &guest);
            let service = service_fn(move |request| {
                let viewer = viewer.clone();
                async move { Ok::<_, Infallible>(answer(&viewer, guest, request).await) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(hyper_util::rt::TokioTimer::new());
            // A browser that disconnects is ordinary.
            let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
            tokio::select! {
                _ = connection.as_mut() => return,
                () = guest.turned_out() => return,
                () = tokio::time::sleep(FIRST_REQUEST) => {}
            }
            if !guest.is_waiting() {
                let _ = connection.await;
            }
        });
    }
}

async fn answer(viewer: &Arc<Viewer>, guest: &LobbyGuest, request: Request<Incoming>) -> ViewerResponse {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    if !host.is_some_and(|host| viewer.hosts.iter().any(|known| known == host)) {
        return plain(StatusCode::FORBIDDEN, "this server answers to 127.0.0.1 only");
    }
    if request.method() != Method::GET {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET");
    }
    let path = request.uri().path().trim_start_matches('/');
    let (token, rest) = path.split_once('/').unwrap_or((path, ""));
    if !same(token, &viewer.token) {
        return plain(StatusCode::NOT_FOUND, "not found; open the address that `toolwright view` printed");
    }
    guest.admit();
    match rest {
        "" => asset("text/html; charset=utf-8", include_str!("index.html")),
        "app.js" => asset("text/javascript; charset=utf-8", include_str!("app.js")),
        "style.css" => asset("text/css; charset=utf-8", include_str!("style.css")),
        _ => {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let Some(path) = rest.strip_prefix("api/").map(str::to_owned) else {
                return plain(StatusCode::NOT_FOUND, "not found");
            };
            if let Some(run) = path.strip_prefix("run/").and_then(|rest| rest.strip_suffix("/live")) {
                return live(viewer.clone(), run.to_owned());
            }
            let viewer = viewer.clone();
            // Transcripts are read from disk, which may take its time.
            let answered = tokio::task::spawn_blocking(move || viewer.api.answer(&path, &query)).await;
            match answered {
                Ok(ApiResponse::Json(value)) => {
                    reply(StatusCode::OK, "application/json", Bytes::from(value.to_string()))
                }
                Ok(ApiResponse::NotFound) => plain(StatusCode::NOT_FOUND, "there is no such run or item"),
                Ok(ApiResponse::Failed(error)) => plain(StatusCode::INTERNAL_SERVER_ERROR, &error),
                Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "the answer was lost"),
            }
        }
    }
}

/// Compares without telling by the time how much was right.
fn same(given: &str, wanted: &str) -> bool {
    given.len() == wanted.len() && given.bytes().zip(wanted.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// News of a run while it goes on: one line whenever its file has grown.
fn live(viewer: Arc<Viewer>, run: String) -> ViewerResponse {
    let (sender, receiver) = mpsc::channel::<Bytes>(4);
    tokio::spawn(async move {
        let mut known = None;
        while !sender.is_closed() {
            let (asked, name) = (viewer.clone(), run.clone());
            let Ok(size) = tokio::task::spawn_blocking(move || asked.api.size(&name)).await else { return };
            let Some(size) = size else { return };
            // The first look counts too: the run may have grown between two questions.
            if known != Some(size) && sender.send(format!("data: {size}\n\n").into()).await.is_err() {
                return;
            }
            known = Some(size);
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    });
    let body = BoxBody::new(News(receiver));
    let mut reply = Response::new(body);
    dress(&mut reply, "text/event-stream");
    reply
}

/// A body that comes piece by piece.
struct News(mpsc::Receiver<Bytes>);

impl Body for News {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

fn asset(kind: &'static str, text: &'static str) -> ViewerResponse {
    reply(StatusCode::OK, kind, Bytes::from_static(text.as_bytes()))
}

fn plain(status: StatusCode, text: &str) -> ViewerResponse {
    reply(status, "text/plain; charset=utf-8", Bytes::from(text.to_owned()))
}

fn reply(status: StatusCode, kind: &'static str, body: Bytes) -> ViewerResponse {
    let mut reply = Response::new(BoxBody::new(Full::new(body)));
    *reply.status_mut() = status;
    dress(&mut reply, kind);
    reply
}

fn dress(reply: &mut ViewerResponse, kind: &'static str) {
    let headers = reply.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
}
