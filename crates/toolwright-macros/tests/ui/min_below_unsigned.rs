use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A value.
    #[tool(min = -1)]
    x: u32,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
