use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A value.
    #[tool(pattern = "a")]
    x: Option<bool>,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
