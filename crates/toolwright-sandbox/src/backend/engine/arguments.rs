//! From a policy to the arguments that start its container.

use std::path::{Path, PathBuf};

use toolwright_core::ToolError;

use super::running::SWEEP;
use super::{Engine, INIT};
use crate::launcher::client::unavailable;
use crate::layer::guard::Guard;
use crate::layer::identity::{HOME, INSIDE};
use crate::layer::mounts::Mounts;
use crate::layer::sockets;
use crate::policy::{Network, SandboxLimits, SandboxPolicy};
use crate::sys;

/// The client's words. The workspace is a path of the host as well unless it is a private one.
pub(super) fn run(
    engine: Engine,
    policy: &SandboxPolicy,
    workspace: &Path,
    guards: &[Guard],
    name: &str,
) -> Result<Vec<String>, ToolError> {
    let program = engine.program();
    let image = policy.image.as_deref().filter(|image| !image.is_empty() && !image.starts_with('-'));
    let image = image.ok_or_else(|| {
        unavailable(format!("the `{program}` sandbox needs an image"))
            .hint(format!("name one: `{program}:debian:12`, or `image` in the policy"))
    })?;
    if let Network::Allow(_) = policy.network {
        return Err(unavailable(format!("the `{program}` sandbox has no network access to chosen hosts"))
            .hint("use `network: off`, or the `process` sandbox"));
    }
    let mut words = CommandLine(vec![program.to_owned()]);
    words.all(["run", "--rm", "--interactive", "--pull", "never", "--name", name, "--hostname", "sandbox"]);
    words.all(["--label", "toolwright.sandbox", "--network", "none", "--read-only", "--ipc", "private"]);
    words.all(["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]);
    let owner = match &policy.workspace {
        Some(folder) => owner(folder)?,
        None => (INSIDE, INSIDE),
    };
    words.pair("--user", format!("{}:{}", owner.0, owner.1));
    if engine == Engine::Podman && sys::effective_ids().0 != 0 {
        // Without root, a user inside is another one outside unless told otherwise.
        words.all(["--userns", "keep-id"]);
    }

    words.limits(engine, &policy.limits);
    words.pair("--shm-size", policy.limits.scratch);
    let private: &[&str] = if policy.workspace.is_none() { &[super::PRIVATE_WORKSPACE] } else { &[] };
    for place in ["/tmp", HOME].iter().chain(private) {
        // An engine may give a folder the mode it has in the image. To Docker the owner and the number of
        // files can be said too; with Podman the files count as memory.
        let more = match engine {
            Engine::Docker => {
                format!(",uid={},gid={},nr_inodes={}", owner.0, owner.1, policy.limits.scratch_files())
            }
            Engine::Podman => String::new(),
        };
        let size = policy.limits.scratch;
        words.pair("--tmpfs", format!("{place}:rw,exec,nosuid,nodev,size={size},mode=1777{more}"));
    }

    words.folders(engine, policy, workspace, guards)?;
    words.all(["--entrypoint", "/bin/sh", image, "-c"]);
    words.0.push(format!("{SWEEP}\n{INIT}"));
    Ok(words.0)
}

/// An engine shows what is mounted below a folder too, and its commands may be root outside.
fn refuse_the_kernel(folders: &[&Path], mounts: &Mounts) -> Result<(), ToolError> {
    for folder in folders {
        let folder = super::super::shared::real(folder)?;
        let at_all = mounts.is_of_the_kernel(&folder).then(|| folder.clone());
        if let Some(path) = at_all.into_iter().chain(mounts.of_the_kernel_below(&folder)).next() {
            let message = format!("`{}` is a file system of the kernel and cannot be shown", path.display());
            return Err(
                unavailable(message).hint("unmount it, or use the `process` sandbox, which leaves it out")
            );
        }
    }
    Ok(())
}

/// The command line of an engine, built word by word.
struct CommandLine(Vec<String>);

impl CommandLine {
    fn all<const N: usize>(&mut self, words: [&str; N]) {
        self.0.extend(words.map(str::to_owned));
    }

    fn pair(&mut self, name: &str, value: impl ToString) {
        self.0.extend([name.to_owned(), value.to_string()]);
    }

    fn bind(&mut self, source: &Path, target: &Path, writable: bool) -> Result<(), ToolError> {
        let readonly = if writable { "" } else { ",readonly" };
        let (source, target) = (plain(source)?, plain(target)?);
        self.pair("--mount", format!("type=bind,source={source},target={target}{readonly}"));
        Ok(())
    }

    fn limits(&mut self, engine: Engine, limits: &SandboxLimits) {
        for (name, limit) in [
            ("--memory", limits.memory),
            ("--memory-swap", limits.memory),
            ("--pids-limit", limits.processes),
        ] {
            if let Some(limit) = limit {
                self.pair(name, limit);
            }
        }
        for (name, limit) in
            [("cpu", limits.cpu_seconds), ("fsize", limits.file_size), ("nofile", limits.open_files)]
        {
            if let Some(limit) = limit {
                self.pair("--ulimit", format!("{name}={limit}:{limit}"));
            }
        }
        self.all(["--ulimit", "core=0:0"]);
        if engine == Engine::Podman {
            // Its own default is more than many a machine lets it ask for.
            let most = sys::process::hard_limit(libc::RLIMIT_NPROC).unwrap_or(4096).min(32_768);
            self.pair("--ulimit", format!("nproc={most}:{most}"));
        }
    }

    /// What of the host is shown, and what of that is not.
    fn folders(
        &mut self,
        engine: Engine,
        policy: &SandboxPolicy,
        workspace: &Path,
        guards: &[Guard],
    ) -> Result<(), ToolError> {
        // Podman fills a new folder with what it covers, unless told not to.
        let empty = match engine {
            Engine::Docker => "",
            Engine::Podman => ",notmpcopyup",
        };
        let mut shown: Vec<(PathBuf, bool)> = Vec::new();
        for (paths, writable) in [(&policy.read, false), (&policy.write, true)] {
            for path in paths {
                shown.push((super::super::shared::exists(path)?, writable));
            }
        }
        shown.extend(policy.workspace.iter().map(|folder| (folder.clone(), !policy.read_only)));
        shown.sort_by_key(|(path, _)| path.components().count());
        for (path, writable) in &shown {
            self.bind(path, path, *writable)?;
        }
        for guard in guards {
            self.bind(&guard.path, &guard.path, guard.pin)?;
        }
        let folders: Vec<&Path> = shown.iter().map(|(path, _)| path.as_path()).collect();
        let mounts =
            Mounts::read().map_err(|error| unavailable("mounts cannot be listed").with_source(error))?;
        refuse_the_kernel(&folders, &mounts)?;
        let sockets = sockets::of_the_host(&folders, &policy.mask, &mounts).map_err(unavailable)?;
        for path in policy.mask.iter().chain(&sockets) {
            let path = workspace.join(path);
            // Files of the image itself are not secrets of this machine.
            if !shown.iter().any(|(folder, _)| path.starts_with(folder)) {
                continue;
            }
            match std::fs::symlink_metadata(&path) {
                Ok(about) if about.is_dir() => {
                    self.pair("--tmpfs", format!("{}:ro,size=4096,mode=0555{empty}", plain(&path)?))
                }
                Ok(about) if about.is_symlink() => {
                    return Err(unavailable(format!("`{}` is a link and cannot be masked", path.display())));
                }
                Ok(_) => self.bind(Path::new("/dev/null"), &path, false)?,
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// A path that means the same in the client's little languages.
fn plain(path: &Path) -> Result<&str, ToolError> {
    path.to_str()
        .filter(|text| !text.contains([',', ':', '"', '\n', '\r']))
        .ok_or_else(|| unavailable(format!("`{}` cannot be given to a container engine", path.display())))
}

fn owner(folder: &Path) -> Result<(u32, u32), ToolError> {
    use std::os::unix::fs::MetadataExt;
    let about = std::fs::metadata(folder)
        .map_err(|error| unavailable(format!("`{}` cannot be used", folder.display())).with_source(error))?;
    Ok((about.uid(), about.gid()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_folders_are_bounded_as_far_as_the_engine_can() {
        let policy = SandboxPolicy { image: Some("debian".to_owned()), ..SandboxPolicy::private() };
        let folders = |engine| {
            let words = run(engine, &policy, Path::new(super::super::PRIVATE_WORKSPACE), &[], "n").unwrap();
            words.into_iter().filter(|word| word.contains(",size=")).collect::<Vec<_>>()
        };
        for (engine, most) in [(Engine::Docker, ",nr_inodes=131072"), (Engine::Podman, ",mode=1777")] {
            let told = folders(engine);
            assert!(told.len() == 3 && told.iter().all(|one| one.ends_with(most)), "{told:?}");
        }
    }
}
