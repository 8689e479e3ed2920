//! A client that does what MCP's conformance suite asks of clients. `cargo xtask conformance` runs it.
//!
//! The suite gives the address of its server as the last argument, and the name of the scenario and what goes
//! with it in `MCP_CONFORMANCE_SCENARIO` and `MCP_CONFORMANCE_CONTEXT`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use toolwright_core::{BoxFuture, Form, FormReply, Person, Secret};
use toolwright_mcp::{
    Answers, Browser, Client, ClientOptions, Credentials, HttpTarget, Machine, OAuthOptions,
};

type Failure = Box<dyn std::error::Error>;

const SOON: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let url = std::env::args().next_back().ok_or("the last argument is the server's address")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let mut target = HttpTarget::new(url);
    if scenario.starts_with("auth/") {
        target = target.oauth(oauth(&scenario, &context)?);
    }
    let mut options = ClientOptions::default();
    let mut answers = Answers::default();
    answers.person = Some(Arc::new(Yes));
    options.answers = answers;
    let client = Client::dial(&target, options).await?;
    let outcome = play(&client, &scenario, &context).await;
    client.close().await;
    // The end of the session is said in the background.
    tokio::time::sleep(Duration::from_millis(50)).await;
    outcome
}

async fn play(client: &Client, scenario: &str, context: &Value) -> Result<(), Failure> {
    let listing = client.list_tools().await?;
    if let Some(calls) = context.get("toolCalls").and_then(Value::as_array) {
        for call in calls {
            let name = call.get("name").and_then(Value::as_str).unwrap_or_default();
            let arguments = call.get("arguments").cloned().unwrap_or_default();
            client.call_tool(name, arguments, SOON, None).await?;
        }
        return Ok(());
    }
    if scenario == "json-schema-2020-12-preservation" {
        let rich = listing.tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
        let schema = rich.map(|tool| tool.input_schema.clone()).ok_or("the tool is not listed")?;
        client.call_tool("json_schema_echo", json!({"schema": schema}), SOON, None).await?;
        return Ok(());
    }
    if scenario == "json-schema-ref-no-deref" {
        return Ok(());
    }
    for tool in &listing.tools {
        client.call_tool(&tool.name, some_arguments(&tool.input_schema), SOON, None).await?;
    }
    if scenario == "auth/authorization-server-migration" {
        // By now the server trusts another authorization server.
        for _ in 0..2 {
            client.list_tools().await?;
        }
    }
    if client.info().capabilities.get("resources").is_some() {
        for resource in client.list_resources().await? {
            client.read_resource(&resource.uri).await?;
        }
    }
    if client.info().capabilities.get("prompts").is_some() {
        for prompt in client.list_prompts().await? {
            client.get_prompt(&prompt.name, Map::new()).await?;
        }
    }
    Ok(())
}

/// Arguments that fit a simple schema.
fn some_arguments(schema: &Value) -> Value {
    let none = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let value = |property: &Value| match property.get("type").and_then(Value::as_str) {
        Some("number" | "integer") => json!(2),
        Some("boolean") => json!(true),
        _ => json!("text"),
    };
    properties.iter().map(|(name, property)| (name.clone(), value(property))).collect::<Map<_, _>>().into()
}

fn oauth(scenario: &str, context: &Value) -> Result<OAuthOptions, Failure> {
    let said = |key: &str| context.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut options = OAuthOptions::default();
    options.browser = Some(Arc::new(Follow(toolwright_net::client(false, SOON, SOON)?)));
    if scenario == "auth/basic-cimd" {
        options.client_metadata_url = Some("https://conformance-test.local/client-metadata.json".to_owned());
    }
    if let Some(client_id) = said("client_id") {
        let secret = said("client_secret").map(Secret::new);
        match (said("private_key_pem"), secret) {
            (Some(key), _) => {
                options.machine = Some(Machine::Key { client_id, private_key: Secret::new(key) });
            }
            (None, Some(client_secret)) if scenario.contains("client-credentials") => {
                options.machine = Some(Machine::Secret { client_id, client_secret });
            }
            (None, client_secret) => {
                options.registered = Some(Credentials { client_id, client_secret, issuer: said("issuer") });
            }
        }
    }
    Ok(options)
}

/// A person who says yes and leaves everything as it is, except that what must be confirmed is.
struct Yes;

impl Person for Yes {
    async fn answer(&self, form: &Form) -> FormReply {
        let confirm = form.schema().pointer("/properties/confirmed").is_some();
        let content = confirm.then(|| ("confirmed".to_owned(), json!(true)));
        FormReply::Accepted(content.into_iter().collect())
    }
}

/// A browser without a person: pages of the suite send it straight back.
struct Follow(toolwright_net::reqwest::Client);

impl Browser for Follow {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:33418/callback".to_owned()
    }

    fn visit<'a>(&'a self, page: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let answer = self.0.get(page).send().await.map_err(|error| error.to_string())?;
            let back = answer.headers().get("location").and_then(|to| to.to_str().ok());
            back.map(str::to_owned).ok_or_else(|| format!("the page answered {}", answer.status()))
        })
    }
}
