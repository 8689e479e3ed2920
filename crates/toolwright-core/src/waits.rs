//! Waiting that is no work: for a rate limit, or before something is tried again. Whoever waits so says it here, and
//! whoever counts working time hears of it, however many layers are between them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

tokio::task_local! {
    static EAR: Arc<dyn Fn(Duration) + Send + Sync>;
}

/// Sleeps. That is waiting, and does not count as the working time of a run.
///
/// A model's client waits like this for its vendor; a tool says it through its context, which records it too.
pub async fn wait(time: Duration) {
    // Outside a run nobody counts.
    let _ = EAR.try_with(|ear| ear(time));
    tokio::time::sleep(time).await;
}

/// Does `work`, and tells `ear` of each [`wait`] in it as it begins. Tasks that the work starts are not heard.
pub fn hear_waits<F: Future>(
    ear: impl Fn(Duration) + Send + Sync + 'static,
    work: F,
) -> impl Future<Output = F::Output> {
    EAR.scope(Arc::new(ear), work)
}
