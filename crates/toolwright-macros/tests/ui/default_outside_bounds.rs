use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A value.
    #[tool(default = 11, max = 10)]
    x: i64,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
