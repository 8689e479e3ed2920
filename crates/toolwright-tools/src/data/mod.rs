//! Tools that work on data in their arguments: `parse_csv`, `analyze_data`, `transform_json`.

mod csv_text;
mod jq;
mod statistics;

pub use csv_text::parse_csv;
pub use jq::{main_if_worker, transform_json};
pub use statistics::analyze_data;
