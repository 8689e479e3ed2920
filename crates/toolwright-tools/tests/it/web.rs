//! Pages of the web, from a server on this machine. What is wanted of text and links was observed from
//! llm-workers 1.1.4.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;

use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};
use toolwright_core::{ErrorKind, ToolCall, ToolResult, Toolset};
use toolwright_net::{HostRules, Proxies, Reach};
use toolwright_runtime::Run;
use toolwright_tools::{Options, resolve_with};

const PAGE: &str = include_str!("page.html");

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, run: fn()| {
        Trial::test(name, move || {
            run();
            Ok::<(), Failed>(())
        })
    };
    vec![
        trial("web::pages_become_text_markdown_and_links", pages_become_text_markdown_and_links),
        trial("web::nothing_and_errors_are_what_was_asked_for", nothing_and_errors_are_what_was_asked_for),
        trial("web::only_the_public_internet_is_reached", only_the_public_internet_is_reached),
        trial("web::pages_are_fetched_through_proxies", pages_are_fetched_through_proxies),
        trial("web::the_network_of_a_run_holds_for_pages", the_network_of_a_run_holds_for_pages),
        trial("web::headers_of_the_connection_cannot_be_set", headers_of_the_connection_cannot_be_set),
        trial("web::own_address_inside", own_address_inside),
        trial(
            "web::url_content_comes_as_text_markdown_and_html",
            url_content_comes_as_text_markdown_and_html,
        ),
        trial("web::a_site_is_online_when_its_server_answers", a_site_is_online_when_its_server_answers),
        trial(
            "web::the_machines_own_public_address_is_not_the_internet",
            the_machines_own_public_address_is_not_the_internet,
        ),
    ]
}

/// A server that answers by path until the process ends.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let other = address.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let first = lines.next().unwrap().unwrap();
            let headers: Vec<String> =
                lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
            let token = headers.iter().any(|line| line.eq_ignore_ascii_case("x-token: t"));
            let path = first.split(' ').nth(1).unwrap();
            let (status, body) = match path {
                "/page" => ("200 OK", PAGE.to_owned()),
                "/moved" => ("302 Found\r\nlocation: /page", String::new()),
                "/round" => ("302 Found\r\nlocation: /round", String::new()),
                "/away" => ("302 Found\r\nlocation: file:///etc/passwd", String::new()),
                "/elsewhere" => ("302 Found\r\nlocation: http://evil.invalid/", String::new()),
                "/token" => ("200 OK", token.to_string()),
                // What a proxy is asked.
                "http://pages.invalid/page" => ("200 OK", "through the proxy".to_owned()),
                "/broken" => ("500 Broken", String::new()),
                "/long" => ("200 OK", "x".repeat(5 << 20)),
                _ => ("404 Not Found", String::new()),
            };
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
    });
    other
}

fn call(options: &Options, tool: &str, arguments: Value) -> ToolResult {
    let reference = format!("llm_workers.tools.fetch.{tool}");
    let tools = Toolset::new().with(resolve_with(&reference, options).unwrap()).unwrap();
    let run = Run::builder(tools).build().unwrap();
    crate::support::block_on(async { run.call(ToolCall::new("1", tool, arguments)).await.unwrap() })
}

/// Like `call`, for a tool under its own name.
fn call_as(options: &Options, tool: &str, arguments: Value) -> ToolResult {
    let tools = Toolset::new().with(resolve_with(tool, options).unwrap()).unwrap();
    let run = Run::builder(tools).build().unwrap();
    crate::support::block_on(async { run.call(ToolCall::new("1", tool, arguments)).await.unwrap() })
}

fn given(tool: &str, arguments: Value) -> String {
    let result = call(&Options::new().reach(Reach::Anywhere), tool, arguments);
    assert!(result.error.is_none(), "{result:?}");
    result.to_text()
}

fn kind(tool: &str, arguments: Value) -> ErrorKind {
    call(&Options::new().reach(Reach::Anywhere), tool, arguments).error.unwrap().kind
}

fn pages_become_text_markdown_and_links() {
    let site = server();
    let url = format!("{site}/moved");
    let text = "The title\n\nHome Other site Mail\n\nMain heading\n\nFirst paragraph with emphasis, weight and a link.\n\n\
        Second\nline (in brackets).\n\none\ntwo\n\ninner\n\nQuoted words\n\ncode here indented\n\nA B\n1 2\n\n\
        Inline x = 1 & more.";
    assert_eq!(given("fetch_page_text", json!({"url": url})), text);
    assert_eq!(
        given("fetch_page_text", json!({"url": url, "xpath": "//div[@id='main']/p"})),
        "First paragraph with emphasis, weight and a link.\nSecond\nline (in brackets)."
    );
    let links: Value = serde_json::from_str(&given("fetch_page_links", json!({"url": url}))).unwrap();
    assert_eq!(
        links,
        json!([
            {"link": "https://other.example/x", "text": "Other site"},
            {"link": "http://third.example", "text": null},
        ])
    );
    let markdown = given("fetch_page_markdown", json!({"url": url}));
    for wanted in [
        format!(
            "[Home]({site}/home) [Other **site**](https://other.example/x) [Mail](mailto:a@b.c)\n\n# Main heading\n\n"
        ),
        format!("First paragraph with _emphasis_, **weight** and [a link]({site}/sub/p.html).\n\n"),
        "Second  \nline (_in brackets_).\n\n".to_owned(),
        "  * one\n  * two\n      1. inner\n\n".to_owned(),
        "> Quoted words\n\n".to_owned(),
        "    code  here\n      indented\n\n".to_owned(),
        "A | B\n---|---\n1 | 2\n\n".to_owned(),
        "Inline `x = 1` & more.\n\n* * *\n\n".to_owned(),
    ] {
        assert!(markdown.contains(&wanted), "{wanted:?} is not in\n{markdown}");
    }
    assert!(!markdown.contains("color") && !markdown.contains("document.write"), "{markdown}");
    assert_eq!(given("fetch_content", json!({"url": format!("{site}/page")})), PAGE);
    let token = json!({"url": format!("{site}/token"), "headers": {"X-Token": "t"}});
    assert_eq!(given("fetch_content", token), "true");
}

fn nothing_and_errors_are_what_was_asked_for() {
    let site = server();
    let missing = |more: Value| {
        let mut arguments = json!({"url": format!("{site}/missing")});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    assert_eq!(given("fetch_content", missing(json!({}))), "");
    assert_eq!(given("fetch_page_links", missing(json!({}))), "[]");
    assert_eq!(
        kind("fetch_content", missing(json!({"on_no_content": "raise_exception"}))),
        ErrorKind::Unknown
    );
    let no_video =
        json!({"url": format!("{site}/page"), "xpath": "//video", "on_no_content": "return_error"});
    assert_eq!(kind("fetch_page_text", no_video), ErrorKind::Unknown);
    let at = |path: &str| json!({"url": format!("{site}{path}")});
    assert_eq!(kind("fetch_content", at("/broken")), ErrorKind::Unknown);
    assert_eq!(kind("fetch_content", at("/round")), ErrorKind::Unknown);
    assert_eq!(kind("fetch_content", at("/long")), ErrorKind::OutputLimit);
    assert_eq!(kind("fetch_content", at("/away")), ErrorKind::Permission);
    let empty = json!({"url": format!("{site}/broken"), "on_error": "return_empty"});
    assert_eq!(given("fetch_page_markdown", empty), "");
    assert_eq!(kind("fetch_page_text", json!({"url": site, "xpath": "//p["})), ErrorKind::Parsing);
    assert_eq!(kind("fetch_content", json!({"url": "no address"})), ErrorKind::Parsing);
}

fn only_the_public_internet_is_reached() {
    let site = server();
    for url in [format!("{site}/page"), site.replace("127.0.0.1", "localhost"), "http://[::1]/".to_owned()] {
        let result = call(&Options::new(), "fetch_content", json!({"url": url, "on_error": "return_empty"}));
        assert_eq!(
            result.error.as_ref().map(|error| error.kind),
            Some(ErrorKind::Permission),
            "{url}: {result:?}"
        );
    }
}

/// F9: a machine's services trust what comes from its own addresses, public ones too.
fn the_machines_own_public_address_is_not_the_internet() {
    // Made in a network namespace of its own; without the right to make one the test cannot be done.
    let script = "ip link set lo up && ip addr add 93.184.216.99/32 dev lo && exec \"$0\" web::own_address_inside --exact --nocapture";
    let own = std::env::current_exe().unwrap();
    let child = std::process::Command::new("unshare")
        .args(["-Urn", "sh", "-c", script])
        .arg(own)
        .env(OWN_ADDRESS, "1")
        .output();
    let out = child.unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success() && said.contains("1 passed"), "{said}");
}

/// Set in the namespace that has the public address.
const OWN_ADDRESS: &str = "TOOLWRIGHT_TEST_OWN_ADDRESS";

fn own_address_inside() {
    if std::env::var_os(OWN_ADDRESS).is_none() {
        return;
    }
    let listener = TcpListener::bind("93.184.216.99:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let error = call(&Options::new(), "fetch_content", json!({"url": url})).error.unwrap();
    assert_eq!(error.kind, ErrorKind::Permission, "{error:?}");
    // Another address is dialled, and cannot be reached from here.
    let error =
        call(&Options::new(), "fetch_content", json!({"url": "http://93.184.216.34/"})).error.unwrap();
    assert_eq!(error.kind, ErrorKind::Unknown, "{error:?}");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "the own address was connected to");
}

fn the_network_of_a_run_holds_for_pages() {
    let site = server();
    let at = site.trim_start_matches("http://").to_owned();
    let fetch = |reach: Reach, url: &str| {
        let tool = resolve_with("llm_workers.tools.fetch.fetch_content", &Options::new()).unwrap();
        let run = Run::builder(Toolset::new().with(tool).unwrap()).state(reach).build().unwrap();
        let call = ToolCall::new("1", "fetch_content", json!({"url": url}));
        crate::support::block_on(async { run.call(call).await.unwrap() })
    };
    let hosts = |rules: &[&str]| {
        Reach::Hosts(
            HostRules::parse(&rules.iter().map(|rule| (*rule).to_owned()).collect::<Vec<_>>()).unwrap(),
        )
    };
    let refused = |reach, url: &str| {
        let error = fetch(reach, url).error.unwrap();
        assert_eq!(error.kind, ErrorKind::Permission, "{url}: {error:?}");
        error.message
    };
    assert_eq!(fetch(hosts(&[&at]), &format!("{site}/page")).to_text(), PAGE);
    let local = at.replace("127.0.0.1", "localhost");
    assert_eq!(fetch(hosts(&[&local]), &format!("http://{local}/page")).to_text(), PAGE);
    // A redirect is judged like the address itself.
    assert!(refused(hosts(&["other.example", &at]), &format!("{site}/elsewhere")).contains("evil.invalid"));
    refused(hosts(&["other.example"]), &format!("{site}/page"));
    refused(Reach::Hosts(HostRules::nothing()), "https://example.com/");
}

fn url_content_comes_as_text_markdown_and_html() {
    let site = server();
    let content = |format: &str| {
        let result = call_as(
            &Options::new().reach(Reach::Anywhere),
            "fetch_url_content",
            json!({"url": format!("{site}/page"), "format": format}),
        );
        assert!(result.error.is_none(), "{result:?}");
        result.to_text()
    };
    assert_eq!(content("html"), PAGE);
    assert!(content("text").starts_with("The title\n\nHome Other site"), "{}", content("text"));
    assert!(content("markdown").contains("# Main heading"));
    let kind = |arguments: Value| {
        call_as(&Options::new().reach(Reach::Anywhere), "fetch_url_content", arguments).error.unwrap().kind
    };
    assert_eq!(kind(json!({"url": format!("{site}/missing")})), ErrorKind::Unknown);
    assert_eq!(kind(json!({"url": format!("{site}/page"), "render": true})), ErrorKind::Parsing);
    assert_eq!(kind(json!({"url": format!("{site}/page"), "format": "pdf"})), ErrorKind::Parsing);
    let closed = call_as(&Options::new(), "fetch_url_content", json!({"url": format!("{site}/page")}));
    assert_eq!(closed.error.unwrap().kind, ErrorKind::Permission);
}

fn a_site_is_online_when_its_server_answers() {
    let site = server();
    let status = |url: &str| {
        let result =
            call_as(&Options::new().reach(Reach::Anywhere), "check_website_status", json!({"url": url}));
        assert!(result.error.is_none(), "{result:?}");
        serde_json::from_str::<Value>(&result.to_text()).unwrap()
    };
    for (path, online, code) in
        [("/moved", true, json!(200)), ("/missing", true, json!(404)), ("/broken", false, json!(500))]
    {
        let found = status(&format!("{site}{path}"));
        assert_eq!((&found["online"], &found["status_code"]), (&json!(online), &code), "{path}: {found}");
        assert!(found["response_time"].as_f64().unwrap() < 30.0);
    }
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let found = status(&format!("http://{free}/"));
    assert_eq!((&found["online"], &found["status_code"]), (&json!(false), &Value::Null), "{found}");
    // A refused address is not an offline site.
    let refused = call_as(&Options::new(), "check_website_status", json!({"url": site}));
    assert_eq!(refused.error.unwrap().kind, ErrorKind::Permission);
}

/// F19: a rule over `url` would see another host than the server.
fn headers_of_the_connection_cannot_be_set() {
    let site = server();
    for name in ["Host", "host", "Transfer-Encoding", "Connection", "Content-Length", "Upgrade"] {
        for tool in ["fetch_content", "fetch_page_text"] {
            let arguments = json!({"url": format!("{site}/page"), "headers": {name: "x"}});
            assert_eq!(kind(tool, arguments), ErrorKind::Parsing, "{tool} {name}");
        }
    }
}

fn pages_are_fetched_through_proxies() {
    let proxy = server();
    let fetch = |options: &Options, url: &str| call(options, "fetch_content", json!({"url": url}));
    // The proxy of a company has a name that leads into its own network.
    let named = proxy.replace("127.0.0.1", "localhost");
    let through = Options::new().proxies(Proxies::all(&named).unwrap());
    assert_eq!(fetch(&through, "http://pages.invalid/page").to_text(), "through the proxy");
    // Addresses are judged all the same, and this machine is not asked of a proxy.
    let refused = fetch(&through, "http://169.254.169.254/page").error.unwrap();
    assert_eq!(refused.kind, ErrorKind::Permission);
    let proxies = |value: &str| {
        let value = value.to_owned();
        Proxies::from_environment_when_dialled(move |name| (name == "http_proxy").then(|| value.clone()))
    };
    let usual = Options::new().proxies(proxies(&proxy));
    assert_eq!(fetch(&usual, "http://pages.invalid/page").to_text(), "through the proxy");
    let error = fetch(&usual, "http://localhost:9/page").error.unwrap();
    assert_eq!(error.kind, ErrorKind::Permission, "{error:?}");
    // A proxy that cannot be used is told, and nothing is dialled without it.
    let wrong = Options::new().reach(Reach::Anywhere).proxies(proxies("socks5://127.0.0.1:9"));
    let error = fetch(&wrong, &format!("{proxy}/page")).error.unwrap();
    assert!(error.message.contains("HTTP_PROXY is a `socks5` proxy"), "{error:?}");
}
