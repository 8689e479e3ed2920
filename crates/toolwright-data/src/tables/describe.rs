//! `describe_data`: what the columns of a file hold, found in one pass.

use serde_json::{Value as Json, json};
use toolwright_core::{ToolContext, ToolError, ToolOutput, WorkspacePath, tool};

use super::profile::{ColumnProfile, shown};
use super::source::{Table, tables_of};
use super::{TableOptions, cancelled, cell_text, off_thread, pipe_table};

/// Of a wider table, the further columns are only named.
const MOST_COLUMNS: usize = 60;

/// How many tables of a file are described; the others are named.
const MOST_TABLES: usize = 10;

/// The longest a value may be shown.
const VALUE: usize = 24;

/// How many rows are read between two looks at whether the call still lasts.
const ROWS: u64 = 10_000;

/// Describe the tables of a file (CSV, JSON, workbook, document): the type of each column, missing and
/// distinct values, measures and examples.
#[tool(category = "data", sandboxed, read_only)]
pub async fn describe_data(
    context: &ToolContext,
    #[tool(setup)] options: &TableOptions,
    /// The file.
    #[tool(alias = "file_path")]
    path: WorkspacePath,
) -> Result<ToolOutput, ToolError> {
    let sandbox = options.sandbox(context)?;
    let tables = tables_of(context, &*sandbox, &path).await?;
    let cancel = context.cancel_token().clone();
    off_thread(move || {
        let mut text = String::new();
        let mut data = Vec::new();
        let more: Vec<String> = tables.iter().skip(MOST_TABLES).map(|table| table.name.clone()).collect();
        for table in tables.into_iter().take(MOST_TABLES) {
            let described = TableDescription::of(table, &|| cancel.is_cancelled())?;
            text.push_str(&described.text());
            data.push(described.json());
        }
        if !more.is_empty() {
            text.push_str(&format!("[{} more tables: {}]\n", more.len(), more.join(", ")));
        }
        Ok(ToolOutput::text(text).with_structured(json!({"tables": data})))
    })
    .await
}

struct TableDescription {
    name: String,
    about: String,
    columns: Vec<(String, ColumnProfile)>,
    rows: u64,
    rejected: usize,
}

impl TableDescription {
    fn of(table: Table, stop: &dyn Fn() -> bool) -> Result<Self, ToolError> {
        let mut profiles: Vec<ColumnProfile> =
            table.columns.iter().map(|_| ColumnProfile::default()).collect();
        let mut rows = 0u64;
        let rejected = table.each(&mut |cells| {
            rows += 1;
            if rows.is_multiple_of(ROWS) && stop() {
                return Err(cancelled());
            }
            for (profile, cell) in profiles.iter_mut().zip(cells) {
                profile.add(*cell);
            }
            Ok(())
        })?;
        let columns = table.columns.into_iter().zip(profiles).collect();
        Ok(TableDescription { name: table.name, about: table.about, columns, rows, rejected })
    }

    fn text(&self) -> String {
        let heads =
            ["column", "type", "missing", "distinct", "min", "max", "mean", "sd", "quartiles", "examples"];
        let right = [false, false, true, true, true, true, true, true, false, false];
        let mut is_sampled = false;
        let rows: Vec<Vec<String>> = self
            .columns
            .iter()
            .take(MOST_COLUMNS)
            .map(|(name, profile)| {
                let (least, most) = profile.ends();
                let measures = profile.measures();
                let quartiles = profile.quantiles().map(|all| all.map(shown).join(" / ")).unwrap_or_default();
                is_sampled |= profile.is_sampled() && profile.is_numeric();
                vec![
                    cell_text(name, 60),
                    profile.column_type().name().to_owned(),
                    profile.nulls.to_string(),
                    profile.distinct().map_or_else(|| "> 100000".to_owned(), |count| count.to_string()),
                    cell_text(&least, VALUE),
                    cell_text(&most, VALUE),
                    measures.map(|(mean, _)| shown(mean)).unwrap_or_default(),
                    measures.and_then(|(_, sd)| sd).map(shown).unwrap_or_default(),
                    quartiles,
                    cell_text(&profile.examples.join(", "), VALUE * 2),
                ]
            })
            .collect();
        let mut text = format!(
            "[{}: {} rows, {} columns; {}, {} rejected]\n",
            self.name,
            self.rows,
            self.columns.len(),
            self.about,
            self.rejected
        );
        text.push_str(&pipe_table(&heads.map(str::to_owned), &rows, &right));
        let more: Vec<&str> = self.columns.iter().skip(MOST_COLUMNS).map(|(name, _)| name.as_str()).collect();
        if !more.is_empty() {
            text.push_str(&format!(
                "[{} more columns: {}]\n",
                more.len(),
                cell_text(&more.join(", "), 4_000)
            ));
        }
        if is_sampled {
            text.push_str("[quartiles are those of an even sample; sd is of a sample, n - 1]\n");
        } else {
            text.push_str("[sd is of a sample, n - 1]\n");
        }
        text
    }

    fn json(&self) -> Json {
        let columns = self.columns.iter().map(|(name, profile)| {
            let (least, most) = profile.ends();
            let end = |number: Option<f64>, text: String| match number.filter(|_| profile.is_numeric()) {
                Some(number) => json!(number),
                None => json!(text),
            };
            let mut about = json!({
                "name": name,
                "type": profile.column_type().name(),
                "count": profile.count,
                "missing": profile.nulls,
                "distinct": profile.distinct(),
                "min": end(profile.least, least),
                "max": end(profile.most, most),
                "examples": profile.examples,
            });
            if let (Some((mean, deviation)), Some([low, median, high])) =
                (profile.measures(), profile.quantiles())
                && let Some(about) = about.as_object_mut()
            {
                about.insert("mean".to_owned(), json!(mean));
                about.insert("std".to_owned(), json!(deviation));
                about.insert("quartiles".to_owned(), json!([low, median, high]));
            }
            about
        });
        json!({
            "name": self.name,
            "rows": self.rows,
            "rejected": self.rejected,
            "source": self.about,
            "columns": columns.collect::<Vec<_>>(),
        })
    }
}
