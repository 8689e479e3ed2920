use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A value.
    #[tool(min = 5, max = 1)]
    x: i64,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
