use toolwright_core::tool;

/// # Returns
///
/// Nothing.
#[tool]
async fn work() {}

fn main() {
    let _ = work();
}
