use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A value.
    #[tool(default = 1)]
    x: String,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
