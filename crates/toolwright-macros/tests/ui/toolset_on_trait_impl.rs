use toolwright_core::toolset;

struct Db;

#[toolset]
impl Clone for Db {
    /// Does it.
    #[tool]
    fn clone(&self) -> Self {
        Db
    }
}

fn main() {
    let _ = Db.clone();
}
