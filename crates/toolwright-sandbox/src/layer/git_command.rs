//! Which words of a command are files that it runs, as far as that can be told without running it.
//!
//! A file that is there counts, and so does a word that begins with `./`, unless the command is known to run
//! nothing it is given; then only what has a slash or can be executed. A program that is named without a
//! slash is looked for elsewhere, so a file of that name does not count. One that is not there counts
//! otherwise only where a program or a script must be: what is protected before it exists gets a placeholder,
//! and that would be in the way of work.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What is followed by a program.
const BEFORE: [&str; 18] = [
    "if", "then", "else", "elif", "do", "while", "until", "time", "exec", "env", "sudo", "doas", "nice",
    "nohup", "command", "eval", "xargs", "timeout",
];

/// What is followed by a script.
const INTERPRETERS: [&str; 16] = [
    "sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "python", "pypy", "perl", "ruby", "node", "deno",
    "bun", "php", "lua",
];

/// What runs none of the files it is given; behind others every file may be a program, or what an interpreter
/// reads.
const TAME: [&str; 27] = [
    "[", "cat", "cd", "cp", "diff", "echo", "find", "git", "grep", "head", "less", "ls", "make", "mkdir",
    "mv", "nano", "npm", "open", "printf", "rm", "rmdir", "tail", "test", "touch", "vi", "vim", "wc",
];

/// Those of them that do run something: what stands behind one of these words.
const HANDING_ON: [&str; 2] = ["find", "git"];
const BEFORE_GIVEN: [&str; 15] = [
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-x",
    "--exec",
    "--extcmd",
    "--upload-pack",
    "--receive-pack",
    "--env-filter",
    "--index-filter",
    "--msg-filter",
    "--tree-filter",
    "foreach",
    "run",
];

/// The files that a command runs; `at` says where a word is.
pub(super) fn files(command: &str, at: impl Fn(&str) -> PathBuf) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut reader = CommandReader { first: true, ..CommandReader::default() };
    for (index, piece) in command.trim_start_matches('!').split(['"', '\'']).enumerate() {
        // In quotes a path may have blanks; without them, it may be all there is.
        if piece.contains(' ') && piece.contains('/') && at(piece).is_file() {
            found.push(at(piece));
            reader.first = false;
            continue;
        }
        reader.quoted = index % 2 == 1;
        let mut rest = piece;
        while !rest.is_empty() {
            let end = rest.find(is_apart).unwrap_or(rest.len());
            let (word, more) = rest.split_at(end);
            if !word.is_empty() {
                let path = at(word);
                found.extend(reader.runs(word, &path).then_some(path));
                reader.pass(word);
            }
            let mut letters = more.chars();
            if let Some(letter) = letters.next() {
                reader.separate(letter, letters.as_str());
            }
            rest = letters.as_str();
        }
    }
    found
}

fn is_apart(letter: char) -> bool {
    letter.is_whitespace() || "`;|&()<>{}$=!,".contains(letter)
}

/// What is known where a command has been read to.
#[derive(Default)]
struct CommandReader {
    quoted: bool,
    /// A program is next, or what an interpreter reads.
    first: bool,
    /// An interpreter was named.
    script: bool,
    /// And options of it.
    options: bool,
    /// What is in quotes is read by a shell.
    shell: bool,
    /// The last word may be the name of a variable that is set, and what follows its value.
    name: bool,
    value: bool,
    /// The next word begins with the name of a variable.
    variable: bool,
    /// Between backticks.
    ticked: bool,
    /// The program runs nothing that it is given.
    tame: bool,
    /// It does, behind certain words.
    hands_on: bool,
    /// Also behind `-x`, which is something else to `git clean` and `git cherry-pick`.
    takes_x: bool,
}

impl CommandReader {
    fn runs(&self, word: &str, path: &Path) -> bool {
        if path.is_file() {
            let argument = !self.first || self.value;
            return word.contains('/') || self.script || (argument && (!self.tame || is_executable(path)));
        }
        let near = word.starts_with("./") || word.starts_with("../");
        let certain = near || (word.contains('/') && !self.options && !word.contains("://"));
        let odd = word.contains(['*', '?', '[', '%']) || word.ends_with('/');
        (self.first || (near && !self.tame))
            && certain
            && !odd
            && !self.variable
            && !self.value
            && !path.is_dir()
    }

    fn pass(&mut self, word: &str) {
        let name = word.rsplit('/').next().unwrap_or(word);
        let name = name.trim_end_matches(|one: char| one == '.' || one.is_ascii_digit());
        self.name = self.first;
        self.variable = false;
        self.takes_x |= self.hands_on && ["rebase", "difftool"].contains(&word);
        if self.hands_on && BEFORE_GIVEN.contains(&word) && (word != "-x" || self.takes_x) {
            (self.first, self.shell, self.tame, self.options) = (true, true, false, false);
            return;
        }
        if !self.first || BEFORE.contains(&name) {
            return;
        }
        if word.starts_with('-') {
            self.options = true;
        } else if [".", "source"].contains(&word) || INTERPRETERS.contains(&name) {
            (self.script, self.shell, self.options) = (true, true, false);
        } else {
            self.first = self.value;
            self.tame = !self.first && TAME.contains(&word);
            self.hands_on |= !self.first && HANDING_ON.contains(&word);
        }
    }

    fn separate(&mut self, letter: char, rest: &str) {
        let open = rest.starts_with(char::is_whitespace);
        match letter {
            // What a shell replaces by its output, in quotes too.
            '(' if self.variable => self.begin_anyway(),
            ';' | '|' | '&' | '(' | '\n' => self.begin(),
            '{' | '!' if open => self.begin(),
            '`' => {
                self.ticked = !self.ticked;
                self.tame = false;
                if self.ticked {
                    self.begin_anyway();
                }
            }
            // Whose arguments follow is not known any more.
            ')' => self.tame = false,
            '$' => self.variable = true,
            '=' if self.name => (self.first, self.value) = (true, true),
            letter if letter.is_whitespace() => (self.name, self.value) = (false, false),
            _ => {}
        }
    }

    /// A command begins. In quotes that is so only for what a shell is given.
    fn begin(&mut self) {
        if !self.quoted || self.shell {
            self.begin_anyway();
        }
    }

    fn begin_anyway(&mut self) {
        let (quoted, ticked) = (self.quoted, self.ticked);
        *self = CommandReader { quoted, ticked, shell: quoted, first: true, ..CommandReader::default() };
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|about| about.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_that_a_command_runs_are_told_from_other_words() {
        let tree = std::env::temp_dir().join(format!("toolwright-words-{:x}", crate::sys::random_u64()));
        fs::create_dir_all(tree.join("tools")).unwrap();
        fs::create_dir_all(tree.join("my tools")).unwrap();
        for name in ["tools/do", "my tools/do", "package.json", "clean.sh", "vim"] {
            fs::write(tree.join(name), "").unwrap();
        }
        let own = format!("\"{}/my tools/do\" -m x", tree.display());
        for (command, want) in [
            ("tools/do", vec!["tools/do"]),
            ("tools/new %f", vec!["tools/new"]),
            ("!./tools/new", vec!["./tools/new"]),
            ("!cd ./ && make", vec![]),
            ("!cd ./ && A=b/c ./x && B=$(./y)", vec!["./x", "./y"]),
            ("!find ./ -name a/b", vec![]),
            ("!rm -rf ./node_modules ./dist && npm ci", vec![]),
            ("!rm -rf ./tools", vec![]),
            ("!git add ./*", vec![]),
            ("./*", vec![]),
            ("!git diff package.json", vec![]),
            ("!git diff ':!a/b' src/{c/d,e} origin/main", vec![]),
            ("!git log --format='%h (a/b); c/d'", vec![]),
            ("!f() { ./x \"$@\"; }; f", vec!["./x"]),
            ("$HOME/bin/x", vec![]),
            ("${HOME}/bin/x", vec![]),
            ("https://a/b", vec![]),
            ("sh clean.sh", vec!["clean.sh"]),
            ("sh tools/new", vec!["tools/new"]),
            ("bash -c 'true; ./tools/new %f | tools/other'", vec!["./tools/new", "tools/other"]),
            ("python3.12 -u ./new.py", vec!["./new.py"]),
            ("perl -pe s/a/b/", vec![]),
            ("ruby -I lib clean.sh", vec!["clean.sh"]),
            ("if true\nthen ./x\nfi", vec!["./x"]),
            ("timeout 30 ./new %f", vec!["./new"]),
            ("timeout 10 python3 clean.sh", vec!["clean.sh"]),
            ("nice -n 10 ./new", vec!["./new"]),
            ("sudo -u me ./new", vec!["./new"]),
            ("setsid ./new", vec!["./new"]),
            ("stdbuf -oL ./new", vec!["./new"]),
            ("flock f ./new", vec!["./new"]),
            ("A=\"b c\" ./new", vec!["./new"]),
            ("ssh -o ProxyCommand=./new", vec!["./new"]),
            ("poetry run python clean.sh", vec!["clean.sh"]),
            ("uv run clean.sh", vec!["clean.sh"]),
            ("java -jar package.json", vec!["package.json"]),
            ("awk -f clean.sh", vec!["clean.sh"]),
            ("tools/do $(cat a) clean.sh", vec!["tools/do", "clean.sh"]),
            ("!cd ./new && make ./new", vec![]),
            ("!git rebase --exec ./tools/new", vec!["./tools/new"]),
            ("!git rebase --exec=tools/new main", vec!["tools/new"]),
            ("!git rebase -x make -x ./new", vec!["./new"]),
            ("!git clean -f -d -x ./new", vec![]),
            ("!git cherry-pick -x origin/main", vec![]),
            ("!git rebase -x 'git log && ./new'", vec!["./new"]),
            ("!git submodule foreach ./tools/new", vec!["./tools/new"]),
            ("!git submodule foreach --recursive 'git pull; tools/new'", vec!["tools/new"]),
            ("!git bisect run ./new", vec!["./new"]),
            ("!git bisect run sh clean.sh", vec!["clean.sh"]),
            ("!find . -exec ./tools/new {} +", vec!["./tools/new"]),
            ("!find . -execdir rm ./new {} \\;", vec![]),
            ("!notify \"$(./tools/new)\"", vec!["./tools/new"]),
            ("!notify \"`./tools/new`\"", vec!["./tools/new"]),
            ("!git push origin \"$(./tools/new)\"", vec!["./tools/new"]),
            ("!git push origin \"`cd a; tools/new`\"", vec!["tools/new"]),
            ("!git commit -m \"(a/b) $c (d/e)\"", vec![]),
            ("!npm run a/b", vec![]),
            ("vim", vec![]),
            ("vim vim", vec![]),
            ("./vim", vec!["./vim"]),
            ("sh vim", vec!["vim"]),
            ("!vim && time vim", vec![]),
            ("!git bisect run vim", vec![]),
            ("bash -c 'true; vim'", vec![]),
            ("BASH_ENV=vim bash -c true", vec!["vim"]),
            ("my tools/do", vec!["my tools/do"]),
            (&own, vec!["my tools/do"]),
        ] {
            let got = files(command, |word| tree.join(word));
            let want: Vec<PathBuf> = want.iter().map(|path| tree.join(path)).collect();
            assert_eq!(got, want, "{command}");
        }
        fs::set_permissions(tree.join("clean.sh"), PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(files("!git x clean.sh", |word| tree.join(word)), [tree.join("clean.sh")]);
        fs::remove_dir_all(tree).unwrap();
    }
}
