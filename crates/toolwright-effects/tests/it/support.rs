//! A folder, the upper layer of an overlay of it, and a store, in a folder that is removed at the end.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use toolwright_core::{CallEffect, ChangeKind, EffectVerdict, KeepReason};
use toolwright_effects::{CommitRequest, CommitStore, OverlayBaseline, PendingCommit, SourceUse};

pub(crate) struct Scene {
    pub(crate) root: PathBuf,
    _owned: Option<tempfile::TempDir>,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        let owned = tempfile::tempdir().unwrap();
        let root = owned.path().canonicalize().unwrap();
        let scene = Scene { root, _owned: Some(owned) };
        fs::create_dir(scene.folder()).unwrap();
        fs::create_dir(scene.upper()).unwrap();
        scene
    }

    /// One that another process has made.
    pub(crate) fn at(root: &Path) -> Scene {
        Scene { root: root.to_owned(), _owned: None }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.root.join("folder")
    }

    pub(crate) fn upper(&self) -> PathBuf {
        self.root.join("upper")
    }

    pub(crate) fn store(&self) -> CommitStore {
        CommitStore::open(&self.root.join("store")).unwrap()
    }

    /// A file of the folder that was there long before the call.
    pub(crate) fn old(&self, path: &str, text: &str) {
        put(&self.folder().join(path), text, 0o644);
    }

    /// A file that the call wrote.
    pub(crate) fn staged(&self, path: &str, text: &str) {
        put(&self.upper().join(path), text, 0o644);
    }

    /// A path that the call removed.
    pub(crate) fn removed(&self, path: &str) {
        let path = self.upper().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        mknodat(CWD, &path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    }

    /// A folder that the call removed and made again.
    pub(crate) fn opaque(&self, path: &str) {
        let path = self.upper().join(path);
        fs::create_dir_all(&path).unwrap();
        rustix::fs::setxattr(&path, "user.overlay.opaque", b"y", rustix::fs::XattrFlags::empty()).unwrap();
    }

    pub(crate) fn commit(&self) -> CallEffect {
        self.commit_with(&mut settled_baseline(), SourceUse::Take, &|_| false)
    }

    pub(crate) fn commit_with(
        &self,
        baseline: &mut OverlayBaseline,
        source: SourceUse,
        protect: &dyn Fn(&Path) -> bool,
    ) -> CallEffect {
        self.settle_with(baseline, source, protect, &EffectVerdict::default())
    }

    /// Commits as somebody has decided, for a call named `call_1`.
    pub(crate) fn settle_with(
        &self,
        baseline: &mut OverlayBaseline,
        source: SourceUse,
        protect: &dyn Fn(&Path) -> bool,
        verdict: &EffectVerdict,
    ) -> CallEffect {
        self.pending(baseline, source, protect).settle(verdict, baseline).unwrap()
    }

    pub(crate) fn pending(
        &self,
        baseline: &OverlayBaseline,
        source: SourceUse,
        protect: &dyn Fn(&Path) -> bool,
    ) -> PendingCommit {
        PendingCommit::compare(CommitRequest {
            store: &self.store(),
            folder: &self.folder(),
            upper: &self.upper(),
            aside: &self.root.join("aside"),
            call: Some("call_1"),
            source,
            baseline,
            protect,
        })
        .unwrap()
    }
}

/// The baseline of an overlay that is mounted after everything that is there was written.
pub(crate) fn settled_baseline() -> OverlayBaseline {
    OverlayBaseline::now()
}

pub(crate) fn put(path: &Path, text: &str, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

pub(crate) fn set_time(path: &Path, seconds: u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

pub(crate) fn link(to: &str, path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(to, path).unwrap();
}

/// Waits until a change gets a later time than anything before.
pub(crate) fn tick() {
    std::thread::sleep(Duration::from_millis(25));
}

/// Everything in a folder: its kind, permissions, and contents or target.
pub(crate) fn tree(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(here) = open.pop() {
        for entry in fs::read_dir(&here).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            let mode = about.permissions().mode() & 0o7777;
            let what = if about.is_dir() {
                open.push(path);
                format!("folder {mode:o}")
            } else if about.is_symlink() {
                format!("link {}", fs::read_link(&path).unwrap().display())
            } else {
                format!("file {mode:o} {}", fs::read_to_string(&path).unwrap())
            };
            found.insert(name, what);
        }
    }
    found
}

/// The changes of an effect by path below the folder.
pub(crate) fn changes(scene: &Scene, effect: &CallEffect) -> Vec<(String, ChangeKind)> {
    let prefix = format!("{}/", scene.folder().display());
    let change = |one: &toolwright_core::FileChange| (one.path.replace(&prefix, ""), one.change);
    effect.files.iter().map(change).collect()
}

pub(crate) fn reasons(scene: &Scene, effect: &CallEffect) -> Vec<(String, KeepReason)> {
    let prefix = format!("{}/", scene.folder().display());
    effect.kept_back.iter().map(|one| (one.path.replace(&prefix, ""), one.reason)).collect()
}
