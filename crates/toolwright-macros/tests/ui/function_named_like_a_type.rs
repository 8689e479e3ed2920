use toolwright_core::tool;

/// Does it.
#[tool]
async fn char() {}

fn main() {
    let _ = char();
}
