use toolwright_core::tool;

/// Does it.
#[tool(name: "x")]
async fn work() {}

fn main() {
    let _ = work();
}
