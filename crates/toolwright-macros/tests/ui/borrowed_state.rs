use toolwright_core::{State, tool};

/// Does it.
#[tool]
async fn work(
    /// A value.
    x: &State<u8>,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
