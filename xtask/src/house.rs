//! `cargo xtask house`: figures of the code that `docs/design/2026-house.md` compares. Each is a count over
//! the sources, so that anybody gets the same number.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

use crate::source::{self, Source};
use crate::tidy;

/// Prints all figures.
pub fn run() -> Result<()> {
    let sources = source::rust()?;
    let library: Vec<&Source> = sources
        .iter()
        .filter(|source| source.part.starts_with("toolwright") && source.is_library())
        .collect();
    let mut lines = BTreeMap::<&str, usize>::new();
    for source in &library {
        *lines.entry(&source.part).or_default() += code_lines(source.code());
    }
    println!("| figure | count |\n| --- | --- |");
    let print = |figure: &str, count: usize| println!("| {figure} | {count} |");
    let facade = library.iter().find(|source| source.path.ends_with("toolwright/src/lib.rs"));
    let root = root_names(facade.context("no facade")?.code());
    print("names at the root of `toolwright`", root.names.len());
    print("modules of `toolwright`", root.modules.len());
    print("process globals of the program", of(&library, "toolwright-cli", globals));
    print(
        "functions with a `bool` parameter",
        library.iter().map(|source| bool_functions(source.code())).sum(),
    );
    let shells = |text: &str| {
        library
            .iter()
            .filter(|source| ["toolwright", "toolwright-cli"].contains(&source.part.as_str()))
            .filter(|source| source.code().contains(text))
            .count()
    };
    print("files of facade and program that assemble a run (`Run::builder`)", shells("Run::builder("));
    print(
        "files of the runtime that ask a model",
        of(&library, "toolwright-runtime", |code| {
            usize::from(code.contains(".generate(") || code.contains(".generate_streaming("))
        }),
    );
    let files = |texts: &[&str]| {
        library.iter().filter(|source| texts.iter().any(|text| code_has(source.code(), text))).count()
    };
    print("files that read YAML (`serde_saphyr`)", files(&["serde_saphyr::"]));
    print("files that write atomically (`rename`, `persist`)", files(&["fs::rename(", ".persist("]));
    print("traits for a person", files(&["trait Approver", "trait Elicitor", "trait Person"]));
    let crowded = tidy::names(&sources).values().filter(|places| places.len() > 2).count();
    print("type names in more than two modules", crowded);
    print("packages in Cargo.lock from elsewhere", packages()?);
    for (part, count) in &lines {
        print(&format!("lines of `{part}`"), *count);
    }
    print("lines of all crates", lines.values().sum());
    println!("\nLines are those with code: without comments, blank lines, tests and UI cases.");
    Ok(())
}

/// A figure summed over the files of one crate.
fn of(library: &[&Source], part: &str, figure: impl Fn(&str) -> usize) -> usize {
    library.iter().filter(|source| source.part == part).map(|source| figure(source.code())).sum()
}

/// Whether code, not a comment, contains a text.
fn code_has(code: &str, text: &str) -> bool {
    code.lines().any(|line| !line.trim_start().starts_with("//") && line.contains(text))
}

/// Lines that are neither blank nor only a comment.
fn code_lines(code: &str) -> usize {
    code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// What stands at the root of a crate.
#[derive(Default)]
struct RootNames {
    names: Vec<String>,
    modules: Vec<String>,
}

/// What `pub use` and `pub mod` put at the root, hidden items left out. A crate under another name is a
/// module.
fn root_names(code: &str) -> RootNames {
    let mut root = RootNames::default();
    for item in code.split(';') {
        let attributes = item.trim();
        let (before, list) = match (attributes.split_once("pub use "), attributes.split_once("pub mod ")) {
            (Some(used), _) => used,
            (None, Some((_, module))) => {
                root.modules.push(module.to_owned());
                continue;
            }
            (None, None) => continue,
        };
        if before.contains("#[doc(hidden)]") {
            continue;
        }
        match list.split_once(" as ") {
            Some((path, module)) if !path.contains("::") => root.modules.push(module.to_owned()),
            _ => {
                let list = list.split_once('{').map_or(list, |(_, list)| list).trim_end_matches('}');
                let last = |name: &str| name.rsplit([':', ' ']).next().unwrap_or(name).to_owned();
                root.names.extend(list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(last));
            }
        }
    }
    root
}

/// Mutable state of the process: statics whose type can change, and those of threads.
fn globals(code: &str) -> usize {
    const CHANGES: [&str; 6] = ["Mutex<", "RwLock<", "Atomic", "OnceLock<", "Cell<", "Sender<"];
    let is_global = |line: &&str| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
        line.starts_with("static ") && CHANGES.iter().any(|kind| line.contains(kind))
    };
    code.lines().filter(is_global).count()
}

/// Functions with at least one parameter of type `bool`.
fn bool_functions(code: &str) -> usize {
    let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n");
    let mut count = 0;
    let mut rest = code.as_str();
    while let Some((before, after)) = rest.split_once("fn ") {
        rest = after;
        let starts_word =
            before.chars().next_back().is_none_or(|sign| !sign.is_alphanumeric() && sign != '_');
        let named = after.chars().next().is_some_and(|sign| sign.is_alphabetic() || sign == '_');
        if let Some((_, list)) = after.split_once('(').filter(|_| starts_word && named) {
            let list = parameters(list);
            let is_bool =
                |parameter: &str| parameter.split_once(':').is_some_and(|(_, kind)| kind.trim() == "bool");
            count += usize::from(list.iter().any(|parameter| is_bool(parameter)));
        }
    }
    count
}

/// The parameters of a function, from behind the bracket that opens their list.
fn parameters(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0_usize, 0, Vec::new());
    for (at, sign) in list.char_indices() {
        match sign {
            ')' | ']' | '}' if depth == 0 => {
                found.extend(list.get(start..at));
                return found;
            }
            '(' | '[' | '{' | '<' => depth += 1,
            // The sign of `->` closes nothing.
            '>' if list.get(..at).is_some_and(|before| before.ends_with('-')) => {}
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.extend(list.get(start..at));
                start = at + 1;
            }
            _ => {}
        }
    }
    found
}

/// Packages of the lock file that come from a registry.
fn packages() -> Result<usize> {
    let lock: toml::Table = std::fs::read_to_string(crate::root().join("Cargo.lock"))?.parse()?;
    let all = lock.get("package").and_then(toml::Value::as_array).context("no packages")?;
    Ok(all.iter().filter(|package| package.get("source").is_some()).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_the_root_are_counted_once() {
        let code = "#[doc(inline)]\npub use a::{\n    One, Two,\n    three,\n};\n#[doc(hidden)]\npub use a::__private;\n\
                    pub mod file;\npub use toolwright_data as data;\npub use b::{Four, c::Six};\nuse c::Five;";
        let root = root_names(code);
        assert_eq!(root.names, ["One", "Two", "three", "Four", "Six"]);
        assert_eq!(root.modules, ["file", "data"]);
    }

    #[test]
    fn bool_parameters_are_found_in_any_place() {
        let code = "fn a(x: bool) {}\nfn b<T: Fn(bool) -> u8>(x: T, y: Map<u8, bool>) -> bool {}\n\
                    fn c(\n    self,\n    f: impl Fn(u8) -> bool,\n    deep: bool,\n) {}\n// fn d(x: bool)\nlet f: fn(bool);";
        assert_eq!(bool_functions(code), 2);
    }

    #[test]
    fn lines_are_those_with_code() {
        assert_eq!(code_lines("//! Head.\n\nfn a() {\n    // why\n    b(); // and\n}\n"), 3);
    }

    #[test]
    fn statics_that_change_are_globals() {
        let code = "static A: OnceLock<u8> = OnceLock::new();\npub(crate) static B: Mutex<u8> = Mutex::new(1);\n\
                    static C: LazyLock<Regex> = LazyLock::new(regex);\nfn a(x: &'static str) {}";
        assert_eq!(globals(code), 2);
    }
}
