//! Three kinds of state: a struct whose methods are tools, state of the run, and what the program injects.

use std::sync::{Arc, Mutex};

use toolwright::content::ToolCall;
use toolwright::tool::State;
use toolwright::{Run, ToolContext, Toolset, json, tool, toolset};

/// A tiny database. Its methods are tools; all of them see the same rows.
#[derive(Default)]
struct Database {
    rows: Mutex<Vec<String>>,
}

#[toolset(prefix = "db_")]
impl Database {
    /// Stores a row.
    #[tool]
    async fn insert(
        &self,
        /// The text of the row.
        row: String,
    ) -> usize {
        let mut rows = self.rows.lock().unwrap_or_else(|broken| broken.into_inner());
        rows.push(row);
        rows.len()
    }

    /// Finds the rows that contain a text.
    #[tool(read_only)]
    async fn find(
        &self,
        /// What to look for.
        text: String,
    ) -> Vec<String> {
        let rows = self.rows.lock().unwrap_or_else(|broken| broken.into_inner());
        rows.iter().filter(|row| row.contains(&text)).cloned().collect()
    }
}

/// State of one run: every run starts with its own, and it can be saved with the run.
#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Diary {
    entries: Vec<String>,
}

/// What the program gives its tools; the model knows nothing of it.
struct Greeting(&'static str);

/// Writes a line into the diary.
#[tool]
async fn write_diary(
    context: &ToolContext,
    greeting: State<Greeting>,
    /// What to write.
    line: String,
) -> String {
    let count = context.store::<Diary>().update(|diary| {
        diary.entries.push(line);
        diary.entries.len()
    });
    format!("{} entry {count}", greeting.0.0)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let database = Arc::new(Database::default());
    let tools = Toolset::of(write_diary())?.combined(database.tools()?)?;
    println!("tools: {}", tools.names().collect::<Vec<_>>().join(", "));

    let new_run = || Run::builder(tools.clone()).state(Greeting("noted:")).build();
    let (first, second) = (new_run()?, new_run()?);
    let call = |run: Run, tool: &'static str, arguments: serde_json::Value| async move {
        let result = run.call(ToolCall::new("1", tool, arguments)).await?;
        Ok::<_, Box<dyn std::error::Error>>(result.to_text())
    };
    println!("{}", call(first.clone(), "write_diary", json!({"line": "Monday"})).await?);
    println!("{}", call(first.clone(), "write_diary", json!({"line": "Tuesday"})).await?);
    println!(
        "{} (another run, another diary)",
        call(second.clone(), "write_diary", json!({"line": "Monday"})).await?
    );
    call(first, "db_insert", json!({"row": "apples and pears"})).await?;
    println!("{} (the same database in both runs)", call(second, "db_find", json!({"text": "pear"})).await?);
    Ok(())
}
