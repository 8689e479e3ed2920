//! `file_operations`: one tool for the plain things that are done to files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolwright_core::{RootedPath, ToolContext, ToolDef, ToolError, ToolOutput, tool};

use super::place;
use crate::edit_file::{self, Extent};
use crate::options::{Call, Options, object, within_time};
use crate::paths::{self, FileKind};
use crate::walk::{Hidden, walk};
use crate::write_file::{self, IfExists};
use crate::{decode, file_info};

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "lowercase")]
enum Operation {
    Read,
    Write,
    List,
    Info,
    Edit,
    Delete,
}

/// Read, write, edit or delete a file, list a folder, or tell what there is to know of either.
#[tool(category = "files", sandboxed, read_only = false, parallel = false, finish = finish_operations)]
pub(crate) async fn file_operations(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// What to do.
    operation: Operation,
    /// The file or folder.
    #[tool(alias = "file_path")]
    path: RootedPath,
    /// What to write.
    content: Option<String>,
    /// How the text is stored.
    #[tool(default = "utf-8")]
    encoding: String,
    /// For edit: a unified diff, or the text to look for and the text to put in its place.
    changes: Option<edit_file::Changes>,
) -> Result<ToolOutput, ToolError> {
    let call = &Call::new(context, options);
    let path = place(&path)?;
    let told: Result<Value, ToolError> = match operation {
        Operation::Read => {
            let (content, _) = decode::as_named(&paths::read(call, &path).await?, &encoding)?;
            Ok(json!({"path": path, "size": content.chars().count(), "content": content}))
        }
        Operation::Write => write(call, &path, content).await,
        Operation::List => {
            paths::folder(call, &path).await?;
            let items: Vec<String> =
                walk(call, &path, Some(1), Hidden::Shown).await?.into_iter().map(|item| item.path).collect();
            Ok(json!({"path": path, "count": items.len(), "items": items}))
        }
        Operation::Info => {
            let Some(about) = paths::find(call, &path).await?.about else {
                return Err(paths::missing(call, &path).await);
            };
            Ok(json!({
                "path": path,
                "size": about.size,
                "modified": file_info::time(about.modified),
                "is_file": about.kind == FileKind::File,
                "is_dir": about.kind == FileKind::Folder,
            }))
        }
        Operation::Edit => match (changes, content) {
            (Some(changes), _) => {
                let changed = edit_file::change(call, &path, changes, Extent::First, false).await?;
                Ok(json!({"path": path, "lines_changed": changed.lines_changed, "status": "success"}))
            }
            (None, Some(content)) => write(call, &path, Some(content)).await,
            (None, None) => Err(ToolError::invalid("`edit` needs `changes` or `content`")),
        },
        Operation::Delete => delete(call, &path).await,
    };
    told.map(ToolOutput::json)
}

fn finish_operations(tool: ToolDef, options: &Options) -> ToolDef {
    within_time(tool, options).with_reader(in_any_case).with_output_schema(result())
}

/// The schema of the result, which depends on the operation.
fn result() -> Value {
    let (text, number, yes) =
        (json!({"type": "string"}), json!({"type": "integer"}), json!({"type": "boolean"}));
    object(
        json!({"path": text}),
        json!({
            "status": text, "size": number, "content": text, "count": number, "written": number, "lines_changed": number,
            "items": {"type": "array", "items": text}, "modified": text, "is_file": yes, "is_dir": yes,
        }),
    )
}

/// The arguments with the operation in small letters: `READ` is `read`.
fn in_any_case(mut arguments: Value) -> Result<Value, ToolError> {
    if let Some(Value::String(operation)) = arguments.get_mut("operation") {
        *operation = operation.to_lowercase();
    }
    Ok(arguments)
}

async fn write(call: &Call<'_>, path: &str, content: Option<String>) -> Result<Value, ToolError> {
    let content =
        content.ok_or_else(|| ToolError::invalid("`content` is missing: there is nothing to write"))?;
    let written = content.chars().count();
    write_file::put(call, path, content, IfExists::Overwrite).await?;
    Ok(json!({"path": path, "written": written, "status": "success"}))
}

async fn delete(call: &Call<'_>, path: &str) -> Result<Value, ToolError> {
    let Some(about) = paths::find(call, path).await?.about else {
        return Err(paths::missing(call, path).await);
    };
    let operand = paths::operand(path);
    let command: &[&str] = match about.kind {
        FileKind::Folder if !about.is_link => &["rmdir", "--", &operand],
        _ => &["rm", "-f", "--", &operand],
    };
    let result = call.helper(command).await?;
    if result.success() {
        return Ok(json!({"path": path, "status": "success"}));
    }
    let kind = paths::kind_of(&result.stderr);
    Err(ToolError::of(kind, format!("{path} could not be deleted: {}", result.stderr.trim())))
}
