//! `cargo xtask fuzz`: the fuzz targets, one after the other, from seeds that are the vectors.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value as Json;

/// The targets, with the longest input each is given.
const TARGETS: [(&str, usize); 8] = [
    ("template", 512),
    ("expr_parse", 512),
    ("expr_eval", 256),
    ("yaml_load", 256),
    ("documents_pdf", 16_384),
    ("documents_package", 8_192),
    ("documents_binary", 16_384),
    ("documents_text", 4_096),
];

/// Runs every target that many times, or one of them. An input that crashes or takes 512 MiB ends it, and so
/// does one that takes ten seconds; those that take one are reported, as a busy machine alone may make an
/// input that slow.
pub fn run(runs: &str, only: Option<&str>) -> Result<()> {
    seeds()?;
    let fuzz = |args: &[&str]| {
        let mut command = Command::new("cargo");
        // The fuzzer's counters are an option of the compiler that only a nightly one offers unasked.
        command.arg("fuzz").args(args).env("RUSTC_BOOTSTRAP", "1").current_dir(crate::root());
        command
    };
    if !fuzz(&["--version"]).output().is_ok_and(|output| output.status.success()) {
        bail!("this needs cargo-fuzz: `cargo install cargo-fuzz`");
    }
    for (target, longest) in TARGETS.iter().filter(|(name, _)| only.is_none_or(|only| only == *name)) {
        let (runs, longest) = (format!("-runs={runs}"), format!("-max_len={longest}"));
        // The crates are safe Rust, so the address sanitizer would only cost time.
        let settings = [
            "run",
            "-s",
            "none",
            target,
            "--",
            &runs,
            &longest,
            "-timeout=10",
            "-report_slow_units=1",
            "-rss_limit_mb=512",
        ];
        let status = fuzz(&settings).status()?;
        if !status.success() {
            bail!("{target}: {status}");
        }
    }
    Ok(())
}

/// Writes one file for each expression into the corpora of the expression targets.
fn seeds() -> Result<()> {
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
    count += files(&root)?;
    println!("{count} seeds written");
    Ok(())
}

/// Writes one file for each flow vector and each example into the corpus of `yaml_load`.
fn files(root: &Path) -> Result<usize> {
    let folder = root.join("fuzz/corpus/yaml_load");
    std::fs::create_dir_all(&folder)?;
    let text = std::fs::read_to_string(root.join("testdata/stmt/llm_workers.json"))?;
    let document: Json = serde_json::from_str(&text)?;
    let mut count = 0;
    for vector in document.get("vectors").and_then(Json::as_array).into_iter().flatten() {
        let id = vector.get("id").and_then(Json::as_str).unwrap_or("unnamed");
        let Some(yaml) = vector.get("yaml").and_then(Json::as_str) else { continue };
        std::fs::write(folder.join(id), yaml)?;
        count += 1;
    }
    for entry in std::fs::read_dir(root.join("examples/yaml"))? {
        let entry = entry?;
        std::fs::copy(entry.path(), folder.join(entry.file_name()))?;
        count += 1;
    }
    Ok(count)
}
