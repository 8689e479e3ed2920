use toolwright_core::tool;

/// Does it.
#[tool]
unsafe fn work() {}

fn main() {
    let _ = work();
}
