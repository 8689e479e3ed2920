use toolwright_core::{ToolCall, tool};

fn view(_: &ToolCall) -> String {
    String::new()
}

/// Does it.
#[tool(viewer = view)]
async fn work() {}

fn main() {
    let _ = work();
}
