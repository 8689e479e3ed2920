//! Pages that are made from the code. `TOOLWRIGHT_BLESS=1 cargo test` writes them anew.

use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use toolwright_core::{Tool as _, ToolDef, ToolSpec};
use toolwright_tools::{references, resolve, standard};

pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test("pages::the_page_of_standard_tools_is_fresh", || {
        the_page_of_standard_tools_is_fresh();
        Ok::<(), Failed>(())
    })]
}

const HEAD: &str = "\
# Importable tools

What `import_tool` takes, made from the code. [Standard tools](../guide/standard-tools.md) says what holds for all of them; tools for
databases and search engines are in [SQL and search](../guide/data.md).
";

fn the_page_of_standard_tools_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/tools.md");
    let fresh = format!("{HEAD}{}\n", table().trim_end());
    if std::env::var_os("TOOLWRIGHT_BLESS").is_some() {
        std::fs::write(path, &fresh).unwrap();
    } else {
        assert_eq!(
            std::fs::read_to_string(path).unwrap_or_default(),
            fresh,
            "TOOLWRIGHT_BLESS=1 rewrites it"
        );
    }
}

fn table() -> String {
    let tools = standard().unwrap();
    let own: Vec<String> = tools.names().map(str::to_owned).collect();
    let mut page = String::new();
    for entry in tools.iter() {
        let tool = ToolDef::of(entry.tool.clone());
        let spec = tool.spec();
        page.push_str(&format!("\n### `{}`\n\n{}\n\n", spec.name, spec.description));
        page.push_str("| parameter | type | also | meaning |\n| --- | --- | --- | --- |\n");
        for (name, schema) in spec.parameters["properties"].as_object().unwrap() {
            let aliases: Vec<String> = tool
                .settings()
                .aliases
                .iter()
                .filter(|(_, parameter)| **parameter == **name)
                .map(|(alias, _)| format!("`{alias}`"))
                .collect();
            let text =
                schema["description"].as_str().unwrap_or_default().replace('|', "\\|").replace('\n', " ");
            page.push_str(&format!(
                "| `{name}` | {} | {} | {text} |\n",
                kind(spec, name, schema),
                aliases.join(", ")
            ));
        }
    }
    page.push_str("\n### Names of other systems\n\n| reference | tool | parameters |\n| --- | --- | --- |\n");
    for reference in references().filter(|reference| !own.iter().any(|name| name == reference)) {
        let tool = resolve(reference).unwrap();
        let names: Vec<&str> = tool.spec().parameter_names().collect();
        page.push_str(&format!("| `{reference}` | `{}` | {} |\n", tool.spec().name, names.join(", ")));
    }
    page.push('\n');
    page
}

fn kind(spec: &ToolSpec, name: &str, schema: &Value) -> String {
    let resolved =
        schema["$ref"].as_str().and_then(|path| spec.parameters.pointer(path.trim_start_matches('#')));
    let schema = resolved.unwrap_or(schema);
    let kind = match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .filter(|kind| *kind != "null")
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "any".to_owned(),
    };
    let required =
        spec.parameters["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    if required { format!("{kind}, required") } else { kind }
}
