//! Files of settings of git, and which of the settings say what git runs.

/// Sections and keys in lower case, with their values. Of a section, its first part: what follows it is a
/// name.
pub(super) fn settings(text: &str) -> Vec<(String, String, String)> {
    let (mut found, mut section) = (Vec::new(), String::new());
    let text = text.replace("\\\r\n", "").replace("\\\n", "");
    for line in text.lines() {
        let mut line = line.trim();
        while let Some((name, rest)) = line.strip_prefix('[').and_then(section_of) {
            section = name.split([' ', '\t', '"', '.']).next().unwrap_or_default().to_lowercase();
            line = rest.trim();
        }
        if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with(['#', ';'])) {
            found.push((section.clone(), key.trim().to_lowercase(), unquoted(value.trim())));
        }
    }
    found
}

/// What a section is called, and what stands behind it on its line. In quotes, a bracket is part of the name.
fn section_of(head: &str) -> Option<(&str, &str)> {
    let (mut quoted, mut escaped) = (false, false);
    let end = head.find(|letter| {
        let plain = !escaped;
        escaped = plain && letter == '\\';
        quoted ^= plain && letter == '"';
        letter == ']' && !quoted
    })?;
    Some((head.get(..end)?, head.get(end + 1..)?))
}

fn unquoted(value: &str) -> String {
    let (mut out, mut quoted, mut letters) = (String::new(), false, value.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '"' => quoted = !quoted,
            '\\' => out.extend(letters.next().map(|letter| match letter {
                'n' => '\n',
                't' => '\t',
                'b' => '\x08',
                other => other,
            })),
            '#' | ';' if !quoted => break,
            other => out.push(other),
        }
    }
    out.trim_end().to_owned()
}

/// Whether git, or git-lfs, runs what a setting says.
pub(super) fn is_program(section: &str, key: &str, value: &str) -> bool {
    match (section, key) {
        // Without the mark, these are words of git itself.
        ("alias", _) | ("submodule", "update") => value.starts_with('!'),
        ("pager", _) => true,
        ("core", "fsmonitor" | "pager" | "askpass" | "gitproxy") => true,
        ("diff" | "merge", "external" | "textconv" | "driver") => true,
        ("filter" | "lfs", "clean" | "smudge" | "process") => true,
        ("difftool" | "mergetool" | "browser" | "man" | "lfs", "path") => true,
        ("remote", "uploadpack" | "receivepack") => true,
        ("sendemail", "smtpserver") | ("imap", "tunnel") | ("instaweb", "httpd") => true,
        (_, "program" | "helper" | "editor" | "difffilter") => true,
        (_, key) => ["command", "cmd", "hook"].iter().any(|end| key.ends_with(end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_git_reads_them() {
        let text = "[core] hooksPath = \"a b\" # said\n[Include]\n\tpath=~/x ; y\n; path = no\n[includeIf \"gitdir:~/w/\"]\n  PATH = c\\\n/d\n[Filter.f]\nclean = \"a\\n\\tb\"\n[x][diff \"a]\\\"]\"] textconv = x\n";
        let want = [
            ("core", "hookspath", "a b"),
            ("include", "path", "~/x"),
            ("includeif", "path", "c/d"),
            ("filter", "clean", "a\n\tb"),
            ("diff", "textconv", "x"),
        ];
        let got = settings(text);
        assert!(got.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).eq(want), "{got:?}");
    }

    #[test]
    fn settings_that_git_runs_are_known() {
        let runs = |name: &str| {
            let (section, key) = name.split_once(' ').unwrap();
            is_program(section, key, "x")
        };
        for name in [
            "core sshcommand",
            "core editor",
            "core alternaterefscommand",
            "hook command",
            "tar command",
            "trailer cmd",
            "difftool path",
            "mergetool cmd",
            "imap tunnel",
            "sendemail smtpserver",
            "sendemail tocmd",
            "lfs path",
            "lfs clean",
            "filter process",
            "gpg program",
            "gpg defaultkeycommand",
            "credential helper",
            "uploadpack packobjectshook",
            "gc recentobjectshook",
        ] {
            assert!(runs(name), "{name}");
        }
        for name in
            ["user email", "core hookspath", "alias st", "remote url", "core excludesfile", "diff tool"]
        {
            assert!(!runs(name), "{name}");
        }
    }
}
