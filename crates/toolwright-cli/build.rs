//! Tells the program what it was built from. Without a repository, as in a package, the commit is left out.

use std::process::Command;

fn main() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|text| !text.is_empty())
    };
    let commit = git(&["rev-parse", "--short=10", "HEAD"]).unwrap_or_else(|| "no commit".to_owned());
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    println!("cargo::rustc-env=TOOLWRIGHT_COMMIT={commit}");
    println!("cargo::rustc-env=TOOLWRIGHT_TARGET={}", variable("TARGET"));
    println!("cargo::rustc-env=TOOLWRIGHT_PROFILE={}", variable("PROFILE"));
    println!("cargo::rerun-if-changed=build.rs");
    // The log of HEAD grows with every commit; HEAD itself may only name a branch.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) =
            git(&["rev-parse", "--git-path", name]).filter(|path| std::path::Path::new(path).exists())
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
