//! The `models` section: what the names of models in a file stand for. Reaching them is the program's
//! business.

use indexmap::IndexMap;

use crate::build::text;
use crate::diag::Problems;
use crate::yaml::{Data, Node};

/// Names of models, with what the program is asked for: the `vendor/model` a name stands for, or the name
/// itself when the file says more about it than that, which is for the program to read.
pub(crate) fn read(problems: &mut Problems, root: &Node) -> IndexMap<String, String> {
    let mut models = IndexMap::new();
    match root.get("models").map(|node| (node, &node.data)) {
        None | Some((_, Data::Null | Data::Bad)) => {}
        Some((_, Data::Map(entries))) => {
            for (name, node) in entries {
                match (node.text(), &node.data) {
                    (Some(model), _) => add(problems, &mut models, node, name.key_text(), model.to_string()),
                    (None, Data::Map(_)) => described(problems, &mut models, node, name.key_text()),
                    _ => problems
                        .error(node.place, "a model is named as `vendor/model`, or described by a map"),
                }
            }
        }
        // As llm-workers has it.
        Some((_, Data::List(nodes))) => {
            for node in nodes {
                match text(node, "name") {
                    Some(name) => described(problems, &mut models, node, name),
                    None => problems.error(node.place, "a model in a list has a `name`"),
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

/// A model about which the file says more than its name.
fn described(problems: &mut Problems, models: &mut IndexMap<String, String>, node: &Node, name: String) {
    if text(node, "model").is_none() {
        problems.error_hint(
            node.place,
            format!("the model `{name}` has no `model`"),
            "write `model: vendor/model`",
        );
    } else if models.insert(name.clone(), name.clone()).is_some() {
        problems.error(node.place, format!("the model `{name}` comes twice"));
    }
}
