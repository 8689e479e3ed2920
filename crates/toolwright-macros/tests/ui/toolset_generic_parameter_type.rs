use toolwright_core::toolset;

struct Shelf<T>(T);

#[toolset]
impl<T: Send + Sync + 'static> Shelf<T> {
    /// Does it.
    #[tool]
    fn work(
        &self,
        /// An item.
        item: T,
    ) {
        let _ = item;
    }
}

fn main() {
    let _ = Shelf(1).into_tools();
}
