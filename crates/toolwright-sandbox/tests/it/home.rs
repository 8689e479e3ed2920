//! What is secret in a home folder, and what is obeyed there. Every case runs in a process that has a home of
//! its own.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use toolwright_core::{ErrorKind, ExecRequest, Sandbox};
use toolwright_sandbox::{MASKED, PROTECTED, ProcessSandbox, SandboxPolicy};

use crate::support::{Case, check, equal, exe, folder, text};

const SECRET: &str = "canary-of-home";

pub(crate) fn cases() -> Vec<Case> {
    [
        "SB-02::secrets_of_a_home_folder_are_absent",
        "SB-02::a_secret_that_is_named_is_shown",
        "SB-02::secrets_that_come_later_are_absent_too",
        "SB-02::what_a_link_leads_to_is_absent",
        "PI-08::what_is_obeyed_in_a_home_folder_cannot_be_made",
    ]
    .into_iter()
    .map(|name| Case::new(name, move || async move { at_home(name) }))
    .collect()
}

/// Runs a case with a home folder that is made for it.
fn at_home(name: &str) -> Result<(), String> {
    let home = folder("home");
    let mut command = Command::new(exe());
    command.args(["home", name]).env("HOME", &home);
    for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
        command.env_remove(name);
    }
    if name.ends_with("later_are_absent_too") {
        command.env("XDG_CONFIG_HOME", home.join("settings"));
    }
    let output = command.output().map_err(|error| error.to_string())?;
    let _ = std::fs::remove_dir_all(&home);
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

pub(crate) async fn main(name: &str) -> Result<(), String> {
    let home = PathBuf::from(std::env::var("HOME").map_err(|error| error.to_string())?);
    match name.split_once("::").map_or(name, |(_, rest)| rest) {
        "secrets_of_a_home_folder_are_absent" => secrets(&home).await,
        "a_secret_that_is_named_is_shown" => named(&home).await,
        "secrets_that_come_later_are_absent_too" => later(&home).await,
        "what_a_link_leads_to_is_absent" => links(&home).await,
        "what_is_obeyed_in_a_home_folder_cannot_be_made" => obeyed(&home).await,
        other => Err(format!("no case `{other}`")),
    }
}

/// The places of a home folder in a list.
fn of_home(list: &[&'static str]) -> Vec<&'static str> {
    list.iter().filter_map(|path| path.strip_prefix("~/")).collect()
}

fn put(path: &Path, contents: &str) -> Result<(), String> {
    let above = path.parent().unwrap_or(path);
    std::fs::create_dir_all(above)
        .and_then(|()| std::fs::write(path, contents))
        .map_err(|error| error.to_string())
}

/// What of the secret is found below a folder.
async fn leaks(sandbox: &ProcessSandbox, below: &Path) -> Result<String, String> {
    let below = below.display().to_string();
    let find = ExecRequest::new(["grep", "-rls", SECRET, &below]);
    Ok(sandbox.exec(find).await.map_err(text)?.stdout)
}

async fn secrets(home: &Path) -> Result<(), String> {
    for (at, path) in of_home(&MASKED).into_iter().enumerate() {
        // As files and as folders with a file in them.
        let deep = home.join(path).join("deep/file");
        if at % 2 == 0 { put(&deep, SECRET)? } else { put(&home.join(path), SECRET)? }
    }
    put(&home.join("project/README"), SECRET)?;
    let project = home.join("project");
    let mut read = SandboxPolicy::for_workspace(&project);
    read.read.push(home.to_owned());
    let mut written = SandboxPolicy::private();
    written.write.push(home.to_owned());
    let looked = SandboxPolicy { read_only: true, ..SandboxPolicy::for_workspace(home) };
    for policy in [SandboxPolicy::for_workspace(home), looked, read, written] {
        let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
        equal(leaks(&sandbox, home).await?.as_str(), &format!("{}/project/README\n", home.display()))?;
        for path in
            [".ssh/id_rsa", ".ssh", ".aws/credentials", ".netrc", ".local/share/toolwright/mcp-tokens.json"]
        {
            let path = home.join(path).display().to_string();
            check(&path, sandbox.read_file(&path).await.is_err())?;
            let _ = sandbox.write_file(&path, b"x").await;
        }
        equal(leaks(&sandbox, home).await?.as_str(), &format!("{}/project/README\n", home.display()))?;
    }
    Ok(())
}

async fn named(home: &Path) -> Result<(), String> {
    for path in [".ssh/id_ed25519", ".ssh/known_hosts", ".ssh/more/known", ".ssh/more/key", ".aws/config"] {
        put(&home.join(path), SECRET)?;
    }
    let mut policy = SandboxPolicy::private();
    policy.read = [".", ".aws", ".ssh/known_hosts", ".ssh/more/known"].map(|path| home.join(path)).to_vec();
    policy.read[0] = home.to_owned();
    let found = leaks(&ProcessSandbox::open(policy).await.map_err(text)?, home).await?;
    let mut found: Vec<&str> = found.lines().filter_map(|line| line.rsplit_once("/.")?.1.into()).collect();
    found.sort_unstable();
    equal(found, vec!["aws/config", "ssh/known_hosts", "ssh/more/known"])?;
    // A list of its own takes the place of the other.
    let policy = SandboxPolicy { mask: vec!["~/.aws".into()], ..SandboxPolicy::for_workspace(home) };
    let found = leaks(&ProcessSandbox::open(policy).await.map_err(text)?, home).await?;
    equal(found.lines().count(), 4)
}

async fn later(home: &Path) -> Result<(), String> {
    put(&home.join("settings/gh/hosts.yml"), SECRET)?;
    let sandbox = ProcessSandbox::open(SandboxPolicy::for_workspace(home)).await.map_err(text)?;
    for path in [".aws/credentials", ".netrc", "settings/gcloud/key"] {
        check(path, !home.join(path).exists())?;
        put(&home.join(path), SECRET)?;
    }
    equal(leaks(&sandbox, home).await?.as_str(), "")
}

async fn links(home: &Path) -> Result<(), String> {
    put(&home.join("dotfiles/aws/credentials"), SECRET)?;
    symlink("dotfiles/aws", home.join(".aws")).map_err(|error| error.to_string())?;
    symlink("/nonexistent", home.join(".kube")).map_err(|error| error.to_string())?;
    let mut policy = SandboxPolicy::private();
    policy.read.push(home.to_owned());
    equal(leaks(&ProcessSandbox::open(policy).await.map_err(text)?, home).await?.as_str(), "")?;
    // A command could make the link lead elsewhere, and the next sandbox would show what it led to.
    let error =
        ProcessSandbox::open(SandboxPolicy::for_workspace(home)).await.expect_err("the link can be changed");
    equal(error.kind(), ErrorKind::SandboxUnavailable)?;
    check(error.message(), error.message().contains(".aws"))?;
    let mut policy = SandboxPolicy::for_workspace(home);
    policy.read.push(home.join(".aws"));
    equal(leaks(&ProcessSandbox::open(policy).await.map_err(text)?, home).await?.lines().count(), 1)
}

async fn obeyed(home: &Path) -> Result<(), String> {
    put(&home.join(".config/git/config"), "[user]\n")?;
    let sandbox = ProcessSandbox::open(SandboxPolicy::for_workspace(home)).await.map_err(text)?;
    for path in of_home(&PROTECTED) {
        let path = if path.ends_with('/') { format!("{path}deep/file") } else { path.to_owned() };
        let script = format!("mkdir -p \"$(dirname '{path}')\"; echo x > '{path}'; mv .config away");
        sandbox.exec(ExecRequest::new(["sh", "-c", &script])).await.map_err(text)?;
        let error = sandbox.write_file(&path, b"x").await.expect_err("it is protected");
        check(&format!("{path}: {error:?}"), error.message().contains("is protected"))?;
        let written = std::fs::read_to_string(home.join(&path)).unwrap_or_default();
        check(&path, written.is_empty())?;
    }
    let config = std::fs::read_to_string(home.join(".config/git/config")).unwrap_or_default();
    drop(sandbox);
    toolwright_sandbox::sandboxes_ended().await;
    equal(config.as_str(), "[user]\n")?;
    // Elsewhere the same names are nobody's business.
    let project = home.join("project");
    std::fs::create_dir(&project).map_err(|error| error.to_string())?;
    let sandbox = ProcessSandbox::open(SandboxPolicy::for_workspace(&project)).await.map_err(text)?;
    sandbox.write_file(".config/git/config", b"x").await.map_err(text)?;
    drop(sandbox);
    toolwright_sandbox::sandboxes_ended().await;
    let left = std::fs::read_dir(home).map_err(|error| error.to_string())?;
    let mut left: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
    left.sort();
    equal(left, vec![".config".into(), "project".into()])
}
