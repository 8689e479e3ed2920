use toolwright_core::tool;

struct Db;

impl Db {
    /// Does it.
    #[tool]
    async fn work() {}
}

fn main() {
    let _ = Db;
}
