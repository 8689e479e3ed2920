use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A value.
    x: impl Into<String>,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
