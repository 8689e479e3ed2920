use toolwright_core::tool;

struct Db;

impl Db {
    /// Does it.
    #[tool]
    async fn work(&self) {}
}

fn main() {
    let _ = Db.work();
}
