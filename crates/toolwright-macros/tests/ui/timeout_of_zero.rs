use toolwright_core::tool;

/// Does it.
#[tool(timeout = 0)]
async fn work() {}

fn main() {
    let _ = work();
}
