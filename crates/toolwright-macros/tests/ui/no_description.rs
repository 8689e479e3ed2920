use toolwright_core::tool;

#[tool]
async fn work() {}

fn main() {
    let _ = work();
}
