//! The tools of this crate as a file asks for them: a name and its settings.
//!
//! Keys are never written in a file: a setting names the variable that holds one. Services are reached when a
//! tool is first used, so that a file can be checked without them.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use toolwright_core::{BoxFuture, ErrorKind, Secret, ToolDef, ToolError};
use toolwright_net::Proxies;

use crate::api::Address;
use crate::brave::{BRAVE, Brave};
use crate::elasticsearch::{Elasticsearch, cloud_address};
use crate::huggingface::{HuggingFace, INFERENCE, MODEL};
use crate::pinecone::{PINECONE, Pinecone};
use crate::search::{Search, SearchAnswer, SearchRequest, SearchResult, search_tool};
use crate::vector::VectorSearch;
use crate::wikipedia::{ENGLISH, Wikipedia};

/// Looks up a variable.
type Variables = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Makes tools by name and settings.
///
/// ```
/// use serde_json::json;
/// use toolwright_data::DataTools;
///
/// let tools = DataTools::new(std::env::temp_dir(), |_| None);
/// let wiki = tools.tool("search_wikipedia", &json!({"address": "https://de.wikipedia.org"})).unwrap()?;
/// assert_eq!(&*wiki.spec().name, "search_wikipedia");
/// assert!(tools.tool("search_wikipedia", &json!({"adress": ""})).unwrap().is_err());
/// assert!(tools.tool("read_file", &json!({})).is_none());
/// # Ok::<(), toolwright_core::ToolError>(())
/// ```
#[derive(Clone)]
pub struct DataTools {
    folder: PathBuf,
    variables: Variables,
}

impl DataTools {
    /// The names of all of them.
    pub const NAMES: &[&str] = &[
        #[cfg(feature = "sql")]
        "sql_query",
        #[cfg(feature = "sql")]
        "query_data",
        #[cfg(feature = "sql")]
        "describe_data",
        #[cfg(feature = "sql")]
        "save_table",
        "search_brave",
        "search_wikipedia",
        "search_elasticsearch",
        "search_vectors",
        "web_search",
        "search_web",
    ];

    /// Tools whose files are found from `folder`, and whose keys and proxies are those of the variables.
    pub fn new(
        folder: impl Into<PathBuf>,
        variables: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        DataTools { folder: folder.into(), variables: Arc::new(variables) }
    }

    /// The tool of that name; `None` when it is not one of [these](Self::NAMES).
    pub fn tool(&self, name: &str, config: &Value) -> Option<Result<ToolDef, ToolError>> {
        Some(match name {
            #[cfg(feature = "sql")]
            "sql_query" => self.sql(config),
            #[cfg(feature = "sql")]
            "query_data" | "describe_data" | "save_table" => tables(name, config),
            "search_brave" => self.brave(config),
            "search_wikipedia" => self.wikipedia(config),
            "search_elasticsearch" => self.elasticsearch(config),
            "search_vectors" => self.vectors(config),
            "web_search" => self.web_search(config),
            "search_web" => self.search_web(config),
            _ => return None,
        })
    }

    /// The tool of that name for a file that is only checked: its settings are read, and no file is opened
    /// and no variable looked up. `None` when it is not one of [these](Self::NAMES).
    pub fn inert(name: &str, config: &Value) -> Option<Result<ToolDef, ToolError>> {
        match name {
            #[cfg(feature = "sql")]
            "sql_query" => Some(read(config).and_then(|Sql { description, .. }| {
                crate::Database::in_memory()?.tool("sql_query", &description)
            })),
            _ => DataTools::new("", |_| None).tool(name, config),
        }
    }

    #[cfg(feature = "sql")]
    fn sql(&self, config: &Value) -> Result<ToolDef, ToolError> {
        let Sql { database, read_only, description } = read(config)?;
        let path = self.folder.join(&database);
        if read_only && !path.is_file() {
            let text = format!("there is no database `{}`", path.display());
            return Err(
                ToolError::of(ErrorKind::FileNotFound, text).hint("`read_only: false` makes a new one")
            );
        }
        let open = if read_only { crate::Database::open_read_only } else { crate::Database::open };
        open(&path)?.tool("sql_query", &description)
    }

    fn brave(&self, config: &Value) -> Result<ToolDef, ToolError> {
        let Brand { address, key_env, most_tokens } = read(config)?;
        let tools = self.clone();
        // What a model is told is the same wherever the engine is.
        let spec = Brave::at("http://localhost", &Secret::new("none"))?.tool();
        let lazy = Lazy::new(move || {
            let (tools, address, key_env) = (tools.clone(), address.clone(), key_env.clone());
            Box::pin(async move {
                let key = tools.key(key_env.as_deref().unwrap_or("BRAVE_API_KEY"))?;
                let engine = Brave::at(tools.address(address.as_deref().unwrap_or(BRAVE))?, &key)?;
                Ok(Arc::new(engine.most_tokens(most_tokens)) as Arc<dyn Search>)
            })
        });
        Ok(as_described(&spec, lazy))
    }

    fn wikipedia(&self, config: &Value) -> Result<ToolDef, ToolError> {
        let Brand { address, key_env, most_tokens } = read(config)?;
        if key_env.is_some() {
            return Err(ToolError::invalid("Wikipedia needs no key: leave out `key_env`"));
        }
        let address = self.address(address.as_deref().unwrap_or(ENGLISH))?;
        Ok(Wikipedia::at(address)?.most_tokens(most_tokens).tool())
    }

    fn elasticsearch(&self, config: &Value) -> Result<ToolDef, ToolError> {
        let Index { address, cloud_id, index, key_id, key_env, description } = read(config)?;
        let address = match (address, cloud_id) {
            (Some(address), None) => address,
            (None, Some(cloud_id)) => cloud_address(&cloud_id)?,
            _ => return Err(ToolError::invalid("say where it is, with one of `address` and `cloud_id`")),
        };
        let about = description
            .unwrap_or_else(|| format!("Searches the documents in `{index}` for what fits your query."));
        let tools = self.clone();
        let lazy = Lazy::new(move || {
            let (tools, address, index) = (tools.clone(), address.clone(), index.clone());
            let (key_id, key_env) = (key_id.clone(), key_env.clone());
            Box::pin(async move {
                let key = tools.key(key_env.as_deref().unwrap_or("ELASTICSEARCH_API_KEY"))?;
                let engine = Elasticsearch::connect(tools.address(&address)?, &key_id, &key, &index).await?;
                Ok(Arc::new(engine) as Arc<dyn Search>)
            })
        });
        Ok(search_tool("search_elasticsearch", &about, lazy))
    }

    fn vectors(&self, config: &Value) -> Result<ToolDef, ToolError> {
        let Vectors { index, address, key_env, model, model_address, model_key_env, description } =
            read(config)?;
        let about = description.unwrap_or_else(|| {
            format!("Searches the texts in `{index}` for what is near your query in meaning.")
        });
        let tools = self.clone();
        let lazy = Lazy::new(move || {
            let (tools, index, model) = (tools.clone(), index.clone(), model.clone());
            let (address, model_address) = (address.clone(), model_address.clone());
            let (key_env, model_key_env) = (key_env.clone(), model_key_env.clone());
            Box::pin(async move {
                let key = tools.key(model_key_env.as_deref().unwrap_or("HUGGINGFACE_API_KEY"))?;
                let at = tools.address(model_address.as_deref().unwrap_or(INFERENCE))?;
                let embedder = HuggingFace::at(at, model.as_deref().unwrap_or(MODEL), &key)?;
                let key = tools.key(key_env.as_deref().unwrap_or("PINECONE_API_KEY"))?;
                let at = tools.address(address.as_deref().unwrap_or(PINECONE))?;
                let store = Pinecone::at(at, &key, &index).await?;
                Ok(Arc::new(VectorSearch::new(Arc::new(embedder), Arc::new(store))) as Arc<dyn Search>)
            })
        });
        Ok(search_tool("search_vectors", &about, lazy))
    }

    /// An address, behind the proxies that the variables name.
    pub(crate) fn address(&self, base: &str) -> Result<Address, ToolError> {
        let proxies = Proxies::from_environment(|name| (self.variables)(name));
        Ok(Address::from(base).through(proxies.map_err(|cause| ToolError::invalid(cause.to_string()))?))
    }

    /// The value of a variable.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        (self.variables)(name)
    }

    pub(crate) fn key(&self, variable: &str) -> Result<Secret, ToolError> {
        let key = (self.variables)(variable).map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        key.map(Secret::new).ok_or_else(|| {
            ToolError::of(ErrorKind::Permission, format!("the key is missing: `{variable}` is not set"))
        })
    }
}

impl std::fmt::Debug for DataTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataTools").field("folder", &self.folder).finish_non_exhaustive()
    }
}

#[cfg(feature = "sql")]
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sql {
    database: PathBuf,
    #[serde(default = "yes")]
    read_only: bool,
    #[serde(default = "runs_sql")]
    description: String,
}

#[cfg(feature = "sql")]
fn yes() -> bool {
    true
}

#[cfg(feature = "sql")]
fn runs_sql() -> String {
    "Runs SQL on a database.".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Brand {
    address: Option<String>,
    key_env: Option<String>,
    #[serde(default = "most_tokens")]
    most_tokens: usize,
}

fn most_tokens() -> usize {
    Brave::MOST_TOKENS
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Index {
    address: Option<String>,
    cloud_id: Option<String>,
    index: String,
    key_id: String,
    key_env: Option<String>,
    description: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vectors {
    index: String,
    address: Option<String>,
    key_env: Option<String>,
    model: Option<String>,
    model_address: Option<String>,
    model_key_env: Option<String>,
    description: Option<String>,
}

/// A tool on tables of files; `sandbox` names the one that has them.
#[cfg(feature = "sql")]
fn tables(name: &str, config: &Value) -> Result<ToolDef, ToolError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Tables {
        sandbox: Option<Arc<str>>,
    }
    let Tables { sandbox } = read(config)?;
    let options = match sandbox {
        Some(sandbox) => crate::TableOptions::new().in_sandbox(sandbox),
        None => crate::TableOptions::new(),
    };
    Ok(match name {
        "query_data" => crate::query_data(&options),
        "describe_data" => crate::describe_data(&options),
        _ => crate::save_table(&options),
    })
}

/// The settings of a tool; none at all are an empty map.
pub(crate) fn read<T: DeserializeOwned>(config: &Value) -> Result<T, ToolError> {
    let mut config = if config.is_null() { json!({}) } else { config.clone() };
    if let Some(fields) = config.as_object_mut() {
        // What holds for each tool of a file.
        fields.remove("require_confirmation");
    }
    serde_json::from_value(config).map_err(|cause| ToolError::invalid(format!("`config`: {cause}")))
}

/// A search with the words of a tool that does the same.
fn as_described(tool: &ToolDef, search: Lazy) -> ToolDef {
    let spec = tool.spec().clone();
    search_tool(&spec.name, &spec.description, search).edit(|own, _| own.parameters = spec.parameters)
}

type Connect = dyn Fn() -> BoxFuture<'static, Result<Arc<dyn Search>, ToolError>> + Send + Sync;

/// An engine that is reached when it is first used. One that could not be reached is tried again.
pub(crate) struct Lazy {
    connect: Box<Connect>,
    engine: OnceCell<Arc<dyn Search>>,
}

impl Lazy {
    pub(crate) fn new(
        connect: impl Fn() -> BoxFuture<'static, Result<Arc<dyn Search>, ToolError>> + Send + Sync + 'static,
    ) -> Self {
        Lazy { connect: Box::new(connect), engine: OnceCell::new() }
    }
}

impl Search for Lazy {
    fn search<'a>(
        &'a self,
        query: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<SearchResult>, ToolError>> {
        Box::pin(async move {
            let engine = self.engine.get_or_try_init(|| (self.connect)()).await?;
            engine.search(query, most).await
        })
    }

    fn answer<'a>(&'a self, request: SearchRequest<'a>) -> BoxFuture<'a, Result<SearchAnswer, ToolError>> {
        Box::pin(async move {
            let engine = self.engine.get_or_try_init(|| (self.connect)()).await?;
            engine.answer(request).await
        })
    }
}
