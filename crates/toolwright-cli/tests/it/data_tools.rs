//! Databases and search engines from a file.

use crate::show_in;

const FILE: &str = "tools:
  - import_tool: sql_query
    name: query_staff
    config: {database: staff.db, read_only: false, description: Who works here.}
  - import_tool: search_brave
  - import_tool: search_wikipedia
    config: {address: 'https://de.wikipedia.org', most_tokens: 500}
";

#[test]
fn a_file_sets_up_tools_that_look_things_up() {
    let folder = tempfile::tempdir().unwrap();
    let here = |args: &[&str]| show_in(folder.path(), args, "");
    std::fs::write(folder.path().join("toolwright.yaml"), FILE).unwrap();
    for sql in ["CREATE TABLE staff (name TEXT)", "INSERT INTO staff VALUES ('Ada')"] {
        let made = here(&["call", "query_staff", &format!("sql_query={sql}")]);
        assert!(made.contains("--- exit 0"), "{made}");
    }
    let found = here(&["call", "query_staff", "sql_query=SELECT * FROM staff", "--json"]);
    assert!(found.contains("Ada"), "{found}");
    let listed = here(&["tools", "--format", "anthropic", "query_staff"]);
    assert!(listed.contains("Who works here.") && listed.contains("CREATE TABLE staff"), "{listed}");
    let asked = here(&["call", "search_brave", "query=otters", "n_search_results_to_use=1"]);
    assert!(asked.contains("`BRAVE_API_KEY` is not set") && asked.contains("--- exit 1"), "{asked}");
    assert!(here(&["check"]).contains("--- exit 0"));
}

#[test]
fn what_is_set_up_wrong_is_a_problem_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = "tools:\n  - import_tool: sql_query\n    config: {database: nowhere.db}\n  - import_tool: search_brave\n    config: {key: x}\n";
    std::fs::write(folder.path().join("toolwright.yaml"), file).unwrap();
    let said = show_in(folder.path(), &["check"], "");
    assert!(said.contains("there is no database") && said.contains("unknown field `key`"), "{said}");
    assert!(said.contains("toolwright.yaml:2") && said.contains("--- exit 2"), "{said}");
}
