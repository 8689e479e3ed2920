use toolwright_core::toolset;

struct Db;

#[toolset]
impl Db {
    /// Does it.
    #[tool = "work"]
    fn work(&self) {}
}

fn main() {
    let _ = Db.into_tools();
}
