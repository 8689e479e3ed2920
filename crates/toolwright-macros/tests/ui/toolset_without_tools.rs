use toolwright_core::toolset;

struct Db;

#[toolset]
impl Db {
    fn work(&self) {}
}

fn main() {
    let _ = Db.work();
}
