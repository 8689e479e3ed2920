use toolwright_core::tool;

/// Does it.
#[tool]
struct Work;

fn main() {}
