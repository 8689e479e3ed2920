//! What of a doc comment reaches a model.

use serde_json::json;
use toolwright_core::{ToolDef, tool};

fn descriptions(tool: &ToolDef) -> (&str, Vec<(&str, &str)>) {
    let properties = tool.spec().parameters["properties"].as_object().unwrap();
    let all =
        properties.iter().map(|(name, schema)| (name.as_str(), schema["description"].as_str().unwrap()));
    (&tool.spec().description, all.collect())
}

/// Searches the web.
///
/// Use it for facts
/// that may have changed.
///
/// # Arguments
///
/// * `query` - What to look for.
/// * `limit` - How many results,
///   at most.
///
/// # Returns
///
/// The results.
///
/// # Errors
///
/// When there is no network.
///
/// # Examples
///
/// query: "rust"
#[tool]
async fn rustdoc_style(query: String, limit: u32) -> String {
    query.repeat(limit as usize)
}

#[test]
fn rustdoc_sections_describe_parameters_and_results_stay_out() {
    let tool = rustdoc_style();
    assert_eq!(
        descriptions(&tool),
        (
            "Searches the web.\n\nUse it for facts\nthat may have changed.\n\n# Examples\n\nquery: \"rust\"",
            vec![("query", "What to look for."), ("limit", "How many results,\nat most.")]
        )
    );
}

/// Searches the web.
///
/// Args:
///     query (str): What to look for.
///     limit: How many results,
///         at most.
///     ctx: Not told to the model.
///
/// Returns:
///     The results.
///
/// Raises:
///     OSError: When there is no network.
#[tool]
async fn python_style(ctx: toolwright_core::ToolContext, query: String, limit: u32) -> String {
    format!("{query}{limit}{}", ctx.depth())
}

#[test]
fn python_sections_describe_parameters() {
    let tool = python_style();
    assert_eq!(
        descriptions(&tool),
        ("Searches the web.", vec![("query", "What to look for."), ("limit", "How many results,\nat most.")])
    );
}

/**
 * Searches the web.
 *
 * # Parameters
 * - `q`: From the section, by its name for models.
 * - limit: From the section.
 */
#[tool]
async fn block_style(
    #[tool(rename = "q")] query: String,
    /// Its own
    /// words win.
    limit: u32,
    #[tool(description = "From the option.")]
    /// Not this.
    option: bool,
) -> String {
    format!("{query}{limit}{option}")
}

#[test]
fn a_parameters_own_words_win() {
    let tool = block_style();
    assert_eq!(
        descriptions(&tool),
        (
            "Searches the web.",
            vec![
                ("q", "From the section, by its name for models."),
                ("limit", "Its own\nwords win."),
                ("option", "From the option.")
            ]
        )
    );
}

/// A choice.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
enum Choice {
    /// The first.
    One,
    /// The second.
    Two,
}

/// Takes a described type.
#[tool]
async fn described_type(
    /// What this tool does with it.
    choice: Choice,
) -> String {
    format!("{choice:?}")
}

#[test]
fn a_type_keeps_its_description_beside_that_of_the_parameter() {
    assert_eq!(
        described_type().spec().parameters,
        json!({
            "type": "object",
            "properties": {"choice": {"$ref": "#/$defs/Choice", "description": "What this tool does with it."}},
            "required": ["choice"],
            "additionalProperties": false,
            "$defs": {"Choice": {"description": "A choice.", "oneOf": [
                {"description": "The first.", "type": "string", "const": "One"},
                {"description": "The second.", "type": "string", "const": "Two"}
            ]}}
        })
    );
}

#[tool(description = "Said in the attribute.")]
async fn described_by_option() {}

#[test]
fn the_option_describes_a_tool_without_a_doc_comment() {
    assert_eq!(descriptions(&described_by_option()), ("Said in the attribute.", vec![]));
}
