use toolwright_core::toolset;

struct Db;

#[toolset]
impl Db {
    /// Does it.
    #[tool]
    async fn work(self) {}
}

fn main() {
    let _ = Db.into_tools();
}
