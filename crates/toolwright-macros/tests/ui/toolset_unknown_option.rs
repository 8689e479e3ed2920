use toolwright_core::toolset;

struct Db;

#[toolset(prefixed = "db_")]
impl Db {
    /// Does it.
    #[tool]
    fn work(&self) {}
}

fn main() {
    let _ = Db.into_tools();
}
