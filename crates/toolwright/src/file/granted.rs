//! Paths that a person or a file grants to a sandbox. A command of an earlier sandbox may have left links in
//! the current folder, so none there is followed.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use toolwright_core::ToolError;

/// The most links on the way to a path, as for the kernel.
const MAX_LINKS: usize = 40;

/// The path that is meant, without links. `folder` is the current one, where relative paths begin, without
/// links itself. A link that lies in it is an error.
pub(super) fn granted(path: &Path, folder: &Path) -> Result<PathBuf, ToolError> {
    let unusable = |error: io::Error| ToolError::invalid(format!("cannot use `{}`: {error}", path.display()));
    let mut here = PathBuf::from("/");
    let mut links = 0;
    let mut rest = parts(&folder.join(path));
    while let Some(part) = rest.pop_front() {
        let Some(name) = part else {
            here.pop();
            continue;
        };
        let next = here.join(&name);
        let about = fs::symlink_metadata(&next).map_err(unusable)?;
        if !about.is_symlink() {
            here = next;
            continue;
        }
        let to = fs::read_link(&next).map_err(unusable)?;
        if here.starts_with(folder) {
            let message = format!(
                "`{}` goes through the link `{}`, which a command could have made",
                path.display(),
                next.display()
            );
            let meant = here.join(&to);
            return Err(ToolError::invalid(message)
                .hint(format!("name what it leads to, `{}`, if that is meant", meant.display())));
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(unusable(io::Error::other("too many levels of symbolic links")));
        }
        if to.is_absolute() {
            here = PathBuf::from("/");
        }
        for part in parts(&to).into_iter().rev() {
            rest.push_front(part);
        }
    }
    Ok(here)
}

/// The parts of a path; `None` is the folder above.
fn parts(path: &Path) -> VecDeque<Option<OsString>> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => Some(Some(name.to_owned())),
        Component::ParentDir => Some(None),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_in_the_current_folder_grant_nothing() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let (work, victim) = (root.join("work"), root.join("victim"));
        for folder in [work.join("real/deep"), victim.join("inner")] {
            fs::create_dir_all(folder).unwrap();
        }
        symlink(&victim, work.join("build")).unwrap();
        symlink("../victim", work.join("real/up")).unwrap();
        symlink("real", work.join("within")).unwrap();
        // One outside is the person's own; one that it leads to need not be.
        symlink(&work, root.join("to-work")).unwrap();
        symlink(work.join("build"), root.join("to-build")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let to = |path: &Path| granted(path, &work).map_err(|error| error.message().to_owned());
        for (path, want) in [
            ("real", work.join("real")),
            ("real/deep/..", work.join("real")),
            (".", work.clone()),
            ("../victim/inner", victim.join("inner")),
            ("../to-work/real", work.join("real")),
        ] {
            assert_eq!(to(Path::new(path)), Ok(want), "{path}");
        }
        let absolute = work.join("build");
        for path in [
            "build",
            "build/inner",
            "real/up",
            "within",
            "../to-work/build",
            "../to-build",
            "./build/../victim",
        ] {
            assert!(to(Path::new(path)).unwrap_err().contains("link"), "{path}");
        }
        assert!(to(&absolute).unwrap_err().contains("link"));
        assert!(to(Path::new("../loop")).is_err());
        assert!(to(Path::new("missing")).is_err());
    }
}
