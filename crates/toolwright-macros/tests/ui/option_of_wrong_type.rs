use toolwright_core::tool;

/// Does it.
#[tool(name = 5, title, parallel = "yes", viewer = 5, category = "", description)]
async fn work() {}

fn main() {
    let _ = work();
}
