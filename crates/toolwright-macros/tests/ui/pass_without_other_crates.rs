//! A user needs neither serde nor schemars for plain parameters; the attribute also works by its path.

/// Does it.
#[toolwright_core::tool]
pub async fn work(
    /// A list.
    list: Vec<Option<String>>,
    /// A map.
    #[tool(default)]
    map: std::collections::BTreeMap<String, f64>,
) -> usize {
    list.len() + map.len()
}

/// A type with tools.
pub struct Db;

#[toolwright_core::toolset]
impl Db {
    /// Does it.
    #[toolwright_core::tool]
    pub async fn work(&self) {}
}

fn main() {
    let _ = (work(), Db.into_tools());
}
