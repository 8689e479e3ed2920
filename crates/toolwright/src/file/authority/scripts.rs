//! The files of the folder that a command names: trust is bound to their content.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// How many bytes of a script are hashed; a larger file is named as not checked.
const MAX_SCRIPT: u64 = 16 << 20;

/// How many scripts one command may name.
const MAX_SCRIPTS: usize = 64;

/// A file of the folder that a command names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NamedScript {
    pub(super) path: PathBuf,
    pub(super) content: ScriptContent,
}

/// What is known of a script.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScriptContent {
    /// The SHA-256 of its bytes.
    Hash(String),
    /// It is not read, for this reason.
    Unchecked(&'static str),
}

/// What programs run that their arguments do not name.
const IMPLIED: [(&[&str], &[&str]); 6] = [
    (&["npm", "npx", "pnpm", "yarn", "bun", "bunx"], &["package.json"]),
    (&["make", "gmake"], &["GNUmakefile", "makefile", "Makefile"]),
    (&["just"], &["justfile", "Justfile", ".justfile"]),
    (&["uv", "uvx", "poetry"], &["pyproject.toml"]),
    (&["deno"], &["deno.json", "deno.jsonc"]),
    (&["docker", "podman", "docker-compose"], &["compose.yaml", "docker-compose.yml", "Dockerfile"]),
];

/// Programs whose first argument is a script, whatever its name.
const INTERPRETERS: [&str; 18] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "node", "deno", "bun", "ruby", "perl",
    "php", "lua", "Rscript", "tclsh", "java",
];

/// How the names of programs and scripts end. A data file that a command writes is not a script.
const ENDINGS: [&str; 24] = [
    "sh", "bash", "zsh", "fish", "py", "pyz", "js", "mjs", "cjs", "ts", "mts", "rb", "pl", "php", "lua", "r",
    "R", "jar", "tcl", "exe", "bat", "ps1", "wasm", "mk",
];

/// The scripts of the folder that the words of a command name, or that its program is known to run. `cwd` is
/// the folder it starts in.
pub(super) fn named_in<'w>(
    words: impl IntoIterator<Item = &'w str>,
    folder: &Path,
    cwd: Option<&str>,
) -> Vec<NamedScript> {
    let ends_word = |c: char| c.is_whitespace() || ";|&()<>\"'`$={},".contains(c);
    let words = words.into_iter().flat_map(|word| std::iter::once(word).chain(word.split(ends_word)));
    let mut scripts: Vec<NamedScript> = Vec::new();
    let (mut before, mut interpreted) = ("", false);
    // A word without a blank comes twice: as it is, and as its only part.
    for word in words.filter(|word| !word.is_empty()) {
        if word == before {
            continue;
        }
        let program = Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let implied = IMPLIED.iter().filter(|(programs, _)| programs.contains(&program));
        let implied = implied.flat_map(|(_, files)| files.iter().map(|file| (*file).to_owned()));
        let mut names: Vec<(String, bool)> = implied.map(|name| (name, true)).collect();
        names.push((word.to_owned(), interpreted));
        if before == "-m" {
            let module = word.replace('.', "/");
            names.extend([(format!("{module}.py"), true), (format!("{module}/__main__.py"), true)]);
        }
        interpreted = INTERPRETERS.contains(&program) || (interpreted && word.starts_with('-'));
        before = word;
        for (name, certain) in names {
            if scripts.len() < MAX_SCRIPTS
                && let Some(script) = script(&name, folder, cwd, certain)
                && !scripts.contains(&script)
            {
                scripts.push(script);
            }
        }
    }
    scripts
}

/// The script of that name, if it is one and in the folder. `certain` says that whatever file has the name is
/// run.
fn script(name: &str, folder: &Path, cwd: Option<&str>, certain: bool) -> Option<NamedScript> {
    let inside = |path: &str| {
        let path = Path::new(path);
        path.strip_prefix(folder)
            .ok()
            .map(Path::to_owned)
            .or_else(|| path.is_relative().then(|| path.to_owned()))
    };
    let given = inside(name)?;
    let given = if Path::new(name).is_absolute() { given } else { inside(cwd.unwrap_or(""))?.join(given) };
    let mut relative = PathBuf::new();
    let mut through_link = false;
    for part in given.components() {
        match part {
            Component::Normal(part) => relative.push(part),
            Component::CurDir => {}
            Component::ParentDir if relative.pop() => {}
            _ => return None,
        }
        let found = std::fs::symlink_metadata(folder.join(&relative)).ok()?;
        if found.is_symlink() {
            through_link = true;
            break;
        }
    }
    if relative.as_os_str().is_empty() {
        return None;
    }
    let whole = folder.join(&relative);
    let content = if through_link {
        ScriptContent::Unchecked("it is a link")
    } else {
        let found = std::fs::symlink_metadata(&whole).ok()?;
        match found.is_file() {
            false => return None,
            true if !certain && !looks_like_a_script(&whole, &found) => return None,
            true if found.len() > MAX_SCRIPT => ScriptContent::Unchecked("it is too large"),
            true => match hash(&whole) {
                Some(hash) => ScriptContent::Hash(hash),
                None => ScriptContent::Unchecked("it cannot be read"),
            },
        }
    };
    Some(NamedScript { path: relative, content })
}

/// Whether a file is one that is run: by its ending, its rights or its first bytes.
fn looks_like_a_script(path: &Path, found: &std::fs::Metadata) -> bool {
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o111 != 0 {
        return true;
    }
    #[cfg(not(unix))]
    let _ = found;
    let mut first = [0; 2];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut first));
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending)) || (read.is_ok() && first == *b"#!")
}

fn hash(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_SCRIPT + 1).read_to_end(&mut bytes).ok()?;
    Some(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}
