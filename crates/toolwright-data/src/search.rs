//! A search engine as a tool.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use toolwright_core::{Annotations, BoxFuture, ToolContext, ToolDef, ToolError};

/// The most results that a call may ask for.
const MOST: usize = 50;

/// One thing that was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchResult {
    /// Where it was found.
    pub source: String,
    /// Its title; empty when the engine gives none.
    pub title: String,
    /// What was found.
    pub content: String,
}

/// What is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchRequest<'a> {
    /// The query.
    pub query: &'a str,
    /// The most results.
    pub most: usize,
    /// Which page of results, counting from 0.
    pub page: usize,
    /// Which of the engines behind this one, where it has several.
    pub engine: Option<&'a str>,
}

impl<'a> SearchRequest<'a> {
    /// The first results for a query.
    pub fn of(query: &'a str, most: usize) -> Self {
        SearchRequest { query, most, page: 0, engine: None }
    }
}

/// What was found, with what the engine says beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchAnswer {
    /// The engine's own answer to the query.
    pub answer: Option<String>,
    /// The results, the best first.
    pub results: Vec<SearchResult>,
    /// Parts of the engine that did not answer.
    pub notes: Vec<String>,
}

impl SearchAnswer {
    /// Results and nothing beside them.
    pub fn of(results: Vec<SearchResult>) -> Self {
        SearchAnswer { results, ..SearchAnswer::default() }
    }

    /// True when nothing was found.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty() && self.answer.is_none()
    }
}

/// Something that can be searched.
pub trait Search: Send + Sync {
    /// Answers a request; what has no pages finds nothing on the second.
    fn answer<'a>(&'a self, request: SearchRequest<'a>) -> BoxFuture<'a, Result<SearchAnswer, ToolError>> {
        Box::pin(async move {
            match request.page {
                0 => Ok(SearchAnswer::of(self.search(request.query, request.most).await?)),
                _ => Ok(SearchAnswer::default()),
            }
        })
    }

    /// What is found for `query`, the best first, at most `most` of it.
    fn search<'a>(
        &'a self,
        query: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchResult>, ToolError>>;
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Query {
    /// What to search for.
    query: String,
    /// The number of search results to return.
    #[schemars(range(min = 1, max = 50))]
    n_search_results_to_use: usize,
}

/// How long a search may take.
pub(crate) const SEARCH_TIME: Duration = Duration::from_secs(60);

/// A tool that searches and gives what it finds as numbered items, each with its source.
pub fn search_tool(name: &str, description: &str, search: impl Search + 'static) -> ToolDef {
    let search = Arc::new(search);
    let tool = ToolDef::typed(name, description, move |_: ToolContext, query: Query| {
        let search = search.clone();
        async move {
            let most = query.n_search_results_to_use.min(MOST);
            let results = search.search(&query.query, most).await?;
            Ok::<_, ToolError>(format_search_results(&results))
        }
    });
    let annotations = Annotations { read_only: Some(true), open_world: Some(true), ..Annotations::default() };
    tool.with_annotations(annotations).with_category("search").with_timeout(SEARCH_TIME)
}

/// Search results, numbered from 1.
pub fn format_search_results(results: &[SearchResult]) -> String {
    let items = results.iter().zip(1..).map(|(result, number)| {
        format!(
            "<item index=\"{number}\">\n<source>{}</source>\n<page_content>\n{}\n</page_content>\n</item>",
            result.source, result.content
        )
    });
    format!("\n<search_results>\n{}\n</search_results>", items.collect::<Vec<_>>().join("\n"))
}

/// The tool with its parameters described in the engine's own words.
pub(crate) fn described(tool: ToolDef, query: &str, number: &str) -> ToolDef {
    // Both parameters are there, so neither description can fail.
    let named = tool.clone().describe_parameter("query", query);
    named.and_then(|tool| tool.describe_parameter("n_search_results_to_use", number)).unwrap_or(tool)
}
