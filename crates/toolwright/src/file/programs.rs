//! What a program must be shown in a sandbox to run: itself, what it links to, its interpreter, its packages.
//!
//! Only what belongs to a program is shown, read-only: of `X/bin/program` the folders `X/bin` and `X/lib`,
//! never `X`, which may be a home; of a script in `node_modules` that folder. Files a program works on are
//! named by a policy.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use toolwright_core::ToolError;

use crate::environment::Environment;

/// How many programs may stand behind one another: a script, its interpreter, that one's.
const MAX_BEHIND: usize = 5;

/// Where programs are when nobody says so.
pub(super) const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What a command needs.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Needs {
    /// Files and folders to show.
    pub(super) read: BTreeSet<PathBuf>,
    /// Folders in which programs are found by name.
    pub(super) path: Vec<PathBuf>,
    /// The command, with the program at its real place.
    pub(super) command: Vec<String>,
}

/// What this command needs beside the folders that are shown anyway.
pub(super) fn needs(
    command: &[String],
    shown: &[PathBuf],
    environment: &Environment,
) -> Result<Needs, ToolError> {
    let path = environment.get("PATH").unwrap_or_else(|| SYSTEM_PATH.to_owned());
    let home = environment.get("HOME").map(PathBuf::from);
    let needs = Needs { command: command.to_vec(), ..Needs::default() };
    let mut look = ProgramSearch { shown, path: path.as_ref(), home, needs };
    let Some((program, arguments)) = command.split_first() else { return Ok(look.needs) };
    let found = look.find(program).ok_or_else(|| {
        let error = ToolError::invalid(format!("there is no program `{program}`"));
        error.hint("name one that is on the PATH, or write its whole path")
    })?;
    look.program(&found, MAX_BEHIND);
    if program.contains('/')
        && let Some(first) = look.needs.command.first_mut()
    {
        *first = found.to_string_lossy().into_owned();
    }
    // The first argument that is a file is what an interpreter is to run.
    let script = arguments.iter().position(|word| !word.starts_with('-'));
    let script =
        script.and_then(|at| Some((at, arguments.get(at)?))).filter(|(_, word)| word.contains(['/', '.']));
    if let Some((at, place)) = script.and_then(|(at, word)| Some((at, real_place(Path::new(word))?)))
        && place.is_file()
    {
        look.file(&place);
        // The program runs in another folder, where a relative path would mean nothing.
        if let Some(word) = look.needs.command.get_mut(at + 1) {
            *word = place.to_string_lossy().into_owned();
        }
    }
    Ok(look.needs)
}

struct ProgramSearch<'a> {
    shown: &'a [PathBuf],
    path: &'a OsStr,
    /// The person's home, which is never shown as a whole.
    home: Option<PathBuf>,
    needs: Needs,
}

impl ProgramSearch<'_> {
    /// The file that a program's name or path means.
    fn find(&self, program: &str) -> Option<PathBuf> {
        if program.contains('/') {
            return real_place(Path::new(program)).filter(|path| path.is_file());
        }
        let folders = std::env::split_paths(self.path);
        folders
            .map(|folder| folder.join(program))
            .find(|path| path.is_file())
            .and_then(|path| real_place(&path))
    }

    /// Shows a program and, when it is a script, what interprets it.
    fn program(&mut self, place: &Path, behind: usize) {
        self.file(place);
        if let Some(folder) = place.parent()
            && !self.is_shown(folder)
            && !self.needs.path.contains(&folder.to_owned())
        {
            self.needs.path.push(folder.to_owned());
        }
        let interpreter = interpreter(place).and_then(|program| self.find(&program));
        if let Some(interpreter) = interpreter.filter(|_| behind > 0) {
            self.program(&interpreter, behind - 1);
        }
    }

    /// Shows a file, the file it links to, and what belongs to each.
    fn file(&mut self, place: &Path) {
        self.belongings(place);
        if let Ok(real) = place.canonicalize()
            && real != place
        {
            self.belongings(&real);
        }
    }

    fn belongings(&mut self, place: &Path) {
        if self.is_shown(place) {
            return;
        }
        let packages = place.ancestors().filter(|folder| folder.ends_with("node_modules")).last();
        let folder = place.parent().filter(|folder| folder.ends_with("bin"));
        match (packages, folder, package(place, self.home.as_deref())) {
            (Some(packages), _, _) => self.show(packages),
            (None, Some(folder), _) => {
                self.show(folder);
                // Next to `bin` lie a program's libraries, and what says that they are an environment of
                // Python.
                for name in ["lib", "lib64", "libexec", "pyvenv.cfg"] {
                    self.show(&folder.with_file_name(name));
                }
            }
            (None, None, Some(package)) => self.show(package),
            (None, None, None) => self.show(place),
        }
    }

    fn show(&mut self, path: &Path) {
        if let Ok(real) = path.canonicalize()
            && !self.is_shown(&real)
        {
            // A link stays one: what it leads to is shown, and so is the file that is the link.
            let place = if real.is_dir() { real } else { path.to_owned() };
            self.needs.read.insert(place);
        }
    }

    fn is_shown(&self, path: &Path) -> bool {
        self.shown.iter().any(|shown| path.starts_with(shown))
    }
}

/// The path with its folder resolved. The last part stays as it is: programs look at the name they are
/// started by.
fn real_place(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}

/// The package of Node that a script belongs to, when it is not somebody's home.
fn package<'p>(script: &'p Path, home: Option<&Path>) -> Option<&'p Path> {
    let package = script.ancestors().skip(1).find(|folder| folder.join("package.json").is_file())?;
    home.is_none_or(|home| !home.starts_with(package)).then_some(package)
}

/// The program that the first line of a script names.
fn interpreter(script: &Path) -> Option<String> {
    let mut head = Vec::new();
    std::fs::File::open(script).ok()?.take(512).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_whitespace();
    let program = words.next()?;
    if !program.ends_with("/env") {
        return Some(program.to_owned());
    }
    words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn words(words: &[&Path]) -> Vec<String> {
        words.iter().map(|word| word.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_program_brings_its_interpreter_and_packages_and_nothing_beside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let (node, script) = (root.join("node/bin/node"), root.join("p/node_modules/server/cli.js"));
        write(&node, "ELF");
        write(&root.join("node/lib/a.so"), "");
        write(&root.join("node/secret"), "");
        write(&script, &format!("#!{} --flag\n", node.display()));
        std::fs::create_dir_all(root.join("p/node_modules/.bin")).unwrap();
        symlink("../server/cli.js", root.join("p/node_modules/.bin/server")).unwrap();
        let expected: BTreeSet<PathBuf> =
            ["node/bin", "node/lib", "p/node_modules"].map(|name| root.join(name)).into();
        let linked =
            needs(&words(&[&root.join("p/node_modules/.bin/server")]), &[], &Environment::empty()).unwrap();
        assert_eq!(linked.read, expected);
        assert_eq!(needs(&words(&[&node, &script]), &[], &Environment::empty()).unwrap().read, expected);
        assert!(
            needs(&words(&[&node, &script]), std::slice::from_ref(&root), &Environment::empty())
                .unwrap()
                .read
                .is_empty()
        );
    }

    #[test]
    fn a_script_alone_is_shown_alone_and_a_missing_program_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        write(&root.join("server.py"), "#!/usr/bin/env -S sh -e\n");
        write(&root.join("secret"), "");
        let found =
            needs(&words(&[&root.join("server.py")]), &["/usr".into(), "/bin".into()], &Environment::empty())
                .unwrap();
        assert_eq!(found.read, [root.join("server.py")].into());
        assert!(needs(&["no-such-program-anywhere".to_owned()], &[], &Environment::empty()).is_err());
        assert!(needs(&words(&[&root.join("gone")]), &[], &Environment::empty()).is_err());
    }
}
