use toolwright_core::toolset;

struct Db(std::rc::Rc<i64>);

#[toolset]
impl Db {
    /// Does it.
    #[tool]
    fn work(&self) {}
}

fn main() {
    let _ = Db(std::rc::Rc::new(1));
}
