use toolwright_core::tool;

/// Does it.
#[tool]
async fn work() {
    let shared = std::rc::Rc::new(1);
    std::future::ready(()).await;
    drop(shared);
}

fn main() {
    let _ = work();
}
