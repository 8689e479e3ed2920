use toolwright_core::tool;

fn view(_: &serde_json::Value) -> bool {
    true
}

/// Does it.
#[tool(viewer = view)]
async fn work() {}

fn main() {
    let _ = work();
}
