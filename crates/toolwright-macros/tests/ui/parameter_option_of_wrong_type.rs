use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A number.
    #[tool(min = "1")]
    x: i64,
    /// Text.
    #[tool(max_length = -1, pattern = 5)]
    y: String,
) {
    let _ = (x, y);
}

fn main() {
    let _ = work();
}
