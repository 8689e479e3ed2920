//! How a person is sent to a page, and how the page sends them back.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use toolwright_core::BoxFuture;
use toolwright_net::reqwest::Url;
use toolwright_util::lock;

/// How long a person may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// The port that is tried first, so that the address to come back to stays the same.
const USUAL_PORT: u16 = 33_418;

/// Sends a person to a page.
pub trait Browser: Send + Sync {
    /// The address to come back to.
    fn redirect_uri(&self) -> String;

    /// Opens a page, and gives the address the person was sent back to; an error says why they were not.
    fn visit<'a>(&'a self, page: &'a str) -> BoxFuture<'a, Result<String, String>>;
}

/// Waits on this machine for the person to come back. Nothing but this machine can reach it.
pub struct LoopbackBrowser {
    listener: Mutex<Option<TcpListener>>,
    port: u16,
    open: Arc<dyn Fn(&str) + Send + Sync>,
}

impl LoopbackBrowser {
    /// Listens on this machine; `open` shows the person a page, or its address.
    pub fn new(open: impl Fn(&str) + Send + Sync + 'static) -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, USUAL_PORT))
            .or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(LoopbackBrowser { listener: Mutex::new(Some(listener)), port, open: Arc::new(open) })
    }

    /// Waits for the redirect of the authorization server. Any page and any program of this machine can
    /// connect here; requests without its `state` are refused.
    async fn wait(&self, state: Option<&str>) -> Result<String, String> {
        let gone = "the listener for the redirect is gone";
        let listener = lock(&self.listener).take().ok_or(gone)?;
        let again = listener.try_clone().map_err(|_| gone)?;
        *lock(&self.listener) = Some(again);
        let listener = tokio::net::TcpListener::from_std(listener).map_err(|error| error.to_string())?;
        loop {
            let (mut connection, _) = listener.accept().await.map_err(|error| error.to_string())?;
            let mut head = vec![0; 16 * 1024];
            let read = tokio::time::timeout(Duration::from_secs(5), connection.read(&mut head)).await;
            let Ok(Ok(length)) = read else { continue };
            let head = String::from_utf8_lossy(head.get(..length).unwrap_or_default()).into_owned();
            let target =
                head.strip_prefix("GET ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
            let fits = target.starts_with("/callback?") && state_in(target).as_deref() == state;
            let (status, words) = match fits {
                true => ("200 OK", "You can close this page and go back to the terminal."),
                false => ("404 Not Found", "There is nothing here."),
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{words}",
                words.len()
            );
            let _ = connection.write_all(answer.as_bytes()).await;
            let _ = connection.shutdown().await;
            if fits {
                return Ok(format!("http://127.0.0.1:{}{target}", self.port));
            }
        }
    }
}

fn state_of(url: &Url) -> Option<String> {
    url.query_pairs().find(|(name, _)| name == "state").map(|(_, value)| value.into_owned())
}

/// The `state` in the target of a request.
fn state_in(target: &str) -> Option<String> {
    state_of(&Url::parse("http://127.0.0.1").ok()?.join(target).ok()?)
}

impl Browser for LoopbackBrowser {
    fn redirect_uri(&self) -> String {
        format!("http://127.0.0.1:{}/callback", self.port)
    }

    fn visit<'a>(&'a self, page: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            (self.open)(page);
            let state = Url::parse(page).ok().and_then(|page| state_of(&page));
            let waited = tokio::time::timeout(PATIENCE, self.wait(state.as_deref())).await;
            waited.unwrap_or_else(|_| Err(format!("nobody came back within {PATIENCE:?}")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn request(port: u16, target: &str) -> String {
        let mut connection = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        connection.write_all(format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn redirects_without_the_state_are_refused() {
        let browser = Arc::new(LoopbackBrowser::new(|_| {}).unwrap());
        let (waiting, port) = (browser.clone(), browser.port);
        let visit =
            tokio::spawn(async move { waiting.visit("https://as.example/page?a=1&state=s%201").await });
        for stranger in ["/callback?code=1", "/callback?code=1&state=other", "/", "/callback", "*"] {
            assert!(request(port, stranger).await.starts_with("HTTP/1.1 404"), "{stranger}");
        }
        assert!(request(port, "/callback?code=2&state=s%201").await.starts_with("HTTP/1.1 200"));
        let back = visit.await.unwrap().unwrap();
        assert_eq!(back, format!("http://127.0.0.1:{port}/callback?code=2&state=s%201"));
    }
}
