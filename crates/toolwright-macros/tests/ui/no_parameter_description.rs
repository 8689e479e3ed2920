use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(x: i64) {
    let _ = x;
}

fn main() {
    let _ = work();
}
