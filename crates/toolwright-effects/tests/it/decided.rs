//! Changes that somebody decides about: applied in part, dropped, or set aside and applied later.

use std::fs;
use std::path::Path;

use toolwright_core::{ChangeKind, EffectOutcome, EffectVerdict, KeepReason, StagedEffect};
use toolwright_effects::{SourceUse, commit_set_aside, drop_set_aside, undo};

use crate::support::{Scene, changes, reasons, settled_baseline, tick, tree};

fn is_dotfile(path: &Path) -> bool {
    path.starts_with(".envrc")
}

/// A folder with a change of each kind, and one of a protected file.
fn scene() -> Scene {
    let scene = Scene::new();
    for (path, text) in [("a", "1\n"), ("b", "2\n"), ("d/e", "3\n"), (".envrc", "old\n")] {
        scene.old(path, text);
    }
    tick();
    scene.staged("a", "changed\n");
    scene.removed("b");
    scene.staged("new/f", "n\n");
    scene.staged(".envrc", "evil\n");
    scene
}

fn settle(scene: &Scene, verdict: &EffectVerdict) -> toolwright_core::CallEffect {
    scene.settle_with(&mut settled_baseline(), SourceUse::Take, &is_dotfile, verdict)
}

#[test]
fn what_is_decided_about_is_described_and_nothing_is_changed_by_that() {
    let scene = scene();
    let before = tree(&scene.folder());
    let mut staged = StagedEffect::default();
    scene.pending(&settled_baseline(), SourceUse::Take, &is_dotfile).describe(&mut staged);
    assert_eq!((staged.changes.len(), staged.protected.len(), staged.deletes), (4, 1, 1), "{staged:?}");
    assert_eq!((staged.bytes, staged.deletes_most), (8 + 2 + 5, false), "{staged:?}");
    for part in ["-1\n+changed\n", "--- a/b\n+++ /dev/null\n", "+++ b/new/f\n", "+evil\n"] {
        assert!(staged.diff.contains(part), "{part}: {}", staged.diff);
    }
    assert_eq!(tree(&scene.folder()), before);
}

#[test]
fn protected_files_are_set_aside_and_applied_when_a_person_says_so() {
    let scene = scene();
    let effect = settle(&scene, &EffectVerdict::default());
    assert_eq!(reasons(&scene, &effect), [(".envrc".to_owned(), KeepReason::Protected)]);
    assert_eq!(fs::read_to_string(scene.folder().join(".envrc")).unwrap(), "old\n");
    assert!(scene.folder().join("new/f").exists() && !scene.folder().join("b").exists());
    let store = scene.store();
    assert_eq!(effect.set_aside.len(), 1, "{effect:?}");
    let id = &effect.set_aside[0];
    assert!(effect.kept_back_text().contains(id));
    assert_eq!(store.set_aside().len(), 1);
    let applied = commit_set_aside(&store, id).unwrap();
    assert_eq!(changes(&scene, &applied), [(".envrc".to_owned(), ChangeKind::Changed)]);
    assert_eq!(fs::read_to_string(scene.folder().join(".envrc")).unwrap(), "evil\n");
    assert!(store.set_aside().is_empty() && commit_set_aside(&store, id).is_err());
    // It can be undone like any other commit.
    undo(&store, &applied.commits[0]).unwrap();
    assert_eq!(fs::read_to_string(scene.folder().join(".envrc")).unwrap(), "old\n");
}

#[test]
fn a_whole_effect_is_set_aside_and_applied_later() {
    let scene = scene();
    let before = tree(&scene.folder());
    let effect = settle(&scene, &EffectVerdict::SetAside { reason: "too much".to_owned() });
    assert_eq!(effect.outcome, EffectOutcome::SetAside);
    assert!(effect.kept_back_text().contains("too much"), "{effect:?}");
    assert_eq!(tree(&scene.folder()), before);
    let store = scene.store();
    let aside = &store.set_aside()[0];
    assert_eq!((aside.call.as_deref(), aside.reason.as_deref()), (Some("call_1"), Some("too much")));
    // What changed meanwhile is a conflict, and stays set aside.
    scene.old("a", "mine\n");
    let applied = commit_set_aside(&store, &aside.id).unwrap();
    assert_eq!(reasons(&scene, &applied), [("a".to_owned(), KeepReason::Conflict)]);
    assert_eq!(applied.set_aside, [aside.id.clone()]);
    assert!(scene.folder().join("new/f").exists() && !scene.folder().join("b").exists());
    assert_eq!(fs::read_to_string(scene.folder().join("a")).unwrap(), "mine\n");
    drop_set_aside(&store, &aside.id).unwrap();
    assert!(store.set_aside().is_empty());
}

#[test]
fn parts_are_chosen_and_the_rest_is_set_aside() {
    let scene = scene();
    let except = vec![scene.folder().join("new").display().to_string()];
    let effect = settle(&scene, &EffectVerdict::Commit { protected: true, except });
    assert!(!scene.folder().join("new").exists() && !scene.folder().join("b").exists());
    assert_eq!(fs::read_to_string(scene.folder().join(".envrc")).unwrap(), "evil\n");
    let declined = |path: &str| (path.to_owned(), KeepReason::Declined);
    assert_eq!(reasons(&scene, &effect), [declined("new"), declined("new/f")]);
    commit_set_aside(&scene.store(), &effect.set_aside[0]).unwrap();
    assert!(scene.folder().join("new/f").exists());
}

#[test]
fn what_is_discarded_is_gone() {
    let scene = scene();
    let before = tree(&scene.folder());
    let effect = settle(&scene, &EffectVerdict::Discard { reason: "no".to_owned() });
    assert_eq!((effect.outcome, effect.set_aside.len()), (EffectOutcome::Discarded, 0));
    assert_eq!(tree(&scene.folder()), before);
    assert!(scene.store().set_aside().is_empty());
}

#[test]
fn the_later_of_two_changes_names_the_call_that_was_first_and_is_kept() {
    let scene = Scene::new();
    scene.old("a", "1\n");
    tick();
    let mut baseline = settled_baseline();
    tick();
    scene.staged("a", "first\n");
    scene.commit();
    scene.staged("a", "second\n");
    let effect = scene.commit_with(&mut baseline, SourceUse::Take, &|_| false);
    assert_eq!(effect.kept_back[0].by.as_deref(), Some("call_1"), "{effect:?}");
    assert_eq!(fs::read_to_string(scene.folder().join("a")).unwrap(), "first\n");
    commit_set_aside(&scene.store(), &effect.set_aside[0]).unwrap();
    assert_eq!(fs::read_to_string(scene.folder().join("a")).unwrap(), "second\n");
}

#[test]
fn a_file_that_became_a_folder_and_the_reverse_are_undone() {
    let scene = Scene::new();
    scene.old("file", "f\n");
    scene.old("folder/inner", "i\n");
    tick();
    let before = tree(&scene.folder());
    scene.staged("file/inner", "x\n");
    scene.staged("folder", "now a file\n");
    let effect = scene.commit();
    assert!(effect.kept_back.is_empty(), "{effect:?}");
    assert!(scene.folder().join("file/inner").is_file() && scene.folder().join("folder").is_file());
    let undone = undo(&scene.store(), &effect.commits[0]).unwrap();
    assert!(undone.kept_back.is_empty(), "{undone:?}");
    assert_eq!(tree(&scene.folder()), before);
}
