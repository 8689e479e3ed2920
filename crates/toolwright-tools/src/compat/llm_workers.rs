//! llm-workers' tools where their parameters or results are other than ours, and the names of all of them.

use toolwright_core::{ErrorKind, ToolContext, ToolDef, ToolError, WorkspacePath, tool};

use super::Make;
use crate::options::{Call, Options, within_time};
use crate::paths::{self, FileKind};
use crate::shell::output_or_error;
use crate::walk::{Hidden, walk};
use crate::write_file::{IfExists, put};
use crate::{
    approval_tokens, edit_file, fetch, file_info, glob_files, grep_files, people, read_file, shell, show_file,
};

/// Their names, and what makes each tool.
pub(crate) const TOOLS: [(&str, Make); 19] = [
    ("llm_workers.tools.fs.read_file", read_file::read_file),
    ("llm_workers.tools.fs.write_file", write_file),
    ("llm_workers.tools.fs.edit_file", edit_file::edit_file),
    ("llm_workers.tools.fs.glob_files", glob_files::glob_files),
    ("llm_workers.tools.fs.grep_files", grep_files::grep_files),
    ("llm_workers.tools.fs.file_info", file_info::file_info),
    ("llm_workers.tools.fs.list_files", list_files),
    ("llm_workers.tools.unsafe.bash", bash),
    ("llm_workers.tools.unsafe.run_process", shell::run_process),
    ("llm_workers.tools.unsafe.run_python_script", shell::run_python_script),
    ("llm_workers.tools.unsafe.show_file", show_file::show_file),
    ("llm_workers.tools.fetch.fetch_content", fetch::fetch_content),
    ("llm_workers.tools.fetch.fetch_page_text", fetch::fetch_page_text),
    ("llm_workers.tools.fetch.fetch_page_markdown", fetch::fetch_page_markdown),
    ("llm_workers.tools.fetch.fetch_page_links", fetch::fetch_page_links),
    ("llm_workers.tools.misc.user_input", people::user_input),
    ("llm_workers.tools.misc.request_approval", approval_tokens::request_approval),
    ("llm_workers.tools.misc.validate_approval", approval_tokens::validate_approval),
    ("llm_workers.tools.misc.consume_approval", approval_tokens::consume_approval),
];

/// `fs.write_file`: the folder must be there.
#[tool(
    description = "Write a text file in a folder that is there.",
    category = "files",
    sandboxed,
    read_only = false,
    parallel = false,
    finish = within_time
)]
async fn write_file(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The file to write. Its folder is made when it is not there.
    #[tool(alias("file_path", "filename"))]
    path: WorkspacePath,
    /// What to write.
    #[tool(alias("file_text", "text"))]
    content: String,
    /// What to do when the file is there already; `write` is another word for `overwrite`.
    #[tool(default, alias = "mode")]
    if_exists: IfExists,
) -> Result<(), ToolError> {
    let call = &Call::new(context, options);
    if paths::find(call, &path).await?.real.is_none() {
        return Err(ToolError::of(ErrorKind::FileNotFound, format!("the folder of {path} does not exist")));
    }
    put(call, &path, content, if_exists).await
}

/// `fs.list_files`: the files and the folders of one folder, apart and counted.
#[tool(
    description = "List the files and the folders in a folder, hidden ones too.",
    category = "files",
    sandboxed,
    read_only,
    finish = within_time
)]
async fn list_files(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The folder to list.
    #[tool(default = ".", alias = "directory")]
    path: WorkspacePath,
) -> Result<String, ToolError> {
    let call = &Call::new(context, options);
    match paths::find(call, &path).await?.about.map(|about| about.kind) {
        Some(FileKind::Folder) => {}
        Some(_) => return Err(ToolError::new(format!("{path} is not a folder"))),
        None => return Err(ToolError::new(format!("there is no folder {path}"))),
    }
    let items = walk(call, &path, Some(1), Hidden::Shown).await?;
    let (mut files, mut dirs) = (Vec::new(), Vec::new());
    for item in &items {
        if item.is_folder { &mut dirs } else { &mut files }.push(format!("- {}\n", item.path));
    }
    let list =
        |title: &str, lines: &[String]| format!("{title}:\n{}total {} entries", lines.concat(), lines.len());
    Ok(format!("{}\n\n{}", list("files", &files), list("dirs", &dirs)))
}

/// `unsafe.bash`: the result is the standard output, and a script that fails is an error.
#[tool(
    description = "Run a bash script; the result is what it prints. A script that fails is an error.",
    category = "shell",
    sandboxed,
    viewer = script_view,
    finish = finish_bash
)]
async fn bash(
    context: &ToolContext,
    #[tool(setup)] options: &Options,
    /// The bash script to run.
    #[tool(alias("command", "cmd"))]
    script: String,
    /// Stop it after so many seconds.
    #[tool(default = 30.0)]
    timeout: f64,
) -> Result<String, ToolError> {
    output_or_error(&Call::new(context, options), &["bash", "-c", &script], None, Some(timeout)).await
}

fn script_view(arguments: &serde_json::Value) -> toolwright_core::CallView {
    crate::options::code_view("bash", "script", arguments)
}

fn finish_bash(tool: ToolDef, options: &Options) -> ToolDef {
    within_time(tool, options).edit(|_, policy| policy.shell.push("script".into()))
}
