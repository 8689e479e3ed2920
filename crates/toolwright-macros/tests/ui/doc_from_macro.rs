use toolwright_core::tool;

#[doc = include_str!("no_description.rs")]
#[tool(description = "Does it.")]
async fn work() {}

fn main() {
    let _ = work();
}
