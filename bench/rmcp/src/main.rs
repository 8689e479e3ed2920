//! The peer of `cargo xtask bench mcp`: one tool served by rmcp, on stdio or (`http`) on a port of its
//! choice, which it prints.

use axum::serve::ListenerExt as _;
use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServerHandler, ServiceExt as _, tool, tool_handler, tool_router};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    /// First number.
    x: i64,
    /// Second number.
    y: i64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    result: i64,
}

#[derive(Clone)]
struct Adder;

#[tool_router]
impl Adder {
    /// Adds two numbers.
    #[tool]
    async fn add(&self, Parameters(Add { x, y }): Parameters<Add>) -> Json<Sum> {
        Json(Sum { result: x + y })
    }
}

#[tool_handler]
impl ServerHandler for Adder {}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() != Some("http") {
        Adder.serve(rmcp::transport::stdio()).await?.waiting().await?;
        return Ok(());
    }
    let sessions = std::sync::Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Adder), sessions, StreamableHttpServerConfig::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    // Without this, every answer waits 40 ms for an acknowledgement.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    Ok(axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?)
}
