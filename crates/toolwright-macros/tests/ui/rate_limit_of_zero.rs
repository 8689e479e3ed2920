use toolwright_core::tool;

/// Does it.
#[tool(rate_limit = "0/s")]
async fn work() {}

fn main() {
    let _ = work();
}
