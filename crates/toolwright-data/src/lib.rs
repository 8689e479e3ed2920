//! Tools that look things up elsewhere: SQL databases, search engines, vector stores.
//!
//! A search engine is anything that implements [`Search`]; [`search_tool`] makes a tool of it. There are
//! [`Brave`], [`Wikipedia`], [`Elasticsearch`], and [`VectorSearch`] over an [`Embedder`] and a
//! [`VectorStore`]. [`WebEngine`]s give titles and snippets, [`SearchProviders`] asks several in order, and
//! [`WebSearch`] is the tool over them. [`Database`] runs the SQL that a model writes on SQLite.
//! [`query_data`] asks tables of files, [`describe_data`] tells what their columns hold, [`save_table`]
//! writes one.
//!
//! ```
//! # #[cfg(feature = "sql")] {
//! use toolwright_data::Database;
//!
//! let database = Database::in_memory()?;
//! database.run("CREATE TABLE people (name TEXT, age INTEGER)")?;
//! database.run("INSERT INTO people VALUES ('John', 42)")?;
//! assert_eq!(database.run("SELECT * FROM people")?.to_json(), serde_json::json!([["John", 42]]));
//! # }
//! # Ok::<(), toolwright_core::ToolError>(())
//! ```

mod api;
mod brave;
mod configured;
mod documents;
mod elasticsearch;
mod engines;
mod huggingface;
mod pages;
mod pinecone;
mod providers;
mod search;
#[cfg(feature = "sql")]
mod sql;
#[cfg(feature = "sql")]
mod tables;
mod tokens;
mod vector;
mod web_config;
mod web_search;
mod wikipedia;

pub use api::Address;
pub use brave::Brave;
pub use configured::DataTools;
pub use documents::{Document, embed_and_store, read_documents};
pub use elasticsearch::{Elasticsearch, cloud_address};
pub use engines::WebEngine;
pub use huggingface::HuggingFace;
pub use pages::{Pages, WebPages, html_to_text};
pub use pinecone::Pinecone;
pub use providers::{ProvidersAnswer, SearchProviders};
pub use search::{Search, SearchAnswer, SearchRequest, SearchResult, format_search_results, search_tool};
#[cfg(feature = "sql")]
pub use sql::{Cell, Database, Rows};
#[cfg(feature = "sql")]
pub use tables::{TableOptions, describe_data, query_data, save_table};
pub use tokens::{Tokenizer, WordTokenizer, chunks, truncate};
pub use vector::{Embedder, Embedding, MemoryStore, VectorSearch, VectorStore};
pub use web_search::{Relevance, WebSearch};
pub use wikipedia::Wikipedia;
