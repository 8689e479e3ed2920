//! The tools of Inspect: what its own vectors observed, on the same page.

use serde_json::json;
use toolwright_browser::{BrowserOptions, web_browser};

use crate::browser::Surfer;
use crate::server::{Answer, Server};

pub fn cases() -> Vec<crate::browser::Case> {
    crate::cases!["inspect":
        a_page_is_the_tree_that_inspect_shows,
        fields_are_typed_into_and_sent,
        tools_that_are_not_interactive_neither_click_nor_type,
        each_set_has_a_browser_context_of_its_own,
        the_parameters_are_those_of_inspect,
    ]
}

const INDEX: &str = r#"<!doctype html><title>Index</title><h1>Welcome</h1>
<main><p>Main para one.</p><p>Main para two with <a href="/second.html">a link</a>.</p></main>
<button onclick="document.getElementById('out').textContent='clicked'">Press me</button><div id="out"></div>
<form aria-label="Sign" action="/second.html"><label>Name <input name="name" value="preset"></label><button>Go</button></form>
<select aria-label="Color"><option>Red<option>Blue</select><input type="checkbox" aria-label="Agree"><img alt="dot" width="9" height="9"
 src="data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"> <a href="/second.html" target="_blank">new tab</a>"#;

async fn server() -> Server {
    Server::start(|_, path, _| match path.split('?').next() {
        Some("/index.html") => Answer::html(INDEX),
        Some("/second.html") => {
            Answer::html("<!doctype html><h1>Second page</h1><p>no main here</p><a href=/index.html>home</a>")
        }
        _ => Answer {
            status: "404 Not Found",
            ..Answer::html("<!doctype html><h1>Error response</h1><p>Error code: 404</p>")
        },
    })
    .await
}

async fn surfer(server: &Server) -> Surfer {
    Surfer::with(server, web_browser(&BrowserOptions::new(), true).unwrap(), |builder| builder).await
}

/// The number of an element by the rest of its line.
fn number(tree: &str, rest: &str) -> i64 {
    let line =
        tree.lines().find(|line| line.contains(rest)).unwrap_or_else(|| panic!("no `{rest}` in\n{tree}"));
    line.trim_start().trim_start_matches('[').split(']').next().unwrap().parse().unwrap()
}

/// The lines inside the block, without numbers.
fn lines(tree: &str) -> Vec<String> {
    let inside = tree.lines().skip(1).take_while(|line| !line.starts_with("</page-content"));
    let plain = |line: &str| match line.split_once(']') {
        Some((before, after)) if before.trim_start().starts_with('[') => {
            format!("{}{after}", " ".repeat(before.len() - before.trim_start().len()))
        }
        _ => line.to_owned(),
    };
    inside.map(plain).collect()
}

async fn a_page_is_the_tree_that_inspect_shows() {
    let server = server().await;
    let surfer = surfer(&server).await;
    let go = |url: String| json!({"url": url});
    let tree = surfer.text("web_browser_go", go(server.url("/index.html"))).await;
    let tree = surfer.text("web_browser_click", json!({"element_id": number(&tree, "\"Press me\"")})).await;
    let second = server.url("/second.html");
    let id = number(&tree, "textbox");
    let tree = surfer.text("web_browser_type", json!({"element_id": id, "text": "XYZ"})).await;
    assert_eq!(
        lines(&tree),
        [
            "main content:",
            "Main para one.",
            "",
            "Main para two with a link a link .",
            "",
            "accessibility tree:",
            " heading \"Welcome\" ",
            " main ",
            "   StaticText \"Main para one.\" ",
            "   StaticText \"Main para two with \" ",
            &format!("   link \"a link\"  [url: {second}]"),
            "   StaticText \".\" ",
            " button \"Press me\" ",
            " StaticText \"clicked\" ",
            " form \"Sign\" ",
            "   LabelText ",
            "     StaticText \"Name \" ",
            "     textbox \"Name\" Current input: \"presetXYZ\"  [focused: True, editable: plaintext, required, labelledby]",
            "   button \"Go\" ",
            " combobox \"Color\" Current input: \"Red\"  [hasPopup: menu, expanded]",
            " checkbox \"Agree\"  [checked: false]",
            " image \"dot\" data:<base64-data-removed>  [url: data:<base64-data-removed>]",
            " StaticText \" \" ",
            &format!(" link \"new tab\"  [url: {second}]"),
        ]
    );
    let error = surfer.error("web_browser_click", json!({"element_id": 999_999})).await;
    assert!(error.starts_with("Could not find element with id 999999"), "{error}");
    let tab = surfer.text("web_browser_click", json!({"element_id": number(&tree, "\"new tab\"")})).await;
    assert!(tab.contains("heading \"Second page\""), "a new tab becomes the current one: {tab}");
    let missing = surfer.text("web_browser_go", go(server.url("/missing.html"))).await;
    assert!(missing.contains("StaticText \"Error code: 404\""), "{missing}");
}

async fn fields_are_typed_into_and_sent() {
    let server = server().await;
    let surfer = surfer(&server).await;
    let tree = surfer.text("web_browser_go", json!({"url": server.url("/index.html")})).await;
    let id = number(&tree, "textbox");
    let sent = surfer.text("web_browser_type_submit", json!({"element_id": id, "text": "hello"})).await;
    assert_eq!(lines(&sent)[..2], [" heading \"Second page\" ", " StaticText \"no main here\" "], "{sent}");
    assert!(server.seen("GET /second.html?name=hello"));
    let back = surfer.text("web_browser_back", json!({})).await;
    assert!(back.contains("heading \"Welcome\""), "{back}");
    assert!(surfer.text("web_browser_forward", json!({})).await.contains("Second page"));
    let again = surfer.text("web_browser_refresh", json!({})).await;
    assert!(again.contains("Second page"), "{again}");
    assert!(surfer.text("web_browser_scroll", json!({"direction": "down"})).await.contains("Second page"));
    assert!(surfer.error("web_browser_scroll", json!({"direction": "left"})).await.contains("direction"));
    let stale = surfer.error("web_browser_click", json!({"element_id": id})).await;
    assert!(stale.contains("Could not find element"), "a number of another page: {stale}");
}

async fn tools_that_are_not_interactive_neither_click_nor_type() {
    let quiet = web_browser(&BrowserOptions::new(), false).unwrap();
    let names: Vec<&str> = quiet.iter().map(|entry| &*entry.tool.spec().name).collect();
    assert_eq!(
        names,
        [
            "web_browser_go",
            "web_browser_scroll",
            "web_browser_back",
            "web_browser_forward",
            "web_browser_refresh"
        ]
    );
}

async fn each_set_has_a_browser_context_of_its_own() {
    let server = server().await;
    let other = web_browser(&BrowserOptions::new(), false).unwrap();
    let other_back = toolwright_core::ToolDef::of(other.get("web_browser_back").unwrap().tool.clone())
        .with_name("other_back");
    let tools = web_browser(&BrowserOptions::new(), true).unwrap().with(other_back).unwrap();
    let surfer = Surfer::with(&server, tools, |builder| builder).await;
    surfer.text("web_browser_go", json!({"url": server.url("/index.html")})).await;
    surfer.text("web_browser_go", json!({"url": server.url("/second.html")})).await;
    let error = surfer.error("other_back", json!({})).await;
    assert!(error.contains("no page before"), "{error}");
    assert!(surfer.text("web_browser_back", json!({})).await.contains("Welcome"));
}

async fn the_parameters_are_those_of_inspect() {
    let all = web_browser(&BrowserOptions::new(), true).unwrap();
    let parameters = |name: &str| {
        let schema = &all.get(name).unwrap().tool.spec().parameters;
        let types = schema["properties"].as_object().unwrap().iter();
        types
            .map(|(name, schema)| format!("{name}: {}", schema["type"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(parameters("web_browser_go"), ["url: string"]);
    assert_eq!(parameters("web_browser_click"), ["element_id: integer"]);
    assert_eq!(parameters("web_browser_type"), ["element_id: integer", "text: string"]);
    assert_eq!(parameters("web_browser_type_submit"), ["element_id: integer", "text: string"]);
    assert_eq!(parameters("web_browser_scroll"), ["direction: string"]);
    assert_eq!(parameters("web_browser_back"), Vec::<String>::new());
}
