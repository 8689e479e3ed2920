//! `parse_csv`: CSV as a list of records.

use std::collections::HashSet;

use serde_json::{Map, Value};
use toolwright_core::{ErrorKind, Structured, ToolError, tool};

use crate::options::Options;

/// The most bytes of all records together. The names of the columns stand in each of them, so records can be
/// far more than the text they were read from.
const MOST_BYTES: usize = 64 << 20;

/// What a field takes beside its texts.
const OF_A_FIELD: usize = 32;

/// Parse CSV text into records.
#[tool(category = "data", read_only)]
pub async fn parse_csv(
    #[tool(setup)] _options: &Options,
    /// The CSV text.
    csv_text: String,
    /// The character between fields.
    #[tool(default = ",")]
    delimiter: String,
    /// Whether the first record names the columns; otherwise they are column_1, column_2 and so on.
    #[tool(default = true)]
    has_headers: bool,
) -> Result<Structured<Vec<Map<String, Value>>>, ToolError> {
    records(&csv_text, &delimiter, has_headers).map(Structured)
}

fn records(text: &str, delimiter: &str, has_headers: bool) -> Result<Vec<Map<String, Value>>, ToolError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let &[delimiter] = delimiter.as_bytes() else {
        let message = format!("`delimiter` must be one ASCII character, got {delimiter:?}");
        return Err(ToolError::invalid(message));
    };
    if matches!(delimiter, b'"' | b'\r' | b'\n') {
        return Err(ToolError::invalid("`delimiter` cannot be a quote or a line break"));
    }
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut names: Vec<String> = Vec::new();
    let mut records = Vec::new();
    let mut room = MOST_BYTES;
    for (index, record) in reader.records().enumerate() {
        let record = record.map_err(|error| ToolError::invalid(format!("`csv_text` is not CSV: {error}")))?;
        if index == 0 && has_headers {
            names = column_names(record.iter());
            continue;
        }
        for column in names.len()..record.len() {
            names.push(free_name(format!("column_{}", column + 1), &names));
        }
        let fields = record.iter().chain(std::iter::repeat(""));
        let size =
            names.iter().zip(fields.clone()).map(|(name, field)| name.len() + field.len() + OF_A_FIELD);
        room = room.checked_sub(size.sum()).ok_or_else(|| {
            let message = format!("the records take more than {} MiB", MOST_BYTES >> 20);
            ToolError::of(ErrorKind::OutputLimit, message).hint("parse fewer lines at a time")
        })?;
        records.push(names.iter().cloned().zip(fields.map(Value::from)).collect());
    }
    Ok(records)
}

/// The names of the columns, each once: a second `x` is `x_2`, and an empty name says which column it is.
fn column_names<'a>(header: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut taken: HashSet<String> = HashSet::new();
    for (column, name) in header.enumerate() {
        let name = match name {
            "" => format!("column_{}", column + 1),
            name => name.to_owned(),
        };
        let mut free = name.clone();
        let mut count = 1;
        while !taken.insert(free.clone()) {
            count += 1;
            free = format!("{name}_{count}");
        }
        names.push(free);
    }
    names
}

/// The name, or the next one like it that no column has.
fn free_name(name: String, names: &[String]) -> String {
    let mut free = name.clone();
    let mut count = 1;
    while names.contains(&free) {
        count += 1;
        free = format!("{name}_{count}");
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(text: &str, delimiter: &str, has_headers: bool) -> Value {
        json!(records(text, delimiter, has_headers).unwrap())
    }

    #[test]
    fn records_are_maps_of_text() {
        assert_eq!(
            parsed("name,age\nAda,36\n\"Lovelace, \"\"A\"\"\",\"3\n6\"\n", ",", true),
            json!([{"name": "Ada", "age": "36"}, {"name": "Lovelace, \"A\"", "age": "3\n6"}])
        );
        assert_eq!(parsed("a;b\r\n1;2", ";", true), json!([{"a": "1", "b": "2"}]));
        assert_eq!(parsed("1\t2\n", "\t", false), json!([{"column_1": "1", "column_2": "2"}]));
        assert_eq!(parsed("\u{feff}a\n1\n\n2\n", ",", true), json!([{"a": "1"}, {"a": "2"}]));
        assert_eq!(parsed("", ",", true), json!([]));
    }

    #[test]
    fn no_field_is_lost_whatever_the_header_is() {
        assert_eq!(parsed("x,x,\n1,2,3\n", ",", true), json!([{"x": "1", "x_2": "2", "column_3": "3"}]));
        assert_eq!(
            parsed("a,b\n1\n1,2,3\n", ",", true),
            json!([{"a": "1", "b": ""}, {"a": "1", "b": "2", "column_3": "3"}])
        );
    }

    #[test]
    fn delimiters_that_are_no_character_and_records_without_end_are_refused() {
        for delimiter in ["", ",,", "ä", "\"", "\n"] {
            assert_eq!(
                records("a", delimiter, true).unwrap_err().kind(),
                ErrorKind::Parsing,
                "{delimiter:?}"
            );
        }
        let large = format!("{}\n{}", "x".repeat(1 << 20), "1\n".repeat(100));
        assert_eq!(records(&large, ",", true).unwrap_err().kind(), ErrorKind::OutputLimit);
    }
}
