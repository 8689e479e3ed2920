//! Where the next page of a list is.

use serde_json::{Value, json};
use toolwright_openapi::{PageCursor, items, next_page};

use crate::only;

fn next(parameter: &str, arguments: Value, link: Option<&str>, body: Value) -> Option<PageCursor> {
    let parameters = json!([{"name": parameter, "in": "query"}]);
    let operation = only(
        &json!({"openapi": "3.0.0", "servers": [{"url": "https://a.example"}], "paths": {"/l": {"get": {"parameters": parameters}}}}),
    );
    next_page(&operation, &arguments, "https://a.example/l?x=1", link, &body)
}

#[test]
fn the_next_page_is_found_and_never_on_another_server() {
    let url = |url: &str| Some(PageCursor::Url(url.into()));
    let with = |arguments: Value| Some(PageCursor::Arguments(arguments));
    let link = r#"<https://a.example/l?p=1>; rel="prev", <https://a.example/l?p=3>; rel="next""#;
    assert_eq!(next("x", json!({}), Some(link), json!([])), url("https://a.example/l?p=3"));
    assert_eq!(next("x", json!({}), Some("<https://a.example.evil/l>; rel=next"), json!([])), None);
    assert_eq!(next("x", json!({}), None, json!({"next": "/l?p=2"})), url("https://a.example/l?p=2"));
    assert_eq!(next("x", json!({}), None, json!({"next": "//evil.example/l"})), None);
    assert_eq!(next("x", json!({}), None, json!({"next": "https://evil.example/l"})), None);
    assert_eq!(
        next("pageToken", json!({"q": 1}), None, json!({"nextPageToken": "t"})),
        with(json!({"q": 1, "pageToken": "t"}))
    );
    assert_eq!(next("cursor", json!({}), None, json!({"response_metadata": {"next_cursor": ""}})), None);
    assert_eq!(
        next("starting_after", json!({}), None, json!({"data": [{"id": "a"}], "has_more": true})),
        with(json!({"starting_after": "a"}))
    );
    assert_eq!(
        next("starting_after", json!({}), None, json!({"data": [{"id": "a"}], "has_more": false})),
        None
    );
    assert_eq!(next("page", json!({"page": 2}), None, json!([1])), with(json!({"page": 3})));
    assert_eq!(next("page", json!({}), None, json!([1])), with(json!({"page": 2})));
    assert_eq!(next("page", json!({}), None, json!([])), None);
}

#[test]
fn the_list_of_a_page_is_found() {
    assert_eq!(items(&mut json!([1])), Some(&mut vec![json!(1)]));
    assert_eq!(items(&mut json!({"errors": [], "data": [1]})), Some(&mut vec![json!(1)]));
    assert_eq!(items(&mut json!({"pets": [1], "total": 1})), Some(&mut vec![json!(1)]));
    assert_eq!(items(&mut json!({"a": [1], "b": [2]})), None);
}
