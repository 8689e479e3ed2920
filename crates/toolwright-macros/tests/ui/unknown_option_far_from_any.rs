use toolwright_core::tool;

/// Does it.
#[tool(frobnicate)]
async fn work() {}

fn main() {
    let _ = work();
}
