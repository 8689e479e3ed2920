//! Wikipedia.

use std::sync::Arc;

use serde_json::Value;
use toolwright_core::{BoxFuture, ToolDef, ToolError};

use crate::api::{Address, Api};
use crate::search::{Search, SearchResult, described, search_tool};
use crate::tokens::{Tokenizer, WordTokenizer, truncate};

/// The English Wikipedia.
pub(crate) const ENGLISH: &str = "https://en.wikipedia.org";

/// Searches Wikipedia, and reads the articles it finds.
pub struct Wikipedia {
    api: Api,
    tokenizer: Arc<dyn Tokenizer>,
    most_tokens: usize,
}

impl Wikipedia {
    /// The English Wikipedia.
    pub fn new() -> Result<Self, ToolError> {
        Self::at(ENGLISH)
    }

    /// Another wiki that runs MediaWiki, by its address.
    pub fn at(address: impl Into<Address>) -> Result<Self, ToolError> {
        Ok(Wikipedia {
            api: Api::new(&address.into(), None)?,
            tokenizer: Arc::new(WordTokenizer),
            most_tokens: 5000,
        })
    }

    /// Cuts articles to so many tokens (5000).
    #[must_use]
    pub fn most_tokens(mut self, most: usize) -> Self {
        self.most_tokens = most;
        self
    }

    /// The tool `search_wikipedia`.
    pub fn tool(self) -> ToolDef {
        let about = "Searches Wikipedia for articles that fit your query. Gives the address and the content of each article.";
        described(
            search_tool("search_wikipedia", about, self),
            "The search term to enter into the Wikipedia search engine. Broad topic keywords work best.",
            "The number of search results to return, where each search result is a Wikipedia article.",
        )
    }

    async fn ask(&self, query: &[(&str, &str)]) -> Result<Value, ToolError> {
        let query = [&[("action", "query"), ("format", "json"), ("formatversion", "2")], query].concat();
        let answer = self.api.get("/w/api.php", &query).await?;
        self.api.expect("Wikipedia", answer)
    }

    /// An article; none when there is no such article, or only a list of what its name may mean.
    async fn article(&self, title: &str) -> Result<Option<SearchResult>, ToolError> {
        let answer = self
            .ask(&[
                ("prop", "extracts|info|pageprops"),
                ("explaintext", "1"),
                ("inprop", "url"),
                ("ppprop", "disambiguation"),
                ("redirects", "1"),
                ("titles", title),
            ])
            .await?;
        let Some(page) = answer.pointer("/query/pages/0") else { return Ok(None) };
        let text = |key: &str| page.get(key).and_then(Value::as_str);
        if page.pointer("/pageprops/disambiguation").is_some() {
            return Ok(None);
        }
        let (Some(content), Some(source)) = (text("extract"), text("fullurl")) else { return Ok(None) };
        let content = truncate(&*self.tokenizer, content, self.most_tokens).to_owned();
        Ok(Some(SearchResult { source: source.to_owned(), title: title.to_owned(), content }))
    }
}

impl Search for Wikipedia {
    fn search<'a>(
        &'a self,
        query: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchResult>, ToolError>> {
        Box::pin(async move {
            // Some articles cannot be read, so more of them are asked for.
            let limit = (most * 2).clamp(10, 50).to_string();
            let found = self.ask(&[("list", "search"), ("srsearch", query), ("srlimit", &limit)]).await?;
            let found = found.pointer("/query/search").and_then(Value::as_array).cloned().unwrap_or_default();
            let titles = found.iter().filter_map(|hit| hit.get("title").and_then(Value::as_str));
            let mut results = Vec::new();
            for title in titles {
                if results.len() >= most {
                    break;
                }
                results.extend(self.article(title).await?);
            }
            Ok(results)
        })
    }
}
