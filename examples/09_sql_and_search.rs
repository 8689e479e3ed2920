//! Tools that look things up: a database, a search engine, an API; by prompt and by the model's own tool
//! calls.

use std::sync::Arc;

use serde_json::json;
use toolwright::content::Message;
use toolwright::data::{
    Database, Document, Embedder, MemoryStore, VectorSearch, WordTokenizer, embed_and_store, search_tool,
};
use toolwright::prompted::{CallMode, ModelCompleter, Next, PromptMessage, ToolUser};
use toolwright::run::LoopOptions;
use toolwright::testing::{Reply, ScriptedModel};
use toolwright::tool::BoxFuture;
use toolwright::{Run, ToolError, tool};

/// Gives the weather of a city.
#[tool(read_only)]
async fn get_weather(
    /// The city, such as Paris.
    city: String,
) -> Result<serde_json::Value, ToolError> {
    // A real tool would ask a weather service.
    match city.as_str() {
        "Paris" => Ok(json!({"temperature": 21.5, "windspeed": 7})),
        other => Err(ToolError::invalid(format!("there is no place called `{other}`"))),
    }
}

/// Makes vectors of texts by the words they hold. A real program asks a model: see `HuggingFace`.
struct Topics;

impl Embedder for Topics {
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, ToolError>> {
        let topics = [["toy", "children"], ["coffee", "kitchen"]];
        let score =
            |text: &str, words: [&str; 2]| words.iter().filter(|word| text.contains(**word)).count() as f32;
        let vectors =
            texts.iter().map(|text| topics.iter().map(|words| score(text, *words)).collect()).collect();
        Box::pin(async move { Ok(vectors) })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("# a database");
    let database = Database::in_memory()?;
    database.run("CREATE TABLE employee_data (id INTEGER, name TEXT, age INTEGER)")?;
    database.run("INSERT INTO employee_data VALUES (1, 'John', 42), (2, 'Jane', 36)")?;
    let sql = database.tool("execute_sqlite3_query", "Runs a query on the data of our employees.")?;
    println!("{}", sql.spec().description);
    let query = "SELECT name FROM employee_data ORDER BY age DESC LIMIT 1";
    let model = ScriptedModel::new([
        Reply::call("execute_sqlite3_query", json!({"sql_query": query})),
        Reply::text("John is the oldest.").expecting("John"),
    ]);
    let run = Run::builder(sql).build()?;
    let question = vec![Message::user("Who is our oldest employee?")];
    println!("{}", run.generate_loop(&model, question, &LoopOptions::default()).await?.completion());

    println!("# a search engine");
    let store = Arc::new(MemoryStore::default());
    let products = ["A wooden toy train for children.", "A coffee grinder for the kitchen."];
    let products = products.map(|text| Document { text: text.to_owned(), metadata: json!({}) });
    embed_and_store(&products, (384, 384), &WordTokenizer, &Topics, &*store).await?;
    let engine = VectorSearch::new(Arc::new(Topics), store);
    let search = search_tool("search_amazon", "Searches products.", engine);
    let run = Run::builder((search, get_weather())).build()?;
    let asks = "<function_calls>\n<invoke>\n<tool_name>search_amazon</tool_name>\n<parameters>\n\
                <query>a toy</query>\n<n_search_results_to_use>1</n_search_results_to_use>\n</parameters>\n</invoke>\n";
    let model =
        ScriptedModel::new([Reply::text(asks), Reply::text("The train.").expecting("wooden toy train")]);
    let user = ToolUser::new(run.dispatch(), Arc::new(ModelCompleter::new(Arc::new(model)))).await?;
    let mut messages =
        PromptMessage::list_from_json(&json!([{"role": "user", "content": "A gift for a child?"}]))?;
    while let Next::Message(message) = user.use_tools(&messages, CallMode::Manual).await? {
        println!("{}", message.to_json());
        messages.push(message.clone());
        let PromptMessage::ToolInputs { tool_inputs, .. } = &message else { break };
        let outputs = user.run_tools(tool_inputs).await?;
        println!("{}", outputs.to_json());
        messages.push(outputs);
    }

    println!("# an API");
    let model = ScriptedModel::new([
        Reply::call("get_weather", json!({"city": "Pariss"})),
        Reply::call("get_weather", json!({"city": "Paris"})).expecting("no place called"),
        Reply::text("21.5 degrees.").expecting("21.5"),
    ]);
    let question = vec![Message::user("How warm is it in Paris?")];
    println!("{}", run.generate_loop(&model, question, &LoopOptions::default()).await?.completion());
    Ok(())
}
