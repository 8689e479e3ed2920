use toolwright_core::{ToolContext, tool};

/// Does it.
#[tool]
async fn work(
    /// A value.
    x: &mut ToolContext,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
