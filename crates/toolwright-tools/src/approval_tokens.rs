//! `request_approval`, `validate_approval`, `consume_approval`: a person's word for something that is done
//! later.
//!
//! A model asks with a text, and gets a token when a person agreed. Whoever then does the work checks the
//! token, which leads back to the text, and uses it up. Tokens last as long as the run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolwright_core::{CallDescription, ToolContext, ToolDef, ToolError};

use crate::options::{Effect, Options, finish};

/// The most tokens that wait at a time, and the longest text each may stand for.
const MOST_TOKENS: usize = 1000;
const LONGEST: usize = 64 << 10;

/// What was agreed to and not used yet, by token.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Agreed(BTreeMap<String, String>);

#[derive(Deserialize, JsonSchema)]
struct ApprovalParams {
    /// What approval is asked for, in full: this is what a person reads.
    prompt: String,
}

#[derive(Deserialize, JsonSchema)]
struct TokenParams {
    /// The token that `request_approval` gave.
    approval_token: String,
}

/// The tool `request_approval`. Every call needs a person's word.
pub fn request_approval(options: &Options) -> ToolDef {
    let instance = options.instance_name().to_owned();
    let description = "Ask the user to approve what is going to be done. Gives a token to do it with.";
    let tool = ToolDef::typed(
        "request_approval",
        description,
        move |context: ToolContext, request: ApprovalParams| {
            let given = agree(&context, &instance, request.prompt);
            async move { given.map(|token| serde_json::json!({"approval_token": token}).to_string()) }
        },
    );
    let tool = tool.with_call_description(|arguments| {
        let prompt = arguments.get("prompt").and_then(serde_json::Value::as_str).unwrap_or_default();
        CallDescription {
            hint: Some(String::new()),
            action: Some(format!("get approval for following actions: {prompt}")),
            confirm: true,
            ..CallDescription::default()
        }
    });
    finish(tool, "approval", Effect::Reads, &[])
}

/// The tool `validate_approval`: what a token stands for.
pub fn validate_approval(options: &Options) -> ToolDef {
    let description = "Check a token of `request_approval`. Gives the text that was approved.";
    token_tool(options, "validate_approval", description, |agreed, token| agreed.0.get(token).cloned())
}

/// The tool `consume_approval`: a token is used up.
pub fn consume_approval(options: &Options) -> ToolDef {
    let description = "Use up a token of `request_approval`: it is valid once.";
    token_tool(options, "consume_approval", description, |agreed, token| {
        agreed.0.remove(token).map(|_| "Approval token consumed".to_owned())
    })
}

fn token_tool(
    options: &Options,
    name: &str,
    description: &str,
    look: fn(&mut Agreed, &str) -> Option<String>,
) -> ToolDef {
    let instance = options.instance_name().to_owned();
    let tool = ToolDef::typed(
        name,
        description,
        move |context: ToolContext, TokenParams { approval_token }: TokenParams| {
            let found = context.store_as::<Agreed>(&instance).update(|agreed| look(agreed, &approval_token));
            let shown: String = approval_token.chars().take(80).collect();
            async move { found.ok_or_else(|| ToolError::new(format!("unknown or used approval token `{shown}`"))) }
        },
    );
    let tool = tool.with_call_description(|_| CallDescription {
        hint: Some(String::new()),
        ..CallDescription::default()
    });
    finish(tool, "approval", Effect::Reads, &[])
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
    use serde_json::{Value, json};
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
