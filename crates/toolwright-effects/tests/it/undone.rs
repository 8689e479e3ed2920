//! Undo restores what a commit changed, and only that.

use std::fs;

use toolwright_core::KeepReason;
use toolwright_effects::undo;

use crate::support::{Scene, link, put, reasons, tick, tree};

fn varied() -> Scene {
    let scene = Scene::new();
    for (path, text) in [("a", "1"), ("b", "2"), ("d/e", "3"), ("d/f", "4"), ("x/y", "5")] {
        scene.old(path, text);
    }
    put(&scene.folder().join("run"), "r", 0o755);
    link("a", &scene.folder().join("l"));
    tick();
    scene
}

#[test]
fn undo_restores_the_folder_and_can_be_undone() {
    let scene = varied();
    let before = tree(&scene.folder());
    scene.staged("a", "changed");
    scene.removed("b");
    scene.removed("d");
    scene.staged("x/new/file", "n");
    scene.removed("run");
    link("b", &scene.upper().join("l"));
    let id = scene.commit().commits.remove(0);
    let after = tree(&scene.folder());
    assert_ne!(before, after);
    let back = undo(&scene.store(), &id).unwrap();
    assert!(back.kept_back.is_empty(), "{back:?}");
    assert_eq!(tree(&scene.folder()), before);
    undo(&scene.store(), &back.commits[0]).unwrap();
    assert_eq!(tree(&scene.folder()), after);
    assert!(undo(&scene.store(), &id).is_err(), "it is undone already");
}

#[test]
fn undo_leaves_what_changed_since() {
    let scene = varied();
    scene.staged("a", "changed");
    scene.staged("new/x", "n");
    scene.removed("b");
    let id = scene.commit().commits.remove(0);
    tick();
    scene.old("a", "edited since");
    scene.old("new/mine", "mine");
    let back = undo(&scene.store(), &id).unwrap();
    let mut got = reasons(&scene, &back);
    got.sort();
    let want = [("a".to_owned(), KeepReason::Conflict), ("new".to_owned(), KeepReason::Conflict)];
    assert_eq!(got, want);
    let now = tree(&scene.folder());
    assert_eq!(now.get("a").map(String::as_str), Some("file 644 edited since"));
    assert_eq!(now.get("b").map(String::as_str), Some("file 644 2"));
    assert!(now.contains_key("new/mine") && !now.contains_key("new/x"));
}

#[test]
fn contents_are_kept_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let scene = varied();
    scene.removed("b");
    let id = scene.commit().commits.remove(0);
    let mut open = vec![scene.root.join("store")];
    let mut files = 0;
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let about = entry.metadata().unwrap();
            assert_eq!(about.permissions().mode() & 0o077, 0, "{}", entry.path().display());
            if about.is_dir() { open.push(entry.path()) } else { files += 1 }
        }
    }
    assert!(files >= 2, "a blob and a record");
    for bad in ["", "../x", "/etc/passwd", &id.replace('-', "/")] {
        assert!(undo(&scene.store(), bad).is_err(), "{bad}");
    }
}
