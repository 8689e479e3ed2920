use toolwright_core::tool;

/// Does it.
#[tool]
async fn work() -> Result<i64, String> {
    Ok(1)
}

fn main() {
    let _ = work();
}
