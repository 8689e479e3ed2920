//! `cargo xtask fuzz-seeds`: the first inputs of the fuzz targets, taken from the vectors.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value as Json;

/// Writes one file for each expression into the corpora of the expression targets.
pub fn run() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(root.join("testdata/expr/llm_workers.json"))?;
    let document: Json = serde_json::from_str(&text)?;
    let vectors = document.get("vectors").and_then(Json::as_array).context("no `vectors` in the file")?;
    let mut count = 0usize;
    for target in ["template", "expr_parse", "expr_eval"] {
        let folder = root.join("fuzz/corpus").join(target);
        std::fs::create_dir_all(&folder)?;
        for vector in vectors {
            let id = vector.get("id").and_then(Json::as_str).unwrap_or("unnamed");
            let Some(source) = vector.get("expr").and_then(Json::as_str) else { continue };
            let code = source.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or(source);
            std::fs::write(folder.join(id), if target == "template" { source } else { code })?;
            count += 1;
        }
    }
    println!("{count} seeds written");
    Ok(())
}
