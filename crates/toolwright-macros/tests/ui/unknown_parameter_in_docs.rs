use toolwright_core::tool;

/// Does it.
///
/// # Arguments
///
/// * `count` - How many.
/// * `coutn` - How many.
#[tool]
async fn work(count: i64) {
    let _ = count;
}

fn main() {
    let _ = work();
}
