use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A value.
    #[tool(min = 1)]
    #[tool(min = 2)]
    x: i64,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
