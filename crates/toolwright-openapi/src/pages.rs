//! The next page of a list: by `Link`, by an address or a token in the body, or by a number.

use serde_json::Value;

use crate::operation::ApiOperation;
use crate::server;

/// Where the next page is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageCursor {
    /// At this address, of the same server.
    Url(String),
    /// The same operation with these arguments.
    Arguments(Value),
}

const ITEMS: [&str; 10] =
    ["data", "items", "results", "values", "entries", "records", "objects", "resources", "elements", "list"];

const NEXT_URLS: [&str; 6] =
    ["/next", "/links/next", "/links/next/href", "/_links/next/href", "/paging/next", "/@odata.nextLink"];

const NEXT_TOKENS: [(&str, &[&str]); 8] = [
    ("/nextPageToken", &["pageToken", "page_token"]),
    ("/next_page_token", &["page_token", "pageToken"]),
    ("/next_cursor", &["cursor", "start_cursor", "after"]),
    ("/nextCursor", &["cursor"]),
    ("/response_metadata/next_cursor", &["cursor"]),
    ("/meta/next_cursor", &["cursor"]),
    ("/NextToken", &["NextToken"]),
    ("/nextToken", &["nextToken"]),
];

/// The list of a page: the body itself, or the member that holds it.
pub fn items(body: &mut Value) -> Option<&mut Vec<Value>> {
    if body.is_array() {
        return body.as_array_mut();
    }
    let members = body.as_object_mut()?;
    let named = ITEMS.into_iter().find(|name| members.get(*name).is_some_and(Value::is_array));
    let name = match named {
        Some(name) => name.to_owned(),
        None => {
            let mut lists = members.iter().filter(|(_, value)| value.is_array());
            let (name, only) = (lists.next()?.0.clone(), lists.next().is_none());
            only.then_some(name)?
        }
    };
    members.get_mut(&name)?.as_array_mut()
}

/// Where the page after this one is; nothing at the end. `link` is the header of that name.
pub fn next_page(
    operation: &ApiOperation,
    arguments: &Value,
    url: &str,
    link: Option<&str>,
    body: &Value,
) -> Option<PageCursor> {
    let linked = link.and_then(next_link).and_then(|next| same_server(url, next));
    if let Some(next) = linked {
        return Some(PageCursor::Url(next));
    }
    let named =
        NEXT_URLS.into_iter().find_map(|at| body.pointer(at)?.as_str()).filter(|next| !next.is_empty());
    if let Some(next) = named.and_then(|next| same_server(url, next)) {
        return Some(PageCursor::Url(next));
    }
    let with = |argument: &str, value: Value| {
        let mut changed = arguments.clone();
        changed.as_object_mut()?.insert(argument.to_owned(), value);
        Some(PageCursor::Arguments(changed))
    };
    for (at, parameters) in NEXT_TOKENS {
        let token = body.pointer(at).filter(|token| !token.is_null() && token.as_str() != Some(""));
        if let (Some(token), Some(argument)) = (token, operation.query_argument(parameters)) {
            return with(argument, token.clone());
        }
    }
    let mut copy = body.clone();
    let list = items(&mut copy)?;
    let last = list.last()?;
    // As Stripe has it: the last identifier of the page.
    if body.get("has_more") == Some(&Value::Bool(true)) {
        let argument = operation.query_argument(&["starting_after"])?;
        return with(argument, last.get("id")?.clone());
    }
    if body.get("has_more").is_some() {
        return None;
    }
    let argument = operation.query_argument(&["page", "page_number", "pageNumber"])?;
    let page = arguments.get(argument).map_or(Some(1), Value::as_u64)?;
    with(argument, page.checked_add(1)?.into())
}

/// The address that a `Link` header calls `next`.
fn next_link(header: &str) -> Option<&str> {
    header.split(',').find_map(|one| {
        let (url, parameters) = one.trim().strip_prefix('<')?.split_once('>')?;
        let mut words = parameters.split(';').filter_map(|word| word.trim().strip_prefix("rel="));
        words.any(|rel| rel.trim_matches('"').split(' ').any(|word| word == "next")).then_some(url)
    })
}

/// An address of the same server; one of another gets neither requests nor secrets.
fn same_server(url: &str, next: &str) -> Option<String> {
    let origin = server::origin(url);
    if next.starts_with('/') && !next.starts_with("//") {
        return Some(format!("{origin}{next}"));
    }
    (next.contains("://") && server::origin(next) == origin && next.starts_with(origin))
        .then(|| next.to_owned())
}
