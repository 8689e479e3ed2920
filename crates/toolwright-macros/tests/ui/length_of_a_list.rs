use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A value.
    #[tool(min_length = 1)]
    x: Vec<String>,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
