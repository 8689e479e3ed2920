use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A value.
    x: &[u8],
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
