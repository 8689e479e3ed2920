use toolwright_core::tool;

/// Does it.
#[tool]
async fn größe() {}

fn main() {
    let _ = größe();
}
