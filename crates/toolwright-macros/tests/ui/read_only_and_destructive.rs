use toolwright_core::tool;

/// Does it.
#[tool(read_only, destructive)]
async fn work() {}

fn main() {
    let _ = work();
}
