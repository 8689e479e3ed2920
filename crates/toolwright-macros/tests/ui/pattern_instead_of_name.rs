use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A pair.
    (x, y): (i64, i64),
) {
    let _ = (x, y);
}

fn main() {
    let _ = work();
}
