//! What becomes of a folder, and what is reported.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use toolwright_core::{ChangeKind, KeepReason};
use toolwright_effects::SourceUse;

use crate::support::{Scene, changes, link, put, reasons, set_time, settled_baseline, tick, tree};

#[test]
fn every_kind_of_change_is_applied_and_reported() {
    let scene = Scene::new();
    for (path, text) in [("a", "1"), ("b", "2"), ("c", "3"), ("d/e", "4"), ("d/f", "5"), ("g", "6")] {
        scene.old(path, text);
    }
    scene.old("m", "to be moved");
    set_time(&scene.folder().join("m"), 1_000);
    scene.staged("a", "changed");
    scene.removed("b");
    put(&scene.upper().join("run"), "#!/bin/sh", 0o755);
    scene.staged("new/deep/file", "n");
    scene.opaque("d");
    scene.staged("d/f", "other");
    link("/etc/passwd", &scene.upper().join("l"));
    scene.removed("m");
    scene.staged("n/m", "to be moved");
    set_time(&scene.upper().join("n/m"), 1_000);
    // The same contents at the same time with other permissions: only those were changed.
    let time = fs::metadata(scene.folder().join("g")).unwrap().mtime_nsec();
    put(&scene.upper().join("g"), "6", 0o600);
    let stamp = fs::metadata(scene.folder().join("g")).unwrap().modified().unwrap();
    fs::File::options().write(true).open(scene.upper().join("g")).unwrap().set_modified(stamp).unwrap();
    assert_eq!(fs::metadata(scene.upper().join("g")).unwrap().mtime_nsec(), time);
    tick();

    let effect = scene.commit();
    use ChangeKind::{Added, Changed, Mode, Moved, Removed};
    let mut got = changes(&scene, &effect);
    got.sort();
    let want = [
        ("a", Changed),
        ("b", Removed),
        ("d/e", Removed),
        ("d/f", Changed),
        ("g", Mode),
        ("l", Added),
        ("n/", Added),
        ("n/m", Moved),
        ("new/", Added),
        ("new/deep/", Added),
        ("new/deep/file", Added),
        ("run", Added),
    ];
    assert_eq!(got, want.map(|(path, change)| (path.to_owned(), change)));
    assert!(effect.kept_back.is_empty() && effect.commits.len() == 1, "{effect:?}");
    let runs: Vec<&str> =
        effect.files.iter().filter(|one| one.executable).map(|one| one.path.as_str()).collect();
    assert_eq!(runs, [scene.folder().join("run").display().to_string()]);
    let now = tree(&scene.folder());
    let want = [
        ("a", "file 644 changed"),
        ("c", "file 644 3"),
        ("d", "folder 755"),
        ("d/f", "file 644 other"),
        ("g", "file 600 6"),
        ("l", "link /etc/passwd"),
        ("n", "folder 755"),
        ("n/m", "file 644 to be moved"),
        ("new", "folder 755"),
        ("new/deep", "folder 755"),
        ("new/deep/file", "file 644 n"),
        ("run", "file 755 #!/bin/sh"),
    ];
    assert_eq!(now, want.into_iter().map(|(path, what)| (path.to_owned(), what.to_owned())).collect());
}

#[test]
fn what_changed_outside_meanwhile_is_a_conflict_and_stays() {
    let scene = Scene::new();
    for name in ["changed", "removed", "gone/x", "gone/y", "fine"] {
        scene.old(name, "old");
    }
    tick();
    let mut baseline = settled_baseline();
    tick();
    scene.staged("changed", "ours");
    scene.staged("new", "ours");
    scene.staged("fine", "ours");
    scene.removed("removed");
    scene.removed("gone");
    for name in ["changed", "new", "removed", "gone/x"] {
        scene.old(name, "theirs");
    }
    let effect = scene.commit_with(&mut baseline, SourceUse::Take, &|_| false);
    let want = ["changed", "gone/x", "new", "removed"].map(|name| (name.to_owned(), KeepReason::Conflict));
    assert_eq!(reasons(&scene, &effect), want);
    let now = tree(&scene.folder());
    for name in ["changed", "new", "removed", "gone/x"] {
        assert_eq!(now.get(name).map(String::as_str), Some("file 644 theirs"), "{name}");
    }
    assert_eq!(now.get("fine").map(String::as_str), Some("file 644 ours"));
    assert!(!now.contains_key("gone/y"));
}

#[test]
fn protected_paths_stay_and_the_rest_is_committed() {
    let scene = Scene::new();
    scene.old("secret/a", "old");
    scene.staged("secret/a", "new");
    scene.staged("secret/b", "new");
    scene.staged(".toolwright-commit-x", "ours alone");
    scene.staged("b", "new");
    tick();
    let protect = |path: &std::path::Path| path.starts_with("secret");
    let effect = scene.commit_with(&mut settled_baseline(), SourceUse::Take, &protect);
    let want = [
        (".toolwright-commit-x".to_owned(), KeepReason::Unsupported),
        ("secret".to_owned(), KeepReason::Protected),
    ];
    assert_eq!(reasons(&scene, &effect), want);
    let now = tree(&scene.folder());
    assert_eq!(now.keys().collect::<Vec<_>>(), ["b", "secret", "secret/a"]);
    assert_eq!(now.get("secret/a").map(String::as_str), Some("file 644 old"));
}

#[test]
fn links_in_the_folder_lead_nowhere() {
    let scene = Scene::new();
    let outside = scene.root.join("outside");
    fs::create_dir(&outside).unwrap();
    put(&outside.join("kept"), "kept", 0o644);
    link("../outside", &scene.folder().join("d"));
    link("../outside/kept", &scene.folder().join("f"));
    tick();
    scene.staged("d/kept", "planted");
    scene.staged("f", "planted");
    let effect = scene.commit();
    assert!(effect.kept_back.is_empty(), "{effect:?}");
    assert_eq!(fs::read_to_string(outside.join("kept")).unwrap(), "kept");
    assert_eq!(tree(&scene.folder()).get("d/kept").map(String::as_str), Some("file 644 planted"));
}

#[test]
fn an_overlay_that_is_still_used_is_committed_again_and_again() {
    let scene = Scene::new();
    scene.old("log", "1");
    tick();
    let mut baseline = settled_baseline();
    tick();
    scene.staged("log", "12");
    let effect = scene.commit_with(&mut baseline, SourceUse::Copy, &|_| false);
    assert_eq!(changes(&scene, &effect), [("log".to_owned(), ChangeKind::Changed)]);
    assert!(scene.upper().join("log").exists(), "it is still used");
    let again = scene.commit_with(&mut baseline, SourceUse::Copy, &|_| false);
    assert!(again.is_empty() && again.commits.is_empty(), "{again:?}");
    scene.staged("log", "123");
    tick();
    let more = scene.commit_with(&mut baseline, SourceUse::Copy, &|_| false);
    assert_eq!(changes(&scene, &more), [("log".to_owned(), ChangeKind::Changed)]);
    // Changed outside after a commit of this overlay, then by the overlay again.
    tick();
    scene.old("log", "theirs");
    tick();
    let quiet = scene.commit_with(&mut baseline, SourceUse::Copy, &|_| false);
    assert!(quiet.is_empty());
    scene.staged("log", "1234");
    let late = scene.commit_with(&mut baseline, SourceUse::Copy, &|_| false);
    assert_eq!(reasons(&scene, &late), [("log".to_owned(), KeepReason::Conflict)]);
    assert_eq!(fs::read_to_string(scene.folder().join("log")).unwrap(), "theirs");
}

#[test]
fn opening_a_file_for_writing_changes_nothing() {
    let scene = Scene::new();
    scene.old("a", "text");
    let stamp = fs::metadata(scene.folder().join("a")).unwrap().modified().unwrap();
    scene.staged("a", "text");
    fs::File::options().write(true).open(scene.upper().join("a")).unwrap().set_modified(stamp).unwrap();
    let effect = scene.commit();
    assert!(effect.is_empty() && effect.commits.is_empty(), "{effect:?}");
    // The same size and time do not make the same contents.
    scene.staged("a", "TEXT");
    fs::File::options().write(true).open(scene.upper().join("a")).unwrap().set_modified(stamp).unwrap();
    assert_eq!(changes(&scene, &scene.commit()), [("a".to_owned(), ChangeKind::Changed)]);
}

#[test]
fn files_of_two_names_are_removed_together() {
    let scene = Scene::new();
    scene.old("a", "x");
    fs::hard_link(scene.folder().join("a"), scene.folder().join("b")).unwrap();
    tick();
    scene.removed("a");
    scene.removed("b");
    let effect = scene.commit();
    assert!(effect.kept_back.is_empty(), "{effect:?}");
    assert!(tree(&scene.folder()).is_empty());
}

#[test]
fn a_set_user_id_bit_is_not_committed() {
    let scene = Scene::new();
    put(&scene.upper().join("s"), "x", 0o4755);
    scene.commit();
    assert_eq!(fs::metadata(scene.folder().join("s")).unwrap().permissions().mode() & 0o7777, 0o755);
}

#[test]
fn a_store_that_others_can_use_is_refused() {
    let scene = Scene::new();
    let open = scene.root.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, PermissionsExt::from_mode(0o755)).unwrap();
    let error = toolwright_effects::CommitStore::open(&open).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied);
}
