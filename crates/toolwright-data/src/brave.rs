//! The Brave search engine.

use std::sync::Arc;

use serde_json::Value;
use tokio::task::JoinSet;
use toolwright_core::{BoxFuture, Secret, ToolDef, ToolError};
use toolwright_net::Reach;

use crate::api::{Address, Api};
use crate::pages::{Pages, WebPages};
use crate::search::{Search, SearchResult, described, search_tool};
use crate::tokens::{Tokenizer, WordTokenizer, truncate};

/// Brave's address.
pub(crate) const BRAVE: &str = "https://api.search.brave.com";

/// Searches the web with Brave, and reads the pages it finds.
pub struct Brave {
    api: Api,
    pages: Arc<dyn Pages>,
    tokenizer: Arc<dyn Tokenizer>,
    most_tokens: usize,
}

impl Brave {
    /// To how many tokens pages are cut.
    pub const MOST_TOKENS: usize = 5000;

    /// Brave, with a key from its site.
    pub fn new(key: &Secret) -> Result<Self, ToolError> {
        Self::at(BRAVE, key)
    }

    /// Brave's API at another address. Pages are read through the same proxies.
    pub fn at(address: impl Into<Address>, key: &Secret) -> Result<Self, ToolError> {
        let address = address.into();
        let api = Api::new(&address, Some(("x-subscription-token", key.expose().to_owned())))?;
        Ok(Brave {
            api,
            pages: Arc::new(WebPages::through(Reach::Public, address.proxies)?),
            tokenizer: Arc::new(WordTokenizer),
            most_tokens: Brave::MOST_TOKENS,
        })
    }

    /// Reads pages from elsewhere.
    #[must_use]
    pub fn pages(mut self, pages: impl Pages + 'static) -> Self {
        self.pages = Arc::new(pages);
        self
    }

    /// Cuts pages to so many tokens, [`MOST_TOKENS`](Self::MOST_TOKENS) when this is not said.
    #[must_use]
    pub fn most_tokens(mut self, most: usize) -> Self {
        self.most_tokens = most;
        self
    }

    /// The tool `search_brave`.
    pub fn tool(self) -> ToolDef {
        let about = "Searches the web with the Brave search engine for pages that fit your query. Gives the address and \
                     the content of each page.";
        described(
            search_tool("search_brave", about, self),
            "The search query to enter into the Brave search engine.",
            "The number of search results to return, where each search result is a website page.",
        )
    }

    /// A question and its answer.
    pub fn faq(item: &Value) -> SearchResult {
        let content = format!(
            "FAQ Title: {}Question: {}Answer: {}",
            text(item, "title", "Unknown"),
            text(item, "question", "Unknown"),
            text(item, "answer", "Unknown")
        );
        SearchResult {
            source: text(item, "url", "").to_owned(),
            title: text(item, "title", "").to_owned(),
            content,
        }
    }

    /// A piece of news; none when it has next to no description.
    pub fn news(item: &Value) -> Option<SearchResult> {
        let description = text(item, "description", "");
        if description.chars().count() < 5 {
            return None;
        }
        let host = item.get("meta_url").unwrap_or(&Value::Null);
        let content = format!(
            "News Article Title: {}News Article Description: {description}News Article Age: {}News Article Source: {}",
            text(item, "title", "Unknown"),
            text(item, "age", "Unknown"),
            text(host, "hostname", "Unknown")
        );
        Some(SearchResult {
            source: text(item, "url", "").to_owned(),
            title: text(item, "title", "").to_owned(),
            content,
        })
    }

    /// A description without the marks of what was searched for.
    pub fn without_marks(description: &str) -> String {
        description.replace("<strong>", "").replace("</strong>", "").replace("&#x27;", "'")
    }

    /// A page: what Brave says of it and what it says. A page that has no text is empty; one that cannot be
    /// read is what Brave says.
    fn page(
        item: &Value,
        read: &Result<Option<String>, ToolError>,
        tokenizer: &dyn Tokenizer,
        most: usize,
    ) -> SearchResult {
        let source = text(item, "url", "").to_owned();
        let said = format!(
            "Web Page Title: {}Web Page URL: {source}Web Page Description: {}",
            text(item, "title", ""),
            Brave::without_marks(text(item, "description", ""))
        );
        let content = match read {
            Ok(Some(page)) if !page.is_empty() => {
                format!("{said}\nWeb Page Content: {}", truncate(tokenizer, page, most))
            }
            Ok(_) => String::new(),
            Err(_) => said,
        };
        SearchResult { source, title: text(item, "title", "").to_owned(), content }
    }

    /// What an answer of the API holds, in its order; pages are read at the same time.
    pub async fn results(&self, answer: &Value, most: usize) -> Vec<SearchResult> {
        let list = |kind: &str| {
            let results = answer.get(kind).and_then(|part| part.get("results")).and_then(Value::as_array);
            results.into_iter().flatten()
        };
        let (mut web, mut news, mut faq) = (list("web"), list("news"), list("faq"));
        let order = answer.get("mixed").and_then(|mixed| mixed.get("main")).and_then(Value::as_array);
        let (mut results, mut reading) = (Vec::new(), JoinSet::new());
        for entry in order.into_iter().flatten() {
            if results.len() >= most {
                break;
            }
            match entry.get("type").and_then(Value::as_str) {
                Some("web") => {
                    let Some(item) = web.next().cloned() else { continue };
                    let (pages, tokenizer) = (self.pages.clone(), self.tokenizer.clone());
                    let (place, tokens) = (results.len(), self.most_tokens);
                    // Until it is read, and should reading break down.
                    results.push(Brave::page(&item, &Err(ToolError::new("unread")), &*tokenizer, tokens));
                    reading.spawn(async move {
                        let read = pages.text(text(&item, "url", "")).await;
                        (place, Brave::page(&item, &read, &*tokenizer, tokens))
                    });
                }
                Some("news") => results.extend(news.next().and_then(Brave::news)),
                Some("faq") => results.extend(faq.next().map(Brave::faq)),
                _ => {}
            }
        }
        while let Some(read) = reading.join_next().await {
            if let Ok((place, result)) = read
                && let Some(slot) = results.get_mut(place)
            {
                *slot = result;
            }
        }
        results
    }
}

impl Search for Brave {
    fn search<'a>(
        &'a self,
        query: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchResult>, ToolError>> {
        Box::pin(async move {
            let answer = self.api.get("/res/v1/web/search", &[("q", query), ("count", "20")]).await?;
            let answer = self.api.expect("Brave", answer)?;
            Ok(self.results(&answer, most).await)
        })
    }
}

fn text<'a>(item: &'a Value, key: &str, or: &'a str) -> &'a str {
    item.get(key).and_then(Value::as_str).unwrap_or(or)
}
