use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// One.
    x: i64,
    /// Two.
    #[tool(rename = "x")]
    y: i64,
) {
    let _ = (x, y);
}

fn main() {
    let _ = work();
}
