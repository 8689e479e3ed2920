//! Changes that are staged: the folder outside changes by a commit alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use toolwright_core::{ChangeKind, ErrorKind, ExecRequest, KeepReason, Sandbox, SpawnRequest};
use toolwright_sandbox::{Changes, ProcessSandbox, SandboxPolicy};

use crate::support::{Case, check, equal, folder, text, wait_until};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("changes::a_call_is_committed_at_its_end", committed),
        Case::new("changes::nothing_is_added_to_the_folder", no_litter),
        Case::new("changes::discarded_changes_are_gone", discarded),
        Case::new("changes::protected_names_are_not_committed", protected),
        Case::new("changes::git_data_is_committed_and_its_settings_are_not", git_data),
        Case::new("changes::what_changed_outside_is_not_overwritten", conflict),
        Case::new("changes::two_calls_at_once_do_not_overwrite_each_other", two_calls),
        Case::new("changes::a_call_that_is_given_up_changes_nothing", given_up),
        Case::new("changes::a_process_is_committed_when_asked_and_at_its_end", process),
        Case::new("changes::files_are_written_through_a_commit", files),
        Case::new("changes::the_layers_are_the_same", layers),
        Case::new("changes::folders_within_folders_keep_their_rights", nested),
        Case::new("changes::a_command_finds_no_other_way_to_the_folder", no_way_round),
        Case::new("changes::undo_restores_the_folder", undone),
        Case::new("changes::a_runtime_that_is_killed_leaves_the_folder_as_it_was", killed),
    ]
}

fn policy(folder: &Path) -> SandboxPolicy {
    SandboxPolicy { changes: Changes::Commit, ..SandboxPolicy::for_workspace(folder) }
}

fn shell(script: &str) -> ExecRequest {
    ExecRequest::new(["sh", "-c", script])
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().display().to_string()).collect();
    names.sort();
    names
}

fn read(path: PathBuf) -> Result<String, String> {
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: PathBuf, contents: &str) -> Result<(), String> {
    fs::create_dir_all(path.parent().ok_or("no parent")?).map_err(|error| error.to_string())?;
    fs::write(path, contents).map_err(|error| error.to_string())
}

async fn committed() -> Result<(), String> {
    let work = folder("changes");
    write(work.join("a"), "1\n")?;
    write(work.join("b"), "2\n")?;
    write(work.join("d/e"), "third\n")?;
    let sandbox = ProcessSandbox::open(policy(&work)).await.map_err(text)?;
    let script = "echo more >> a; rm b; mkdir -p new/deep; echo x > new/deep/f; mv d/e moved; rmdir d; ln -s a l; cat a";
    let result = sandbox.exec(shell(script)).await.map_err(text)?;
    equal((result.code, result.stdout.as_str(), result.stderr.as_str()), (0, "1\nmore\n", ""))?;
    let effect = result.effect.ok_or("no effect")?;
    let prefix = format!("{}/", work.display());
    let mut got: Vec<(String, ChangeKind)> =
        effect.files.iter().map(|one| (one.path.replace(&prefix, ""), one.change)).collect();
    got.sort();
    use ChangeKind::{Added, Changed, Moved, Removed};
    let want = [
        ("a", Changed),
        ("b", Removed),
        ("d/", Removed),
        ("l", Added),
        ("moved", Moved),
        ("new/", Added),
        ("new/deep/", Added),
        ("new/deep/f", Added),
    ];
    equal(got, want.map(|(path, change)| (path.to_owned(), change)).to_vec())?;
    equal(names(&work), ["a", "l", "moved", "new"].map(str::to_owned).to_vec())?;
    equal(read(work.join("a"))?, "1\nmore\n".to_owned())?;
    // The next call goes on from there, in the same sandbox.
    let result = sandbox.exec(shell("cat moved new/deep/f; echo again >> a")).await.map_err(text)?;
    equal(result.stdout.as_str(), "third\nx\n")?;
    equal(read(work.join("a"))?, "1\nmore\nagain\n".to_owned())?;
    let quiet = sandbox.exec(shell("cat a >/dev/null; touch /tmp/x")).await.map_err(text)?;
    check("an empty effect", quiet.effect.is_some_and(|effect| effect.is_empty()))?;
    drop(sandbox);
    let _ = fs::remove_dir_all(work);
    Ok(())
}

async fn no_litter() -> Result<(), String> {
    let work = folder("changes");
    for name in ["a", "b", "c", "d"] {
        write(work.join(name), "")?;
    }
    let before = names(&work);
    let sandbox = ProcessSandbox::open(policy(&work)).await.map_err(text)?;
    let result = sandbox.exec(shell("ls -A")).await.map_err(text)?;
    let seen: Vec<String> = result.stdout.lines().map(str::to_owned).collect();
    equal(seen, before.clone())?;
    equal(names(&work), before.clone())?;
    let mut sleeper = sandbox.spawn(SpawnRequest::piped(shell("ls -A; sleep 30"))).await.map_err(text)?;
    let mut lines = BufReader::new(sleeper.stdout.take().ok_or("no output")?).lines();
    let first = lines.next_line().await.map_err(|error| error.to_string())?;
    equal(first, Some("a".to_owned()))?;
    equal(names(&work), before.clone())?;
    drop((sleeper, sandbox));
    equal(names(&work), before)?;
    let _ = fs::remove_dir_all(work);
    Ok(())
}

async fn discarded() -> Result<(), String> {
    let work = folder("changes");
    write(work.join("a"), "1")?;
    let policy = SandboxPolicy { changes: Changes::Discard, ..policy(&work) };
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let result = sandbox.exec(shell("echo 2 > a; echo x > b; cat a b")).await.map_err(text)?;
    equal(result.stdout.as_str(), "2\nx\n")?;
    let effect = result.effect.ok_or("no effect")?;
    equal((effect.files.len(), effect.commits.len()), (2, 0))?;
    let next = sandbox.exec(shell("cat a; ls")).await.map_err(text)?;
    equal(next.stdout.as_str(), "1a\n")?;
    equal((names(&work), read(work.join("a"))?), (vec!["a".to_owned()], "1".to_owned()))?;
    let _ = fs::remove_dir_all(work);
    Ok(())
}

async fn protected() -> Result<(), String> {
    let work = folder("changes");
    write(work.join("sub/keep"), "")?;
    write(work.join(".mcp.json"), "{}")?;
    let sandbox = ProcessSandbox::open(policy(&work)).await.map_err(text)?;
    let script = "echo x > .mcp.json; echo x > sub/.envrc; mkdir -p .vscode; echo x > .vscode/tasks.json; \
                  echo x > toolwright.yaml; git init -q sub 2>/dev/null || mkdir -p sub/.git; echo x > fine";
    let result = sandbox.exec(shell(script)).await.map_err(text)?;
    let effect = result.effect.ok_or("no effect")?;
    let prefix = format!("{}/", work.display());
    let mut kept: Vec<String> = effect.kept_back.iter().map(|one| one.path.replace(&prefix, "")).collect();
    kept.sort();
    equal(
        kept,
        [".mcp.json", ".vscode", "sub/.envrc", "sub/.git", "toolwright.yaml"].map(str::to_owned).to_vec(),
    )?;
    check("all are protected", effect.kept_back.iter().all(|one| one.reason == KeepReason::Protected))?;
    for name in [".mcp.json", "sub/.envrc"] {
        check(&result.stderr, result.stderr.contains(name))?;
    }
    equal(names(&work), [".mcp.json", "fine", "sub"].map(str::to_owned).to_vec())?;
    equal(
        (read(work.join(".mcp.json"))?, names(&work.join("sub"))),
        ("{}".to_owned(), vec!["keep".to_owned()]),
    )?;
    let error = sandbox.write_file("sub/.envrc", b"x").await.err().ok_or("it was written")?;
    equal(error.kind(), ErrorKind::Permission)?;
    let _ = fs::remove_dir_all(work);
    Ok(())
}

async fn git_data() -> Result<(), String> {
    let work = folder("changes");
    let git = |words: &[&str]| {
        let output = std::process::Command::new("git")
            .args(["-c", "user.name=t", "-c", "user.email=t@example.com"])
            .args(words)
            .current_dir(&work)
            .env("HOME", &work)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .map_err(|error| error.to_string())?;
        Ok::<_, String>(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    git(&["init", "-q", "-b", "main"])?;
    write(work.join("a"), "1\n")?;
    git(&["add", "a"])?;
    git(&["commit", "-q", "-m", "one"])?;
    let config = read(work.join(".git/config"))?;
    let sandbox = ProcessSandbox::open(policy(&work)).await.map_err(text)?;
    let script = "echo 2 >> a; export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.com GIT_COMMITTER_NAME=t \
                  GIT_COMMITTER_EMAIL=t@example.com; git add a && git commit -q -m two; \
                  git config core.fsmonitor ./evil; mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout";
    let result = sandbox.exec(shell(script)).await.map_err(text)?;
    let log = git(&["log", "--format=%s"])?;
    check(&format!("{log:?} {}", result.stderr), log == "two\none\n")?;
    equal(git(&["status", "--porcelain"])?, String::new())?;
    equal(read(work.join(".git/config"))?, config)?;
    check("no hook", !work.join(".git/hooks/post-checkout").exists())?;
    for script in ["rm -rf .git", "rm -rf .git/objects", "rm -rf .git && git init -q", "mv .git other"] {
        let result = sandbox.exec(shell(script)).await.map_err(text)?;
        equal((script, git(&["log", "--format=%s"])?.as_str()), (script, "two\none\n"))?;
        check(&format!("{script} {}", result.stderr), result.stderr.contains("protected"))?;
    }
    let _ = fs::remove_dir_all(work);
    Ok(())
}

async fn conflict() -> Result<(), String> {
    let work = folder("changes");
    write(work.join("a"), "1\n")?;
    write(work.join("b"), "1\n")?;
    let sandbox = ProcessSandbox::open(policy(&work)).await.map_err(text)?;
    let running = sandbox.exec(shell("echo x >> a; echo x >> b; sleep 1"));
    let saved = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        write(work.join("a"), "saved by an editor\n")
    };
    let (result, saved) = tokio::join!(running, saved);
    saved?;
    let effect = result.map_err(text)?.effect.ok_or("no effect")?;
    let kept: Vec<_> = effect.kept_back.iter().map(|one| (one.path.as_str(), one.reason)).collect();
    equal(kept, vec![(work.join("a").display().to_string().as_str(), KeepReason::Conflict)])?;
    equal((read(work.join("a"))?, read(work.join("b"))?), ("saved by an editor\n".into(), "1\nx\n".into()))?;
    let _ = fs::remove_dir_all(work);
    Ok(())
}

async fn two_calls() -> Result<(), String> {
    let work = folder("changes");
    write(work.join("a"), "")?;
    let sandbox = ProcessSandbox::open(policy(&work)).await.map_err(text)?;
    let one = sandbox.exec(shell("echo one >> a; echo x > one; sleep 0.5"));
    let two = sandbox.exec(shell("sleep 0.2; echo two >> a; echo x > two; sleep 0.8"));
    let (one, two) = tokio::join!(one, two);
    let (one, two) = (one.map_err(text)?, two.map_err(text)?);
    equal(one.effect.map(|effect| effect.kept_back.len()), Some(0))?;
    equal(two.effect.map(|effect| effect.kept_back.len()), Some(1))?;
    equal(read(work.join("a"))?, "one\n".to_owned())?;
    equal(names(&work), ["a", "one", "two"].map(str::to_owned).to_vec())?;
    let _ = fs::remove_dir_all(work);
    Ok(())
}

async fn given_up() -> Result<(), String> {
    let work = folder("changes");
    let sandbox = ProcessSandbox::open(policy(&work)).await.map_err(text)?;
    let call = sandbox.exec(shell("echo x > a; sleep 30"));
    check("it ended", tokio::time::timeout(Duration::from_millis(500), call).await.is_err())?;
    let next = sandbox.exec(shell("ls -A")).await.map_err(text)?;
    equal((next.stdout.as_str(), names(&work)), ("", Vec::new()))?;
    // One that was stopped by its own time limit did what it did.
    let request = shell("echo x > b; sleep 30").timeout(Duration::from_millis(500));
    let error = sandbox.exec(request).await.err().ok_or("it ended")?;
    equal((error.kind(), names(&work)), (ErrorKind::Timeout, vec!["b".to_owned()]))?;
    let _ = fs::remove_dir_all(work);
    Ok(())
}

async fn process() -> Result<(), String> {
    let work = folder("changes");
    let sandbox = ProcessSandbox::open(policy(&work)).await.map_err(text)?;
    let script = "while read line; do echo \"$line\" >> log; echo done; done; echo end > end";
    let mut process = sandbox.spawn(SpawnRequest::piped(shell(script))).await.map_err(text)?;
    let mut input = process.stdin.take().ok_or("no input")?;
    let mut lines = BufReader::new(process.stdout.take().ok_or("no output")?).lines();
    for (number, want) in [("one", "one\n"), ("two", "one\ntwo\n")] {
        input.write_all(format!("{number}\n").as_bytes()).await.map_err(|error| error.to_string())?;
        lines.next_line().await.map_err(|error| error.to_string())?;
        let effect = process.handle.commit(None).await.map_err(text)?;
        equal((effect.files.len(), effect.kept_back.len()), (1, 0))?;
        equal(read(work.join("log"))?, want.to_owned())?;
    }
    check("nothing new", process.handle.commit(None).await.map_err(text)?.is_empty())?;
    drop(input);
    equal(process.handle.wait().await.map_err(text)?, 0)?;
    equal(names(&work), ["end", "log"].map(str::to_owned).to_vec())?;
    // One that is dropped is committed once it is dead.
    let dropped = sandbox.spawn(SpawnRequest::piped(shell("echo x > late; echo; sleep 30"))).await;
    let mut dropped = dropped.map_err(text)?;
    let mut lines = BufReader::new(dropped.stdout.take().ok_or("no output")?).lines();
    lines.next_line().await.map_err(|error| error.to_string())?;
    drop(dropped);
    let late = work.join("late");
    check("it was committed", wait_until(Duration::from_secs(5), || late.exists()).await)?;
    drop(sandbox);
    let _ = fs::remove_dir_all(work);
    Ok(())
}

async fn files() -> Result<(), String> {
    let work = folder("changes");
    write(work.join("a"), "1")?;
    let sandbox = ProcessSandbox::open(policy(&work)).await.map_err(text)?;
    sandbox.write_file("a", b"2").await.map_err(text)?;
    sandbox.write_file("new/b", b"3").await.map_err(text)?;
    equal((read(work.join("a"))?, read(work.join("new/b"))?), ("2".to_owned(), "3".to_owned()))?;
    equal(sandbox.read_file("new/b").await.map_err(text)?, b"3".to_vec())?;
    equal(names(&work), ["a", "new"].map(str::to_owned).to_vec())?;
    let error = sandbox.write_file("/etc/hostname", b"x").await.err().ok_or("it was written")?;
    equal(error.kind(), ErrorKind::Permission)?;
    let _ = fs::remove_dir_all(work);
    Ok(())
}

async fn layers() -> Result<(), String> {
    let work = folder("changes");
    let staged = ProcessSandbox::open(policy(&work)).await.map_err(text)?;
    let live = ProcessSandbox::open(SandboxPolicy::for_workspace(&work)).await.map_err(text)?;
    equal(staged.layers(), live.layers())?;
    let script = "grep -E '^(Cap|NoNew|Seccomp)' /proc/self/status; id -u; stat -c %u .; \
                  grep -c ' /run/.stage ' /proc/self/mountinfo";
    let one = staged.exec(shell(script)).await.map_err(text)?;
    let other = live.exec(shell(script)).await.map_err(text)?;
    equal(one.stdout, other.stdout)?;
    drop((staged, live));
    let _ = fs::remove_dir_all(work);
    Ok(())
}

async fn nested() -> Result<(), String> {
    let work = folder("changes");
    for name in ["ro/a", "rw/a", "top"] {
        write(work.join(name), "1")?;
    }
    write(work.join("secret"), "hidden")?;
    let policy = SandboxPolicy {
        read: vec![work.join("ro")],
        write: vec![work.join("rw")],
        mask: vec!["secret".into()],
        ..policy(&work)
    };
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let script = "cat secret; echo 2 > ro/a; echo 2 > rw/a; echo 2 > top; rm secret; cat ro/a";
    let result = sandbox.exec(shell(script)).await.map_err(text)?;
    check(&result.stdout, !result.stdout.contains("hidden") && result.stdout.ends_with('1'))?;
    let got = ["ro/a", "rw/a", "top", "secret"].map(|name| read(work.join(name)));
    equal(got, [Ok("1".into()), Ok("2\n".into()), Ok("2\n".into()), Ok("hidden".into())])?;
    equal(result.effect.map(|effect| effect.commits.len()), Some(2))?;
    let _ = fs::remove_dir_all(work);
    Ok(())
}

async fn no_way_round() -> Result<(), String> {
    let work = folder("changes");
    write(work.join("a"), "1")?;
    let policy = SandboxPolicy { changes: Changes::Discard, ..policy(&work) };
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let script = "ls -A /run; ls -A /run/.stage; umount . 2>/dev/null; cd ..; umount \"$OLDPWD\" 2>/dev/null; \
                  echo x > \"$OLDPWD/a\"; for n in /proc/[0-9]*; do echo x > \"$n/cwd/a\"; echo x > \"$n/root$OLDPWD/b\"; done 2>/dev/null; \
                  mknod \"$OLDPWD/w\" c 0 0 2>/dev/null; setfattr -n user.overlay.opaque -v y \"$OLDPWD\" 2>/dev/null";
    sandbox.exec(shell(script)).await.map_err(text)?;
    let listed = sandbox.exec(shell("ls -A /run/.stage")).await.map_err(text)?;
    equal(listed.stdout.as_str(), "")?;
    equal((names(&work), read(work.join("a"))?), (vec!["a".to_owned()], "1".to_owned()))?;
    let _ = fs::remove_dir_all(work);
    Ok(())
}

/// A runtime to be killed: a call that writes, says so, and does not end.
pub(crate) async fn main(work: &str) -> Result<(), String> {
    let sandbox = ProcessSandbox::open(policy(Path::new(work))).await.map_err(text)?;
    let say = |_, bytes: &[u8]| print!("{}", String::from_utf8_lossy(bytes));
    let call = shell("echo x > a; echo y > new; echo written; sleep 60");
    sandbox.exec_live(call, &say).await.map(drop).map_err(text)
}

async fn killed() -> Result<(), String> {
    use std::io::{BufRead, BufReader as Lines};
    let work = folder("changes");
    write(work.join("a"), "1")?;
    let mut runtime = std::process::Command::new(crate::support::exe())
        .arg("changes")
        .arg(&work)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut line = String::new();
    let output = runtime.stdout.take().ok_or("no output")?;
    Lines::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
    equal(line.as_str(), "written\n")?;
    equal((names(&work), read(work.join("a"))?), (vec!["a".to_owned()], "1".to_owned()))?;
    runtime.kill().map_err(|error| error.to_string())?;
    runtime.wait().map_err(|error| error.to_string())?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    equal((names(&work), read(work.join("a"))?), (vec!["a".to_owned()], "1".to_owned()))?;
    let _ = fs::remove_dir_all(work);
    Ok(())
}

async fn undone() -> Result<(), String> {
    let work = folder("changes");
    write(work.join("a"), "1")?;
    write(work.join("d/b"), "2")?;
    let sandbox = ProcessSandbox::open(policy(&work)).await.map_err(text)?;
    let result = sandbox.exec(shell("echo 2 > a; rm -r d; echo x > new")).await.map_err(text)?;
    let commit = result.effect.and_then(|effect| effect.commits.first().cloned()).ok_or("no commit")?;
    let look_up = |name: &str| std::env::var(name).ok();
    let store = toolwright_effects::CommitStore::candidates(look_up)
        .into_iter()
        .find_map(|path| toolwright_effects::CommitStore::open(&path).ok())
        .ok_or("no store")?;
    toolwright_effects::undo(&store, &commit).map_err(|error| error.to_string())?;
    equal(names(&work), ["a", "d"].map(str::to_owned).to_vec())?;
    equal((read(work.join("a"))?, read(work.join("d/b"))?), ("1".to_owned(), "2".to_owned()))?;
    let _ = fs::remove_dir_all(work);
    Ok(())
}
