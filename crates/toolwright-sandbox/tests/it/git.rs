//! Repositories whose parts are elsewhere than in `.git`: what git on the host obeys stays as it is there
//! too. Git itself makes them, and is run on them afterwards.

use std::path::Path;
use std::process::Command;

use toolwright_core::{ExecRequest, Sandbox};
use toolwright_sandbox::{ProcessSandbox, SandboxPolicy};

use crate::support::{Case, check, equal, folder, text};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("SB-06::git_obeys_nothing_of_a_command_in_the_top_folder", repositories),
        Case::new("SB-06::a_repository_above_is_not_disturbed", above),
        Case::new("SB-06::a_program_of_settings_outside_is_protected_again", saved),
        Case::new("SB-06::a_program_that_became_a_link_is_protected_again", linked),
        Case::new("SB-06::placeholders_of_changes_on_the_host_are_gone_afterwards", changed),
    ]
}

/// Runs git as a person would, with nothing of the machine's own settings.
fn git(folder: &Path, words: &[&str]) -> Result<String, String> {
    let mut git = Command::new("git");
    git.args(["-c", "protocol.file.allow=always", "-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
    git.current_dir(folder).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", "/nonexistent");
    let output = git.output().map_err(|error| error.to_string())?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("git {words:?}: {told}"))
    }
}

/// How a repository is made, and what a command does to it: the plain way, and a way round where that is
/// closed.
const KINDS: [(&str, &str, &str); 11] = [
    (
        "a repository elsewhere",
        "git init -q --separate-git-dir=store .",
        "$evil >> store/config || { mv store x; cp -r x store; $evil >> store/config; }",
    ),
    (
        "a bare one beside",
        "git init -q --bare .bare; echo 'gitdir: ./.bare' > .git; git config core.bare false",
        "$evil >> .bare/config || { mv .bare x; cp -r x .bare; $evil >> .bare/config; }",
    ),
    (
        "a submodule",
        "$module; git submodule -q add ../module sm; git commit -qam a",
        "cp -r .git/modules/sm evil.git; sed -i /worktree/d evil.git/config; $evil >> evil.git/config; \
         echo 'gitdir: ../evil.git' > sm/.git || { mv sm x; mkdir sm; echo 'gitdir: ../evil.git' > sm/.git; }",
    ),
    (
        "a submodule within another",
        "$module; git init -q ../outer; (cd ../outer; git submodule -q add ../module in; git commit -qam a); \
         git submodule -q add ../outer d/sm; git commit -qam a; git submodule -q update --init --recursive; \
         git update-index --index-version 4",
        "cp -r .git/modules/d/sm/modules/in evil.git; sed -i /worktree/d evil.git/config; $evil >> evil.git/config; \
         echo 'gitdir: ../../../evil.git' > d/sm/in/.git || { mv d x; cp -r x d; rm -rf d/sm/in/.git; \
         mv evil.git d/sm/in/.git; }",
    ),
    (
        "a submodule that is not there yet",
        "$module; git submodule -q add ../module sm; git commit -qam a; git submodule -q deinit -f sm; \
         git update-index --split-index",
        "cp -r .git/modules/sm evil.git; sed -i /worktree/d evil.git/config; $evil >> evil.git/config; \
         echo 'gitdir: ../evil.git' > sm/.git || { mkdir sm; mv evil.git sm/.git; }",
    ),
    (
        "hooks elsewhere",
        "git init -q .; mkdir .husky; git config core.hooksPath .husky/_",
        "echo 'touch $mark' > hook; chmod +x hook; cp hook .husky/pre-commit || { mv .husky x; mkdir -p .husky; }; \
         mkdir .husky/_; cp hook .husky/_/pre-commit",
    ),
    (
        "settings elsewhere",
        "git init -q .; mkdir conf; echo > conf/git; git config include.path ../conf/git",
        "$evil >> conf/git || { mv conf x; mkdir conf; $evil > conf/git; }",
    ),
    (
        "a program that settings name",
        "git init -q .; mkdir tools; echo false > tools/watch; chmod +x tools/watch; git config core.fsmonitor tools/watch",
        "echo 'touch $mark' > t; chmod +x t; cp t tools/watch || { mv tools x; mkdir tools; cp t tools/watch; }",
    ),
    (
        "a program that is a link",
        "git init -q .; mkdir -p v/bin lib; echo false > lib/x; chmod +x lib/x; ln -s ../../lib/x v/bin/x; \
         git config core.fsmonitor v/bin/x",
        "echo 'touch $mark' > t; chmod +x t; cp t lib/x; cp -f --remove-destination t v/bin/x || mv v/bin y || mv v y; \
         mkdir -p v/bin; cp t v/bin/x",
    ),
    (
        "a filter without a dot, and an alias that names no program",
        "git init -q .; echo '* filter=f' > .gitattributes; git config filter.f.clean 'tools/clean %f'; \
         git config alias.all '!cd ./ && rm -rf ./dist ./*.o && git diff mine'",
        "mkdir dist; echo 'touch $mark; cat' > t; chmod +x t; mkdir tools; cp t tools/clean; rmdir dist || rm mine",
    ),
    (
        "a filter that is not there yet",
        "git init -q .; mkdir tools; echo '* filter=f' > .gitattributes; git config filter.f.clean \"sh './tools/clean' %f\"",
        "echo 'touch $mark; cat' > t; cp t tools/clean || { mv tools x; mkdir tools; cp t tools/clean; }",
    ),
];

async fn repositories() -> Result<(), String> {
    if git(Path::new("/"), &["--version"]).is_err() {
        println!("skipped: there is no git here");
        return Ok(());
    }
    let mut ran = Vec::new();
    for (kind, make, attack) in KINDS {
        let root = folder("git");
        let work = root.join("work");
        std::fs::create_dir(&work).map_err(|error| error.to_string())?;
        let module = "git init -q .; git init -q ../module; (cd ../module; git commit -q --allow-empty -m a)";
        let settings = "export GIT_CONFIG_NOSYSTEM=1 HOME=/nonexistent GIT_CONFIG_COUNT=3 \
                        GIT_CONFIG_KEY_0=protocol.file.allow GIT_CONFIG_VALUE_0=always GIT_CONFIG_KEY_1=user.name \
                        GIT_CONFIG_VALUE_1=a GIT_CONFIG_KEY_2=user.email GIT_CONFIG_VALUE_2=a@b; set -e; ";
        let script = format!("{settings}{}", make.replace("$module", module));
        let made = Command::new("sh").args(["-c", &script]).current_dir(&work).output();
        let made = made.map_err(|error| error.to_string())?;
        check(&format!("{kind}: {}", String::from_utf8_lossy(&made.stderr)), made.status.success())?;

        let sandbox = ProcessSandbox::open(SandboxPolicy::for_workspace(&work)).await.map_err(text)?;
        let mark = root.join("ran");
        let evil = format!("printf '[core]\\n\\tfsmonitor = \"touch {}; false\"\\n'", mark.display());
        let attack = attack.replace("$mark", &mark.display().to_string()).replace("$evil", &evil);
        let attack = format!("echo mine > mine; {attack}");
        sandbox.exec(ExecRequest::new(["sh", "-c", &attack])).await.map_err(text)?;
        drop(sandbox);
        toolwright_sandbox::sandboxes_ended().await;
        check("other files can be written", work.join("mine").exists())?;
        let _ = git(&work, &["status"]);
        let _ = git(&work, &["add", "mine"]);
        let _ = git(&work, &["commit", "--allow-empty", "-m", "x"]);
        ran.extend(mark.exists().then_some(kind));
        let _ = std::fs::remove_dir_all(root);
    }
    // Git ran what a command had left there.
    equal(ran, Vec::new())
}

/// In a folder of a repository, revisions can be named as ever while a sandbox is open there.
async fn above() -> Result<(), String> {
    if git(Path::new("/"), &["--version"]).is_err() {
        println!("skipped: there is no git here");
        return Ok(());
    }
    let root = folder("above");
    let work = root.join("part");
    std::fs::create_dir(&work).map_err(|error| error.to_string())?;
    git(&root, &["init", "-q"])?;
    git(&root, &["commit", "-q", "--allow-empty", "-m", "first"])?;
    let sandbox = ProcessSandbox::open(SandboxPolicy::for_workspace(&work)).await.map_err(text)?;
    let told = git(&work, &["log", "--format=%s", "HEAD"]);
    drop(sandbox);
    toolwright_sandbox::sandboxes_ended().await;
    let _ = std::fs::remove_dir_all(root);
    equal(told?.as_str(), "first\n")
}

/// Somebody works on a program that is named by settings which no command can see, as those of a home folder.
async fn saved() -> Result<(), String> {
    if git(Path::new("/"), &["--version"]).is_err() {
        println!("skipped: there is no git here");
        return Ok(());
    }
    let root = folder("saved");
    let (work, wrong) = (root.join("work"), |error: std::io::Error| error.to_string());
    std::fs::create_dir_all(work.join("tools")).map_err(wrong)?;
    std::fs::write(root.join("settings"), "[alias]\n\tdo = !./tools/do\n\tnew = !./tools/new\n")
        .map_err(wrong)?;
    std::fs::write(work.join("tools/do"), "first").map_err(wrong)?;
    git(&work, &["init", "-q"])?;
    git(&work, &["config", "include.path", "../../settings"])?;
    let sandbox = ProcessSandbox::open(SandboxPolicy::for_workspace(&work)).await.map_err(text)?;
    let script = "cd tools; for f in do new; do (echo evil > $f) 2>/dev/null && echo wrote $f; \
                  mv $f away 2>/dev/null && echo moved $f; done; echo done";
    let attack = || sandbox.exec(ExecRequest::new(["sh", "-c", script]));
    equal(attack().await.map_err(text)?.stdout.as_str(), "done\n")?;
    std::fs::write(work.join("saved"), "second").map_err(wrong)?;
    std::fs::rename(work.join("saved"), work.join("tools/do")).map_err(wrong)?;
    equal(attack().await.map_err(text)?.stdout.as_str(), "done\n")?;
    std::fs::remove_dir_all(work.join("tools")).map_err(wrong)?;
    let none = sandbox.exec(ExecRequest::new(["sh", "-c", "mkdir -p tools; touch tools/do || echo done"]));
    equal(none.await.map_err(text)?.stdout.as_str(), "done\n")?;
    drop(sandbox);
    toolwright_sandbox::sandboxes_ended().await;
    check("a placeholder is left", !work.join("tools").exists())?;
    std::fs::remove_dir_all(root).map_err(wrong)
}

/// Somebody moves a program that settings name, and puts a link in its place.
async fn linked() -> Result<(), String> {
    if git(Path::new("/"), &["--version"]).is_err() {
        println!("skipped: there is no git here");
        return Ok(());
    }
    let root = folder("linked");
    let (work, wrong) = (root.join("work"), |error: std::io::Error| error.to_string());
    std::fs::create_dir_all(work.join("tools")).map_err(wrong)?;
    std::fs::create_dir_all(work.join("lib")).map_err(wrong)?;
    std::fs::write(root.join("settings"), "[alias]\n\tdo = !./tools/do\n").map_err(wrong)?;
    std::fs::write(work.join("tools/do"), "first").map_err(wrong)?;
    git(&work, &["init", "-q"])?;
    git(&work, &["config", "include.path", "../../settings"])?;
    let sandbox = ProcessSandbox::open(SandboxPolicy::for_workspace(&work)).await.map_err(text)?;
    std::fs::rename(work.join("tools/do"), work.join("lib/do")).map_err(wrong)?;
    std::os::unix::fs::symlink("../lib/do", work.join("tools/do")).map_err(wrong)?;
    let script = "exec 2>/dev/null; (echo evil > lib/do) && echo wrote; rm -f tools/do && echo removed; \
                  mv tools away && echo moved; touch lib/other && echo done";
    let told = sandbox.exec(ExecRequest::new(["sh", "-c", script])).await.map_err(text)?;
    equal(told.stdout.as_str(), "done\n")?;
    drop(sandbox);
    toolwright_sandbox::sandboxes_ended().await;
    std::fs::remove_dir_all(root).map_err(wrong)
}

/// What is protected only since somebody took the repository away, or made another, is not left behind; and
/// what a command says in its own home folder is not protected.
async fn changed() -> Result<(), String> {
    if git(Path::new("/"), &["--version"]).is_err() {
        println!("skipped: there is no git here");
        return Ok(());
    }
    let wrong = |error: std::io::Error| error.to_string();
    for again in [false, true] {
        let work = folder("changed");
        git(&work, &["init", "-q"])?;
        let sandbox = ProcessSandbox::open(SandboxPolicy::for_workspace(&work)).await.map_err(text)?;
        let run = |script: &str| sandbox.exec(ExecRequest::new(["sh", "-c", script]));
        run("printf '[alias]\n\tx = !./left\n' > ~/.gitconfig").await.map_err(text)?;
        std::fs::remove_dir_all(work.join(".git")).map_err(wrong)?;
        run("true").await.map_err(text)?;
        check("a folder that is not a repository is kept from becoming one", work.join("refs").exists())?;
        if again {
            std::fs::remove_dir(work.join(".git")).map_err(wrong)?;
            git(&work, &["init", "-q"])?;
            run("true").await.map_err(text)?;
            check("a command's own settings are obeyed", !work.join("left").exists())?;
        }
        drop(sandbox);
        toolwright_sandbox::sandboxes_ended().await;
        if again {
            std::fs::remove_dir_all(work.join(".git")).map_err(wrong)?;
        }
        let left = std::fs::read_dir(&work).map_err(wrong)?.flatten().map(|entry| entry.file_name());
        equal(left.collect::<Vec<_>>(), Vec::new())?;
        std::fs::remove_dir_all(work).map_err(wrong)?;
    }
    Ok(())
}
