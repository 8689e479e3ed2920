//! `toolwright serve`: the tools, offered to MCP clients on stdin and stdout or over HTTP.

use std::net::SocketAddr;

use toolwright::mcp::{ClientApprover, HttpOptions, ResourceServer, Server, StateKey};
use toolwright::{CancelToken, Durability, Run, Secret};

use crate::args::{Serve, ServeHttp};
use crate::prompt::printable;
use crate::report::Usage;
use crate::{commands, demo, files, report, sandboxes};

pub async fn run(what: Serve) -> anyhow::Result<()> {
    let loaded = what.file.as_deref().map(files::open).transpose()?;
    let all = loaded.as_ref().map_or_else(demo::tools, |loaded| Ok(loaded.tools().clone()))?;
    let tools = commands::tools::chosen(all, &what.tools)?;
    let needs_sandbox = tools.iter().any(|entry| entry.tool.settings().sandboxed);
    let policy = commands::ask::policy(what.policy.as_deref())?;
    let mut builder = Run::builder(tools).policy(policy).approver(ClientApprover);
    if let Some(loaded) = loaded.as_ref().filter(|_| what.policy.is_none()) {
        builder = files::apply(loaded, builder)?;
    }
    if needs_sandbox
        && let Some(sandbox) = sandboxes::open(&sandboxes::of(&what.sandbox, loaded.as_ref())?).await?
    {
        builder = builder.sandbox("default", sandbox);
    }
    if let Some(path) = &what.transcript {
        builder = builder.transcript(path, [], Durability::Process).map_err(report::unusable)?;
    }
    let run = builder.build()?;
    let server = Server::new(run.dispatch()).on_log(|text| eprintln!("{}", printable(text)));
    match what.http.http {
        Some(address) => over_http(server, address, &what.http).await?,
        None => tokio::select! {
            served = server.serve_stdio() => served?,
            () = told_to_stop() => run.cancel(),
        },
    }
    run.finish(toolwright::RunEnd::Done)?;
    Ok(())
}

async fn over_http(server: Server, address: SocketAddr, what: &ServeHttp) -> anyhow::Result<()> {
    let token = what.token_env.as_deref().map(secret).transpose()?;
    if token.is_none() && what.oauth.is_none() && !what.open && !address.ip().is_loopback() {
        let problem = Usage::new(format!("other machines can reach {address}, and no token is asked for"));
        return Err(problem.hint("name the variable with a token: --token-env NAME; or take those of an authorization server: --oauth ISSUER; or say --open").into());
    }
    let server = match &what.state_key_env {
        Some(name) => {
            let key = StateKey::from_bytes(secret(name)?.expose().as_bytes());
            let short =
                || Usage::new(format!("the key in `{name}` has fewer than {} bytes", StateKey::MIN_BYTES));
            server.state_key(key.ok_or_else(short)?)
        }
        None => server,
    };
    let mut options = HttpOptions::default();
    options.hosts.clone_from(&what.allow_host);
    options.origins.clone_from(&what.allow_origin);
    options.token = token;
    if let (Some(issuer), Some(audience)) = (&what.oauth, &what.audience) {
        let (issuer, audience) = (issuer.clone(), audience.clone());
        options.resource_server = Some(ResourceServer { issuer, audience, scopes: what.scope.clone() });
    }
    options.rate = what.rate;
    options.max_body = what.max_body;
    let listening = server.listen(address, options).await;
    let listening = listening.map_err(|error| anyhow::anyhow!("cannot listen on {address}: {error}"))?;
    report::line(format_args!("http://{}/mcp", listening.address()))?;
    let stop = CancelToken::new();
    let on_signal = stop.clone();
    tokio::spawn(async move {
        told_to_stop().await;
        eprintln!("stopping: what is under way is finished first; Ctrl-C again stops at once");
        on_signal.cancel();
        told_to_stop().await;
        std::process::exit(1);
    });
    listening.run(stop).await;
    Ok(())
}

/// The value of a variable that must not be shown.
fn secret(name: &str) -> anyhow::Result<Secret> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    Ok(Secret::new(value.ok_or_else(|| Usage::new(format!("the variable `{name}` is not set")))?))
}

/// Waits for Ctrl-C, or for whoever manages services to ask for an end.
async fn told_to_stop() {
    #[cfg(unix)]
    if let Ok(mut asked) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = asked.recv() => {}
        }
        return;
    }
    let _ = tokio::signal::ctrl_c().await;
}
