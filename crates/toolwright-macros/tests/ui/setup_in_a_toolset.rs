use toolwright_core::toolset;

struct Db;

#[toolset]
impl Db {
    /// Does it.
    #[tool]
    async fn work(&self, #[tool(setup)] table: String) -> String {
        table
    }
}

fn main() {
    let _ = Db.into_tools();
}
