//! Idle time: waiting for a rate limit, or before a retry. Code that waits reports it here, and the clock of
//! a run receives it through however many layers lie between, so that it does not count as working time.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

tokio::task_local! {
    static IDLE_LISTENER: Arc<dyn Fn(Duration) + Send + Sync>;
}

/// Sleeps, and reports the time as idle: it does not count as the working time of a run.
///
/// A model's client waits like this for its vendor. A tool adds a [`CallNote`](crate::CallNote) instead,
/// which is recorded too.
pub async fn wait(time: Duration) {
    // Outside a run there is no listener.
    let _ = IDLE_LISTENER.try_with(|listener| listener(time));
    tokio::time::sleep(time).await;
}

/// Does `work`, and calls `listener` with the length of each [`wait`] in it as it begins. Waits in tasks that
/// the work spawns are not reported.
pub fn with_idle_listener<F: Future>(
    listener: impl Fn(Duration) + Send + Sync + 'static,
    work: F,
) -> impl Future<Output = F::Output> {
    IDLE_LISTENER.scope(Arc::new(listener), work)
}
