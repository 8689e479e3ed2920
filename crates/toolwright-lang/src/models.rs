//! The `models` section: what the names of models in a file stand for. Reaching them is the program's business.

use indexmap::IndexMap;

use crate::build::text;
use crate::diag::Problems;
use crate::yaml::{Data, Node};

/// Names of models, with the `vendor/model` each stands for.
pub(crate) fn read(problems: &mut Problems, root: &Node) -> IndexMap<String, String> {
    let mut models = IndexMap::new();
    match root.get("models").map(|node| (node, &node.data)) {
        None | Some((_, Data::Null | Data::Bad)) => {}
        Some((_, Data::Map(entries))) => {
            for (name, node) in entries {
                match node.text() {
                    Some(model) => add(problems, &mut models, node, name.key_text(), model.to_string()),
                    None => problems.error(node.place, "a model is named as `vendor/model`"),
                }
            }
        }
        // As llm-workers has it.
        Some((_, Data::List(nodes))) => {
            for node in nodes {
                match (text(node, "name"), text(node, "provider"), text(node, "model")) {
                    (Some(name), Some(provider), Some(model)) => {
                        let model = format!("{}/{model}", vendor(&provider));
                        add(problems, &mut models, node, name, model);
                    }
                    _ => problems.error(node.place, "a model in a list has `name`, `provider` and `model`"),
                }
            }
        }
        Some((node, _)) => {
            problems.error(node.place, format!("`models` is a map or a list, not {}", node.kind()));
        }
    }
    models
}

fn add(
    problems: &mut Problems,
    models: &mut IndexMap<String, String>,
    node: &Node,
    name: String,
    model: String,
) {
    if !model.contains('/') {
        problems.error_hint(node.place, format!("`{model}` names no model"), "write `vendor/model`");
    } else if models.insert(name.clone(), model).is_some() {
        problems.error(node.place, format!("the model `{name}` comes twice"));
    }
}

/// Our name for one of LangChain's providers.
fn vendor(provider: &str) -> &str {
    match provider {
        "google_genai" | "google_vertexai" => "google",
        "bedrock_converse" => "bedrock",
        other => other,
    }
}
