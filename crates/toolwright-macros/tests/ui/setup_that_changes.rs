use toolwright_core::tool;

/// Does it.
#[tool]
async fn work(#[tool(setup)] list: &mut Vec<String>) -> usize {
    list.len()
}

fn main() {
    let _ = work(&mut Vec::new());
}
