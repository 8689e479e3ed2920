use toolwright_core::tool;

/// Does it.
#[tool]
async fn work()
where
    u8: Copy,
{
}

fn main() {
    let _ = work();
}
