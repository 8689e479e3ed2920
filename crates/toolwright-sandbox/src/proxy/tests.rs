use std::net::IpAddr;

use super::*;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A proxy on loopback whose names lead where the test says, and its address.
async fn proxy(
    rules: &[String],
    resolve: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static,
) -> (Proxy, SocketAddr) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let resolve: Box<Resolve> = Box::new(move |name, port| {
        let found = resolve(&name).into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
        Box::pin(async move { Ok(found) })
    });
    (Proxy::start_with(listener.into(), HostRules::parse(rules).unwrap(), resolve).unwrap(), at)
}

/// A server that answers each connection with what it read, and counts them.
async fn server() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = seen.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let heard = heard.clone();
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                let count = stream.read(&mut buffer).await.unwrap_or(0);
                lock(&heard).push(String::from_utf8_lossy(&buffer[..count]).into_owned());
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").await;
            });
        }
    });
    (at, seen)
}

async fn say(at: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn open_hosts_are_reached_by_page_and_by_tunnel() {
    let (server, seen) = server().await;
    let port = server.port();
    let rules = [format!("open.example:{port}"), format!("127.0.0.1:{port}")];
    let (proxy, at) = proxy(&rules, |_| vec![[127, 0, 0, 1].into()]).await;
    let page = say(
        at,
        &format!(
            "GET http://open.example:{port}/x HTTP/1.1\r\nHost: open.example:{port}\r\n\r\nGET http://b"
        ),
    )
    .await;
    assert!(page.ends_with("hello"), "{page}");
    let sent = format!("GET /x HTTP/1.1\r\nHost: open.example:{port}\r\nConnection: close\r\n\r\n");
    assert_eq!(*lock(&seen), std::slice::from_ref(&sent));
    let inside = format!(
        "CONNECT open.example:{port} HTTP/1.1\r\n\r\nGET /x HTTP/1.1\r\nHost: open.example\r\n\r\nGET /y"
    );
    let tunnel = say(at, &inside).await;
    assert!(tunnel.starts_with("HTTP/1.1 200 ") && tunnel.ends_with("hello"), "{tunnel}");
    assert_eq!(lock(&seen).last(), Some(&sent));
    let event = NetworkEvent { host: "open.example".into(), port, refused: None };
    assert_eq!(proxy.events(), [event.clone(), event]);
}

#[tokio::test]
async fn closed_hosts_are_neither_resolved_nor_reached() {
    let (server, seen) = server().await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let rules = [format!("open.example:{}", server.port())];
    let (proxy, at) = proxy(&rules, move |name| {
        lock(&log).push(name.to_owned());
        vec![[127, 0, 0, 1].into()]
    })
    .await;
    for host in ["closed.example", "127.0.0.1", "[::1]", "xopen.example", "open.example.evil"] {
        let answer = say(at, &format!("CONNECT {host}:{} HTTP/1.1\r\n\r\n", server.port())).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
    }
    assert!(lock(&asked).is_empty());
    // The name is open, the address behind it is not.
    let answer = say(at, &format!("CONNECT open.example:{} HTTP/1.1\r\n\r\n", server.port())).await;
    assert!(answer.contains("not on the public network"), "{answer}");
    assert_eq!(*lock(&asked), ["open.example"]);
    assert!(lock(&seen).is_empty());
    assert_eq!(proxy.events().len(), 6);
    assert!(proxy.events().iter().all(|event| event.refused.is_some()));
}

#[tokio::test]
async fn a_name_that_changes_its_mind_gains_nothing() {
    let (server, seen) = server().await;
    let turn = std::sync::atomic::AtomicUsize::new(0);
    let rules = [format!("rebind.example:{}", server.port())];
    let (_proxy, at) = proxy(&rules, move |_| {
        // Public and private in one answer, then private alone: only what was checked is dialled.
        match turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => {
                vec![[127, 0, 0, 1].into(), "::ffff:127.0.0.1".parse().unwrap(), [169, 254, 169, 254].into()]
            }
            _ => vec!["64:ff9b::7f00:1".parse().unwrap(), [10, 0, 0, 1].into()],
        }
    })
    .await;
    for _ in 0..3 {
        let answer = say(at, &format!("CONNECT rebind.example:{} HTTP/1.1\r\n\r\n", server.port())).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    }
    assert!(lock(&seen).is_empty());
}

#[tokio::test]
async fn a_tunnel_to_one_host_is_not_a_way_to_another() {
    let (server, seen) = server().await;
    let port = server.port();
    let rules = [format!("open.example:{port}"), format!("127.0.0.1:{port}")];
    let (proxy, at) = proxy(&rules, |_| vec![[127, 0, 0, 1].into()]).await;
    let open = async |target: &str, names: &[&str], record: usize| {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let head = format!("CONNECT {target}:{port} HTTP/1.1\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&client_hello::tests::hello(names, record)).await.unwrap();
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "the tunnel was left open");
        answer
    };
    for (names, record) in [(&["evil.example"][..], 10_000), (&["evil.example"], 7), (&[], 10_000)] {
        let answer = open("open.example", names, record).await;
        assert!(
            answer.ends_with(&[21, 3, 1, 0, 2, 2, 112]),
            "{names:?}: {}",
            String::from_utf8_lossy(&answer)
        );
    }
    assert!(lock(&seen).iter().all(String::is_empty), "{:?}", lock(&seen));
    let refused: Vec<_> = proxy.events().into_iter().filter_map(|event| event.refused).collect();
    assert_eq!(refused.len(), 3);
    for (target, names) in
        [("open.example", &["OPEN.example"][..]), ("127.0.0.1", &[]), ("127.0.0.1", &["x.example"])]
    {
        let answer = open(target, names, 10_000).await;
        assert!(answer.ends_with(b"hello"), "{target} {names:?}: {}", String::from_utf8_lossy(&answer));
    }
}

/// What a tunnel gets back: everything after the proxy has opened it.
async fn through(at: SocketAddr, target: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut answer)).await;
    assert!(read.is_ok(), "the tunnel was left open");
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    answer.split_off(end + 4)
}

/// F7: a record of TLS before the first message made the tunnel "another protocol", which was passed on.
#[tokio::test]
async fn a_tunnel_carries_tls_and_http_for_its_host_and_nothing_else() {
    let (server, seen) = server().await;
    let port = server.port();
    let rules = [format!("open.example:{port}"), format!("127.0.0.1:{port}")];
    let (proxy, at) = proxy(&rules, |_| vec![[127, 0, 0, 1].into()]).await;
    let alert =
        [&[21, 3, 1, 0, 2, 1, 90], client_hello::tests::hello(&["evil.example"], 10_000).as_slice()].concat();
    let other_host = b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    for bytes in
        [&alert[..], b"SSH-2.0-x\r\n", &[23, 3, 3, 0, 1, 0], other_host, b"\0\0\0\x08\x04\xd2\x16\x2f"]
    {
        for target in ["open.example", "127.0.0.1"] {
            let answer = through(at, &format!("{target}:{port}"), bytes).await;
            let text = String::from_utf8_lossy(&answer).into_owned();
            let refused = answer.is_empty() || text.starts_with("HTTP/1.1 400 ");
            assert!(refused && !text.contains("hello"), "{bytes:?}: {text}");
        }
    }
    assert!(lock(&seen).iter().all(String::is_empty), "{:?}", lock(&seen));
    assert_eq!(proxy.events().iter().filter(|event| event.refused.is_some()).count(), 10);
}

#[tokio::test]
async fn a_raw_rule_opens_every_protocol_to_its_host() {
    let (server, seen) = server().await;
    let port = server.port();
    let rules = [format!("db.example:{port}/raw"), format!("127.0.0.1:{port}")];
    let (_proxy, at) = proxy(&rules, |_| vec![[127, 0, 0, 1].into()]).await;
    let answer = through(at, &format!("db.example:{port}"), b"raw bytes").await;
    assert!(answer.ends_with(b"hello"), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(*lock(&seen), ["raw bytes"]);
}

/// A server that does not switch protocols would read what follows as a second request.
#[tokio::test]
async fn bytes_after_an_upgrade_wait_for_the_servers_agreement() {
    let (server, seen) = server().await;
    let port = server.port();
    let rules = [format!("open.example:{port}"), format!("127.0.0.1:{port}")];
    let (_proxy, at) = proxy(&rules, |_| vec![[127, 0, 0, 1].into()]).await;
    let ask = "GET /s HTTP/1.1\r\nHost: open.example\r\nUpgrade: websocket\r\n\r\nGET / HTTP/1.1\r\nHost: evil\r\n\r\n";
    let answer = through(at, &format!("open.example:{port}"), ask.as_bytes()).await;
    assert!(answer.ends_with(b"hello"), "{}", String::from_utf8_lossy(&answer));
    let seen = lock(&seen).join("");
    assert!(seen.contains("Upgrade: websocket") && !seen.contains("evil"), "{seen}");
}

#[tokio::test]
async fn other_protocols_and_long_heads_are_refused_at_once() {
    let (_proxy, at) = proxy(&["open.example".to_owned()], |_| Vec::new()).await;
    for text in ["\u{5}\u{1}\0", "\u{4}\u{1}\0P\u{1}\u{1}\u{1}\u{1}\0", "get / HTTP/1.1\r\n\r\n"] {
        assert!(say(at, text).await.starts_with("HTTP/1.1 400 "), "{text:?}");
    }
    let long = say(at, &format!("GET http://open.example/{} HTTP/1.1\r\n", "a".repeat(20_000))).await;
    assert!(long.starts_with("HTTP/1.1 431 "), "{long}");
}

#[tokio::test]
async fn names_are_looked_up_only_so_often() {
    let (_proxy, at) = proxy(&["*.suffix.example".to_owned()], |_| Vec::new()).await;
    let mut refused = 0;
    for at_name in 0..MAX_LOOKUPS + 5 {
        let answer = say(at, &format!("CONNECT data{at_name}.suffix.example:443 HTTP/1.1\r\n\r\n")).await;
        refused += usize::from(answer.starts_with("HTTP/1.1 429 "));
    }
    assert_eq!(refused, 5);
}

#[tokio::test]
async fn idle_connections_give_way() {
    let (server, _) = server().await;
    let rules = [format!("127.0.0.1:{}", server.port())];
    let (_proxy, at) = proxy(&rules, |_| Vec::new()).await;
    let mut idle = Vec::new();
    for _ in 0..MAX_CONNECTIONS + 50 {
        idle.push(TcpStream::connect(at).await.unwrap());
    }
    let answer =
        say(at, &format!("CONNECT {server} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: {server}\r\n\r\n")).await;
    assert!(answer.ends_with("hello"), "{answer}");
    let mut first = idle.swap_remove(0);
    let closed = tokio::time::timeout(Duration::from_secs(5), first.read(&mut [0; 1])).await;
    assert!(closed.is_ok(), "the oldest was not closed");
}
