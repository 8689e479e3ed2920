//! Commands that start other commands: what stands inside them.

use crate::words::ShellWord;

/// What a command would start, as far as its words show it.
pub(crate) enum StartedBy<'w> {
    /// It starts nothing that is named in its words.
    Nothing,
    /// It starts the command that its last words are.
    Command {
        /// Variables it sets for that command, in the form of rules.
        assignments: Vec<String>,
        /// The words of that command.
        words: &'w [ShellWord],
        /// Whether the wrapper changes who runs the command or where, so that it must be approved itself.
        guarded: bool,
    },
    /// It does something itself and starts these commands besides.
    Commands(Vec<&'w [ShellWord]>),
    /// It gives this text to a shell.
    Script(&'w str),
    /// It runs the commands in a file that its words name.
    File,
    /// Its words do not show what it starts.
    Opaque(&'static str),
}

/// A wrapper whose command follows its own options and arguments.
struct CommandWrapper {
    name: &'static str,
    /// Short options that take the next word as their value; clusters are read letter by letter.
    short: &'static str,
    /// Long options that take the next word as their value when no `=` is in them.
    long: &'static [&'static str],
    /// Options without a value that are known; any other is not looked through.
    flags: &'static str,
    /// How many arguments of its own stand in front of the command.
    own: usize,
    guarded: bool,
}

const fn wrapper(name: &'static str, short: &'static str, flags: &'static str) -> CommandWrapper {
    CommandWrapper { name, short, long: &[], flags, own: 0, guarded: false }
}

const WRAPPERS: &[CommandWrapper] = &[
    wrapper("builtin", "", ""),
    wrapper("coproc", "", ""),
    wrapper("exec", "a", "cl"),
    wrapper("ionice", "cn", "t"),
    wrapper("nice", "n", "0123456789"),
    wrapper("nohup", "", ""),
    wrapper("setsid", "", "cfw"),
    wrapper("stdbuf", "ioe", ""),
    wrapper("time", "f", "pvaq"),
    CommandWrapper { long: &["--signal", "--kill-after"], own: 1, ..wrapper("timeout", "sk", "fv") },
    CommandWrapper {
        long: &["--user", "--group", "--chdir", "--host", "--prompt"],
        guarded: true,
        ..wrapper("sudo", "ugDhpCrtTU", "AbEHiknPSs")
    },
    CommandWrapper { guarded: true, ..wrapper("doas", "uC", "Lns") },
    CommandWrapper {
        long: &["--max-args", "--max-procs", "--delimiter", "--replace", "--arg-file", "--max-lines"],
        ..wrapper("xargs", "adEILnPs", "0optrx")
    },
];

/// Shells whose `-c` takes a script.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash"];

pub(crate) fn inside(words: &[ShellWord]) -> StartedBy<'_> {
    let Some((first, rest)) = words.split_first() else { return StartedBy::Nothing };
    let Some(path) = first.literal() else { return StartedBy::Opaque("the name of the command is computed") };
    let name = path.rsplit('/').next().unwrap_or(path);
    if let Some(known) = WRAPPERS.iter().find(|known| known.name == name) {
        return known.inside(rest);
    }
    match name {
        "command" => command(rest),
        "env" => env(rest),
        "eval" => joined(rest),
        "trap" => match rest {
            [script, _signal, ..] => script.literal().map_or(COMPUTED, StartedBy::Script),
            _ => StartedBy::Nothing,
        },
        "find" => find(rest),
        "." | "source" => match rest.first().map(ShellWord::literal) {
            Some(None | Some("/dev/stdin" | "/dev/fd/0")) => {
                StartedBy::Opaque("it reads the commands to run from somewhere else")
            }
            _ => StartedBy::File,
        },
        // A program of many names: the first argument says which.
        "busybox" | "toybox" if rest.first().is_some_and(|word| word.literal().is_some_and(is_name)) => {
            StartedBy::Command { assignments: Vec::new(), words: rest, guarded: false }
        }
        "alias" if rest.iter().any(|word| word.literal().is_none_or(|word| word.contains('='))) => {
            StartedBy::Opaque("it gives a command another name")
        }
        "hash" if !rest.is_empty() => StartedBy::Opaque("it decides which program a name stands for"),
        "enable" => StartedBy::Opaque("it decides which program a name stands for"),
        "watch" | "parallel" | "entr" | "script" | "flock" | "chroot" | "unshare" | "nsenter"
        | "systemd-run" | "strace" | "ltrace" | "gdb" | "su" | "runuser" | "pkexec" | "setpriv" | "bwrap"
        | "firejail" | "at" | "batch" | "crontab" | "expect" | "socat" | "ncat" | "nc" | "taskset"
        | "chrt" | "prlimit" | "setarch" | "linux32" | "linux64" | "i386" | "x86_64" | "unbuffer"
        | "fakeroot" | "chronic" | "eatmydata" | "xvfb-run" | "dbus-run-session" | "ssh-agent"
        | "start-stop-daemon" | "run-parts" | "torsocks" | "proot" | "numactl" | "cgexec" | "capsh"
        | "newgrp" | "sg" => StartedBy::Opaque("it starts other commands in ways that are not read here"),
        _ if name.starts_with("ld-linux") || name.starts_with("ld-musl") => {
            StartedBy::Opaque("it starts other commands in ways that are not read here")
        }
        _ if SHELLS.contains(&name) => shell(rest),
        _ => StartedBy::Nothing,
    }
}

/// Whether a word is the name of a program, not an option.
fn is_name(word: &str) -> bool {
    !word.starts_with('-')
}

const COMPUTED: StartedBy<'_> = StartedBy::Opaque("the text it gives to a shell is computed");
const UNKNOWN_OPTION: StartedBy<'_> = StartedBy::Opaque("it has an option that is not known here");

impl CommandWrapper {
    fn inside<'w>(&self, mut rest: &'w [ShellWord]) -> StartedBy<'w> {
        while let Some((word, after)) = rest.split_first() {
            let Some(option) = word.literal() else { return UNKNOWN_OPTION };
            if option == "--" {
                rest = after;
                break;
            }
            if option.len() < 2 || !option.starts_with('-') {
                break;
            }
            rest = match self.takes(option) {
                OptionValue::Nothing => after,
                OptionValue::Next => after.get(1..).unwrap_or_default(),
                OptionValue::Unknown => return UNKNOWN_OPTION,
            };
        }
        let words = rest.get(self.own..).unwrap_or_default();
        // `sudo` without a command, but with `-s` or `-i`, is a shell.
        if words.is_empty() && self.guarded {
            return StartedBy::Opaque("it starts a shell");
        }
        if words.is_empty() { StartedBy::Nothing } else { self.command(words) }
    }

    fn command<'w>(&self, words: &'w [ShellWord]) -> StartedBy<'w> {
        StartedBy::Command { assignments: Vec::new(), words, guarded: self.guarded }
    }

    /// What an option of this wrapper is followed by.
    fn takes(&self, option: &str) -> OptionValue {
        if option.starts_with("--") {
            return match option.split_once('=') {
                Some((name, _)) if self.long.contains(&name) => OptionValue::Nothing,
                None if self.long.contains(&option) => OptionValue::Next,
                _ => OptionValue::Unknown,
            };
        }
        let mut letters = option.chars().skip(1);
        while let Some(letter) = letters.next() {
            if self.short.contains(letter) {
                // The value is the rest of the word, or the next one.
                return if letters.next().is_some() { OptionValue::Nothing } else { OptionValue::Next };
            }
            if !self.flags.contains(letter) {
                return OptionValue::Unknown;
            }
        }
        OptionValue::Nothing
    }
}

enum OptionValue {
    Nothing,
    Next,
    Unknown,
}

/// `command`, which only says where a program is when it is asked with `-v` or `-V`.
fn command(mut rest: &[ShellWord]) -> StartedBy<'_> {
    while let Some((word, after)) = rest.split_first() {
        match word.literal() {
            Some("-v" | "-V" | "-pv" | "-pV") => return StartedBy::Nothing,
            Some("-p" | "--") => rest = after,
            Some(option) if option.starts_with('-') => return UNKNOWN_OPTION,
            _ => return StartedBy::Command { assignments: Vec::new(), words: rest, guarded: false },
        }
    }
    StartedBy::Nothing
}

/// `env`, with the variables it sets.
fn env(mut rest: &[ShellWord]) -> StartedBy<'_> {
    let mut assignments = Vec::new();
    while let Some((word, after)) = rest.split_first() {
        match word.literal() {
            // What it is may be an assignment, so it is shown as one.
            None => assignments.push(word.shown()),
            Some("-i" | "-" | "--ignore-environment" | "-0" | "--null" | "--") => {}
            Some("-u" | "--unset") => {
                rest = after.get(1..).unwrap_or_default();
                continue;
            }
            Some(option) if option.starts_with('-') => return UNKNOWN_OPTION,
            Some(word_) if word_.contains('=') => assignments.push(word.shown()),
            Some(_) => break,
        }
        rest = after;
    }
    if rest.is_empty() && assignments.is_empty() {
        return StartedBy::Nothing;
    }
    StartedBy::Command { assignments, words: rest, guarded: false }
}

/// Words that a shell joins and reads again. What is joined is only known when there is one.
fn joined(rest: &[ShellWord]) -> StartedBy<'_> {
    match rest {
        [] => StartedBy::Nothing,
        [script] => script.literal().map_or(COMPUTED, StartedBy::Script),
        // Literal words without anything special in them are a command as they stand.
        words if words.iter().all(|word| word.literal().is_some_and(|value| word.shown() == value)) => {
            StartedBy::Command { assignments: Vec::new(), words, guarded: false }
        }
        _ => COMPUTED,
    }
}

/// A shell: the text behind `-c`, or the name of a script.
fn shell(mut rest: &[ShellWord]) -> StartedBy<'_> {
    const STDIN: StartedBy<'_> = StartedBy::Opaque("it reads the commands to run from its input");
    while let Some((word, after)) = rest.split_first() {
        let Some(option) = word.literal() else { return COMPUTED };
        if option == "--" {
            rest = after;
            break;
        }
        let Some(letters) = option.strip_prefix('-').filter(|letters| !letters.is_empty()) else { break };
        match letters {
            "-norc" | "-noprofile" | "-posix" => {}
            _ if letters.starts_with('-') => return UNKNOWN_OPTION,
            _ if !letters.chars().all(|letter| "celuxfnvhBCEHPT".contains(letter)) => return UNKNOWN_OPTION,
            _ if letters.contains('c') => {
                return match after.split_first() {
                    // Further words are its `$0`, `$1`, ...: the text may use them as it likes.
                    Some((script, [])) => script.literal().map_or(COMPUTED, StartedBy::Script),
                    Some(_) => StartedBy::Opaque("it gives arguments to a script in its text"),
                    None => StartedBy::Nothing,
                };
            }
            _ => {}
        }
        rest = after;
    }
    match rest.first().map(ShellWord::literal) {
        None | Some(Some("-" | "/dev/stdin" | "/dev/fd/0")) => STDIN,
        // A substitution (`<(...)`) or a variable names a script that is not seen here.
        Some(None) => COMPUTED,
        Some(Some(_)) => StartedBy::File,
    }
}

/// `find`, which starts what stands between `-exec` and its end.
fn find(rest: &[ShellWord]) -> StartedBy<'_> {
    let mut commands = Vec::new();
    let mut rest = rest;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        match word.literal() {
            // It may be an action, `-delete` for one.
            None if word.shown().starts_with(['-', '$', '`', '"']) => return UNKNOWN_OPTION,
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                let end = after.iter().position(|word| matches!(word.literal(), Some(";" | "+")));
                let Some(end) = end else { return StartedBy::Opaque("an action of it has no end") };
                commands.extend(after.get(..end).filter(|words| !words.is_empty()));
                rest = after.get(end + 1..).unwrap_or_default();
            }
            Some("-delete" | "-fprint" | "-fprint0" | "-fprintf" | "-fls") => {
                return StartedBy::Opaque("it changes files");
            }
            _ => {}
        }
    }
    if commands.is_empty() { StartedBy::Nothing } else { StartedBy::Commands(commands) }
}
