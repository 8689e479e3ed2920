//! The tools `web_search` (as Inspect has it) and `search_web` (as MARSYS has it) over several engines.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use toolwright_core::{
    Annotations, Citation, Content, DynModel, Message, ModelOptions, ModelRequest, ToolChoice, ToolContext,
    ToolDef, ToolError, ToolOutput,
};
use toolwright_net::reqwest::Url;
use toolwright_net::reqwest::header::HeaderMap;
use toolwright_net::{PageClient, PageRequest, Reach};

use crate::pages::html_to_text;
use crate::providers::{ProvidersAnswer, SearchProviders};
use crate::search::{SEARCH_TIME, SearchRequest, SearchResult};

/// The most results that a call may ask for.
const MOST: usize = 50;

/// The most bytes and words of a page that a model judges.
const MAX_PAGE: usize = 4 << 20;
const MAX_WORDS: usize = 2000;

/// The longest a page may take.
const PAGE_TIME: Duration = Duration::from_secs(30);

/// Who judges whether a page is relevant.
#[derive(Clone, Default)]
pub enum Relevance {
    /// Results are not judged.
    #[default]
    Unjudged,
    /// The model of the run.
    RunModel,
    /// This model.
    Model(Arc<DynModel>),
}

/// How long a search may take whose results a model judges.
const JUDGED_SEARCH_TIME: Duration = Duration::from_secs(600);

/// The tool `web_search`.
pub struct WebSearch {
    providers: SearchProviders,
    num_results: usize,
    max_provider_calls: usize,
    relevance: Relevance,
    pages: PageClient,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct WebQuery {
    /// Search query.
    query: String,
}

impl WebSearch {
    /// Three results, at most three calls to an engine; results are not judged.
    pub fn new(providers: SearchProviders, pages: PageClient) -> Self {
        WebSearch { providers, num_results: 3, max_provider_calls: 3, relevance: Relevance::default(), pages }
    }

    /// How many results a model gets.
    #[must_use]
    pub fn num_results(mut self, results: usize) -> Self {
        self.num_results = results.clamp(1, MOST);
        self
    }

    /// How often an engine is asked for more, when results are judged.
    #[must_use]
    pub fn max_provider_calls(mut self, calls: usize) -> Self {
        self.max_provider_calls = calls.max(1);
        self
    }

    /// Reads the pages that were found and gives those that a model calls relevant.
    #[must_use]
    pub fn relevance(mut self, relevance: Relevance) -> Self {
        self.relevance = relevance;
        self
    }

    /// The tool.
    pub fn tool(self) -> ToolDef {
        // Judging results takes a page and an answer of a model for each.
        let time = match &self.relevance {
            Relevance::Unjudged => SEARCH_TIME,
            Relevance::RunModel | Relevance::Model(_) => JUDGED_SEARCH_TIME,
        };
        let search = Arc::new(self);
        let about = "Searches the web. Gives titles, addresses and what the pages say about the query.";
        let tool = ToolDef::typed("web_search", about, move |context: ToolContext, query: WebQuery| {
            let search = search.clone();
            async move { search.run(&context, &query.query).await }
        });
        annotated(tool).with_timeout(time)
    }

    async fn run(&self, context: &ToolContext, query: &str) -> Result<ToolOutput, ToolError> {
        let model = match &self.relevance {
            Relevance::Unjudged => {
                let answer = self.providers.ask(SearchRequest::of(query, self.num_results)).await?;
                return Ok(shown(&answer));
            }
            Relevance::RunModel => context.model()?,
            Relevance::Model(model) => model.clone(),
        };
        let (mut relevant, mut seen, mut account) = (Vec::new(), HashSet::new(), None);
        for page in 0..self.max_provider_calls {
            let request = SearchRequest { page, ..SearchRequest::of(query, 10) };
            let answer = match self.providers.ask(request).await {
                Ok(answer) => answer,
                // What was found before stays.
                Err(_) if page > 0 => break,
                Err(error) => return Err(error),
            };
            let fresh: Vec<SearchResult> = answer
                .found
                .results
                .iter()
                .filter(|result| seen.insert(result.source.clone()))
                .cloned()
                .collect();
            account.get_or_insert(answer);
            if fresh.is_empty() {
                break;
            }
            for result in fresh {
                if let Some(result) = self.judged(context, &*model, query, result).await? {
                    relevant.push(result);
                }
                if relevant.len() >= self.num_results {
                    break;
                }
            }
            if relevant.len() >= self.num_results {
                break;
            }
        }
        let mut answer = account.unwrap_or_default();
        (answer.found.results, answer.found.answer) = (relevant, None);
        Ok(shown(&answer))
    }

    /// The result with the text of its page, if a model calls that relevant. A page that cannot be read is
    /// left out.
    async fn judged(
        &self,
        context: &ToolContext,
        model: &DynModel,
        query: &str,
        result: SearchResult,
    ) -> Result<Option<SearchResult>, ToolError> {
        let Some(text) = self.page(context, &result.source).await else { return Ok(None) };
        let question = format!(
            "I am trying to answer the following question and need to find the most relevant information on the \
             web. Please let me know if the following content is relevant to the question or not. You should just \
             respond with \"yes\" or \"no\".\n\nQuestion: {query}\nPage content: {text}"
        );
        let (messages, options) = ([Message::user(question)], ModelOptions::default());
        let request = ModelRequest {
            messages: &messages,
            tools: &[],
            tool_choice: &ToolChoice::None,
            options: &options,
        };
        let reply = context.ask(model, request).await?;
        let relevant = reply.message.text().to_lowercase().contains("yes");
        Ok(relevant.then_some(SearchResult { content: text, ..result }))
    }

    async fn page(&self, context: &ToolContext, address: &str) -> Option<String> {
        let url = Url::parse(address).ok()?;
        let reach = context.state::<Reach>().map_or(Reach::Public, |reach| Reach::clone(&reach));
        let none = HeaderMap::new();
        let request = PageRequest::get(&reach, url, &none, MAX_PAGE);
        let page = tokio::time::timeout(PAGE_TIME, self.pages.send(request)).await.ok()?.ok()?;
        if page.status != 200 {
            return None;
        }
        let text = html_to_text(&String::from_utf8_lossy(&page.body));
        let words: Vec<&str> = text.split_whitespace().take(MAX_WORDS).collect();
        Some(words.join(" ")).filter(|text| !text.is_empty())
    }
}

/// What a model reads of an answer.
fn shown(answer: &ProvidersAnswer) -> ToolOutput {
    let found = &answer.found;
    let mut text = found.answer.clone().map(|answer| format!("{answer}\n\n")).unwrap_or_default();
    for (result, number) in found.results.iter().zip(1..) {
        let SearchResult { source, title, content } = result;
        let title = if title.is_empty() { source } else { title };
        text.push_str(&format!("{number}. {title}\n   {source}\n"));
        if !content.is_empty() {
            text.push_str(&format!("   {content}\n"));
        }
    }
    if found.is_empty() {
        text.push_str("Nothing relevant was found on the web.\n");
    }
    text.push_str(&format!("\n{}", answer.account()));
    let citation = |result: &SearchResult| Citation {
        url: result.source.clone(),
        title: Some(result.title.clone()).filter(|title| !title.is_empty()),
        quote: Some(result.content.clone()).filter(|content| !content.is_empty()),
    };
    let citations = found.results.iter().map(citation).collect();
    with_account(ToolOutput::block(Content::Text { text, citations }), answer)
}

fn with_account(output: ToolOutput, answer: &ProvidersAnswer) -> ToolOutput {
    let failed: Vec<_> =
        answer.failed.iter().map(|(name, why)| json!({"provider": name, "reason": why})).collect();
    output.with_metadata("answered", answer.answered.as_str()).with_metadata("failed", failed)
}

fn annotated(tool: ToolDef) -> ToolDef {
    let annotations = Annotations { read_only: Some(true), open_world: Some(true), ..Annotations::default() };
    tool.with_annotations(annotations).with_category("search")
}

/// A search engine by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum EngineName {
    Google,
    Bing,
    Duckduckgo,
}

impl EngineName {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            EngineName::Google => "google",
            EngineName::Bing => "bing",
            EngineName::Duckduckgo => "duckduckgo",
        }
    }
}

fn five() -> usize {
    5
}

fn google() -> EngineName {
    EngineName::Google
}

#[derive(Deserialize, schemars::JsonSchema)]
struct EngineQuery {
    /// What to search for.
    query: String,
    /// How many results to give.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 50))]
    max_results: usize,
    /// Which engine to ask.
    #[serde(default = "google")]
    search_engine: EngineName,
}

/// The tool `search_web`: a list of `title`, `url` and `snippet`. `providers` are those for each engine.
pub(crate) fn search_web(
    providers: impl Fn(EngineName) -> Result<SearchProviders, ToolError> + Send + Sync + 'static,
) -> ToolDef {
    let providers = Arc::new(providers);
    let about = "Searches the web with an engine. Gives a list of title, url and snippet.";
    let tool = ToolDef::typed("search_web", about, move |_: ToolContext, query: EngineQuery| {
        let providers = providers.clone();
        async move {
            let EngineQuery { query, max_results, search_engine } = query;
            let request = SearchRequest {
                engine: Some(search_engine.as_str()),
                ..SearchRequest::of(&query, max_results.clamp(1, MOST))
            };
            let answer = providers(search_engine)?.ask(request).await?;
            let result = |SearchResult { source, title, content }: &SearchResult| json!({"title": title, "url": source, "snippet": content});
            let list: Vec<_> = answer.found.results.iter().map(result).collect();
            Ok::<_, ToolError>(with_account(ToolOutput::json(list.into()), &answer))
        }
    });
    annotated(tool).with_timeout(SEARCH_TIME)
}
