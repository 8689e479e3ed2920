//! The tables of styles of OpenAPI 3.0.4 and 3.1.1 ("Style Examples"), all rows, and the collection formats
//! of Swagger 2.0.

use serde_json::{Value, json};

use crate::only;

fn target(place: &str, style: &str, explode: bool, value: &Value) -> String {
    let path = if place == "path" { "/x/{color}" } else { "/x" };
    let parameter = json!({"name": "color", "in": place, "style": style, "explode": explode, "required": true, "schema": {}});
    let document = json!({"openapi": "3.0.4", "servers": [{"url": "https://a.example"}], "paths": {path: {"get": {"parameters": [parameter]}}}});
    let request = only(&document).request(&json!({"color": value})).unwrap();
    match place {
        "header" | "cookie" => {
            let name = if place == "header" { "color" } else { "cookie" };
            request.headers.iter().find(|(known, _)| known == name).unwrap().1.clone()
        }
        _ => {
            request.url.strip_prefix("https://a.example/x").unwrap().trim_start_matches(['/', '?']).to_owned()
        }
    }
}

#[test]
fn every_row_of_the_tables_of_the_specification() {
    let array = json!(["blue", "black", "brown"]);
    let object = json!({"R": 100, "G": 200, "B": 150});
    // style, explode, place, empty string, string, array, object; `-` is n/a.
    let rows = [
        (
            "matrix",
            false,
            "path",
            ";color",
            ";color=blue",
            ";color=blue,black,brown",
            ";color=R,100,G,200,B,150",
        ),
        (
            "matrix",
            true,
            "path",
            ";color",
            ";color=blue",
            ";color=blue;color=black;color=brown",
            ";R=100;G=200;B=150",
        ),
        ("label", false, "path", ".", ".blue", ".blue,black,brown", ".R,100,G,200,B,150"),
        ("label", true, "path", ".", ".blue", ".blue.black.brown", ".R=100.G=200.B=150"),
        ("simple", false, "path", "-", "blue", "blue,black,brown", "R,100,G,200,B,150"),
        ("simple", true, "path", "-", "blue", "blue,black,brown", "R=100,G=200,B=150"),
        ("simple", false, "header", "", "blue", "blue,black,brown", "R,100,G,200,B,150"),
        ("simple", true, "header", "", "blue", "blue,black,brown", "R=100,G=200,B=150"),
        ("form", false, "query", "color=", "color=blue", "color=blue,black,brown", "color=R,100,G,200,B,150"),
        (
            "form",
            true,
            "query",
            "color=",
            "color=blue",
            "color=blue&color=black&color=brown",
            "R=100&G=200&B=150",
        ),
        (
            "form",
            false,
            "cookie",
            "color=",
            "color=blue",
            "color=blue,black,brown",
            "color=R,100,G,200,B,150",
        ),
        (
            "spaceDelimited",
            false,
            "query",
            "-",
            "-",
            "color=blue%20black%20brown",
            "color=R%20100%20G%20200%20B%20150",
        ),
        (
            "pipeDelimited",
            false,
            "query",
            "-",
            "-",
            "color=blue%7Cblack%7Cbrown",
            "color=R%7C100%7CG%7C200%7CB%7C150",
        ),
        ("deepObject", true, "query", "-", "-", "-", "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
    ];
    for (style, explode, place, empty, string, of_array, of_object) in rows {
        for (value, expected) in [
            (json!(""), empty),
            (json!("blue"), string),
            (array.clone(), of_array),
            (object.clone(), of_object),
        ] {
            // A segment of one dot leads to another path.
            if expected != "-" && expected != "." {
                assert_eq!(
                    target(place, style, explode, &value),
                    expected,
                    "{style} {explode} {place} {value}"
                );
            }
        }
    }
}

#[test]
fn values_cannot_leave_their_place() {
    let nasty = json!("a/b?c#d&e=f%2e;g é");
    let escaped = "a%2Fb%3Fc%23d%26e%3Df%252e%3Bg%20%C3%A9";
    assert_eq!(target("path", "simple", false, &nasty), escaped);
    assert_eq!(target("query", "form", true, &nasty), format!("color={escaped}"));
    assert_eq!(target("cookie", "form", false, &nasty), format!("color={escaped}"));
    let path = json!({"openapi": "3.0.0", "servers": [{"url": "https://a.example/v1"}], "paths": {"/a/{x}/{y}": {"get": {}}}});
    let operation = only(&path);
    for (x, y) in [("..", "b"), ("b", "."), ("", "b"), ("b", "")] {
        assert!(operation.request(&json!({"x": x, "y": y})).is_err(), "{x:?} {y:?}");
    }
    assert_eq!(
        operation.request(&json!({"x": "...", "y": "%2e%2e"})).unwrap().url,
        "https://a.example/v1/a/.../%252e%252e"
    );
    let header = json!({"openapi": "3.0.0", "servers": [{"url": "https://a.example"}], "paths": {"/": {"get": {"parameters": [{"name": "X-A", "in": "header"}]}}}});
    assert!(only(&header).request(&json!({"X-A": "a\r\nHost: b"})).is_err());
}

#[test]
fn reserved_characters_stay_where_the_document_allows_them() {
    let parameter = json!({"name": "q", "in": "query", "allowReserved": true, "schema": {"type": "string"}});
    let document = json!({"openapi": "3.0.0", "servers": [{"url": "https://a.example"}], "paths": {"/": {"get": {"parameters": [parameter]}}}});
    let url = only(&document).request(&json!({"q": "a/b:c?d&e#f"})).unwrap().url;
    assert_eq!(url, "https://a.example/?q=a/b:c?d%26e%23f");
}

#[test]
fn arrays_of_deep_objects_are_written_as_forms_write_them() {
    let value = json!({"a": [1, 2], "b": {"c": [{"d": true}]}});
    assert_eq!(
        target("query", "deepObject", true, &value),
        "color%5Ba%5D%5B%5D=1&color%5Ba%5D%5B%5D=2&color%5Bb%5D%5Bc%5D%5B0%5D%5Bd%5D=true"
    );
}

#[test]
fn collection_formats_of_swagger_2() {
    for (format, expected) in
        [("csv", "a,b"), ("ssv", "a%20b"), ("tsv", "a%09b"), ("pipes", "a%7Cb"), ("multi", "a&x=b")]
    {
        let parameter = json!({"name": "x", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": format});
        let document = json!({"swagger": "2.0", "host": "a.example", "basePath": "/v1", "schemes": ["http", "https"], "paths": {"/": {"get": {"parameters": [parameter]}}}});
        let url = only(&document).request(&json!({"x": ["a", "b"]})).unwrap().url;
        assert_eq!(url, format!("https://a.example/v1/?x={expected}"), "{format}");
    }
}
