use toolwright_core::tool;

/// Does it.
#[tool]
const fn work() {}

fn main() {
    let _ = work();
}
