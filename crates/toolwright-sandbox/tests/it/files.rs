//! File cases: paths that lead out, things that are not files, races, and writes that are whole or not at
//! all.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use toolwright_core::{DynSandbox, ErrorKind, ExecRequest, Sandbox as _};
use toolwright_sandbox::{LocalSandbox, ProcessSandbox, SandboxPolicy};

use crate::attacks::Field;
use crate::support::{Case, check, equal, folder, is_root, text, wait_until};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("FS-01::odd_paths_stay_inside", odd_paths),
        Case::new("FS-02::a_folder_with_the_same_beginning_is_another", prefix),
        Case::new("FS-03::swapping_folders_and_links_gains_nothing", race),
        Case::new("FS-04::what_is_not_a_file_is_refused_at_once", not_files),
        Case::new("FS-05::sizes_are_counted_not_believed", sizes),
        Case::new("FS-06::readers_see_old_or_new", atomic),
        Case::new("FS-06::a_cancelled_write_replaces_nothing", cancelled_write),
        Case::new("FS-12::a_hard_link_outside_keeps_its_contents", hard_link),
        Case::new("FS-12::a_written_file_keeps_its_group_and_attributes", traits),
        Case::new("SB-03::writing_through_a_link_is_refused", links),
        Case::new("FS-12::links_that_lead_nowhere_are_no_disaster", dangling),
        Case::new("SB-06::what_takes_the_place_of_a_protected_file_is_protected", replaced),
        Case::new("SB-07::a_mask_stays_on_in_the_next_sandbox", renamed),
        Case::new("SB-07::a_mask_through_a_link_is_refused", masked_link),
        Case::new("SB-07::nothing_can_take_the_place_of_what_is_masked", masked_later),
        Case::new("SB-07::a_folder_to_be_read_stays_in_its_place", swapped),
        Case::new("SB-06::nothing_that_programs_outside_obey_can_be_made", obeyed),
        Case::new("SB-06::a_login_shell_outside_reads_what_it_did", login),
        Case::new("SB-06::a_refused_write_says_that_the_file_is_protected", told),
        Case::new("SB-20::sockets_are_masked_however_they_were_bound", sockets),
        Case::new("SB-20::a_command_cannot_keep_a_socket_from_being_found", buried),
        Case::new("SB-05::a_workspace_can_be_read_only", read_only),
        Case::new("SB-27::a_private_workspace_is_bounded_and_nowhere_else", private),
        Case::new("SB-27::a_private_folder_goes_whatever_is_in_it", private_folder).apart(),
        Case::new("SB-27::a_private_folder_that_stays_is_told", private_folder_left).apart(),
        Case::new("SB-05::the_folder_of_a_command_cannot_leave", folders),
    ]
}

/// What a command does to keep its folder from being removed.
const STUBBORN: &str =
    "mkdir -p closed/inner && echo x > closed/file && chmod 0 closed/inner closed || exit 1
    mkdir -p $(printf 'd/%.0s' $(seq 1500))";

async fn private() -> Result<(), String> {
    let mut policy = SandboxPolicy::private();
    policy.limits.scratch = 8 << 20;
    let sandbox = ProcessSandbox::open(policy.clone()).await.map_err(text)?;
    sandbox.write_file("kept/file", b"from outside").await.map_err(text)?;
    let run = |script: &str| sandbox.exec(ExecRequest::new(["sh", "-c", script]));
    let full =
        run("head -c 64M /dev/zero > big; stat -c %s big; rm big; cat kept/file").await.map_err(text)?;
    check(&full.stderr, full.stderr.contains("No space left"))?;
    let (size, kept) = full.stdout.split_once('\n').unwrap_or_default();
    check(size, size.parse().is_ok_and(|size: u64| size > 0 && size <= 8 << 20))?;
    equal(kept, "from outside")?;
    let many = run("i=0; while true > many$i; do i=$((i+1)); done; rm many*; exit 3").await.map_err(text)?;
    check(&many.stderr, many.stderr.contains("No space left"))?;
    run("echo inside > later").await.map_err(text)?;
    equal(sandbox.read_file("later").await.map_err(text)?, b"inside\n".to_vec())?;
    policy.read_only = true;
    let looked = ProcessSandbox::open(policy).await.map_err(text)?;
    let refused = looked.exec(ExecRequest::new(["touch", "x"])).await.map_err(text)?;
    check(&refused.stderr, refused.stderr.contains("Read-only"))
}

async fn private_folder() -> Result<(), String> {
    let sandbox = LocalSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let folder = sandbox.workspace().to_owned();
    let done = sandbox.exec(ExecRequest::new(["sh", "-c", STUBBORN])).await.map_err(text)?;
    check(&done.stderr, done.code == 0 && folder.exists())?;
    drop(sandbox);
    let told = toolwright_sandbox::sandboxes_ended().await;
    check(&format!("the folder is left: {told:?}"), !folder.exists() && told.is_empty())
}

async fn private_folder_left() -> Result<(), String> {
    let sandbox = LocalSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let folder = sandbox.workspace().to_owned();
    let name = folder.display().to_string();
    // What is there now is not what was made, so it is not removed.
    let swap = ["sh", "-c", "cd / && rmdir \"$0\" && touch \"$0\"", name.as_str()];
    let done = sandbox.exec(ExecRequest::new(swap)).await.map_err(text)?;
    equal(done.code, 0)?;
    drop(sandbox);
    let told = toolwright_sandbox::sandboxes_ended().await;
    let again = toolwright_sandbox::sandboxes_ended().await;
    std::fs::remove_file(&folder).map_err(|error| error.to_string())?;
    let told: Vec<_> = told.iter().map(|(path, why)| (path.as_path(), why.kind())).collect();
    equal(told, vec![(folder.as_path(), std::io::ErrorKind::NotADirectory)])?;
    check("it is told once", again.is_empty())
}

async fn odd_paths() -> Result<(), String> {
    let field = Field::new()?;
    let sandbox = field.sandbox(&[]).await?;
    let canary = field.canary().display().to_string();
    let up = format!("{}{canary}/secret", "../".repeat(20));
    let outside = format!("{canary}/secret");
    let long = "a/".repeat(2049);
    let name = "n".repeat(256);
    for path in
        [up.as_str(), &outside, "file:///etc/shadow", "..\\..\\x", "~/x", &long, &name, "", ".", "..", "a\0b"]
    {
        for result in [sandbox.read_file(path).await.map(|_| ()), sandbox.write_file(path, b"x").await] {
            if let Err(error) = result {
                check(&format!("{path:.40}: {error:?}"), !error.is_fatal())?;
            }
        }
    }
    field.untouched()
}

/// Somebody works on the host while a sandbox is open: protection and masks follow the names, and nothing of
/// theirs is taken for a placeholder at the end.
async fn replaced() -> Result<(), String> {
    let work = folder("replaced");
    let error = |error: std::io::Error| error.to_string();
    let save = |name: &str, contents: &str| {
        std::fs::write(work.join("new"), contents)?;
        std::fs::rename(work.join("new"), work.join(name))
    };
    for name in [".mcp.json", ".env"] {
        save(name, "first").map_err(error)?;
    }
    let mut policy = SandboxPolicy::for_workspace(&work);
    policy.mask.push(".env".into());
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    sandbox.exec(ExecRequest::new(["true"])).await.map_err(text)?;
    for (name, contents) in [(".mcp.json", "second"), (".env", "secret"), ("toolwright.yaml", "tools: []")] {
        save(name, contents).map_err(error)?;
    }
    std::fs::remove_file(work.join(".bashrc")).map_err(error)?;
    std::fs::remove_dir(work.join(".git")).map_err(error)?;
    std::fs::create_dir(work.join(".git")).map_err(error)?;
    save(".git/config", "[core]").map_err(error)?;
    let script = "for f in .mcp.json toolwright.yaml .bashrc .git/config .git/hooks .profile; do \
                  (echo evil > $f) 2>/dev/null && echo wrote $f; mv $f away 2>/dev/null && echo moved $f; done; \
                  cat .env 2>/dev/null; echo done";
    let result = sandbox.exec(ExecRequest::new(["sh", "-c", script])).await.map_err(text)?;
    equal(result.stdout.as_str(), "done\n")?;
    drop(sandbox);
    let placeholders = || [".bashrc", ".profile", ".vscode"].iter().any(|name| work.join(name).exists());
    check("placeholders are left", wait_until(Duration::from_secs(60), || !placeholders()).await)?;
    for (name, contents) in [
        (".mcp.json", "second"),
        (".env", "secret"),
        ("toolwright.yaml", "tools: []"),
        (".git/config", "[core]"),
    ] {
        let there = std::fs::read_to_string(work.join(name));
        equal((name, there.map_err(error)?.as_str()), (name, contents))?;
    }
    std::fs::remove_dir_all(work).map_err(error)
}

/// Renaming a folder must not show what is masked in it, neither now nor to the next sandbox.
async fn renamed() -> Result<(), String> {
    let work = folder("renamed");
    let error = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(work.join("a/secrets")).map_err(error)?;
    std::fs::write(work.join("a/secrets/.env"), "secret").map_err(error)?;
    let mut policy = SandboxPolicy::for_workspace(&work);
    policy.mask.extend(["a/secrets/.env".into(), "a/absent/.env".into()]);
    let script = "mv a b; mv a/secrets s; echo x > a/secrets/new; mkdir a/new; \
                  cat a/secrets/.env b/secrets/.env s/.env; cat a/secrets/new";
    for _ in 0..2 {
        let sandbox = ProcessSandbox::open(policy.clone()).await.map_err(text)?;
        for _ in 0..2 {
            let result = sandbox.exec(ExecRequest::new(["sh", "-c", script])).await.map_err(text)?;
            equal(result.stdout.as_str(), "x\n")?;
        }
    }
    std::fs::remove_dir_all(work).map_err(error)
}

/// A link at a masked path that is not there yet would keep every later sandbox from being opened.
async fn masked_later() -> Result<(), String> {
    let work = folder("masked-later");
    let error = |error: std::io::Error| error.to_string();
    std::fs::create_dir(work.join("a")).map_err(error)?;
    let mut policy = SandboxPolicy::for_workspace(&work);
    policy.mask.extend([".env".into(), "a/b/.env".into()]);
    let script = "echo x > f; for p in .env a/b a/b/.env; do ln -s f $p; ln -s $p $p; echo x > $p; mkdir $p; done; \
                  mv a c; rm -rf .env a; echo x > a/mine; cat a/mine";
    for _ in 0..2 {
        let sandbox = ProcessSandbox::open(policy.clone()).await.map_err(text)?;
        let result = sandbox.exec(ExecRequest::new(["sh", "-c", script])).await.map_err(text)?;
        equal(result.stdout.as_str(), "x\n")?;
    }
    let left = || [".env", "a/b"].iter().any(|name| work.join(name).symlink_metadata().is_ok());
    check("something is left", wait_until(Duration::from_secs(60), || !left()).await)?;
    // One that leads to itself leads to nothing that could be hidden.
    symlink(".env", work.join(".env")).map_err(error)?;
    let opened = ProcessSandbox::open(policy).await.map(drop).map_err(text);
    let _ = std::fs::remove_dir_all(work);
    opened
}

/// The folders on the way to one that is only to be read can be written, yet not renamed.
async fn swapped() -> Result<(), String> {
    let work = folder("swapped");
    let error = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(work.join("a/b")).map_err(error)?;
    std::fs::write(work.join("a/b/f"), "as it was").map_err(error)?;
    let mut policy = SandboxPolicy::for_workspace(&work);
    policy.read.push(work.join("a/b"));
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let script =
        "mv a x; mv a/b x; rm -rf a; mkdir -p a/b; echo evil > a/b/f; echo mine > a/mine; cat a/b/f a/mine";
    let result = sandbox.exec(ExecRequest::new(["sh", "-c", script])).await.map_err(text)?;
    drop(sandbox);
    let there = std::fs::read_to_string(work.join("a/b/f"));
    let _ = std::fs::remove_dir_all(work);
    equal(result.stdout.as_str(), "as it wasmine\n")?;
    equal(there.map_err(error)?.as_str(), "as it was")
}

async fn masked_link() -> Result<(), String> {
    let work = folder("masked-link");
    std::fs::write(work.join("real"), "secret").map_err(|error| error.to_string())?;
    symlink("real", work.join(".env")).map_err(|error| error.to_string())?;
    let mut policy = SandboxPolicy::for_workspace(&work);
    policy.mask.push(".env".into());
    let refused = ProcessSandbox::open(policy.clone()).await.err().map(text).unwrap_or_default();
    check(&refused, refused.contains("name what it leads to"))?;
    // Nobody can change the link: what it leads to is masked.
    policy.read_only = true;
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let result = sandbox.exec(ExecRequest::new(["cat", "real"])).await.map_err(text)?;
    drop(sandbox);
    let _ = std::fs::remove_dir_all(work);
    equal(result.stdout.as_str(), "")
}

/// What git, shells, editors and clients obey in a folder cannot be left there, a repository without `.git`
/// included.
async fn obeyed() -> Result<(), String> {
    let work = folder("obeyed");
    let names = || {
        let entries = std::fs::read_dir(&work).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    // Whichever part of a repository is there already, another is kept from being made.
    for (there, left) in [
        (&[][..], &["HEAD", "config", "objects"][..]),
        (&["refs"], &["HEAD", "config", "refs"]),
        (&["refs", "objects"], &["config", "objects", "refs"]),
    ] {
        there
            .iter()
            .try_for_each(|name| std::fs::create_dir(work.join(name)))
            .map_err(|error| error.to_string())?;
        let sandbox = ProcessSandbox::open(SandboxPolicy::for_workspace(&work)).await.map_err(text)?;
        let mut script = String::new();
        for name in toolwright_sandbox::PROTECTED
            .into_iter()
            .filter(|name| *name != "HEAD" && !name.starts_with("~/"))
        {
            script += &format!("(echo x > {name}); mkdir -p {name}/x; rm -rf {name}; mkdir {name}\n");
        }
        script += "rm -f refs; mkdir objects refs; echo 'ref: refs/heads/main' > HEAD\n\
                   printf '[core]\\n\\tworktree = .\\n\\tfsmonitor = touch ran; false\\n' > config\n";
        sandbox.exec(ExecRequest::new(["sh", "-c", &script])).await.map_err(text)?;
        drop(sandbox);
        wait_until(Duration::from_secs(60), || names() == left).await;
        // Where there is a git, it must find no repository.
        let mut git = std::process::Command::new("git");
        let _ = git.args(["-c", "safe.directory=*", "status"]).current_dir(&work).output();
        equal(names(), left.iter().map(|name| name.to_string()).collect())?;
        for name in ["HEAD", "config"] {
            let _ = std::fs::remove_file(work.join(name));
        }
        for name in ["objects", "refs"] {
            let _ = std::fs::remove_dir(work.join(name));
        }
    }
    // Beside a repository nothing of the kind is needed.
    std::fs::create_dir(work.join(".git")).map_err(|error| error.to_string())?;
    std::fs::write(work.join(".git/HEAD"), "ref: refs/heads/main").map_err(|error| error.to_string())?;
    let sandbox = ProcessSandbox::open(SandboxPolicy::for_workspace(&work)).await.map_err(text)?;
    let beside =
        sandbox.exec(ExecRequest::new(["ls", "-d", "HEAD", "refs", ".zshrc"])).await.map_err(text)?;
    drop(sandbox);
    let _ = std::fs::remove_dir_all(&work);
    equal(beside.stdout.as_str(), ".zshrc\n")
}

/// Of three files a login shell reads the first; a placeholder must not hide the others.
async fn login() -> Result<(), String> {
    let work = folder("login");
    let read = || {
        let mut bash = std::process::Command::new("bash");
        bash.args(["--login", "-c", "echo $READ"])
            .env_clear()
            .env("HOME", &work)
            .env("PATH", "/usr/bin:/bin");
        bash.output().map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    if read().is_err() {
        println!("skipped: there is no bash here");
        return Ok(());
    }
    for name in [".profile", ".bash_login", ".bash_profile"] {
        std::fs::write(work.join(name), format!("READ={name}\n")).map_err(|error| error.to_string())?;
        let sandbox = ProcessSandbox::open(SandboxPolicy::for_workspace(&work)).await.map_err(text)?;
        let told = read().map_err(|error| error.to_string())?;
        drop(sandbox);
        toolwright_sandbox::sandboxes_ended().await;
        equal(told.as_str(), name)?;
    }
    std::fs::remove_file(work.join(".bash_profile")).map_err(|error| error.to_string())?;
    drop(ProcessSandbox::open(SandboxPolicy::for_workspace(&work)).await.map_err(text)?);
    toolwright_sandbox::sandboxes_ended().await;
    let left = work.join(".bash_profile").exists();
    let _ = std::fs::remove_dir_all(work);
    check("the placeholder is left", !left)
}

async fn told() -> Result<(), String> {
    let (work, other) = (folder("told"), folder("told-other"));
    let mut policy = SandboxPolicy::for_workspace(&work);
    policy.write.push(other.clone());
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let elsewhere = other.join("toolwright.yaml").display().to_string();
    for path in [".envrc", "./.mcp.json", ".git/config", ".vscode/a/b", &elsewhere] {
        let error = sandbox.write_file(path, b"x").await.expect_err("it is protected");
        equal(error.kind(), ErrorKind::Permission)?;
        let hint = error.info().hint.unwrap_or_default();
        check(&format!("{error:?}"), error.message().contains("is protected") && hint.contains("`protect`"))?;
    }
    let error = sandbox.write_file("/etc/x", b"x").await.expect_err("it is read-only");
    drop(sandbox);
    let _ = (std::fs::remove_dir_all(work), std::fs::remove_dir_all(other));
    check(error.message(), error.message().contains("read-only"))
}

async fn sockets() -> Result<(), String> {
    use std::os::unix::net::UnixListener;
    let work = folder("sockets");
    let error = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(work.join("deep/er")).map_err(error)?;
    symlink("deep", work.join("link")).map_err(error)?;
    let mut listeners = Vec::new();
    for path in ["plain", "link/through", "before"] {
        listeners.push(UnixListener::bind(work.join(path)).map_err(error)?);
    }
    std::fs::rename(work.join("before"), work.join("deep/er/after")).map_err(error)?;
    listeners.push(bind_in(work.join("deep"), "relative")?);
    // Not `-type s`, which believes the folder, not the mask.
    let find = ["sh", "-c", "find . -exec test -S {} ';' -print; ls deep"];
    for read_only in [true, false] {
        let policy = SandboxPolicy { read_only, ..SandboxPolicy::for_workspace(&work) };
        let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
        let result = sandbox.exec(ExecRequest::new(find)).await.map_err(text)?;
        equal(result.stdout.as_str(), "er\nrelative\nthrough\n")?;
    }
    // One that is named can be reached.
    let mut policy = SandboxPolicy { read_only: true, ..SandboxPolicy::for_workspace(&work) };
    policy.read.push(work.join("deep/relative"));
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let result = sandbox.exec(ExecRequest::new(find)).await.map_err(text)?;
    drop((sandbox, listeners));
    let _ = std::fs::remove_dir_all(work);
    equal(result.stdout.as_str(), "./deep/relative\ner\nrelative\nthrough\n")
}

/// Binds a relative name. A thread that has left the common folder of the process can do so from a folder of
/// its own.
fn bind_in(
    folder: std::path::PathBuf,
    name: &'static str,
) -> Result<std::os::unix::net::UnixListener, String> {
    let bound = std::thread::spawn(move || {
        // SAFETY: takes a number only.
        if unsafe { libc::unshare(libc::CLONE_FS) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        std::env::set_current_dir(folder)?;
        std::os::unix::net::UnixListener::bind(name)
    });
    bound.join().map_err(|_| "the thread died".to_owned())?.map_err(|error| error.to_string())
}

/// Dead sockets and empty files that sort first, names that look abstract, a second name, and a dead socket
/// in the place of one that lives elsewhere.
async fn buried() -> Result<(), String> {
    let work = folder("buried");
    let error = |error: std::io::Error| error.to_string();
    let many = work.join("0");
    std::fs::create_dir_all(work.join("z/y")).map_err(error)?;
    std::fs::create_dir(&many).map_err(error)?;
    let listeners = [
        bind_in(work.join("z/y"), "relative")?,
        bind_in(work.clone(), "@name")?,
        std::os::unix::net::UnixListener::bind(work.join("first")).map_err(error)?,
        std::os::unix::net::UnixListener::bind(work.join("plain")).map_err(error)?,
    ];
    std::fs::hard_link(work.join("first"), work.join("z/second")).map_err(error)?;
    std::fs::rename(work.join("plain"), work.join("z/moved")).map_err(error)?;
    drop(std::os::unix::net::UnixListener::bind(work.join("plain")).map_err(error)?);
    for at in 0..21_000 {
        std::fs::File::create(many.join(format!("f{at}"))).map_err(error)?;
    }
    let dead = |count: std::ops::Range<usize>| {
        count.into_iter().try_for_each(|at| {
            let name = std::ffi::CString::new(many.join(format!("s{at}")).as_os_str().as_bytes())?;
            // SAFETY: the path is NUL-terminated and outlives the call.
            match unsafe { libc::mknod(name.as_ptr(), libc::S_IFSOCK | 0o666, 0) } {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        })
    };
    dead(0..1100).map_err(error)?;
    let policy = SandboxPolicy { read_only: true, ..SandboxPolicy::for_workspace(&work) };
    let sandbox = ProcessSandbox::open(policy.clone()).await.map_err(text)?;
    let script = "for s in z/y/relative @name first z/second z/moved plain; do test -S $s && echo $s; test -e $s && printf .; done";
    let result = sandbox.exec(ExecRequest::new(["sh", "-c", script])).await.map_err(text)?;
    drop(sandbox);
    // More than are masked one by one: nothing is opened, and the folder need not be searched when it is
    // masked.
    dead(1100..5100).map_err(error)?;
    let refused = ProcessSandbox::open(policy.clone()).await.err().map(text).unwrap_or_default();
    let mut without = policy;
    without.mask.push("0".into());
    let masked = ProcessSandbox::open(without).await.map(drop).map_err(text);
    drop(listeners);
    let _ = std::fs::remove_dir_all(work);
    equal(result.stdout.as_str(), "......")?;
    check(&refused, refused.contains("SandboxUnavailable") && refused.contains("name folders in `mask`"))?;
    masked
}

async fn prefix() -> Result<(), String> {
    let root = folder("prefix");
    for name in ["app", "app-secret"] {
        std::fs::create_dir(root.join(name)).map_err(|error| error.to_string())?;
    }
    std::fs::write(root.join("app-secret/key"), "k").map_err(|error| error.to_string())?;
    let sandbox = ProcessSandbox::open(SandboxPolicy::for_workspace(root.join("app"))).await.map_err(text)?;
    let key = root.join("app-secret/key").display().to_string();
    let outcomes = [
        sandbox.read_file(&key).await.map(drop),
        sandbox.read_file("../app-secret/key").await.map(drop),
        sandbox.write_file(&key, b"x").await,
    ];
    let kept = std::fs::read_to_string(&key).unwrap_or_default();
    drop(sandbox);
    let _ = std::fs::remove_dir_all(&root);
    check("refused", outcomes[0].is_err() && outcomes[1].is_err())?;
    equal(kept.as_str(), "k")
}

async fn race() -> Result<(), String> {
    let field = Field::new()?;
    let sandbox = field.sandbox(&[]).await?;
    let (work, canary) = (field.workspace().to_owned(), field.canary().to_owned());
    std::fs::create_dir(work.join("real")).map_err(|error| error.to_string())?;
    std::fs::write(work.join("real/secret"), "mine").map_err(|error| error.to_string())?;
    symlink(&canary, work.join("link")).map_err(|error| error.to_string())?;
    symlink("real", work.join("swap")).map_err(|error| error.to_string())?;
    let stop = Arc::new(AtomicBool::new(false));
    let count = Arc::new(AtomicU64::new(0));
    let (swapping, counting) = (stop.clone(), count.clone());
    let swaps = std::thread::spawn(move || {
        while !swapping.load(Ordering::Relaxed) {
            for to in [canary.as_path(), std::path::Path::new("real")] {
                let temporary = work.join("swap.tmp");
                let _ = symlink(to, &temporary);
                let _ = std::fs::rename(&temporary, work.join("swap"));
                counting.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    let start = Instant::now();
    let mut outcome = Ok(());
    // `TOOLWRIGHT_SWAPS=1000000` makes it the full measure.
    let wanted = std::env::var("TOOLWRIGHT_SWAPS").ok().and_then(|text| text.parse().ok()).unwrap_or(3000);
    while count.load(Ordering::Relaxed) < wanted && start.elapsed().as_secs() < 600 && outcome.is_ok() {
        if let Ok(bytes) = sandbox.read_file("swap/secret").await
            && bytes != b"mine"
        {
            outcome = Err(format!("read {:?}", String::from_utf8_lossy(&bytes)));
        }
        let _ = sandbox.write_file("swap/secret", b"mine").await;
    }
    stop.store(true, Ordering::Relaxed);
    swaps.join().map_err(|_| "the swapper died".to_owned())?;
    check("too few swaps", count.load(Ordering::Relaxed) >= wanted || outcome.is_err())?;
    outcome?;
    field.untouched()
}

async fn not_files() -> Result<(), String> {
    let sandbox = ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let make = "mkfifo fifo; mkdir folder; ln -s loop loop; ln -s fifo to-fifo";
    sandbox.exec(ExecRequest::new(["sh", "-c", make])).await.map_err(text)?;
    for path in [
        "fifo",
        "to-fifo",
        "folder",
        "loop",
        "/dev/zero",
        "/dev/tty",
        "/dev/ptmx",
        "/dev/random",
        "/proc/kmsg",
        "/proc/1/mem",
    ] {
        let start = Instant::now();
        match sandbox.read_file(path).await {
            Ok(bytes) => return Err(format!("{path}: {} bytes", bytes.len())),
            Err(error) => check(&format!("{path}: {error:?}"), !error.is_fatal())?,
        }
        check(path, start.elapsed() < Duration::from_secs(20))?;
        if path != "loop" {
            check(path, sandbox.write_file(path, b"x").await.is_err())?;
        }
    }
    Ok(())
}

async fn sizes() -> Result<(), String> {
    let sandbox = ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let status = sandbox.read_text("/proc/self/status").await.map_err(text)?;
    check(&status, status.contains("NoNewPrivs:\t1"))?;
    let sparse = "dd if=/dev/zero of=sparse bs=1 count=0 seek=7G 2>/dev/null; echo x > grows";
    sandbox.exec(ExecRequest::new(["sh", "-c", sparse])).await.map_err(text)?;
    let start = Instant::now();
    match sandbox.read_file("sparse").await {
        Err(error) => equal(error.kind(), ErrorKind::OutputLimit)?,
        Ok(bytes) => return Err(format!("{} bytes", bytes.len())),
    }
    check("at once", start.elapsed() < Duration::from_secs(30))?;
    let growing =
        sandbox.exec(ExecRequest::new(["sh", "-c", "yes >> grows"]).timeout(Duration::from_secs(1)));
    let reading = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        sandbox.read_file("grows").await.map(|bytes| bytes.len()).map_err(|error| error.kind())
    };
    let (_, read) = tokio::join!(growing, reading);
    check(&format!("{read:?}"), matches!(read, Ok(_) | Err(ErrorKind::OutputLimit)))
}

async fn atomic() -> Result<(), String> {
    let sandbox = ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let contents = |word: &str| word.repeat(50_000).into_bytes();
    sandbox.write_file("file", &contents("a")).await.map_err(text)?;
    let watch = "for i in $(seq 150); do head -c 1 file; tail -c 1 file; wc -c < file; done | sort | uniq -c";
    let reader = sandbox.exec(ExecRequest::new(["sh", "-c", watch]));
    let writer = async {
        for at in 0..60 {
            let word = if at % 2 == 0 { "b" } else { "a" };
            // Some writes are cut off in the middle.
            let write = sandbox.write_file("file", &contents(word)).await;
            if at % 5 == 0 {
                let bytes = contents(word);
                let cut = sandbox.write_file("file", &bytes);
                let _ = tokio::time::timeout(Duration::from_micros(at * 60), cut).await;
            }
            write?;
        }
        Ok::<_, toolwright_core::ToolError>(())
    };
    let (read, wrote) = tokio::join!(reader, writer);
    wrote.map_err(text)?;
    let read = read.map_err(text)?.stdout;
    // `head` and `tail` may see different files, but every size is that of a whole one.
    check(
        &read,
        read.lines().all(|line| {
            line.ends_with("50000") || !line.contains(char::is_numeric) || line.ends_with(['a', 'b'])
        }),
    )?;
    check(&read, read.contains("50000"))?;
    let bytes = sandbox.read_file("file").await.map_err(text)?;
    check("one writer's contents", bytes == contents("a") || bytes == contents("b"))
}

/// More than a pipe holds, so that a cancelled write has sent a part of it.
async fn cancelled_write() -> Result<(), String> {
    const SIZE: usize = 1 << 20;
    let sandbox = ProcessSandbox::open(SandboxPolicy::private()).await.map_err(text)?;
    let (old, new) = (vec![b'a'; SIZE], vec![b'b'; SIZE]);
    sandbox.write_file("file", &old).await.map_err(text)?;
    for step in 0..100 {
        let write = sandbox.write_file("file", &new);
        let _ = tokio::time::timeout(Duration::from_micros(step * 50), write).await;
        let bytes = sandbox.read_file("file").await.map_err(text)?;
        let size = bytes.len();
        check(&format!("cancelled after {step} steps: {size} bytes"), bytes == old || bytes == new)?;
    }
    Ok(())
}

async fn hard_link() -> Result<(), String> {
    let root = folder("hard");
    let (work, outside) = (root.join("work"), root.join("outside"));
    std::fs::create_dir(&work).map_err(|error| error.to_string())?;
    std::fs::write(&outside, "outside").map_err(|error| error.to_string())?;
    std::fs::hard_link(&outside, work.join("inside")).map_err(|error| error.to_string())?;
    let mut policy = SandboxPolicy::for_workspace(&work);
    policy.protect.clear();
    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    sandbox.write_file("inside", b"changed").await.map_err(text)?;
    let (read, kept) = (sandbox.read_text("inside").await.map_err(text)?, std::fs::read_to_string(&outside));
    drop(sandbox);
    let _ = std::fs::remove_dir_all(&root);
    equal(read.as_str(), "changed")?;
    equal(kept.map_err(|error| error.to_string())?.as_str(), "outside")
}

async fn traits() -> Result<(), String> {
    let error = |error: std::io::Error| error.to_string();
    let work = folder("traits");
    // Only root can give a file to a group it is not in; the sandbox belongs to the owner of the folder.
    let (owner, groups) =
        if is_root() { (Some(12_345), vec![12_345, 100]) } else { (None, vec![own_group()]) };
    std::os::unix::fs::chown(&work, owner, owner).map_err(error)?;
    let mut policy = SandboxPolicy::for_workspace(&work);
    policy.protect.clear();
    let sandboxes: [Box<DynSandbox>; 2] = [
        Box::new(LocalSandbox::open(policy.clone()).await.map_err(text)?),
        Box::new(ProcessSandbox::open(policy).await.map_err(text)?),
    ];
    for sandbox in sandboxes {
        for group in &groups {
            let file = work.join("file");
            std::fs::write(&file, "a longer text").map_err(error)?;
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).map_err(error)?;
            std::os::unix::fs::chown(&file, owner, Some(*group)).map_err(error)?;
            let tagged = set_tag(&file);
            let before = std::fs::metadata(&file).map_err(error)?;
            sandbox.write_file("file", b"changed").await.map_err(text)?;
            let after = std::fs::metadata(&file).map_err(error)?;
            let told = |about: &std::fs::Metadata| (about.uid(), about.gid(), about.mode());
            equal((group, told(&after)), (group, told(&before)))?;
            equal(std::fs::read_to_string(&file).map_err(error)?.as_str(), "changed")?;
            check("the attribute is kept", !tagged || tag(&file).as_deref() == Some(b"kept"))?;
            if *group == 100 {
                std::fs::hard_link(&file, work.join("other")).map_err(error)?;
                let written = sandbox.write_file("file", b"again").await.map_err(|error| error.kind());
                // Whoever cannot keep the group of a file writes none of its other names.
                let after = std::fs::metadata(&file).map_err(error)?;
                check("written or refused", matches!(written, Ok(()) | Err(ErrorKind::Permission)))?;
                equal(told(&after), told(&before))?;
                equal(std::fs::read_to_string(work.join("other")).map_err(error)?.as_str(), "changed")?;
                std::fs::remove_file(work.join("other")).map_err(error)?;
            }
            std::fs::remove_file(&file).map_err(error)?;
        }
    }
    check(
        "nothing is left behind",
        std::fs::read_dir(&work).is_ok_and(|mut names| {
            names.all(|name| name.is_ok_and(|name| !name.file_name().to_string_lossy().ends_with(".tmp")))
        }),
    )?;
    std::fs::remove_dir_all(work).map_err(error)
}

fn own_group() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::getegid() }
}

/// False where the file system has no attributes.
fn set_tag(file: &std::path::Path) -> bool {
    let path = std::ffi::CString::new(file.as_os_str().as_bytes()).expect("a path");
    // SAFETY: the texts are NUL-terminated and the value has four bytes; all outlive the call.
    unsafe { libc::setxattr(path.as_ptr(), c"user.tag".as_ptr(), c"kept".as_ptr().cast(), 4, 0) == 0 }
}

fn tag(file: &std::path::Path) -> Option<Vec<u8>> {
    let path = std::ffi::CString::new(file.as_os_str().as_bytes()).expect("a path");
    let mut value = vec![0u8; 16];
    // SAFETY: the texts are NUL-terminated and the pointer is to 16 bytes; all outlive the call.
    let length = unsafe {
        libc::getxattr(path.as_ptr(), c"user.tag".as_ptr(), value.as_mut_ptr().cast(), value.len())
    };
    value.truncate(usize::try_from(length).ok()?);
    Some(value)
}

async fn links() -> Result<(), String> {
    let field = Field::new()?;
    let work = field.workspace().to_owned();
    symlink(field.canary(), work.join("out")).map_err(|error| error.to_string())?;
    symlink("/etc", work.join("etc")).map_err(|error| error.to_string())?;
    let sandbox = field.sandbox(&[]).await?;
    for path in ["out/x", "out/secret", "etc/x", "etc/passwd"] {
        check(path, sandbox.write_file(path, b"x").await.is_err())?;
    }
    check("read", sandbox.read_file("out/secret").await.is_err())?;
    field.untouched()
}

async fn folders() -> Result<(), String> {
    let field = Field::new()?;
    symlink(field.canary(), field.workspace().join("out")).map_err(|error| error.to_string())?;
    let sandbox = field.sandbox(&[]).await?;
    let canary = field.canary().display().to_string();
    for cwd in ["../../../../../../..", "/", "/etc", "out", canary.as_str(), "/proc/1/root"] {
        let script = "echo x > x; cat secret; ls";
        if let Ok(result) = sandbox.exec(ExecRequest::new(["sh", "-c", script]).cwd(cwd)).await {
            check(&format!("{cwd}: {result:?}"), !result.stdout.contains("canary-7f3a"))?;
        }
    }
    let gone = sandbox.exec(ExecRequest::new(["pwd"]).cwd("gone")).await;
    check("a folder that is gone", gone.is_err_and(|error| error.kind() == ErrorKind::FileNotFound))?;
    field.untouched()
}

async fn dangling() -> Result<(), String> {
    let field = Field::new()?;
    let sandbox = field.sandbox(&[]).await?;
    let script = "ln -s made/later link; ln -s nowhere folder; ln -s loop loop";
    sandbox.exec(ExecRequest::new(["sh", "-c", script])).await.map_err(text)?;
    sandbox.write_file("link", b"through").await.map_err(text)?;
    equal(sandbox.read_text("made/later").await.map_err(text)?.as_str(), "through")?;
    for path in ["folder/x", "loop", "loop/x"] {
        let error = sandbox.write_file(path, b"x").await.expect_err("a link that leads nowhere");
        check(&format!("{path}: {error:?}"), !error.is_fatal())?;
    }
    field.untouched()
}

async fn read_only() -> Result<(), String> {
    let work = folder("read-only");
    std::fs::write(work.join("file"), "as it was").map_err(|error| error.to_string())?;
    let policy = SandboxPolicy { read_only: true, ..SandboxPolicy::for_workspace(&work) };
    {
        let sandbox = ProcessSandbox::open(policy.clone()).await.map_err(text)?;
        let script = "cat file; echo x > file; echo x > new; rm -f file; mkdir d; chmod 777 .; ls -A";
        let result = sandbox.exec(ExecRequest::new(["sh", "-c", script])).await.map_err(text)?;
        equal(result.stdout.as_str(), "as it wasfile\n")?;
        let error = sandbox.write_file("new", b"x").await.expect_err("a read-only folder");
        equal(error.kind(), ErrorKind::Permission)?;
    }
    equal(std::fs::read_to_string(work.join("file")).ok().as_deref(), Some("as it was"))?;
    check("nothing else is there", std::fs::read_dir(&work).is_ok_and(|entries| entries.count() == 1))?;
    let local = toolwright_sandbox::LocalSandbox::open(policy).await.map(drop);
    let _ = std::fs::remove_dir_all(&work);
    equal(local.map_err(|error| error.kind()), Err(ErrorKind::SandboxUnavailable))
}
