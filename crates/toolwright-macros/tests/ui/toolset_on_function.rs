use toolwright_core::toolset;

#[toolset]
fn work() {}

fn main() {
    work();
}
