//! Who decides about calls: rules with examples that prove them, a person for the rest, limits for
//! everything.

use toolwright::approval::{ApprovalRequest, Approver, Decision, call_text};
use toolwright::content::Message;
use toolwright::limits::RunLimits;
use toolwright::testing::{Reply, ScriptedModel};
use toolwright::{Policy, Run, ToolError, Toolset, json, tool};

/// Deletes a file (not really: this is an example).
#[tool(destructive)]
async fn delete_file(
    /// The file.
    path: String,
) -> String {
    format!("deleted {path}")
}

/// Reads a file (not really either).
#[tool(read_only)]
async fn read_file(
    /// The file.
    path: String,
) -> Result<String, ToolError> {
    Ok(format!("contents of {path}"))
}

const POLICY: &str = r#"
- read_only: true
  decision: approve
- tools: delete_file
  when: { path: "*.tmp" }
  decision: approve
  examples:
    match: [{ path: "scratch.tmp" }]
    no_match: [{ path: "thesis.tex" }]
- tools: delete_file
  when: { path: "/etc/*" }
  decision: reject
  reason: system files stay
"#;

/// Stands in for the person at the terminal.
struct Careful;

impl Approver for Careful {
    fn name(&self) -> &str {
        "careful"
    }

    async fn decide(&self, request: &ApprovalRequest<'_>) -> Decision {
        println!("? {}", call_text(request.call));
        Decision::reject("ask me again when there is a backup")
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = Toolset::of((delete_file(), read_file()))?;
    let run = Run::builder(tools)
        .policy(Policy::from_yaml(POLICY)?)
        .approver(Careful)
        .limits(RunLimits { tool_calls: Some(10), turns: Some(5), ..RunLimits::default() })
        .build()?;
    // A scripted model stands in for a real one; what it asks for goes through the same path.
    let model = ScriptedModel::new([
        Reply::call("read_file", json!({"path": "thesis.tex"}))
            .and_call("delete_file", json!({"path": "scratch.tmp"}))
            .and_call("delete_file", json!({"path": "/etc/passwd"}))
            .and_call("delete_file", json!({"path": "thesis.tex"})),
        Reply::text("I could read one file and delete one."),
    ]);
    let outcome = run.ask(&model, "tidy up").await?;
    for message in &outcome.messages {
        if let Message::Tool(result) = message {
            println!("{}", result.to_text());
        }
    }
    println!("{} ({:?})", outcome.completion(), outcome.end);
    Ok(())
}
