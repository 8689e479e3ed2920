use toolwright_core::tool;

/// Does it.
///
/// Args:
///     x: One.
///     x: Two.
#[tool]
async fn work(x: i64) {
    let _ = x;
}

fn main() {
    let _ = work();
}
