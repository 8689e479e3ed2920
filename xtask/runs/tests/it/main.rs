//! The vectors of flows, run by the program itself: the file tools among them start commands, which a program
//! must be prepared for and a test binary is not.

mod fuzz;

use std::path::Path;
use std::process::Command;

#[test]
fn flows_do_what_was_observed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO_BIN_EXE_xtask-runs"))
        .args(["vectors", "stmt", "testdata/stmt/llm_workers.json"])
        .current_dir(root)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    let passed: usize = told.lines().last().unwrap().split_once(" passed").unwrap().0.parse().unwrap();
    assert!(passed > 400, "{told}");
}
