//! What is reached through the proxies of the environment.

use crate::fake_model::FakeModel;
use crate::{json_with, show_with};

#[test]
fn pages_and_servers_are_asked_of_the_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = FakeModel::start();
    let variables = [("http_proxy", proxy.address.as_str())];
    let here = |args: &[&str]| show_with(folder.path(), args, "", &variables);
    let file = "tools: [{import_tool: llm_workers.tools.fetch.fetch_content, name: get}]
mcp: {far: {transport: streamable_http, url: 'http://file.invalid/mcp', auto_import_scope: shared}}
";
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    let asked = |line: &str| {
        let asked = proxy.asked.lock().unwrap();
        assert!(asked.iter().any(|first| first == line), "{line}: {asked:?}");
    };
    let fetched = here(&["call", "fetch_content", "url=http://pages.invalid/one"]);
    assert!(fetched.contains("--- stdout\nno\n"), "{fetched}");
    asked("GET http://pages.invalid/one HTTP/1.1");
    let listed = here(&["mcp", "list", "--url", "http://mcp.invalid/mcp"]);
    assert!(listed.contains("--- exit 1"), "{listed}");
    asked("POST http://mcp.invalid/mcp HTTP/1.1");
    // So are those of a file.
    let fetched = here(&["call", "get", "url=http://pages.invalid/two", "-f", "t.yaml"]);
    assert!(fetched.contains("--- stdout\nno\n"), "{fetched}");
    asked("GET http://pages.invalid/two HTTP/1.1");
    let listed = here(&["tools", "t.yaml"]);
    assert!(listed.contains("--- exit 2"), "{listed}");
    asked("POST http://file.invalid/mcp HTTP/1.1");
    // A server on this machine is not.
    let before = proxy.asked.lock().unwrap().len();
    here(&["mcp", "list", "--url", "http://127.0.0.1:9/mcp"]);
    assert_eq!(proxy.asked.lock().unwrap().len(), before);
}

#[test]
fn an_unusable_proxy_fails_only_commands_that_dial() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [("ALL_PROXY", "socks5://127.0.0.1:9")];
    for args in [
        &["call", "fetch_content", "url=http://pages.invalid/one"][..],
        &["mcp", "list", "--url", "http://mcp.invalid/mcp"],
    ] {
        let failed = json_with(folder.path(), args, "", &variables);
        assert_eq!(failed.code, Some(1), "{failed:?}");
        assert!(failed.error().to_string().contains("`socks5`"), "{failed:?}");
    }
    let added = json_with(folder.path(), &["call", "add", "x=1", "y=2"], "", &variables);
    assert_eq!(added.code, Some(0), "{added:?}");
}

/// F10: requests of a search tool carry its key, so the folder's `.env` does not say where they go.
#[test]
fn a_dotenv_file_never_sets_a_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = FakeModel::start();
    let file =
        "tools: [{import_tool: search_brave, config: {address: 'http://search.invalid', key_env: KEY}}]";
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    let lines = ["HTTP_PROXY", "http_proxy", "ALL_PROXY"].map(|name| format!("{name}={}\n", proxy.address));
    std::fs::write(folder.path().join(".env"), format!("KEY=from-the-file\n{}", lines.concat())).unwrap();
    let args = ["call", "search_brave", "-f", "t.yaml", "query=x", "n_search_results_to_use=1"];
    let failed = json_with(folder.path(), &args, "", &[]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.error().to_string().contains("search.invalid"), "{failed:?}");
    assert_eq!(*proxy.asked.lock().unwrap(), Vec::<String>::new());
    // The process's own variables do.
    json_with(folder.path(), &args, "", &[("http_proxy", &proxy.address)]);
    assert!(proxy.asked.lock().unwrap()[0].starts_with("GET http://search.invalid/"));
}

#[test]
fn pages_obey_the_network_of_the_command_line_and_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let server = FakeModel::start();
    let host = server.address.clone();
    let url = format!("url=http://{host}/one");
    let here = |args: &[&str]| json_with(folder.path(), args, "", &[]);
    let fetch = ["call", "fetch_content", &url];
    here(&fetch).fails("permission", 1, &[]);
    assert_eq!(here(&[&fetch[..], &["--allow-net", &host]].concat()).code, Some(0));
    here(&[&fetch[..], &["--allow-net", "other.example"]].concat()).fails("permission", 1, &[]);
    let file = |network: &str| {
        let text = format!(
            "sandbox: {{network: {network}}}\ntools: [{{import_tool: llm_workers.tools.fetch.fetch_content, name: get}}]"
        );
        std::fs::write(folder.path().join("t.yaml"), text).unwrap();
        here(&["call", "get", &url, "-f", "t.yaml"])
    };
    assert_eq!(file(&format!("['{host}']")).code, Some(0));
    file("['other.example']").fails("permission", 1, &[]);
    file("off").fails("permission", 1, &[]);
}
