//! Databases and search engines from a file.

use crate::json;

const FILE: &str = "tools:
  - import_tool: sql_query
    name: query_staff
    config: {database: staff.db, read_only: false, description: Who works here.}
  - import_tool: search_brave
  - import_tool: search_wikipedia
    config: {address: 'https://de.wikipedia.org', most_tokens: 500}
";

#[test]
fn a_file_configures_databases_and_search_engines() {
    let folder = tempfile::tempdir().unwrap();
    let here = |args: &[&str]| json(folder.path(), args);
    std::fs::write(folder.path().join("toolwright.yaml"), FILE).unwrap();
    crate::trust(folder.path());
    for sql in ["CREATE TABLE staff (name TEXT)", "INSERT INTO staff VALUES ('Ada')"] {
        let made = here(&["call", "query_staff", &format!("sql_query={sql}")]);
        assert_eq!(made.code, Some(0), "{made:?}");
    }
    let found = here(&["call", "query_staff", "sql_query=SELECT * FROM staff"]);
    assert!(found.value()["content"].to_string().contains("Ada"), "{found:?}");
    let listed = here(&["tools", "query_staff"]);
    assert_eq!(listed.names(), ["query_staff"]);
    let description = listed.value()[0]["description"].clone();
    let description = description.as_str().unwrap();
    assert!(
        description.contains("Who works here.") && description.contains("CREATE TABLE staff"),
        "{description}"
    );
    let asked = here(&["call", "search_brave", "query=otters", "n_search_results_to_use=1"]);
    assert_eq!(asked.code, Some(1), "{asked:?}");
    assert!(asked.error().to_string().contains("`BRAVE_API_KEY`"), "{asked:?}");
    assert_eq!(here(&["check"]).code, Some(0));
}

#[test]
fn a_wrong_configuration_is_a_problem_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = "tools:\n  - import_tool: sql_query\n    config: {database: nowhere.db}\n  - import_tool: search_brave\n    config: {key: x}\n";
    std::fs::write(folder.path().join("toolwright.yaml"), file).unwrap();
    crate::trust(folder.path());
    let checked = json(folder.path(), &["check"]);
    checked.fails("parsing", 2, &[]);
    let problems = checked.problems();
    for (line, name) in [("error toolwright.yaml:2:", "nowhere.db"), ("error toolwright.yaml:5:", "`key`")] {
        let found = problems.iter().any(|(place, text)| place.starts_with(line) && text.contains(name));
        assert!(found, "{line}, {name}: {checked:?}");
    }
}
