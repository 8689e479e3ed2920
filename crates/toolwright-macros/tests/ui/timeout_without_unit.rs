use toolwright_core::tool;

/// Does it.
#[tool(timeout = "30")]
async fn work() {}

fn main() {
    let _ = work();
}
