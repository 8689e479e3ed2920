use toolwright_core::tool;

/// Does it.
#[tool(crate = 5)]
async fn work() {}

fn main() {
    let _ = work();
}
