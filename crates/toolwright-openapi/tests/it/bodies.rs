//! Bodies: JSON, forms, parts, texts and files.

use serde_json::{Value, json};
use toolwright_openapi::{ApiOperation, FormPart, PartContent, RequestBody, multipart};

use crate::only;

fn posting(kind: &str, media: Value) -> ApiOperation {
    only(
        &json!({"openapi": "3.0.3", "servers": [{"url": "https://a.example"}], "paths": {"/p/{id}": {"post": {
            "parameters": [{"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}}],
            "requestBody": {"required": true, "content": {kind: media}},
        }}}}),
    )
}

fn bytes(operation: &ApiOperation, arguments: &Value) -> (String, String) {
    match operation.request(arguments).unwrap().body {
        RequestBody::Bytes { content_type, bytes } => (content_type, String::from_utf8(bytes).unwrap()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn fields_of_a_body_are_arguments_unless_a_name_clashes() {
    let schema = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "tags[]": {"type": "array"}}});
    let flat = posting("application/json; charset=utf-8", json!({"schema": schema}));
    assert_eq!(flat.spec().parameter_names().collect::<Vec<_>>(), ["id", "name", "tags"]);
    assert_eq!(flat.spec().parameters["required"], json!(["id", "name"]));
    let (kind, body) = bytes(&flat, &json!({"id": 1, "name": "a", "tags": ["b"]}));
    assert_eq!(
        (kind.as_str(), body.as_str()),
        ("application/json; charset=utf-8", r#"{"name":"a","tags[]":["b"]}"#)
    );
    let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}});
    let clash = posting("application/vnd.x+json", json!({"schema": schema}));
    assert_eq!(clash.spec().parameter_names().collect::<Vec<_>>(), ["id", "body"]);
    assert_eq!(bytes(&clash, &json!({"id": 1, "body": {"id": 2}})).1, r#"{"id":2}"#);
    let list =
        posting("application/json", json!({"schema": {"type": "array", "items": {"type": "integer"}}}));
    assert_eq!(bytes(&list, &json!({"id": 1, "body": [1, 2]})).1, "[1,2]");
}

#[test]
fn forms_are_encoded_as_their_document_says() {
    let properties = json!({"name": {"type": "string"}, "list": {"type": "array"}, "deep": {"type": "object"}, "object": {"type": "object"}, "comma": {"type": "array"}});
    let encoding = json!({"deep": {"style": "deepObject", "explode": true}, "comma": {"explode": false}});
    let form = posting(
        "application/x-www-form-urlencoded",
        json!({"schema": {"type": "object", "properties": properties}, "encoding": encoding}),
    );
    let arguments = json!({"id": 1, "name": "a b&c=é", "list": [1, 2], "deep": {"x": {"y": 1}}, "object": {"k": "v"}, "comma": ["a", "b"]});
    let (kind, body) = bytes(&form, &arguments);
    assert_eq!(kind, "application/x-www-form-urlencoded");
    assert_eq!(
        body,
        "name=a+b%26c%3D%C3%A9&list=1&list=2&deep%5Bx%5D%5By%5D=1&object=%7B%22k%22%3A%22v%22%7D&comma=a,b"
    );
}

#[test]
fn parts_hold_files_of_the_workspace_and_json() {
    let properties = json!({"file": {"type": "string", "format": "binary"}, "meta": {"type": "object"}, "n": {"type": "integer"}, "more": {"type": "array", "items": {"type": "string", "format": "binary"}}});
    let encoding = json!({"file": {"contentType": "image/png"}});
    let form = posting(
        "multipart/form-data",
        json!({"schema": {"type": "object", "properties": properties}, "encoding": encoding}),
    );
    assert_eq!(form.spec().paths.names().collect::<Vec<_>>(), ["file", "more"]);
    let request =
        form.request(&json!({"id": 1, "file": "a/b.png", "meta": {"k": 1}, "n": 7, "more": ["c"]})).unwrap();
    let RequestBody::Multipart(parts) = request.body else { panic!() };
    let part = |name: &str, kind: Option<&str>, content| FormPart {
        name: name.into(),
        content_type: kind.map(str::to_owned),
        content,
    };
    assert_eq!(
        parts,
        [
            part("file", Some("image/png"), PartContent::File("a/b.png".into())),
            part("meta", Some("application/json"), PartContent::Bytes(br#"{"k":1}"#.to_vec())),
            part("n", None, PartContent::Bytes(b"7".to_vec())),
            part("more", None, PartContent::File("c".into())),
        ]
    );
    let (kind, body) = multipart(&[
        part("a\"\r\nb", Some("image/png"), PartContent::FileBytes("x/y.png".into(), b"\x89P".to_vec())),
        part("n", None, PartContent::Bytes(b"7".to_vec())),
    ]);
    let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
    let mut expected = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"a%22%0D%0Ab\"; filename=\"y.png\"\r\nContent-Type: image/png\r\n\r\n").into_bytes();
    expected.extend(b"\x89P\r\n");
    expected.extend(
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n7\r\n--{boundary}--\r\n")
            .bytes(),
    );
    assert_eq!(body, expected);
}

#[test]
fn texts_and_bytes_are_sent_as_they_are() {
    let xml = posting("application/xml", json!({"schema": {"type": "object"}}));
    assert_eq!(bytes(&xml, &json!({"id": 1, "body": "<a/>"})), ("application/xml".into(), "<a/>".into()));
    let raw = posting("image/png", json!({}));
    let body = raw.request(&json!({"id": 1, "body": "x.png"})).unwrap().body;
    assert_eq!(body, RequestBody::File { content_type: "image/png".into(), path: "x.png".into() });
    assert_eq!(raw.spec().paths.names().collect::<Vec<_>>(), ["body"]);
}

#[test]
fn forms_of_swagger_2() {
    let parameters = json!([{"name": "f", "in": "formData", "type": "file", "required": true}, {"name": "n", "in": "formData", "type": "integer"}]);
    let operation = only(
        &json!({"swagger": "2.0", "host": "a.example", "paths": {"/u": {"post": {"parameters": parameters}}}}),
    );
    let RequestBody::Multipart(parts) = operation.request(&json!({"f": "x", "n": 1})).unwrap().body else {
        panic!()
    };
    assert_eq!(parts.len(), 2);
    assert_eq!(operation.spec().parameters["required"], json!(["f"]));
}
