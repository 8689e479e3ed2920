use toolwright_core::tool;

struct Opaque;

/// Does it.
#[tool]
async fn work() -> Opaque {
    Opaque
}

fn main() {
    let _ = work();
}
