//! `toolwright serve`: the tools, offered to an MCP client on stdin and stdout.

use toolwright::mcp::Server;
use toolwright::{Durability, Run};

use crate::args::Serve;
use crate::prompt::printable;
use crate::{commands, demo, files, report};

pub async fn run(what: Serve) -> anyhow::Result<()> {
    let loaded = what.file.as_deref().map(files::open).transpose()?;
    let all = loaded.as_ref().map_or_else(demo::tools, |loaded| Ok(loaded.tools().clone()))?;
    let tools = commands::tools::chosen(all, &what.tools)?;
    let mut builder = Run::builder(tools).policy(commands::ask::policy(what.policy.as_deref())?);
    if let Some(loaded) = loaded.as_ref().filter(|_| what.policy.is_none()) {
        builder = files::apply(loaded, builder)?;
    }
    if let Some(path) = &what.transcript {
        builder = builder.transcript(path, [], Durability::Process).map_err(report::unusable)?;
    }
    let run = builder.build()?;
    let server = Server::new(run.dispatch()).on_log(|text| eprintln!("{}", printable(text)));
    tokio::select! {
        served = server.serve_stdio() => served?,
        _ = tokio::signal::ctrl_c() => run.cancel(),
    }
    run.finish(toolwright::RunEnd::Done)?;
    Ok(())
}
