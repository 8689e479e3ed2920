use toolwright_core::tool;

/// Does it.
#[tool]
async fn work<T>() {}

fn main() {
    let _ = work();
}
