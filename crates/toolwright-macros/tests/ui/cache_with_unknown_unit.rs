use toolwright_core::tool;

/// Does it.
#[tool(cache = "5 weeks")]
async fn work() {}

fn main() {
    let _ = work();
}
