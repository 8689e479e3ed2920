use toolwright_core::toolset;

struct Db;

#[toolset(prefix = "my db ")]
impl Db {
    /// Does it.
    #[tool]
    fn work(&self) {}
}

fn main() {
    let _ = Db.into_tools();
}
