//! Programs whose arguments can hold a program: where they do, the text does not show what would run.

use crate::words::ShellWord;

/// A program, and the options and words with which it runs what it is given.
struct CodeRunner {
    names: &'static [&'static str],
    /// Options that take a program; a longer word that begins with one counts too (`-e'...'`, `--rsh=...`).
    options: &'static [&'static str],
    /// First words (subcommands) that take a program.
    commands: &'static [&'static str],
    /// Whether it reads a program from its input when it is given no file.
    reads_input: bool,
}

const fn program(names: &'static [&'static str], options: &'static [&'static str]) -> CodeRunner {
    CodeRunner { names, options, commands: &[], reads_input: false }
}

const PROGRAMS: &[CodeRunner] = &[
    CodeRunner { reads_input: true, ..program(&["python", "pypy"], &["-c"]) },
    CodeRunner {
        reads_input: true,
        ..program(&["node", "nodejs", "bun"], &["-e", "-p", "--eval", "--print"])
    },
    CodeRunner { commands: &["eval"], reads_input: true, ..program(&["deno"], &[]) },
    CodeRunner { reads_input: true, ..program(&["perl"], &["-e", "-E", "-M", "-m"]) },
    CodeRunner { reads_input: true, ..program(&["ruby", "lua", "luajit"], &["-e", "-r"]) },
    CodeRunner { reads_input: true, ..program(&["php"], &["-r", "-B", "-R", "-E"]) },
    CodeRunner {
        reads_input: true,
        ..program(&["osascript", "Rscript", "julia", "elixir", "groovy"], &["-e"])
    },
    CodeRunner {
        reads_input: true,
        ..program(&["tclsh", "wish", "ed", "ex", "sqlite3", "psql", "mysql"], &["-cmd", "-c", "-e"])
    },
    program(
        &["tar"],
        &[
            "--to-command",
            "--checkpoint-action",
            "-I",
            "--use-compress-program",
            "-F",
            "--info-script",
            "--new-volume-script",
            "--rmt-command",
            "--rsh-command",
        ],
    ),
    program(&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    program(&["ssh", "scp", "sftp"], &["-o", "-S", "-F"]),
    program(
        &["vi", "vim", "nvim", "view", "gvim", "emacs"],
        &["-c", "--cmd", "-s", "-S", "-u", "+", "--eval", "-e", "-es", "--batch"],
    ),
    program(&["less", "more", "man"], &["+", "-P", "--pager", "-H", "--html"]),
    program(
        &["zip", "split", "sort", "make", "gmake"],
        &["-TT", "--unzip-command", "--filter", "--compress-program", "--eval", "SHELL="],
    ),
    CodeRunner { commands: &["exec", "run"], ..program(&["docker", "podman", "kubectl"], &[]) },
    program(
        &["git"],
        &[
            "--exec",
            "-x",
            "--extcmd",
            "-O",
            "--open-files-in-pager",
            "--ext-diff",
            "--upload-pack",
            "--receive-pack",
        ],
    ),
];

/// Builtins that compute the subscripts of names in their arguments, and so run a substitution in one even
/// when it is quoted.
const COMPUTING: &[&str] = &[
    "[",
    "declare",
    "export",
    "getopts",
    "let",
    "local",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "readonly",
    "test",
    "typeset",
    "unset",
    "wait",
];

/// Builtins that set variables.
const DECLARING: &[&str] = &["declare", "export", "local", "readonly", "typeset"];

/// Variables that decide which programs run, or what they do before what they are asked to.
const STEERING: &[&str] = &[
    "BASHOPTS",
    "BASH_ENV",
    "CDPATH",
    "EDITOR",
    "ENV",
    "GIT_ASKPASS",
    "GIT_CONFIG",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "IFS",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LESSOPEN",
    "NODE_OPTIONS",
    "PAGER",
    "PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
    "RUBYOPT",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "VISUAL",
];

/// Whether an assignment (`NAME=value`) sets a variable that decides which programs run.
pub(crate) fn steers(assignment: &str) -> bool {
    let name = assignment.split('=').next().unwrap_or(assignment).trim_end_matches('+');
    STEERING.contains(&name)
        || ["GIT_CONFIG_", "GIT_SSH_", "BASH_FUNC_"].iter().any(|known| name.starts_with(known))
}

/// Why the words of a command do not show what it runs; `None` when they do.
pub(crate) fn opaque(words: &[ShellWord]) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let path = first.literal()?;
    let name = path.rsplit('/').next().unwrap_or(path);
    let literals = || rest.iter().filter_map(ShellWord::literal);
    if COMPUTING.contains(&name) && literals().any(holds_substitution) {
        return Some(format!("`{name}` can run a command inside a quoted argument"));
    }
    if DECLARING.contains(&name) && rest.iter().any(|word| steers(&word.shown())) {
        return Some("it decides which programs run".to_owned());
    }
    match name {
        "awk" | "gawk" | "mawk" | "nawk" => {
            let runs = |text: &str| {
                ["system", "|", ">", "getline", "@load", "@include"].iter().any(|word| text.contains(word))
            };
            return literals().any(runs).then(|| "its program can run commands and write files".to_owned());
        }
        "sed" | "gsed" => return sed(rest),
        _ => {}
    }
    let versionless = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let known =
        PROGRAMS.iter().find(|known| known.names.iter().any(|known| [name, versionless].contains(known)))?;
    known.opaque(name, rest)
}

impl CodeRunner {
    fn opaque(&self, name: &str, rest: &[ShellWord]) -> Option<String> {
        let given = |word: &str| {
            self.options.iter().any(|option| {
                let long = option.starts_with("--") || !option.starts_with('-') || option.len() > 2;
                let same = word == *option || option.ends_with('=') && word.starts_with(option);
                let joined = word.strip_prefix(option).is_some_and(|value| !long || value.starts_with('='));
                // `-pe`, as perl takes it: a cluster of letters that ends with the option.
                let cluster = !long && is_cluster(word) && word.ends_with(option.trim_start_matches('-'));
                same || joined || cluster || *option == "+" && word.starts_with('+')
            })
        };
        let literals = || rest.iter().filter_map(ShellWord::literal);
        if let Some(option) = literals().find(|word| given(word)) {
            let option = option.split('=').next().unwrap_or(option);
            return Some(format!("`{option}` gives `{name}` a program to run"));
        }
        if let Some(command) = literals().next().filter(|word| self.commands.contains(word)) {
            return Some(format!("`{name} {command}` runs a program in its arguments"));
        }
        if name == "git" && runs_from_git(rest) {
            return Some("git starts programs that its settings and arguments name".to_owned());
        }
        let file = rest.iter().any(|word| word.literal().is_none_or(|word| !word.starts_with('-')));
        let asks = literals().any(|word| matches!(word, "--version" | "-V" | "-v" | "--help" | "-h"));
        (self.reads_input && !file && !asks)
            .then(|| format!("`{name}` reads the program to run from its input"))
    }
}

/// Whether a word is one dash and letters.
fn is_cluster(word: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|letters| letters.len() > 1 && letters.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// Whether git is given a command to run: by a setting in front of its own command, or by that command's
/// arguments.
fn runs_from_git(rest: &[ShellWord]) -> bool {
    let mut front = rest.iter().map_while(|word| word.literal().filter(|word| word.starts_with('-')));
    if front.any(|option| {
        option == "-c" || option.starts_with("--config-env") || option.starts_with("--exec-path")
    }) {
        return true;
    }
    let words: Vec<&str> =
        rest.iter().filter_map(ShellWord::literal).filter(|word| !word.starts_with('-')).collect();
    matches!(
        words.as_slice(),
        ["bisect", "run", ..]
            | ["submodule", "foreach", ..]
            | ["filter-branch" | "difftool" | "mergetool", ..]
            | ["alias", ..]
    )
}

/// Whether text holds a substitution of the shell.
pub(crate) fn holds_substitution(text: &str) -> bool {
    text.contains("$(") || text.contains('`')
}

/// A `sed` that may run commands or write files: its scripts are read only in their plainest forms.
fn sed(rest: &[ShellWord]) -> Option<String> {
    let mut scripts = Vec::new();
    let mut words = rest.iter();
    let mut named = false;
    let mut first = None;
    while let Some(word) = words.next() {
        match word.literal() {
            Some("-e" | "--expression") => {
                named = true;
                scripts.extend(words.next());
            }
            Some("-f" | "--file") => return Some("its program is in a file".to_owned()),
            Some("-n" | "-E" | "-r" | "-s" | "-z" | "-u" | "--quiet" | "--silent") => {}
            Some(option) if option.starts_with("-i") || option.starts_with("--in-place") => {
                return Some("it changes files".to_owned());
            }
            Some(option) if option.len() > 1 && option.starts_with('-') => {
                return Some("it has an option that is not known here".to_owned());
            }
            _ => first = first.or(Some(word)),
        }
    }
    if !named {
        scripts.extend(first);
    }
    let plain = |word: &ShellWord| {
        word.literal().is_some_and(|script| script.split(';').all(|one| plain_sed(one.trim())))
    };
    (!scripts.into_iter().all(plain)).then(|| "its program may run commands or write files".to_owned())
}

/// A command of `sed` that only edits what it prints: an address of numbers and `p`, `d`, `q`, `=`; or a
/// substitution without the flags `e` and `w`.
fn plain_sed(command: &str) -> bool {
    let body = command.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$' | '!' | ' '));
    if matches!(body, "p" | "d" | "q" | "=" | "") {
        return true;
    }
    let Some(rest) = body.strip_prefix('s') else { return false };
    let Some(separator) = rest.chars().next().filter(|c| "/|,#:@".contains(*c)) else { return false };
    let parts: Vec<&str> = rest.split(separator).collect();
    // Empty, pattern, replacement, flags; an escaped separator makes more of them, and is left to a person.
    matches!(parts.as_slice(), [_, _, _, flags] if flags.chars().all(|c| c.is_ascii_digit() || "gipIM".contains(c)))
}
