//! A prepared sandbox. A program that opens private sandboxes of one policy again and again finds the next
//! one ready, so that making namespaces and mounts is off the path of its calls.
//!
//! Only policies that name nothing of the host's own folders are prepared for: such a sandbox is the same
//! whenever it was made. One is kept, for some seconds; it has never run anything.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use toolwright_core::ToolError;
use toolwright_util::lock;

use super::process::ProcessSandbox;
use crate::policy::{Network, SandboxPolicy};

/// How long a prepared sandbox waits, and how soon two of a kind must follow each other for a third to be
/// prepared.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Shelf {
    /// What was opened last, and when.
    last: Option<(SandboxPolicy, Instant)>,
    ready: Option<Ready>,
    /// Tells one prepared sandbox from the next.
    count: u64,
}

struct Ready {
    /// Done, or on its way.
    sandbox: JoinHandle<Result<ProcessSandbox, ToolError>>,
    policy: SandboxPolicy,
    /// Who made it: a process that was forked off owns none of its parent's sandboxes.
    process: u32,
    number: u64,
}

static SHELF: Mutex<Option<Shelf>> = Mutex::new(None);

fn with<T>(work: impl FnOnce(&mut Shelf) -> T) -> T {
    work(lock(&SHELF).get_or_insert_default())
}

/// Whether it makes no difference when a sandbox of this policy was made.
fn timeless(policy: &SandboxPolicy) -> bool {
    policy.workspace.is_none()
        && policy.read.is_empty()
        && policy.write.is_empty()
        && !matches!(policy.network, Network::Allow(_))
}

/// The prepared sandbox, if there is one of this policy. Has the next one made when that is worth it.
pub(super) async fn take(policy: &SandboxPolicy) -> Option<ProcessSandbox> {
    if !timeless(policy) {
        return None;
    }
    let (ready, again) = with(|shelf| {
        let before = shelf.last.replace((policy.clone(), Instant::now()));
        let again = before.is_some_and(|(last, when)| last == *policy && when.elapsed() < PATIENCE);
        let fits = |ready: &mut Ready| ready.policy == *policy && ready.process == std::process::id();
        (shelf.ready.take_if(fits), again)
    });
    let sandbox = match ready {
        Some(ready) => ready.sandbox.await.ok().and_then(Result::ok).filter(ProcessSandbox::is_alive),
        None => None,
    };
    if again {
        prepare(policy);
    }
    sandbox
}

/// Closes the prepared sandbox; this program needs no more.
pub(crate) fn put_away() {
    with(|shelf| shelf.ready.take());
}

fn prepare(policy: &SandboxPolicy) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let wanted = policy.clone();
    let sandbox = runtime.spawn(async move { ProcessSandbox::build(wanted, &[]).await });
    let number = with(|shelf| {
        shelf.count += 1;
        let (policy, number) = (policy.clone(), shelf.count);
        shelf.ready = Some(Ready { sandbox, policy, process: std::process::id(), number });
        number
    });
    runtime.spawn(async move {
        tokio::time::sleep(PATIENCE).await;
        // Dropping an unused sandbox closes it.
        with(|shelf| shelf.ready.take_if(|ready| ready.number == number));
    });
}
