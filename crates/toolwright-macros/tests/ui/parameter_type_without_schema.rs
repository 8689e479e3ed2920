use toolwright_core::tool;

struct Opaque;

/// Does it.
#[tool]
async fn work(
    /// A value.
    x: Opaque,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
