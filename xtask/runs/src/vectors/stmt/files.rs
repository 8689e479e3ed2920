//! The file tools in a folder of their own: what they give, what they change, and what a person is told of a
//! call.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value as Json, json};
use toolwright_core::schema::Strictness;
use toolwright_core::{DynSandbox, ToolOutput};
use toolwright_lang::load;
use toolwright_sandbox::{LocalSandbox, SandboxPolicy};

use super::{Verdict, describe, host, outcome_matches, source};

/// Files by path, oldest first.
pub(super) type Files = Map<String, Json>;

/// Runs a file tool among the files that the file of vectors describes.
pub(super) async fn run(vector: &Json, files: &Files) -> Verdict {
    let expect = vector.get("expect").unwrap_or(&Json::Null);
    let broken = |error: &dyn std::fmt::Display| (describe(expect), format!("the test is broken: {error}"));
    let folder = tempfile::tempdir().map_err(|error| broken(&error))?;
    lay_out(folder.path(), files).map_err(|error| broken(&error))?;
    let policy = SandboxPolicy { workspace: Some(folder.path().to_owned()), ..SandboxPolicy::private() };
    let sandbox = LocalSandbox::open(policy).await.map_err(|error| broken(&error))?;
    let loaded =
        load(source(vector), &host()).map_err(|problems| (describe(expect), format!("load: {problems}")))?;
    let name = vector.get("tool").and_then(Json::as_str).unwrap_or_default();
    let input = vector.get("input").cloned().unwrap_or_else(|| json!({}));
    let (mut outcome, _) =
        super::call(&loaded, name, input, Some(Arc::new(sandbox) as Arc<DynSandbox>)).await;
    // The record leaves out what differs from machine to machine.
    if name == "file_info"
        && let (Ok(output), Some(wanted)) = (&mut outcome, expect.get("ok").and_then(Json::as_object))
        && let Json::Object(mut told) = output.value()
    {
        told.retain(|key, _| wanted.contains_key(key));
        *output = ToolOutput::json(Json::Object(told));
    }
    let empty = outcome.as_ref().is_ok_and(|output| output.value() == Json::Null || output.value() == "");
    let nothing = expect.get("ok").is_some_and(|ok| ok.is_null() || ok == "");
    // Nothing and an empty text are the same to a model.
    let same = empty && nothing || outcome_matches(expect, &outcome);
    let changed = changed(folder.path(), folder.path(), files);
    let wanted = expect.get("files_changed").and_then(Json::as_object).cloned().unwrap_or_default();
    if same && changed == wanted {
        return Ok(());
    }
    let got = outcome.map_or_else(|error| format!("{error:?}"), |output| output.value().to_string());
    Err((expect.to_string(), format!("{got} and changed {}", Json::Object(changed))))
}

/// Whether the tools of a record work on files.
pub(super) fn needed(vector: &Json) -> bool {
    vector.get("yaml").and_then(Json::as_str).is_some_and(|yaml| yaml.contains("llm_workers.tools.fs."))
}

/// A sandbox without files.
pub(super) async fn empty() -> Result<Arc<DynSandbox>, String> {
    let sandbox = LocalSandbox::open(SandboxPolicy::private()).await.map_err(|error| error.to_string())?;
    Ok(Arc::new(sandbox))
}

fn lay_out(folder: &Path, files: &Files) -> std::io::Result<()> {
    for (age, (path, text)) in files.iter().enumerate() {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        std::fs::write(&path, text.as_str().unwrap_or_default())?;
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o644);
        std::fs::set_permissions(&path, open)?;
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + 10 * age as u64);
        std::fs::File::options().append(true).open(&path)?.set_modified(time)?;
    }
    Ok(())
}

/// The files that are new or differ, by path.
fn changed(root: &Path, folder: &Path, files: &Files) -> Files {
    let mut found = Files::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(changed(root, &path, files));
            continue;
        }
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        let text = Json::from(std::fs::read_to_string(&path).unwrap_or_default());
        if files.get(&name) != Some(&text) {
            found.insert(name, text);
        }
    }
    found
}

/// What a person is told of a call, and whether they are asked.
pub(super) fn confirm(vector: &Json) -> Verdict {
    let wanted = vector.pointer("/expect/ok").unwrap_or(&Json::Null);
    let name = vector.get("tool").and_then(Json::as_str).unwrap_or_default();
    let loaded =
        load(source(vector), &host()).map_err(|problems| (wanted.to_string(), format!("{problems}")))?;
    let entry = loaded.tools().get(name).ok_or((wanted.to_string(), "no such tool".to_owned()))?;
    let input = described(vector.get("input").unwrap_or(&Json::Null), &entry.tool.spec().parameters);
    let prepared = entry.prepare(input, Strictness::Lenient);
    let prepared = prepared.map_err(|error| (wanted.to_string(), error.to_string()))?;
    let confirm = entry.tool.policy().require_confirmation.unwrap_or(prepared.wants_confirmation());
    let description = prepared.description.map(|description| *description).unwrap_or_default();
    let got = json!({
        "needs_confirmation": confirm,
        "action": description.action,
        "ui_hint": description.hint,
    });
    if got == *wanted { Ok(()) } else { Err((wanted.to_string(), got.to_string())) }
}

/// The arguments of a record, cut to what the tool takes and completed with empty texts. A record gives each
/// tool the same three arguments, since the original describes a call without checking it.
fn described(input: &Json, parameters: &Json) -> Json {
    let known = parameters.get("properties").and_then(Json::as_object);
    let required = parameters.get("required").and_then(Json::as_array).into_iter().flatten();
    let mut arguments: Map<String, Json> =
        required.filter_map(Json::as_str).map(|name| (name.to_owned(), Json::from(""))).collect();
    for (name, value) in input.as_object().into_iter().flatten() {
        if known.is_some_and(|known| known.contains_key(name)) {
            arguments.insert(name.clone(), value.clone());
        }
    }
    Json::Object(arguments)
}
