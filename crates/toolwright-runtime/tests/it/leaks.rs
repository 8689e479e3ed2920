//! A million calls leave nothing behind.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;
use toolwright_core::ToolCall;
use toolwright_runtime::{Event, Policy, Run, RunLimits};

use crate::support::{add, tools};

/// Counts the bytes in use, for this whole test binary.
struct Counting;

static IN_USE: AtomicI64 = AtomicI64::new(0);

#[expect(unsafe_code, reason = "an allocator cannot be written without it")]
// SAFETY: every call goes to the system allocator unchanged; the count is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise about the layout is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: the caller's promise about pointer and layout is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_million_calls_leave_memory_as_it_was() {
    // Other tests of this binary run at the same time under `cargo test`, so this one works in a process of
    // its own.
    if std::env::var_os("TOOLWRIGHT_LEAK_CHILD").is_none() {
        let this = std::env::current_exe().unwrap();
        let status = std::process::Command::new(this)
            .args(["--exact", "leaks::a_million_calls_leave_memory_as_it_was", "--test-threads=1"])
            .env("TOOLWRIGHT_LEAK_CHILD", "1")
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.unwrap().success());
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let run = Run::builder(tools([add()]))
            .policy(Policy::from_yaml("- {tools: '*', decision: approve}").unwrap())
            .limits(RunLimits { tool_calls: Some(u64::MAX), ..RunLimits::default() })
            .on_event(|_: &Event| {})
            .build()
            .unwrap();
        let good = ToolCall::new("1", "add", json!({"x": 1, "y": 2}));
        let bad = ToolCall::new("2", "add", json!({"x": "none"}));
        let rounds = async |count: u32| {
            for _ in 0..count {
                assert_eq!(run.call(good.clone()).await.unwrap().content.len(), 1);
            }
            for _ in 0..count / 100 {
                assert!(run.call(bad.clone()).await.unwrap().is_error());
            }
        };
        rounds(10_000).await;
        let before = IN_USE.load(Ordering::Relaxed);
        rounds(1_000_000).await;
        let grown = IN_USE.load(Ordering::Relaxed) - before;
        assert!(grown.abs() < 64 * 1024, "{grown} bytes more after a million calls");
    });
}
