use toolwright_core::toolset;

struct Db;

#[toolset]
impl Db {
    #[tool]
    fn work(&self, x: i64) {
        let _ = x;
    }
}

fn main() {
    let _ = Db.into_tools();
}
