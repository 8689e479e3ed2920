use toolwright_core::tool;

/// Does it.
#[tool(read_only, read_only = false)]
async fn work() {}

fn main() {
    let _ = work();
}
