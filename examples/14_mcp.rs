//! MCP in both directions: a server with the program's own tools, and a client whose run uses them as its
//! own.

use toolwright::content::ToolCall;
use toolwright::mcp::{HttpOptions, HttpTarget, McpServer, Server};
use toolwright::tool::CancelToken;
use toolwright::{Run, Toolset, json, tool};

/// Tells how warm it is.
#[tool(read_only)]
async fn temperature(
    /// The town.
    town: String,
) -> String {
    format!("18 degrees in {town}")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The server: any run can be offered, on stdin and stdout or, as here, over HTTP.
    let weather = Run::builder(temperature()).build()?;
    let listening =
        Server::new(weather.dispatch()).listen(([127, 0, 0, 1], 0).into(), HttpOptions::default()).await?;
    let address = format!("http://{}/mcp", listening.address());
    let stop = CancelToken::new();
    let serving = tokio::spawn(listening.run(stop.clone()));

    // The client: the server's tools are a source of tools like any other.
    let server =
        McpServer::builder("weather", HttpTarget::new(address)).prefix("weather_").required().build();
    let run = Run::builder(Toolset::new()).source(server).build()?;
    let call = ToolCall::new("1", "weather_temperature", json!({"town": "Ghent"}));
    println!("{}", run.call(call).await?.to_text());
    let wrong = ToolCall::new("2", "weather_temperature", json!({"twon": "Ghent"}));
    println!("{}", run.call(wrong).await?.to_text());

    stop.cancel();
    serving.await?;
    Ok(())
}
