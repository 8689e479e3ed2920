//! Search engines of the web by their own APIs: SearXNG, Brave, Tavily, Exa, Google's programmable search and
//! Wikipedia. Each gives titles, addresses and snippets; pages are not read here.

use serde_json::{Value, json};
use toolwright_core::{BoxFuture, ErrorKind, Secret, ToolError};

use crate::api::{Address, Api};
use crate::brave::{BRAVE, Brave};
use crate::pages::html_to_text;
use crate::search::{Search, SearchAnswer, SearchRequest, SearchResult};

/// Where the engines are unless a setting says otherwise.
pub(crate) const TAVILY: &str = "https://api.tavily.com";
pub(crate) const EXA: &str = "https://api.exa.ai";
pub(crate) const GOOGLE: &str = "https://www.googleapis.com";

/// How many results Brave, Tavily and Google give at most for one request.
const MOST_OF_BRAVE: usize = 20;
const MOST_OF_TAVILY: usize = 20;
const MOST_OF_GOOGLE: usize = 10;

/// A search engine of the web.
#[derive(Debug)]
pub struct WebEngine {
    api: Api,
    kind: EngineKind,
}

#[derive(Debug)]
enum EngineKind {
    SearXng,
    Brave,
    Tavily,
    Exa,
    Google { id: String, key: Secret },
    Wikipedia,
}

impl WebEngine {
    /// A SearXNG server. Its settings must list `json` under `search.formats`.
    pub fn searxng(address: impl Into<Address>) -> Result<Self, ToolError> {
        Ok(WebEngine { api: Api::new(&address.into(), None)?, kind: EngineKind::SearXng })
    }

    /// Brave, without reading the pages it finds.
    pub fn brave(address: impl Into<Address>, key: &Secret) -> Result<Self, ToolError> {
        let header = ("x-subscription-token", key.expose().to_owned());
        Ok(WebEngine { api: Api::new(&address.into(), Some(header))?, kind: EngineKind::Brave })
    }

    /// Tavily.
    pub fn tavily(address: impl Into<Address>, key: &Secret) -> Result<Self, ToolError> {
        let header = ("authorization", format!("Bearer {}", key.expose()));
        Ok(WebEngine { api: Api::new(&address.into(), Some(header))?, kind: EngineKind::Tavily })
    }

    /// Exa.
    pub fn exa(address: impl Into<Address>, key: &Secret) -> Result<Self, ToolError> {
        let header = ("x-api-key", key.expose().to_owned());
        Ok(WebEngine { api: Api::new(&address.into(), Some(header))?, kind: EngineKind::Exa })
    }

    /// Google's programmable search engine with this id (`cx`).
    pub fn google(address: impl Into<Address>, id: &str, key: &Secret) -> Result<Self, ToolError> {
        let kind = EngineKind::Google { id: id.to_owned(), key: key.clone() };
        Ok(WebEngine { api: Api::new(&address.into(), None)?.hiding(key.clone()), kind })
    }

    /// A wiki that runs MediaWiki.
    pub fn wikipedia(address: impl Into<Address>) -> Result<Self, ToolError> {
        Ok(WebEngine { api: Api::new(&address.into(), None)?, kind: EngineKind::Wikipedia })
    }

    async fn ask(&self, request: SearchRequest<'_>) -> Result<SearchAnswer, ToolError> {
        let SearchRequest { query, most, page, engine } = request;
        match &self.kind {
            EngineKind::SearXng => self.searxng_page(query, page, engine).await,
            // Asked once: these engines give all they have in one answer.
            EngineKind::Tavily | EngineKind::Exa | EngineKind::Wikipedia if page > 0 => {
                Ok(SearchAnswer::default())
            }
            EngineKind::Brave => {
                let (count, offset) = (most.clamp(1, MOST_OF_BRAVE).to_string(), page.to_string());
                let mut fields = vec![("q", query), ("count", count.as_str())];
                fields.extend((page > 0).then_some(("offset", offset.as_str())));
                let found = self.api.expect("Brave", self.api.get("/res/v1/web/search", &fields).await?)?;
                let snippet = |hit: &Value| Brave::without_marks(text(hit, "description"));
                Ok(results(found.pointer("/web/results"), "url", snippet))
            }
            EngineKind::Tavily => {
                let most = most.clamp(1, MOST_OF_TAVILY);
                let body = json!({"query": query, "max_results": most, "include_answer": true});
                let found = self.api.expect("Tavily", self.api.post("/search", &body).await?)?;
                let answer = Some(text(&found, "answer").to_owned()).filter(|answer| !answer.is_empty());
                let snippet = |hit: &Value| text(hit, "content").to_owned();
                Ok(SearchAnswer { answer, ..results(found.get("results"), "url", snippet) })
            }
            EngineKind::Exa => {
                let body = json!({"query": query, "text": true});
                let found = self.api.expect("Exa", self.api.post("/answer", &body).await?)?;
                let answer = Some(text(&found, "answer").to_owned()).filter(|answer| !answer.is_empty());
                let snippet = |hit: &Value| text(hit, "text").to_owned();
                Ok(SearchAnswer { answer, ..results(found.get("citations"), "url", snippet) })
            }
            EngineKind::Google { id, key } => {
                let start = (page * MOST_OF_GOOGLE + 1).to_string();
                let fields =
                    [("q", query), ("key", key.expose()), ("cx", id.as_str()), ("start", start.as_str())];
                let found = self.api.expect("Google", self.api.get("/customsearch/v1", &fields).await?)?;
                Ok(results(found.get("items"), "link", |hit| text(hit, "snippet").to_owned()))
            }
            EngineKind::Wikipedia => self.wikipedia_page(query, most).await,
        }
    }

    async fn searxng_page(
        &self,
        query: &str,
        page: usize,
        engine: Option<&str>,
    ) -> Result<SearchAnswer, ToolError> {
        let page = (page + 1).to_string();
        let mut fields = vec![("q", query), ("format", "json"), ("pageno", page.as_str())];
        fields.extend(engine.map(|engine| ("engines", engine)));
        let answer = self.api.get("/search", &fields).await?;
        if answer.0 == 403 {
            let error = ToolError::of(ErrorKind::Permission, "SearXNG does not answer in JSON");
            return Err(error.hint("list `json` under `search.formats` in its settings"));
        }
        let found = self.api.expect("SearXNG", answer)?;
        let mut answer = results(found.get("results"), "url", |hit| text(hit, "content").to_owned());
        let silent = found.get("unresponsive_engines").and_then(Value::as_array);
        for entry in silent.into_iter().flatten() {
            let part = |at: usize| entry.get(at).and_then(Value::as_str).unwrap_or_default();
            answer.notes.push(format!("{} ({})", part(0), part(1)));
        }
        if answer.results.is_empty() && !answer.notes.is_empty() {
            return Err(ToolError::new(format!(
                "no engine of SearXNG answered: {}",
                answer.notes.join(", ")
            )));
        }
        Ok(answer)
    }

    async fn wikipedia_page(&self, query: &str, most: usize) -> Result<SearchAnswer, ToolError> {
        let limit = most.clamp(1, 50).to_string();
        let fields = [
            ("action", "query"),
            ("format", "json"),
            ("formatversion", "2"),
            ("list", "search"),
            ("srsearch", query),
            ("srlimit", limit.as_str()),
        ];
        let found = self.api.expect("Wikipedia", self.api.get("/w/api.php", &fields).await?)?;
        let hits = found.pointer("/query/search").and_then(Value::as_array);
        let result = |hit: &Value| {
            let title = text(hit, "title");
            let source = self.api.address_of("/wiki", &title.replace(' ', "_"));
            let content = html_to_text(text(hit, "snippet")).replace('\n', " ");
            (!title.is_empty()).then(|| SearchResult { source, title: title.to_owned(), content })
        };
        Ok(SearchAnswer::of(hits.into_iter().flatten().filter_map(result).collect()))
    }
}

impl Search for WebEngine {
    fn search<'a>(
        &'a self,
        query: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchResult>, ToolError>> {
        Box::pin(async move { Ok(self.answer(SearchRequest::of(query, most)).await?.results) })
    }

    fn answer<'a>(&'a self, request: SearchRequest<'a>) -> BoxFuture<'a, Result<SearchAnswer, ToolError>> {
        Box::pin(async move {
            let mut answer = self.ask(request).await?;
            answer.results.truncate(request.most);
            Ok(answer)
        })
    }
}

/// The address of Brave, for settings that name none.
pub(crate) const BRAVE_ADDRESS: &str = BRAVE;

fn text<'a>(item: &'a Value, key: &str) -> &'a str {
    item.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The results of a list; those without an address are left out.
fn results(list: Option<&Value>, address: &str, snippet: impl Fn(&Value) -> String) -> SearchAnswer {
    let hits = list.and_then(Value::as_array).into_iter().flatten();
    let result = |hit: &Value| {
        let source = text(hit, address).to_owned();
        let title = text(hit, "title").to_owned();
        (!source.is_empty()).then(|| SearchResult { source, title, content: snippet(hit) })
    };
    SearchAnswer::of(hits.filter_map(result).collect())
}
