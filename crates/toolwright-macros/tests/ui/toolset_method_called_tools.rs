use toolwright_core::toolset;

struct Db;

#[toolset]
impl Db {
    /// Does it.
    #[tool]
    fn tools(&self) {}
}

fn main() {
    let _ = Db.tools();
}
