use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A value.
    x: &str,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
