use toolwright_core::tool;

/// Does it.
#[tool(name = "my tool")]
async fn work() {}

fn main() {
    let _ = work();
}
