use toolwright_core::tool;

/// Does it.
#[tool(rate_limit = 10)]
async fn work() {}

fn main() {
    let _ = work();
}
