use toolwright_core::toolset;

struct Db;

#[toolset]
impl Db {
    /// Does it.
    #[tool]
    fn work(&self) {}

    /// Does it too.
    #[tool(name = "work")]
    fn other(&self) {}
}

fn main() {
    let _ = Db.into_tools();
}
