use toolwright_core::tool;

#[tool]
async fn work(x: i64, y: &str) {
    let _ = (x, y);
}

fn main() {
    let _ = work();
}
