use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A value.
    #[tool(minimum = 1)]
    x: i64,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
