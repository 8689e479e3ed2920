//! Cases with mounts of the host in the workspace, each in a mount namespace of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use toolwright_core::{ExecRequest, Sandbox};
use toolwright_sandbox::{Layer, ProcessSandbox, SandboxPolicy};

use crate::support::{Case, NOBODY, as_nobody, check, equal, exe, folder, is_root, text};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("SB-05::a_mount_of_the_host_is_masked_too", masked).once(),
        Case::new("SB-05::mounts_below_the_workspace_give_nothing_away", below).once(),
    ]
}

const WORK: &str = "TOOLWRIGHT_MOUNTED";

/// The folder of a case that was started again, in a mount namespace where the script has run in that folder;
/// `None` when the case has ended there, or nothing can be mounted here.
fn mounted(case: &str, script: &str) -> Result<Option<PathBuf>, String> {
    if let Some(work) = std::env::var_os(WORK) {
        return Ok(Some(work.into()));
    }
    let able = Command::new("unshare").args(["--mount", "true"]).output();
    if !is_root() || !able.is_ok_and(|output| output.status.success()) {
        println!("skipped: nothing can be mounted here");
        return Ok(None);
    }
    let work = folder("mounted");
    let script = format!("cd \"$0\" || exit 1\n{script}\nexec \"$1\" run-case {case}");
    let mut inner = Command::new("unshare");
    inner.args(["--mount", "sh", "-ec", &script]).arg(&work).arg(exe()).env(WORK, &work);
    let output = inner.output().map_err(|error| error.to_string())?;
    let _ = std::fs::remove_dir_all(work);
    check(&String::from_utf8_lossy(&output.stderr), output.status.success())?;
    Ok(None)
}

/// As in a container whose secrets are mounted one by one.
async fn masked() -> Result<(), String> {
    let script = "mkdir keys; touch .env; echo secret > other\n\
                  mount --bind other .env; mount -t tmpfs none keys; echo secret > keys/key";
    let Some(work) = mounted("SB-05::a_mount_of_the_host_is_masked_too", script)? else { return Ok(()) };
    for read_only in [true, false] {
        let mut policy = SandboxPolicy { read_only, ..SandboxPolicy::for_workspace(&work) };
        policy.mask.extend([".env".into(), "keys".into()]);
        let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
        for _ in 0..2 {
            let request = ExecRequest::new(["sh", "-c", "cat .env keys/key; ls keys"]);
            let result = sandbox.exec(request).await.map_err(text)?;
            check(&result.stdout, !result.stdout.contains("secret") && !result.stdout.contains("key"))?;
        }
    }
    Ok(())
}

/// File systems of the kernel are never shown, one whose owners cannot be mapped does not make the sandbox
/// root outside, and what can be shown is.
async fn below() -> Result<(), String> {
    const NAME: &str = "SB-05::mounts_below_the_workspace_give_nothing_away";
    let script = "mkdir -p root/proc sys data parts/lower parts/upper parts/work over\n\
                  mount -t proc proc root/proc; mount -t sysfs sysfs sys; mount -t tmpfs none data\n\
                  echo data > data/file; mkdir data/deep; mount -t tmpfs none data/deep; echo deep > data/deep/file\n\
                  chmod 777 data data/deep; mount -t tmpfs none parts; cd parts; mkdir lower upper work; cd ..\n\
                  echo secret > parts/lower/key; chmod 600 parts/lower/key\n\
                  mount -t overlay -o lowerdir=parts/lower,upperdir=parts/upper,workdir=parts/work none over || :\n\
                  umount -l parts";
    let Some(work) = mounted(NAME, script)? else { return Ok(()) };
    for read_only in [true, false] {
        shown(&work, read_only).await?;
    }
    // Once more as somebody else, with a workspace of their own.
    if is_root() {
        std::os::unix::fs::chown(&work, Some(NOBODY), Some(NOBODY)).map_err(|error| error.to_string())?;
        as_nobody(NAME)?;
    }
    Ok(())
}

async fn shown(work: &Path, read_only: bool) -> Result<(), String> {
    let policy = SandboxPolicy { read_only, ..SandboxPolicy::for_workspace(work) };
    let told = toolwright_sandbox::explain(&policy).await.map_err(text)?;
    let ordinary = told.layers.iter().find(|report| report.layer == Layer::OrdinaryUser);
    let ordinary = ordinary.ok_or("no word about the user")?;
    check(&format!("{ordinary:?}"), ordinary.available)?;
    let masked = |path: PathBuf| told.view.iter().any(|entry| entry.path == path);
    check("the kernel is masked", masked(work.join("root/proc")) && masked(work.join("sys")))?;

    let sandbox = ProcessSandbox::open(policy).await.map_err(text)?;
    let script = "read _ outside _ < /proc/self/uid_map; echo $outside; ls root/proc sys | grep -v :\n\
                  f=root/proc/sys/vm/swappiness; cat $f > /tmp/was && cat /tmp/was > $f && echo wrote\n\
                  cat over/key data/file data/deep/file; mktemp -p data >/tmp/a && mktemp -p data/deep >/tmp/b && echo made";
    for _ in 0..2 {
        let result = sandbox.exec(ExecRequest::new(["sh", "-c", script])).await.map_err(text)?;
        let made = if read_only { "" } else { "made\n" };
        equal(result.stdout.replace("\n\n", "\n"), format!("{NOBODY}\ndata\ndeep\n{made}"))?;
    }
    // Nor can the kernel be the workspace itself.
    let refused = ProcessSandbox::open(SandboxPolicy::for_workspace(work.join("root/proc/sys/vm"))).await;
    let refused = refused.err().map(text).unwrap_or_default();
    check(&refused, refused.contains("of the machine"))
}
