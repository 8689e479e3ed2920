//! OpenAPI documents as a person uses them, against a real HTTP server that keeps every request.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolwright_testkit::server::{Reply, Request, Server};

const DOCUMENT: &str = r#"
openapi: 3.0.3
info: {title: Pets, version: '1'}
servers: [{url: 'https://api.pets.example/v1'}]
security: [{key: []}]
components:
  securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}
paths:
  /pets:
    get:
      operationId: list.pets
      summary: Lists pets.
      tags: [pets]
      parameters:
        - {name: tags, in: query, explode: false, schema: {type: array, items: {type: string}}}
        - {name: page, in: query, schema: {type: integer}}
    post:
      operationId: addPet
      tags: [pets]
      requestBody:
        required: true
        content:
          application/json:
            schema: {type: object, required: [name], properties: {id: {type: integer, readOnly: true}, name: {type: string}}}
  /pets/{id}:
    delete: {operationId: removePet, responses: {204: {description: gone}}}
  /far:
    get: {operationId: far, servers: [{url: 'SERVER2'}]}
  /move:
    get: {operationId: moved}
  /photo/{id}:
    post:
      operationId: sendPhoto
      requestBody: {content: {multipart/form-data: {schema: {type: object, properties: {photo: {type: string, format: binary}, note: {type: string}}}}}}
  /broken:
    get: {operationId: broken, parameters: [{$ref: 'https://evil.example/p.yaml'}]}
"#;

fn api() -> Server {
    Server::start(|request: &Request| match request.target.split('?').next().unwrap_or_default() {
        "/v1/pets" if request.method == "POST" => {
            Reply::json(201, &json!({"id": 7, "key": request.header("x-key")}))
        }
        "/v1/pets" => {
            let page = request.target.contains("page=2");
            let pets = if page { json!([{"name": "c"}]) } else { json!([{"name": "a"}, {"name": "b"}]) };
            let done = request.target.contains("page=3");
            Reply::json(200, &json!({"total": 3, "pets": if done { json!([]) } else { pets }}))
        }
        "/v1/move" => Reply {
            status: 302,
            headers: vec![("location".into(), "http://127.0.0.1:1/".into())],
            body: vec![],
        },
        "/v1/photo/1" => Reply { status: 204, headers: vec![], body: vec![] },
        path if path.starts_with("/v1/pets/") => {
            let body = format!("no such pet; your key was {}", request.header("x-key").unwrap_or_default());
            Reply { status: 404, ..Reply::of("text/plain", body) }
        }
        _ => Reply::json(200, &json!({"key": request.header("x-key")})),
    })
    .unwrap()
}

fn folder(server: &Server, other: &Server, more: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("pets.yaml"), DOCUMENT.replace("SERVER2", &other.url())).unwrap();
    let hosts: Vec<String> = [server, other].iter().map(|one| one.url().replace("http://", "")).collect();
    let file = format!(
        "
openapi:
  pets.yaml:
    base_url: {}/v1
    auth: {{key: PETS_KEY}}
    network: ['{}', '{}']
    {more}
tools: [{{import_tools: 'openapi:pets.yaml', prefix: p_}}]
sandbox: local
",
        server.url(),
        hosts[0],
        hosts[1]
    );
    std::fs::write(folder.path().join("t.yaml"), file).unwrap();
    folder
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolwright"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).envs(crate::NO_SERVERS);
    command.env("PETS_KEY", "k-12345").output().unwrap()
}

fn value(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn error(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_document_is_shown_before_it_is_imported() {
    let (server, other) = (api(), api());
    let folder = folder(&server, &other, "");
    let shown = run(folder.path(), &["tools", "openapi:pets.yaml", "--format", "json"]);
    let names: Vec<String> = value(&shown)
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["list_pets", "addPet", "removePet", "far", "moved", "sendPhoto"]);
    let told = String::from_utf8_lossy(&shown.stderr);
    assert!(told.contains("GET /broken") && told.contains("none is fetched"), "{told}");
    let one = run(folder.path(), &["tools", "openapi:pets.yaml", "add*", "--format", "json"]);
    assert_eq!(value(&one)[0]["parameters"]["properties"], json!({"name": {"type": "string"}}));
    assert!(server.requests().is_empty() && other.requests().is_empty());
}

#[test]
fn requests_are_those_of_the_document_and_the_key_stays_with_its_host() {
    let (server, other) = (api(), api());
    let folder = folder(&server, &other, "");
    let call = |words: &[&str]| run(folder.path(), &[&["call"], words, &["-f", "t.yaml"]].concat());
    let list = call(&["p_list_pets", "tags:=[\"a b\",\"c&d\"]"]);
    assert_eq!(value(&list)["total"], 3);
    // A server that repeats the key does not show it to a model.
    let added = call(&["p_addPet", "name=Rex"]);
    let text = String::from_utf8_lossy(&added.stdout).into_owned();
    assert!(added.status.success() && text.contains("[secret]") && !text.contains("k-12345"), "{text}");
    let gone = error(&call(&["p_removePet", "id=a/b"]));
    assert!(gone.contains("404") && gone.contains("no such pet") && !gone.contains("k-12345"), "{gone}");
    let far = call(&["p_far"]);
    assert_eq!(value(&far), json!({"key": null}));
    let moved = error(&call(&["p_moved"]));
    assert!(moved.contains("302") && moved.contains("not followed"), "{moved}");
    let requests = server.requests();
    let line = |at: usize| format!("{} {}", requests[at].method, requests[at].target);
    assert_eq!(line(0), "GET /v1/pets?tags=a%20b,c%26d");
    assert_eq!(
        (line(1).as_str(), requests[1].body.as_slice()),
        ("POST /v1/pets", br#"{"name":"Rex"}"#.as_slice())
    );
    assert_eq!(line(2), "DELETE /v1/pets/a%2Fb");
    assert_eq!((requests.len(), other.requests().len()), (4, 1));
    assert!(requests.iter().all(|request| request.header("x-key") == Some("k-12345")));
    assert_eq!(other.requests()[0].header("x-key"), None);
}

#[test]
fn files_of_the_workspace_are_sent_as_parts() {
    let (server, other) = (api(), api());
    let folder = folder(&server, &other, "");
    std::fs::write(folder.path().join("rex.png"), b"\x89PNG").unwrap();
    let sent =
        run(folder.path(), &["call", "p_sendPhoto", "id=1", "photo=rex.png", "note=hi", "-f", "t.yaml"]);
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    assert_eq!(String::from_utf8_lossy(&sent.stdout).trim(), "done (204)");
    let request = &server.requests()[0];
    let boundary =
        request.header("content-type").unwrap().strip_prefix("multipart/form-data; boundary=").unwrap();
    let mut expected = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"rex.png\"\r\nContent-Type: application/octet-stream\r\n\r\n").into_bytes();
    expected.extend(b"\x89PNG\r\n");
    expected.extend(
        format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhi\r\n--{boundary}--\r\n"
        )
        .bytes(),
    );
    assert_eq!(request.body, expected);
}

#[test]
fn pages_are_read_and_a_part_of_the_answer_is_selected() {
    let (server, other) = (api(), api());
    let folder = folder(&server, &other, "pages: 5\n    select: {list_pets: /pets}");
    let all = run(folder.path(), &["call", "p_list_pets", "-f", "t.yaml"]);
    assert_eq!(value(&all), json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]));
    let targets: Vec<String> = server.requests().into_iter().map(|request| request.target).collect();
    assert_eq!(targets, ["/v1/pets", "/v1/pets?page=2", "/v1/pets?page=3"]);
}

#[test]
fn a_private_address_is_reached_only_where_a_rule_opens_it() {
    let (server, other) = (api(), api());
    let folder = folder(&server, &other, "");
    let path = folder.path().join("t.yaml");
    let file = std::fs::read_to_string(&path).unwrap();
    let closed: Vec<&str> = file.lines().filter(|line| !line.contains("network:")).collect();
    std::fs::write(&path, closed.join("\n")).unwrap();
    let refused = error(&run(folder.path(), &["call", "p_list_pets", "-f", "t.yaml"]));
    assert!(refused.contains("not an address of the public internet"), "{refused}");
    assert!(server.requests().is_empty());
}

#[test]
fn one_operation_is_imported_by_its_name_and_settings_are_checked() {
    let (server, other) = (api(), api());
    let folder = folder(&server, &other, "");
    let write = |text: &str| std::fs::write(folder.path().join("one.yaml"), text).unwrap();
    write("tools: [{import_tool: 'openapi:pets.yaml/addPet', name: new_pet, description: More.}]");
    let tools = value(&run(folder.path(), &["tools", "-f", "one.yaml", "--format", "json"]));
    assert_eq!((&tools[0]["name"], &tools[0]["description"]), (&json!("new_pet"), &json!("More.")));
    for (settings, part) in [
        ("{auth: {nosuch: A}}", "no security scheme `nosuch`"),
        ("{pages: 0}", "pages"),
        ("{select: {a: b}}", "not a JSON pointer"),
        ("{tag: [a]}", "tag"),
        ("{base_url: 'file:///etc'}", "not the address of a server"),
    ] {
        write(&format!(
            "openapi: {{pets.yaml: {settings}}}\ntools: [{{import_tools: 'openapi:pets.yaml', prefix: ''}}]"
        ));
        let told = run(folder.path(), &["check", "one.yaml"]);
        let told =
            format!("{}{}", String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
        assert!(told.contains(part), "{settings}: {told}");
    }
}
