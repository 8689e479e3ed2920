//! `request_approval`, `validate_approval`, `consume_approval`: a person's word for something that is done
//! later.
//!
//! A model asks with a text, and gets a token when a person agreed. The tool that then does the work checks
//! the token, which leads back to the text, and uses it up. Tokens last as long as the run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwright_core::{CallDescription, ToolContext, ToolDef, ToolError, tool};

use crate::options::Options;

/// The most tokens that wait at a time, and the longest text each may stand for.
const MOST_TOKENS: usize = 1000;
const LONGEST: usize = 64 << 10;

/// What was agreed to and not used yet, by token.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Agreed(BTreeMap<String, String>);

/// Ask the user to approve what is going to be done. Gives a token to do it with.
#[tool(category = "approval", read_only, finish = asks)]
pub async fn request_approval(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// What approval is asked for, in full: this is what a person reads.
    prompt: String,
) -> Result<String, ToolError> {
    let token = agree(context, options.instance_name(), prompt)?;
    Ok(json!({"approval_token": token}).to_string())
}

/// Every call needs a person's word.
fn asks(tool: ToolDef, _: &Options) -> ToolDef {
    tool.with_call_description(|arguments| {
        let prompt = arguments.get("prompt").and_then(Value::as_str).unwrap_or_default();
        CallDescription {
            hint: Some(String::new()),
            action: Some(format!("get approval for following actions: {prompt}")),
            confirm: true,
            ..CallDescription::default()
        }
    })
}

/// Check a token of `request_approval`. Gives the text that was approved.
#[tool(category = "approval", read_only, finish = unseen)]
pub async fn validate_approval(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The token that `request_approval` gave.
    approval_token: String,
) -> Result<String, ToolError> {
    let agreed = context.store_as::<Agreed>(options.instance_name());
    agreed.read(|agreed| agreed.0.get(&approval_token).cloned()).ok_or_else(|| no_token(&approval_token))
}

/// Use up a token of `request_approval`: it is valid once.
#[tool(category = "approval", read_only, finish = unseen)]
pub async fn consume_approval(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The token that `request_approval` gave.
    approval_token: String,
) -> Result<&'static str, ToolError> {
    let agreed = context.store_as::<Agreed>(options.instance_name());
    let used = agreed.update(|agreed| agreed.0.remove(&approval_token));
    used.map(|_| "Approval token consumed").ok_or_else(|| no_token(&approval_token))
}

/// People are not shown that a token is looked at.
fn unseen(tool: ToolDef, _: &Options) -> ToolDef {
    tool.with_call_description(|_| CallDescription {
        hint: Some(String::new()),
        ..CallDescription::default()
    })
}

fn no_token(token: &str) -> ToolError {
    let shown: String = token.chars().take(80).collect();
    ToolError::new(format!("unknown or used approval token `{shown}`"))
}

/// Keeps a text, and gives the token for it.
fn agree(context: &ToolContext, instance: &str, prompt: String) -> Result<String, ToolError> {
    if prompt.len() > LONGEST {
        return Err(ToolError::invalid(format!("the text is longer than {LONGEST} bytes")));
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| ToolError::fatal(format!("no random numbers: {error}")))?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    context.store_as::<Agreed>(instance).update(|agreed| {
        if agreed.0.len() >= MOST_TOKENS {
            return Err(ToolError::new(format!("{MOST_TOKENS} approvals wait already")));
        }
        agreed.0.insert(token.clone(), prompt);
        Ok(token.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwright_core::Tool as _;

    async fn call(context: &ToolContext, tool: &ToolDef, arguments: Value) -> Result<Value, String> {
        let output = tool.call(context, arguments).await;
        output.map(|output| output.value()).map_err(|error| error.message().to_owned())
    }

    #[tokio::test]
    async fn a_token_stands_for_its_text_once() {
        let (context, options) = (ToolContext::detached(), Options::new());
        let (request, validate, consume) =
            (request_approval(&options), validate_approval(&options), consume_approval(&options));
        let given = call(&context, &request, json!({"prompt": "delete it all"})).await.unwrap();
        let given: Value = serde_json::from_str(given.as_str().unwrap()).unwrap();
        let token = given["approval_token"].as_str().unwrap().to_owned();
        assert_eq!((token.len(), token.chars().all(|c| c.is_ascii_hexdigit())), (64, true));
        let with = || json!({"approval_token": token.clone()});
        assert_eq!(call(&context, &validate, with()).await, Ok(json!("delete it all")));
        assert_eq!(call(&context, &consume, with()).await, Ok(json!("Approval token consumed")));
        assert!(call(&context, &validate, with()).await.is_err());
        assert!(call(&context, &consume, json!({"approval_token": "0"})).await.is_err());
        assert!(request.prepared(json!({"prompt": "x"})).unwrap().wants_confirmation());
    }
}
