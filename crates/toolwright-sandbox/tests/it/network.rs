//! Chosen hosts through the proxy: what is named is reached, and nothing else is, by any way programs try.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use toolwright_core::{ErrorKind, ExecRequest, Sandbox};
use toolwright_sandbox::{Network, ProcessSandbox, SandboxPolicy};

use crate::support::{Case, check, equal, text};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("network::rules_that_mean_nothing_are_refused", rules),
        Case::new("network::named_hosts_are_reached", reached),
        Case::new("network::localhost_is_the_machine_outside_when_a_rule_says_so", localhost),
        Case::new("network::nothing_else_is", closed),
        Case::new("network::odd_requests_get_one_answer", odd),
        Case::new("network::another_sandbox_gains_nothing", apart),
        Case::new("network::a_tunnel_to_one_host_is_not_a_way_to_another", fronted),
    ]
}

async fn rules() -> Result<(), String> {
    for list in [vec![], vec!["*".to_owned()], vec!["http://example.com/".to_owned()]] {
        let policy = SandboxPolicy { network: Network::Allow(list), ..SandboxPolicy::private() };
        match ProcessSandbox::open(policy).await {
            Err(error) => equal(error.kind(), ErrorKind::SandboxUnavailable)?,
            Ok(_) => return Err("opened".to_owned()),
        }
    }
    Ok(())
}

/// The first lines a server was sent.
type FirstLines = Arc<Mutex<Vec<String>>>;

/// A web server outside.
fn server() -> Result<(u16, FirstLines), String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = seen.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).unwrap_or(0);
            let line =
                String::from_utf8_lossy(&buffer[..count]).lines().next().unwrap_or_default().to_owned();
            heard.lock().expect("the list").push(line);
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\ncanary");
        }
    });
    Ok((port, seen))
}

async fn open(hosts: &[String]) -> Result<ProcessSandbox, String> {
    let policy = SandboxPolicy { network: Network::Allow(hosts.to_vec()), ..SandboxPolicy::private() };
    ProcessSandbox::open(policy).await.map_err(text)
}

async fn bash(sandbox: &ProcessSandbox, script: &str) -> Result<String, String> {
    let result = sandbox.exec(ExecRequest::new(["bash", "-c", script])).await.map_err(text)?;
    Ok(result.stdout + &result.stderr)
}

/// Says something to the proxy, byte for byte.
fn say(words: &str) -> String {
    format!("exec 3<>/dev/tcp/127.0.0.1/3128; printf '{words}' >&3; timeout 5 cat <&3")
}

async fn reached() -> Result<(), String> {
    let (port, seen) = server()?;
    let sandbox = open(&[format!("127.0.0.1:{port}")]).await?;
    let out = bash(
        &sandbox,
        &say(&format!("CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\nGET /tunnel HTTP/1.0\\r\\n\\r\\n")),
    )
    .await?;
    check(&out, out.starts_with("HTTP/1.1 200 Connection") && out.ends_with("canary"))?;
    // A client that was not written for this, which finds the proxy in its environment.
    let script = format!(
        "curl -s http://127.0.0.1:{port}/page || python3 -c \
         'import urllib.request as r; print(r.urlopen(\"http://127.0.0.1:{port}/page\").read().decode(), end=\"\")'"
    );
    equal(bash(&sandbox, &script).await?.as_str(), "canary")?;
    equal(bash(&sandbox, "echo $NO_PROXY").await?.as_str(), "localhost,::1\n")?;
    let heard = seen.lock().expect("the list").clone();
    equal(heard, vec!["GET /tunnel HTTP/1.1".to_owned(), "GET /page HTTP/1.1".to_owned()])?;
    let events: Vec<_> =
        sandbox.network_events().into_iter().map(|event| (event.port, event.refused)).collect();
    equal(events, vec![(port, None), (port, None)])
}

async fn localhost() -> Result<(), String> {
    let (port, seen) = server()?;
    let sandbox = open(&[format!("localhost:{port}")]).await?;
    let script = format!(
        "curl -s http://localhost:{port}/page || python3 -c \
         'import urllib.request as r; print(r.urlopen(\"http://localhost:{port}/page\").read().decode(), end=\"\")'"
    );
    equal(bash(&sandbox, &script).await?.as_str(), "canary")?;
    equal(seen.lock().expect("the list").len(), 1)?;
    // What listens inside is still there, under its address.
    equal(bash(&sandbox, "echo $NO_PROXY").await?.as_str(), "127.0.0.1,::1\n")?;
    let inside = "import http.server as h, threading as t, urllib.request as r\n\
         class One(h.BaseHTTPRequestHandler):\n    \
             def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b\"inside\")\n    \
             def log_message(self, *words): pass\n\
         s = h.HTTPServer((\"127.0.0.1\", 0), One); t.Thread(target=s.serve_forever, daemon=True).start()\n\
         print(r.urlopen(f\"http://127.0.0.1:{s.server_port}/\").read().decode(), end=\"\")";
    let script =
        format!("command -v python3 >/dev/null || {{ printf inside; exit; }}; python3 -c '{inside}'");
    equal(bash(&sandbox, &script).await?.as_str(), "inside")
}

async fn closed() -> Result<(), String> {
    let (port, seen) = server()?;
    // Another port of this machine, which the policy does not name.
    let sandbox = open(&["localhost:9".to_owned(), "open.example".to_owned()]).await?;
    for host in [
        format!("localhost:{port}"),
        format!("LOCALHOST.:{port}"),
        format!("127.0.0.1:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        "169.254.169.254:80".to_owned(),
        "closed.example:443".to_owned(),
        "open.example:22".to_owned(),
    ] {
        let out = bash(&sandbox, &say(&format!("CONNECT {host} HTTP/1.1\\r\\n\\r\\n"))).await?;
        check(
            &format!("{host}: {out}"),
            out.starts_with("HTTP/1.1 403 ") && out.contains("X-Toolwright-Refused: "),
        )?;
    }
    // Around the proxy there is nothing: no route, no other socket family, no name service, no listener of
    // the host.
    for (way, script) in [
        ("another machine", "exec 3<>/dev/tcp/192.0.2.1/80".to_owned()),
        ("the host", format!("exec 3<>/dev/tcp/127.0.0.1/{port}")),
        ("a datagram", "echo x > /dev/udp/192.0.2.1/53".to_owned()),
        ("a name", "timeout 3 getent hosts open.example".to_owned()),
        (
            "a raw socket",
            "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)'".to_owned(),
        ),
        (
            "the listener itself",
            "exec 3<>/dev/tcp/127.0.0.1/3128 && ls -l /proc/*/fd 2>/dev/null | grep -q LISTEN".to_owned(),
        ),
        (
            "its port",
            "python3 -c 'import socket; s=socket.socket(); s.bind((\"127.0.0.1\", 3128))'".to_owned(),
        ),
    ] {
        let out = bash(&sandbox, &format!("({script}) >/dev/null 2>&1 && echo through")).await?;
        check(way, out.is_empty())?;
    }
    equal(seen.lock().expect("the list").clone(), Vec::<String>::new())?;
    check("every refusal is told", sandbox.network_events().iter().all(|event| event.refused.is_some()))
}

async fn odd() -> Result<(), String> {
    let (port, seen) = server()?;
    let sandbox = open(&[format!("127.0.0.1:{port}")]).await?;
    let get = format!("GET http://127.0.0.1:{port}/ HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\n");
    for words in [
        format!("CONNECT 127.0.0.1\\0.example:{port} HTTP/1.1\\r\\n\\r\\n"),
        format!("CONNECT 2130706433:{port} HTTP/1.1\\r\\n\\r\\n"),
        format!("CONNECT 127.1:{port} HTTP/1.1\\r\\n\\r\\n"),
        format!("CONNECT x@127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n"),
        "CONNECT 127.0.0.1 HTTP/1.1\\r\\n\\r\\n".to_owned(),
        format!("{get}Content-Length: 1\\r\\nContent-Length: 2\\r\\n\\r\\nx"),
        format!("{get}Host: other\\r\\n\\r\\n"),
        format!("GET http://127.0.0.1:{port}/ HTTP/1.1\\r\\nHost: other.example\\r\\n\\r\\n"),
        "\\x05\\x01\\x00".to_owned(),
    ] {
        let out = bash(&sandbox, &say(&words)).await?;
        check(&format!("{words}: {out}"), out.starts_with("HTTP/1.1 400 "))?;
    }
    let out = bash(
        &sandbox,
        &say(&format!("{get}Content-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n")),
    )
    .await?;
    check(&out, out.starts_with("HTTP/1.1 411 "))?;
    equal(seen.lock().expect("the list").clone(), Vec::<String>::new())
}

async fn apart() -> Result<(), String> {
    let (port, seen) = server()?;
    let _with = open(&[format!("127.0.0.1:{port}")]).await?;
    let policy = SandboxPolicy { network: Network::Loopback, ..SandboxPolicy::private() };
    let without = ProcessSandbox::open(policy).await.map_err(text)?;
    let out = bash(&without, &say(&format!("CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n"))).await?;
    check(&out, out.contains("refused") && !out.contains("HTTP/1.1"))?;
    equal(seen.lock().expect("the list").clone(), Vec::<String>::new())
}

/// A client of TLS that was not written for this asks inside the tunnel for the host it was opened to, and
/// for others.
async fn fronted() -> Result<(), String> {
    let (port, seen) = server()?;
    let sandbox = open(&[format!("localhost:{port}"), format!("127.0.0.1:{port}")]).await?;
    let ask = |name: &str| {
        format!(
            "python3 - <<'END'\nimport socket, ssl\ns = socket.create_connection(('127.0.0.1', 3128))\n\
             s.sendall(b'CONNECT localhost:{port} HTTP/1.1\\r\\n\\r\\n')\nassert b' 200 ' in s.recv(1000)\n\
             c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE\n\
             try: c.wrap_socket(s, server_hostname={name})\nexcept Exception as e: print(e)\nEND"
        )
    };
    for name in ["'evil.example'", "None"] {
        let out = bash(&sandbox, &ask(name)).await?;
        check(&format!("{name}: {out}"), out.to_lowercase().replace('_', " ").contains("unrecognized name"))?;
    }
    check("the server heard nothing", seen.lock().expect("the list").iter().all(String::is_empty))?;
    let out = bash(&sandbox, &ask("'LocalHost'")).await?;
    check(&out, !out.to_lowercase().replace('_', " ").contains("unrecognized name"))?;
    let heard = seen.lock().expect("the list").last().cloned().unwrap_or_default();
    check(&heard, heard.starts_with('\u{16}'))?;
    let refused = sandbox.network_events().iter().filter(|event| event.refused.is_some()).count();
    equal(refused, 2)
}
