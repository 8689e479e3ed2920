use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A value.
    x: Option<&'static str>,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
