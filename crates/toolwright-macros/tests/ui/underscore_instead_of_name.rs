use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A value.
    _: i64,
) {}

fn main() {
    let _ = work();
}
