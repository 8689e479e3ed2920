use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(
    /// A value.
    #[serde(flatten)]
    x: std::collections::BTreeMap<String, i64>,
) {
    let _ = x;
}

fn main() {
    let _ = work();
}
