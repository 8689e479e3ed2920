//! Commits whose process is killed at every point: after recovery the folder is as before or as committed,
//! and holds no file of ours.
//!
//! `TOOLWRIGHT_KILL_POINTS` sets how many kills are tried, `TOOLWRIGHT_KILL_SEED` repeats a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use toolwright_effects::failpoint;

use crate::support::{Scene, link, put, tick, tree};

const CHILD: &str = "TOOLWRIGHT_KILL_CHILD";

/// A small generator of numbers, so that a seed repeats a run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

type Tree = BTreeMap<String, String>;

/// Makes a folder and an upper layer; returns what the folder is to be after the commit.
fn build(scene: &Scene, numbers: &mut Numbers) -> Tree {
    let folders = ["", "a/", "a/b/", "c/"];
    let mut wanted = Tree::new();
    for folder in folders {
        for name in ["1", "2", "3", "4"] {
            if numbers.below(4) > 0 {
                scene.old(&format!("{folder}{name}"), &format!("old {}", numbers.below(100)));
            }
        }
    }
    for folder in folders.iter().filter(|folder| !folder.is_empty()) {
        fs::create_dir_all(scene.folder().join(folder)).unwrap();
    }
    tick();
    wanted.extend(tree(&scene.folder()));
    for folder in folders {
        let gone = !folder.is_empty() && !scene.upper().join(folder).exists() && numbers.below(6) == 0;
        if gone {
            let bare = folder.trim_end_matches('/');
            if !hidden(scene, bare) {
                scene.removed(bare);
                wanted.retain(|path, _| path != bare && !path.starts_with(folder));
            }
            continue;
        }
        for name in ["1", "2", "3", "4", "5"] {
            let path = format!("{folder}{name}");
            if hidden(scene, &path) {
                continue;
            }
            let is_file = scene.folder().join(&path).is_file();
            match numbers.below(7) {
                // What was a file becomes a folder.
                6 if is_file => {
                    scene.staged(&format!("{path}/inner"), "in");
                    wanted.insert(path.clone(), "folder 755".to_owned());
                    wanted.insert(format!("{path}/inner"), "file 644 in".to_owned());
                }
                0 => {
                    let text = format!("new {}", numbers.below(100));
                    put(&scene.upper().join(&path), &text, 0o755);
                    wanted.insert(path, format!("file 755 {text}"));
                }
                1 => {
                    scene.removed(&path);
                    wanted.remove(&path);
                }
                2 => {
                    link("x", &scene.upper().join(&path));
                    wanted.insert(path, "link x".to_owned());
                }
                3 => {
                    scene.staged(&format!("{path}.d/inner"), "in");
                    wanted.insert(format!("{path}.d"), "folder 755".to_owned());
                    wanted.insert(format!("{path}.d/inner"), "file 644 in".to_owned());
                }
                _ => {}
            }
        }
    }
    wanted
}

/// Whether something above a path was removed by the call.
fn hidden(scene: &Scene, path: &str) -> bool {
    Path::new(path)
        .ancestors()
        .filter(|above| !above.as_os_str().is_empty())
        .any(|above| fs::symlink_metadata(scene.upper().join(above)).is_ok_and(|about| !about.is_dir()))
}

#[test]
fn a_commit_that_is_killed_anywhere_is_whole_after_recovery() {
    if let Ok(child) = std::env::var(CHILD) {
        let (count, root) = child.split_once(':').expect("a count and a folder");
        failpoint::stop_at(count.parse().unwrap());
        Scene::at(Path::new(root)).commit();
        return;
    }
    let count = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let kills = count("TOOLWRIGHT_KILL_POINTS").unwrap_or(40);
    let seed = count("TOOLWRIGHT_KILL_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("TOOLWRIGHT_KILL_SEED={seed}");
    let mut numbers = Numbers(seed);
    let (mut killed, mut finished) = (0, 0);
    while killed < kills {
        let scene = Scene::new();
        let wanted = build(&scene, &mut numbers);
        let before = tree(&scene.folder());
        let point = 1 + numbers.below(60);
        let name = "killed::a_commit_that_is_killed_anywhere_is_whole_after_recovery";
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name])
            .env(CHILD, format!("{point}:{}", scene.root.display()))
            .output()
            .unwrap();
        if output.status.success() {
            finished += 1;
            assert!(finished < 20 * kills.max(10), "no commit is long enough to be killed");
        } else {
            killed += 1;
        }
        // A second kill, of the recovery itself, is what the next recovery finishes.
        let recovered = scene.store().recover().unwrap();
        let now = tree(&scene.folder());
        let told: Vec<_> = recovered.iter().flat_map(|one| &one.effect.kept_back).collect();
        assert!(told.is_empty(), "seed {seed}, kill {killed} at {point}: {told:?}");
        let state = if now == before { "before" } else { "after" };
        let as_wanted = now == wanted || (now == before && recovered.is_empty());
        assert!(
            as_wanted,
            "seed {seed}, kill {killed} at point {point} ({state}):\nbefore {before:#?}\nnow {now:#?}\nwanted {wanted:#?}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(scene.store().recover().unwrap().is_empty());
    }
}
