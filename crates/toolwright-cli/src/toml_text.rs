//! One table put into a TOML text. Everything else stays as it was written, comments too.

use serde_json::{Map, Value as Json};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

/// A text with `entry` as the table `[outer.name]`, and whether there was one before.
pub fn put(text: &str, outer: &str, name: &str, entry: &Map<String, Json>) -> Result<(String, bool), String> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let tables = document.entry(outer).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let tables = tables.as_table_like_mut().ok_or_else(|| format!("`{outer}` is not a table"))?;
    let mut table = Table::new();
    for (key, json) in entry {
        table.insert(key, Item::Value(value(json)));
    }
    let known = tables.insert(name, Item::Table(table)).is_some();
    Ok((document.to_string(), known))
}

/// The table by itself.
pub fn table(outer: &str, name: &str, entry: &Map<String, Json>) -> String {
    put("", outer, name, entry).map(|(text, _)| text).unwrap_or_default()
}

fn value(json: &Json) -> Value {
    match json {
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => items.iter().map(value).collect::<Array>().into(),
        Json::Object(members) => {
            members.iter().map(|(key, json)| (key.as_str(), value(json))).collect::<InlineTable>().into()
        }
        // TOML has no null; nothing of ours is one.
        Json::Null => "".into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn table_is_put_in_and_nothing_else_changes() {
        let entry = json!({"command": "tw", "args": ["serve", "a \"b\".yaml"], "env": {"K": "v"}});
        let Json::Object(entry) = entry else { unreachable!() };
        let ours = "[mcp_servers.\"my tools\"]\ncommand = \"tw\"\nargs = [\"serve\", 'a \"b\".yaml']\nenv = { K = \"v\" }\n";
        assert_eq!(table("mcp_servers", "my tools", &entry), ours);
        let text =
            "# mine\nmodel = \"m\" # so\n\n[mcp_servers.other]\ncommand = 'x'\n\n[profiles.a]\nx = 1\n";
        let (new, known) = put(text, "mcp_servers", "my tools", &entry).unwrap();
        assert!(!known && new.contains(ours) && new.starts_with("# mine\nmodel = \"m\" # so\n"), "{new}");
        assert!(
            new.contains("[mcp_servers.other]\ncommand = 'x'\n") && new.contains("[profiles.a]\nx = 1\n")
        );
        let (again, known) = put(&new, "mcp_servers", "my tools", &entry).unwrap();
        assert!(known && again == new, "{again}");
        assert!(put("a = [", "mcp_servers", "x", &entry).is_err());
        assert!(put("mcp_servers = 1", "mcp_servers", "x", &entry).is_err());
    }
}
