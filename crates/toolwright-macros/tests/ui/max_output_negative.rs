use toolwright_core::tool;

/// Does it.
#[tool(max_output = -1)]
async fn work() {}

fn main() {
    let _ = work();
}
