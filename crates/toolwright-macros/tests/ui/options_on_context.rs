use toolwright_core::{ToolContext, tool};

/// Does it.
#[tool]
async fn work(#[tool(default)] ctx: &ToolContext) {
    let _ = ctx;
}

fn main() {
    let _ = work();
}
