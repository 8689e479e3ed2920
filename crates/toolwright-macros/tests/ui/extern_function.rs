use toolwright_core::tool;

/// Does it.
#[tool]
extern "C" fn work() {}

fn main() {
    let _ = work();
}
