//! `toolwright view`: recorded runs in a browser.

use std::sync::Arc;

use anyhow::Context as _;
use tokio::net::TcpListener;

use crate::args::ViewArgs;
use crate::commands::stop_signal;
use crate::console::Console;
use crate::report;
use crate::runs;
use crate::view::{Viewer, serve};

pub async fn run(what: ViewArgs, console: &Console) -> anyhow::Result<()> {
    let json = console.is_json();
    let chosen = what.run.as_deref().map(runs::find).transpose()?;
    let extra = chosen.clone().filter(|path| !runs::list().contains(path));
    let listener = TcpListener::bind(("127.0.0.1", what.port))
        .await
        .with_context(|| format!("cannot listen on port {} of 127.0.0.1", what.port))?;
    let viewer = Arc::new(Viewer::new(listener.local_addr()?.port(), extra)?);
    let place = chosen.map(|path| format!("#{}", runs::id_of(&path))).unwrap_or_default();
    let served = async {
        report::address(console, &format!("{}{place}", viewer.address()))?;
        if !json {
            console.say("open it in a browser on this machine; Ctrl-C ends it");
        }
        Ok(serve(listener, viewer).await?)
    };
    tokio::select! {
        // The socket listens before the address is printed.
        biased;
        _ = stop_signal() => Ok(()),
        served = served => served,
    }
}
