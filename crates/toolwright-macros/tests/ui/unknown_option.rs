use toolwright_core::tool;

/// Does it.
#[tool(time_out = 5)]
async fn work() {}

fn main() {
    let _ = work();
}
