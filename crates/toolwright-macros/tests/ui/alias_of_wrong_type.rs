use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A number.
    #[tool(alias("n", 5))]
    number: u32,
) -> u32 {
    number
}

fn main() {
    let _ = work();
}
