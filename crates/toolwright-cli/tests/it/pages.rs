//! Commands and files shown in the README and the guide are run.

use std::path::{Path, PathBuf};

use crate::show_in;

fn page(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The code blocks of one language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line.trim() == format!("```{language}") {
            blocks.push(
                lines
                    .by_ref()
                    .take_while(|line| line.trim() != "```")
                    .map(|line| format!("{line}\n"))
                    .collect(),
            );
        }
    }
    blocks
}

#[test]
fn the_policy_of_the_guide_is_one() {
    let blocks = blocks(&page("docs/guide/policies.md"), "yaml");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("policy.yaml"), &blocks[0]).unwrap();
    let shown = show_in(folder.path(), &["check", "--policy", "policy.yaml"], "");
    assert!(shown.contains("5 rules: 1 warning") && shown.ends_with("--- exit 0\n"), "{shown}");
    let of_agents = &self::blocks(&page("docs/guide/hooks.md"), "yaml")[0];
    std::fs::write(folder.path().join("policy.yaml"), of_agents).unwrap();
    let call = r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{"file_path":"/w/.env"},"cwd":"/w"}"#;
    let args = ["hook", "--client", "codex", "--policy", "policy.yaml", "--no-record"];
    let shown = show_in(folder.path(), &args, call);
    assert!(shown.contains(r#""permissionDecisionReason":"secrets""#), "{shown}");
}

#[test]
fn the_policy_of_sandboxes_is_one() {
    let blocks = blocks(&page("docs/guide/sandbox.md"), "yaml");
    let policy: toolwright::sandbox::SandboxPolicy = serde_saphyr::from_str(&blocks[0]).unwrap();
    assert_eq!(policy.workspace.as_deref(), Some(Path::new("/srv/app")));
    assert_eq!(policy.network, toolwright::sandbox::Network::Off);
}

#[test]
fn the_script_of_the_guide_plays() {
    let blocks = blocks(&page("docs/guide/testing.md"), "yaml");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("replies.yaml"), &blocks[0]).unwrap();
    let shown = show_in(folder.path(), &["ask", "go", "--model", "scripted/replies.yaml"], "");
    assert!(shown.contains("It is 3."), "{shown}");
}

#[test]
fn the_yaml_tool_of_the_readme_works() {
    let blocks = blocks(&page("README.md"), "yaml");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("toolwright.yaml"), &blocks[0]).unwrap();
    let checked = show_in(folder.path(), &["check"], "");
    assert!(checked.contains("1 tool: no problems"), "{checked}");
    let called = show_in(folder.path(), &["call", "greet", "names=[\"ada\"]", "-f", "toolwright.yaml"], "");
    assert!(called.contains("Hello, Ada!"), "{called}");
}

#[test]
fn cargo_run_in_the_root_means_the_program() {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let default = metadata["workspace_default_members"].as_array().unwrap();
    assert!(default.len() == 1 && default[0].as_str().unwrap().contains("toolwright-cli"), "{default:?}");
}

/// A block of a page: its language, its text, and what a comment before it says.
struct Block {
    language: String,
    text: String,
    mark: Option<(String, String)>,
}

fn all_blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut mark = None;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let comment = line.trim().strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
        if let Some((name, value)) = comment.and_then(|comment| comment.split_once(": ")) {
            mark = Some((name.to_owned(), value.to_owned()));
        }
        if let Some(language) = line.strip_prefix("```") {
            let text =
                lines.by_ref().take_while(|line| !line.starts_with("```")).map(|line| format!("{line}\n"));
            found.push(Block { language: language.to_owned(), text: text.collect(), mark: mark.take() });
        }
    }
    found
}

/// True when the commands are to be run word for word, builds included, which takes minutes.
fn full() -> bool {
    std::env::var("TOOLWRIGHT_README").is_ok_and(|value| value == "full")
}

/// Runs a script as a newcomer would: with an empty home and without anything else in the environment.
fn shell(script: &str, folder: &Path, home: &Path) -> std::process::Output {
    let program = Path::new(env!("CARGO_BIN_EXE_toolwright")).parent().unwrap();
    let (own, inherited) = (home.join("bin"), std::env::var("PATH").unwrap());
    let path = format!("{}:{}:{inherited}", own.display(), program.display());
    let mut command = std::process::Command::new("sh");
    command.current_dir(folder).env_clear().env("PATH", &path).env("HOME", home).envs(crate::NO_SERVERS);
    let script = if full() {
        // The toolchain is there, wherever it is.
        let own = std::env::var("HOME").unwrap();
        for (name, usual) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            command.env(name, std::env::var(name).unwrap_or_else(|_| format!("{own}/{usual}")));
        }
        command.envs(std::env::var("CARGO_TARGET_DIR").map(|folder| ("CARGO_TARGET_DIR", folder)));
        command.env("CARGO_INSTALL_ROOT", home);
        script.to_owned()
    } else {
        // The program was built for the tests.
        script.replace("cargo install --locked --path crates/toolwright-cli", "true")
    };
    command.args(["-eu", "-c", &script]).stdin(std::process::Stdio::null()).output().unwrap()
}

/// Runs the commands of a page, in order and in one folder; a `text` block after them is what they print.
/// Gives how many blocks were run. A block that is not run says why.
fn play(name: &str, folder: &Path, home: &Path) -> usize {
    let blocks = all_blocks(&page(name));
    let mut ran = 0;
    for (number, block) in blocks.iter().enumerate() {
        match &block.mark {
            Some((mark, value)) if mark == "file" => {
                std::fs::write(folder.join(value), &block.text).unwrap();
                if value == "toolwright.yaml" {
                    // A reader at a terminal is asked once, and says yes.
                    let trusted = shell("toolwright trust . --yes", folder, home);
                    assert!(trusted.status.success(), "{name}: {}", String::from_utf8_lossy(&trusted.stderr));
                }
            }
            Some((mark, _)) if mark == "not run" => continue,
            _ => {}
        }
        if block.language != "sh" {
            continue;
        }
        let script = &block.text;
        let output = shell(script, folder, home);
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}:\n{script}\n{stdout}{stderr}");
        if let Some(next) = blocks.get(number + 1).filter(|next| next.language == "text") {
            assert_eq!(stdout.trim(), next.text.trim(), "{name}:\n{script}");
        }
        ran += 1;
    }
    ran
}

/// Every page of the documentation, by its name from the root.
fn pages() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    let mut open = vec![root.join("docs")];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                found.push(path.strip_prefix(&root).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_commands_of_every_page_work() {
    let mut ran = 0;
    for name in pages() {
        let folder = tempfile::tempdir().unwrap();
        ran += play(&name, folder.path(), folder.path());
    }
    assert!(ran >= 10, "only {ran} blocks were run");
}

/// Pages whose YAML has a test of its own, and where that is.
const TESTED: &[(&str, &str)] = &[
    ("README.md", "crates/toolwright-cli/tests/it/pages.rs"),
    ("docs/guide/hooks.md", "crates/toolwright-cli/tests/it/pages.rs"),
    ("docs/guide/policies.md", "crates/toolwright-cli/tests/it/pages.rs"),
    ("docs/guide/sandbox.md", "crates/toolwright-cli/tests/it/pages.rs"),
    ("docs/guide/testing.md", "crates/toolwright-cli/tests/it/pages.rs"),
    ("docs/guide/yaml-tools.md", "crates/toolwright-lang/tests/it/examples.rs"),
];

/// No block of code escapes: commands are run (or say why not), Rust is compiled, JSON is read, YAML is
/// checked, and text is what a command prints, or says why it is shown.
#[test]
fn every_block_is_run_or_says_why_not() {
    let compiled = page("crates/toolwright/src/lib.rs");
    for name in pages().into_iter().chain(["README.md", "SECURITY.md", "ARCHITECTURE.md"].map(str::to_owned))
    {
        // These are made from the code, and have tests that say so.
        if name.starts_with("docs/reference/") {
            continue;
        }
        let blocks = all_blocks(&page(&name));
        for (number, block) in blocks.iter().enumerate() {
            let place = format!("{name}, block {}:\n{}", number + 1, block.text);
            let mark = block.mark.as_ref().map(|(mark, value)| (mark.as_str(), value.as_str()));
            match (block.language.as_str(), mark) {
                (_, Some(("check", wanted))) => check_block(&block.text, wanted, &place),
                ("sh", _) => assert!(name.starts_with("docs/") || name == "README.md", "{place}"),
                ("rust" | "rust,no_run", _) => {
                    assert!(compiled.contains(&format!("../../../{name}\")]")), "nobody compiles {place}")
                }
                ("json", _) => {
                    serde_json::from_str::<serde_json::Value>(&block.text)
                        .unwrap_or_else(|error| panic!("{error} in {place}"));
                }
                ("toml", _) => check_manifest(&block.text, &place),
                ("yaml" | "python", Some(("file", _))) | ("text", Some(("shown", _))) => {}
                ("yaml", _) => {
                    let tested = TESTED.iter().find(|(tested, _)| *tested == name);
                    let (tested, by) = tested.unwrap_or_else(|| panic!("nobody checks {place}"));
                    assert!(page(by).contains(tested), "{by} is not about {tested}");
                }
                ("text", _) => {
                    let after = number.checked_sub(1).map(|before| blocks[before].language.as_str());
                    assert_eq!(after, Some("sh"), "no command prints {place}");
                }
                (language, _) => panic!("what is `{language}`? {place}"),
            }
        }
    }
}

/// A manifest that cargo reads, and whose paths lead from a folder beside the clone to crates.
fn check_manifest(text: &str, place: &str) {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let text = text.replace("../toolwright/", &format!("{}/", root.display()));
    for path in text.split("path = \"").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(Path::new(path).join("Cargo.toml").is_file(), "`{path}` is not a crate in {place}");
    }
    let package = "[package]\nname = \"mine\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n";
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/main.rs"), "fn main() {}\n").unwrap();
    std::fs::write(folder.path().join("Cargo.toml"), format!("{package}{text}")).unwrap();
    let read = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(read.status.success(), "{place}{}", String::from_utf8_lossy(&read.stderr));
}

/// What `toolwright check` says to a file: `passes`, or a word of what it finds.
fn check_block(text: &str, wanted: &str, place: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("toolwright.yaml"), text).unwrap();
    // What the pages let a sandbox write to.
    std::fs::create_dir(folder.path().join("build")).unwrap();
    let shown = show_in(folder.path(), &["check", "toolwright.yaml"], "");
    match wanted {
        "passes" => assert!(shown.contains("no problems") && shown.ends_with("exit 0\n"), "{place}{shown}"),
        _ => assert!(shown.contains(wanted) && shown.ends_with("exit 2\n"), "{place}{shown}"),
    }
}

/// The README, word for word, in a fresh clone and with an empty home.
#[test]
fn the_commands_of_the_readme_work_in_a_fresh_clone() {
    let folder = tempfile::tempdir().unwrap();
    let (clone, home) = (folder.path().join("clone"), folder.path().join("home"));
    std::fs::create_dir(&home).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cloned = std::process::Command::new("git")
        .args(["clone", "--quiet", "--no-hardlinks"])
        .arg(root.canonicalize().unwrap())
        .arg(&clone)
        .output();
    if !cloned.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: this is not a clone of the repository");
        return;
    }
    let mut shown = String::new();
    for block in all_blocks(&page("README.md")) {
        if block.language != "sh" || block.mark.is_some_and(|(mark, _)| mark == "not run") {
            continue;
        }
        for line in block.text.lines() {
            let output = shell(line, &clone, &home);
            let part = |bytes: &[u8]| calm(&String::from_utf8_lossy(bytes), &clone, &home);
            let (stdout, stderr) = (part(&output.stdout), part(&output.stderr));
            assert!(output.status.success(), "{line}\n{stdout}{stderr}");
            if stderr.contains("no sandbox: ") {
                eprintln!("SKIPPED: the README needs a sandbox, and there is none here");
                return;
            }
            // The list of tools is long and has a test of its own; here its beginning will do.
            let most = if line.ends_with(" tools") { 3 } else { usize::MAX };
            let stdout: String = stdout.lines().take(most).map(|line| format!("{line}\n")).collect();
            shown += &format!("$ {line}\n{stdout}");
            if !stderr.is_empty() {
                shown += &format!("--- stderr\n{stderr}");
            }
            shown.push('\n');
        }
    }
    insta::assert_snapshot!("readme", shown);
}

/// What was printed, without what differs from machine to machine and from run to run.
fn calm(text: &str, clone: &Path, home: &Path) -> String {
    let mut text = text.to_owned();
    for (path, name) in [(home, "[home]"), (clone, "[clone]")] {
        text = text.replace(&*path.to_string_lossy(), name);
    }
    for (pattern, with) in [
        (crate::RUN_ID, "[run]"),
        // What cargo says about building, in the full variant.
        (
            r"(?m)^ +(Compiling|Finished|Running|Blocking|Downloading|Downloaded|Locking|Updating|Adding|Installing|Installed|Replacing|Replaced) .*\n",
            "",
        ),
        // What the doctor finds is this machine's affair; what it looks at is not.
        (
            r"(?m)^(ok|missing) +(tools|sandbox|changes|approvals|recorded runs|model keys|llama.cpp server|Ollama server|a real model) .*\n(?: {20,}.*\n)?",
            "$2: [found]\n",
        ),
        (r"toolwright \d\S* on \S+ \S+", "toolwright [version]"),
        (r"(?m)^uid=.*$", "[id]"),
    ] {
        text = regex::Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text
}

#[test]
fn the_table_of_contents_lists_every_page_and_links_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let summary = page("docs/SUMMARY.md");
    for name in pages() {
        let short = name.strip_prefix("docs/").unwrap();
        assert!(
            short == "SUMMARY.md" || summary.contains(&format!("({short})")),
            "{short} is not in SUMMARY.md"
        );
    }
    let link = regex::Regex::new(r"\]\(([^)#\s]*)(#[^)\s]*)?\)").unwrap();
    for name in pages().into_iter().chain(["README.md", "SECURITY.md", "ARCHITECTURE.md"].map(str::to_owned))
    {
        let file = root.join(&name);
        let text = page(&name);
        // Text in code is not a link.
        let text: String = text.split("```").step_by(2).collect();
        for found in link.captures_iter(&text) {
            let target = &found[1];
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let path = if target.is_empty() { file.clone() } else { file.parent().unwrap().join(target) };
            assert!(path.exists(), "{name} links to {target}");
            // The pages are a site of their own: a link out of it would lead nowhere there.
            let docs = root.join("docs").canonicalize().unwrap();
            let inside = path.canonicalize().unwrap().starts_with(&docs);
            assert!(
                inside || !name.starts_with("docs/"),
                "{name} links to {target}, which is not on the site"
            );
            if let Some(anchor) = found.get(2) {
                let headings = anchors(&std::fs::read_to_string(&path).unwrap());
                let anchor = anchor.as_str().trim_start_matches('#');
                assert!(
                    headings.iter().any(|known| known == anchor),
                    "{name} links to {target}#{anchor}: {headings:?}"
                );
            }
        }
    }
}

/// What the headings of a page are called in addresses.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let plain = |line: &str| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(plain).collect()
}

/// The site is made by the tool that readers use, when it is there.
#[test]
fn the_documentation_becomes_a_site() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (docs, installed) = (root.join("docs"), root.join("target/peers/mdbook/bin/mdbook"));
    let mdbook = if installed.exists() { installed } else { "mdbook".into() };
    let made =
        std::process::Command::new(mdbook).arg("build").arg(&docs).arg("-d").arg(folder.path()).output();
    let Ok(made) = made else {
        eprintln!("SKIPPED: there is no mdbook here (`cargo xtask test` installs it)");
        return;
    };
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(made.status.success() && !said.contains("WARN") && !said.contains("ERROR"), "{said}");
    for name in pages() {
        let name = name.strip_prefix("docs/").unwrap().replace(".md", ".html");
        assert!(name == "SUMMARY.html" || folder.path().join(&name).is_file(), "{name} is not there: {said}");
    }
    let html = std::fs::read_to_string(folder.path().join("guide/chat.html")).unwrap();
    assert!(html.contains("../pictures/chat.svg") && folder.path().join("pictures/chat.svg").is_file());
}

/// The reference of the commands is what `--help` says.
#[test]
fn the_page_of_commands_is_what_the_program_says() {
    let help = |words: &[&str]| {
        let shown = show_in(tempfile::tempdir().unwrap().path(), &[words, &["--help"]].concat(), "");
        let text = shown.split("--- stdout\n").nth(1).unwrap().split("--- exit").next().unwrap().to_owned();
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    };
    let below = |text: &str| -> Vec<String> {
        let rows =
            text.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        let names = rows.filter(|row| row.starts_with("  ") && !row.starts_with("   "));
        names
            .filter_map(|row| row.split_whitespace().next())
            .filter(|name| *name != "help")
            .map(str::to_owned)
            .collect()
    };
    let mut page =
        "# Commands\n\nWhat `toolwright COMMAND --help` says; `toolwright man` has it as a manual page.\n"
            .to_owned();
    let mut add = |words: &[&str], text: &str| {
        let mark = if words.len() > 1 { "###" } else { "##" };
        page +=
            &format!("\n{mark} {}\n\n```text\n{text}\n```\n", [&["toolwright"], words].concat().join(" "));
    };
    let first = help(&[]);
    add(&[], &first);
    for name in below(&first) {
        let text = help(&[&name]);
        add(&[&name], &text);
        for inner in below(&text) {
            add(&[&name, &inner], &help(&[&name, &inner]));
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
    if std::env::var_os("TOOLWRIGHT_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(kept == page, "docs/reference/commands.md is old; TOOLWRIGHT_BLESS=1 writes it anew");
}
