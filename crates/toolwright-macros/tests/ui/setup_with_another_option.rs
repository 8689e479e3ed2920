use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(#[tool(setup, min = 1)] size: u32) -> u32 {
    size
}

fn main() {
    let _ = work(1);
}
