//! JSON lines: a table where all lines are objects of values, else the lines as they are.

use indexmap::IndexSet;
use serde_json::Value as Json;

use crate::error::DocumentError;
use crate::model::{Block, Content, Info, Page};
use crate::options::ReadingState;

/// The most columns of a table.
const MAX_COLUMNS: usize = 60;

/// The most cells that are read.
const MAX_CELLS: usize = 4_000_000;

pub(crate) fn read(bytes: &[u8], reading: &mut ReadingState<'_>) -> Result<Info, DocumentError> {
    let text = super::decode(bytes);
    let mut objects: Vec<serde_json::Map<String, Json>> = Vec::new();
    let mut columns: IndexSet<String> = IndexSet::new();
    let (mut rejected, mut cells, mut plain) = (0usize, 0usize, false);
    for (count, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        if count.is_multiple_of(16_384) && reading.is_late() {
            reading.warn(format!("lines after {count} are left out: {}", reading.late()));
            break;
        }
        match serde_json::from_str::<Json>(line) {
            Ok(Json::Object(object)) => {
                cells += object.len();
                if cells > MAX_CELLS {
                    reading.warn(format!("lines after {count} are left out: the file has too many values"));
                    break;
                }
                columns.extend(object.keys().cloned());
                objects.push(object);
            }
            Ok(_) => plain = true,
            Err(_) => rejected += 1,
        }
    }
    let mut blocks = Vec::new();
    if objects.is_empty() || plain || columns.len() > MAX_COLUMNS {
        blocks.push(Block::new(Content::Code { language: Some("json".to_owned()), text }));
    } else {
        let mut said = format!("{} rows, {} columns; JSON lines", objects.len(), columns.len());
        if rejected > 0 {
            said.push_str(&format!(", {rejected} lines rejected"));
        }
        blocks.push(Block::paragraph(said));
        let mut rows: Vec<Vec<String>> = vec![columns.iter().cloned().collect()];
        rows.extend(objects.iter().map(|object| {
            let cell = |column: &String| match object.get(column) {
                None | Some(Json::Null) => String::new(),
                Some(Json::String(text)) => text.clone(),
                Some(value) => value.to_string(),
            };
            columns.iter().map(cell).collect()
        }));
        blocks.push(Block::new(Content::Table { rows, header: true }));
    }
    super::single(Page { blocks, ..Page::default() }, Info::default(), reading)
}
