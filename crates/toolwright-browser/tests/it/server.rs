//! A web server for tests: pages by path, slow answers, and a record of requests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

pub struct Server {
    pub port: u16,
    pub requests: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

pub struct Answer {
    pub status: &'static str,
    pub headers: String,
    pub body: String,
    pub delay: u64,
}

impl Answer {
    pub fn html(body: impl Into<String>) -> Answer {
        Answer {
            status: "200 OK",
            headers: "content-type: text/html; charset=utf-8\r\n".into(),
            body: body.into(),
            delay: 0,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Serves what `answer` makes of a method, a path with its query, and a body.
    pub async fn start(answer: impl Fn(&str, &str, &str) -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (requests.clone(), Arc::new(answer));
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, answer) = (seen.clone(), answer.clone());
                tokio::spawn(async move {
                    let mut bytes = Vec::new();
                    let mut piece = [0; 4096];
                    let (head, body) = loop {
                        match stream.read(&mut piece).await {
                            Ok(count @ 1..) => bytes.extend_from_slice(&piece[..count]),
                            _ => return,
                        }
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                        let length = head
                            .lines()
                            .find_map(|line| {
                                let (name, value) = line.split_once(':')?;
                                name.eq_ignore_ascii_case("content-length")
                                    .then(|| value.trim().parse().ok())?
                            })
                            .unwrap_or(0);
                        if body.len() >= length {
                            break (head.to_owned(), body.to_owned());
                        }
                    };
                    let mut words = head.split_whitespace();
                    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                    seen.lock().unwrap().push(format!("{method} {path} {body}"));
                    let answer = answer(method, path, &body);
                    tokio::time::sleep(Duration::from_millis(answer.delay)).await;
                    let text = format!(
                        "HTTP/1.1 {}\r\n{}content-length: {}\r\nconnection: close\r\n\r\n{}",
                        answer.status,
                        answer.headers,
                        answer.body.len(),
                        answer.body
                    );
                    let _ = stream.write_all(text.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Server { port, requests, task }
    }

    /// The same page under every path.
    pub async fn page(body: impl Into<String>) -> Server {
        let body = body.into();
        Server::start(move |_, _, _| Answer::html(body.clone())).await
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub fn seen(&self, text: &str) -> bool {
        self.requests.lock().unwrap().iter().any(|request| request.contains(text))
    }
}
