//! `web_search` and `search_web` as a file asks for them: which engines, where they are, and their keys.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use toolwright_core::{ToolDef, ToolError};
use toolwright_net::{PageClient, Proxies};

use crate::configured::{DataTools, Lazy, read};
use crate::elasticsearch::Elasticsearch;
use crate::engines::{BRAVE_ADDRESS, EXA, GOOGLE, TAVILY, WebEngine};
use crate::providers::SearchProviders;
use crate::search::Search;
use crate::web_search::{EngineName, Relevance, WebSearch, search_web};
use crate::wikipedia::ENGLISH;

/// The engines in the order in which they are asked when a file names none.
const PROVIDERS: [&str; 7] = ["searxng", "tavily", "exa", "google", "brave", "wikipedia", "elasticsearch"];

/// Searches that vendors of models run on their own machines.
const OF_VENDORS: [&str; 6] = ["openai", "anthropic", "grok", "gemini", "mistral", "perplexity"];

/// What to set up when nothing can answer.
const SETUP: &str = "set SEARXNG_URL to a SearXNG server (`docker run -p 8888:8080 searxng/searxng`, with `json` under \
                     `search.formats`), or one of TAVILY_API_KEY, EXA_API_KEY, BRAVE_API_KEY, or GOOGLE_CSE_ID with \
                     GOOGLE_CSE_API_KEY";

/// How long a connection may take, and the silence of a page.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(10);
const SILENCE: std::time::Duration = std::time::Duration::from_secs(30);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WebConfig {
    /// A name, a list of names, or names with their settings.
    #[serde(alias = "providers", default)]
    provider: Value,
    #[serde(default = "three")]
    num_results: usize,
    #[serde(default = "three")]
    max_provider_calls: usize,
    #[serde(default = "ten")]
    max_connections: usize,
    /// Whether a model judges pages: `true` is the model of the run.
    #[serde(default)]
    model: Option<bool>,
}

fn three() -> usize {
    3
}

fn ten() -> usize {
    10
}

/// The settings of one engine; each has some of them.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ProviderConfig {
    address: Option<String>,
    key_env: Option<String>,
    id_env: Option<String>,
    index: Option<String>,
    key_id: Option<String>,
}

impl DataTools {
    pub(crate) fn web_search(&self, config: &Value) -> Result<ToolDef, ToolError> {
        let WebConfig { provider, num_results, max_provider_calls, max_connections, model } = read(config)?;
        let providers = self.providers(&provider, max_connections)?;
        let search = WebSearch::new(providers, PageClient::new(self.page_proxies(), CONNECT, SILENCE))
            .num_results(num_results)
            .max_provider_calls(max_provider_calls)
            .relevance(if model == Some(true) { Relevance::RunModel } else { Relevance::Unjudged });
        Ok(search.tool())
    }

    pub(crate) fn search_web(&self, config: &Value) -> Result<ToolDef, ToolError> {
        let NoSettings {} = read(config)?;
        let tools = self.clone();
        Ok(search_web(move |engine| tools.providers_of(engine)))
    }

    /// Google by its own API, and every engine through SearXNG's of that name.
    fn providers_of(&self, engine: EngineName) -> Result<SearchProviders, ToolError> {
        let own = if engine == EngineName::Google { &["google", "searxng"][..] } else { &["searxng"] };
        let hint = match engine {
            EngineName::Google => {
                "set GOOGLE_CSE_ID and GOOGLE_CSE_API_KEY, or SEARXNG_URL to a SearXNG server".to_owned()
            }
            other => format!("set SEARXNG_URL to a SearXNG server that has the engine `{}`", other.as_str()),
        };
        let mut providers = SearchProviders::new(ten()).hint(hint);
        for name in own.iter().filter(|name| self.is_set_up(name)) {
            providers = providers.provider(*name, self.engine(name, &ProviderConfig::default())?);
        }
        Ok(providers)
    }

    fn providers(&self, wanted: &Value, max_connections: usize) -> Result<SearchProviders, ToolError> {
        let mut providers = SearchProviders::new(max_connections).hint(SETUP);
        let named: Vec<(String, ProviderConfig)> =
            match wanted {
                Value::Null => {
                    let set_up = PROVIDERS.iter().filter(|name| self.is_set_up(name));
                    set_up.map(|name| ((*name).to_owned(), ProviderConfig::default())).collect()
                }
                Value::String(name) => vec![(name.clone(), ProviderConfig::default())],
                Value::Array(names) => {
                    let name = |value: &Value| match value.as_str() {
                        Some(name) => Ok((name.to_owned(), ProviderConfig::default())),
                        None => Err(ToolError::invalid(format!(
                            "`config`: {value} is not the name of a provider"
                        ))),
                    };
                    names.iter().map(name).collect::<Result<_, _>>()?
                }
                Value::Object(entries) => {
                    // `false` switches one off, as in Inspect.
                    let on = entries.iter().filter(|(_, settings)| **settings != Value::Bool(false));
                    on.map(|(name, settings)| Ok((name.clone(), settings_of(name, settings)?)))
                        .collect::<Result<_, ToolError>>()?
                }
                other => return Err(ToolError::invalid(format!("`config`: {other} is not a provider"))),
            };
        for (name, config) in named {
            known(&name)?;
            providers = providers.provider(name.as_str(), self.engine(&name, &config)?);
        }
        Ok(providers)
    }

    /// Whether the variables say all that an engine needs.
    fn is_set_up(&self, name: &str) -> bool {
        let set = |variable: &str| self.key(variable).is_ok();
        match name {
            "searxng" => set("SEARXNG_URL"),
            "tavily" => set("TAVILY_API_KEY"),
            "exa" => set("EXA_API_KEY"),
            "brave" => set("BRAVE_API_KEY"),
            "google" => set("GOOGLE_CSE_ID") && set("GOOGLE_CSE_API_KEY"),
            "wikipedia" => true,
            _ => false,
        }
    }

    /// An engine that is reached, and whose key is looked up, when it is first asked.
    fn engine(&self, name: &str, config: &ProviderConfig) -> Result<Arc<dyn Search>, ToolError> {
        if name == "elasticsearch" {
            return self.elastic(config);
        }
        let tools = self.clone();
        let text = |value: &Option<String>, usual: &str| value.clone().unwrap_or_else(|| usual.to_owned());
        let (name, given) = (name.to_owned(), config.address.clone());
        let (key_env, id_env) = (config.key_env.clone(), text(&config.id_env, "GOOGLE_CSE_ID"));
        Ok(Arc::new(Lazy::new(move || {
            let (tools, name, given) = (tools.clone(), name.clone(), given.clone());
            let (key_env, id_env) = (key_env.clone(), id_env.clone());
            Box::pin(async move {
                let at = |usual: &str| tools.address(given.as_deref().unwrap_or(usual));
                let key = |usual: &str| tools.key(key_env.as_deref().unwrap_or(usual));
                let engine = match name.as_str() {
                    "searxng" => {
                        let address = match &given {
                            Some(address) => address.clone(),
                            None => tools.key("SEARXNG_URL")?.expose().to_owned(),
                        };
                        WebEngine::searxng(tools.address(&address)?)
                    }
                    "tavily" => WebEngine::tavily(at(TAVILY)?, &key("TAVILY_API_KEY")?),
                    "exa" => WebEngine::exa(at(EXA)?, &key("EXA_API_KEY")?),
                    "google" => {
                        let id = tools.key(&id_env)?;
                        WebEngine::google(at(GOOGLE)?, id.expose(), &key("GOOGLE_CSE_API_KEY")?)
                    }
                    "brave" => WebEngine::brave(at(BRAVE_ADDRESS)?, &key("BRAVE_API_KEY")?),
                    _ => WebEngine::wikipedia(at(ENGLISH)?),
                };
                Ok(Arc::new(engine?) as Arc<dyn Search>)
            })
        })))
    }

    fn elastic(&self, config: &ProviderConfig) -> Result<Arc<dyn Search>, ToolError> {
        let ProviderConfig { address, key_env, index, key_id, .. } = config;
        let (Some(address), Some(index), Some(key_id)) = (address.clone(), index.clone(), key_id.clone())
        else {
            return Err(ToolError::invalid(
                "`config`: `elasticsearch` needs `address`, `index` and `key_id`",
            ));
        };
        let key_env = key_env.clone().unwrap_or_else(|| "ELASTICSEARCH_API_KEY".to_owned());
        let tools = self.clone();
        Ok(Arc::new(Lazy::new(move || {
            let (tools, address, index) = (tools.clone(), address.clone(), index.clone());
            let (key_id, key_env) = (key_id.clone(), key_env.clone());
            Box::pin(async move {
                let key = tools.key(&key_env)?;
                let engine = Elasticsearch::connect(tools.address(&address)?, &key_id, &key, &index).await?;
                Ok(Arc::new(engine) as Arc<dyn Search>)
            })
        })))
    }

    /// The proxies on the way to pages.
    fn page_proxies(&self) -> Proxies {
        Proxies::from_environment_when_dialled(|name| self.variable(name))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoSettings {}

fn settings_of(name: &str, settings: &Value) -> Result<ProviderConfig, ToolError> {
    match settings {
        Value::Null | Value::Bool(true) => Ok(ProviderConfig::default()),
        Value::Object(_) => serde_json::from_value(settings.clone())
            .map_err(|cause| ToolError::invalid(format!("`config`: `{name}`: {cause}"))),
        other => {
            let message = format!("`config`: `{name}` is {other}; write its settings, true or false");
            Err(ToolError::invalid(message))
        }
    }
}

/// An error for a name that is not a provider.
fn known(name: &str) -> Result<(), ToolError> {
    if PROVIDERS.contains(&name) {
        return Ok(());
    }
    let hint = format!("the providers are {}", PROVIDERS.join(", "));
    let message = match OF_VENDORS.contains(&name) {
        true => format!("`config`: the search that {name} runs itself cannot be used here"),
        false => format!("`config`: there is no provider `{name}`"),
    };
    Err(ToolError::invalid(message).hint(hint))
}
