//! Words of names and texts, and groups of words that mean the same to tools.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

/// The words of a text in small letters: names are split at `_`, `-` and `aB`, and plurals lose their `s`.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut last_lower = false;
    for c in text.chars() {
        let upper = c.is_uppercase();
        if !c.is_alphanumeric() || (upper && last_lower) {
            end(&mut word, &mut found);
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        last_lower = c.is_lowercase() || c.is_numeric();
    }
    end(&mut word, &mut found);
    found
}

fn end(word: &mut String, found: &mut Vec<String>) {
    if !word.is_empty() {
        found.push(singular(&std::mem::take(word)));
    }
}

fn singular(word: &str) -> String {
    let plain = |ending: &str, instead: &str| {
        let start = word.strip_suffix(ending).filter(|start| start.len() > 2)?;
        Some(format!("{start}{instead}"))
    };
    let no_plural = ["ss", "us", "is", "os"].iter().any(|ending| word.ends_with(ending));
    if no_plural || !word.is_ascii() {
        return word.to_owned();
    }
    plain("ies", "y")
        .or_else(|| plain("sses", "ss"))
        .or_else(|| plain("ches", "ch"))
        .or_else(|| plain("s", ""))
        .unwrap_or_else(|| word.to_owned())
}

/// Words that say nothing about a tool.
const EMPTY: [&str; 40] = [
    "a", "an", "the", "to", "of", "in", "on", "for", "with", "and", "or", "is", "are", "was", "were", "be",
    "my", "me", "i", "it", "its", "this", "that", "which", "who", "what", "how", "when", "there", "from",
    "by", "at", "as", "do", "does", "can", "want", "need", "please", "tool",
];

/// Whether a word of a question says nothing.
pub(super) fn is_empty(word: &str) -> bool {
    EMPTY.contains(&word)
}

/// Words of one line mean nearly the same where tools are concerned: what is done, and what it is done to.
const GROUPS: &[&[&str]] = &[
    &["create", "add", "new", "make", "start", "open", "insert", "post", "register"],
    &["delete", "remove", "destroy", "drop", "erase", "purge", "clear"],
    &["update", "edit", "change", "modify", "set", "patch", "rename", "replace"],
    &["list", "all", "every", "everybody", "everyone", "available"],
    &["get", "read", "show", "see", "view", "fetch", "retrieve", "display", "look", "info", "detail"],
    &["search", "find", "lookup", "query", "containing"],
    &["send", "post", "publish", "write"],
    &["message", "chat", "text"],
    &["user", "person", "people", "someone", "somebody", "member", "account", "who"],
    &["cancel", "stop", "abort", "end", "kill"],
    &["run", "execute", "trigger", "launch", "start", "invoke"],
    &["retry", "rerun", "again", "restart", "redo"],
    &["reboot", "restart", "action", "power"],
    &["upload", "attach", "send"],
    &["download", "get", "fetch", "export", "retrieve"],
    &["droplet", "vm", "virtual", "machine", "server", "instance", "host"],
    &["ip", "address"],
    &["pull", "merge"],
    &["request", "mr", "pr"],
    &["bug", "issue", "ticket", "problem"],
    &["close", "update", "state"],
    &["comment", "note", "reply", "remark"],
    &["thread", "discussion", "reply", "conversation"],
    &["answer", "reply", "response"],
    &["channel", "conversation", "room"],
    &["latest", "history", "recent", "last"],
    &["commit", "push", "change"],
    &["blame", "last", "line", "changed"],
    &["build", "job", "pipeline", "ci"],
    &["log", "output", "trace", "fail", "failure", "failed"],
    &["repo", "repository", "project"],
    &["port", "rule", "inbound", "firewall"],
    &["cost", "owe", "price", "balance", "bill", "billing", "pay", "invoice"],
    &["region", "datacenter", "center", "location", "slug"],
    &["password", "auth", "credential", "reset"],
    &["mute", "snooze", "silence", "disturb", "dnd", "notification"],
    &["schedule", "scheduled", "later", "tomorrow", "future", "night", "cron"],
    &["private", "ephemeral", "only"],
    &["reaction", "emoji"],
    &["folder", "directory", "dir"],
    &["file", "document"],
    &["shell", "bash", "command", "terminal", "process"],
    &["code", "script", "program"],
    &["pattern", "glob", "wildcard"],
    &["text", "grep", "content", "word"],
    &["page", "url", "web", "website", "site"],
    &["question", "ask", "input"],
    &["todo", "task", "plan"],
    &["remember", "memory", "note", "store", "save"],
    &["database", "postgres", "postgresql", "mysql", "db", "sql", "redis"],
    &["k8s", "kubernetes", "cluster"],
    &["config", "kubeconfig", "setting", "option", "preference"],
    &["upgrade", "version", "update"],
    &["restore", "revert", "rollback", "earlier", "previous"],
    &["image", "photo", "picture", "avatar"],
    &["mail", "email"],
    &["login", "logged", "whoami", "current", "me"],
    &["member", "participant"],
    &["invite", "add", "join"],
    &["kick", "remove"],
    &["lock", "protect"],
    &["table", "csv", "row", "column", "data"],
    &["statistic", "analyze", "metric", "usage"],
    &["alert", "monitoring", "warn", "notify", "policy"],
    &["hook", "webhook", "notify"],
    &["secret", "variable", "env"],
    &["disk", "volume", "storage", "block"],
    &["snapshot", "backup", "copy"],
    &["network", "vpc"],
    &["valid", "validate", "check", "lint"],
    &["done", "complete", "finish", "resolve"],
    &["topic", "purpose", "subject"],
    &["online", "presence", "active", "away"],
    &["link", "permalink", "url"],
    &["form", "dialog", "modal", "view", "popup"],
    &["bookmark", "star", "favorite"],
];

/// For each word of the groups those that mean nearly the same.
static RELATED: LazyLock<HashMap<String, BTreeSet<String>>> = LazyLock::new(|| {
    let mut related: HashMap<String, BTreeSet<String>> = HashMap::new();
    for group in GROUPS {
        let group: Vec<String> = group.iter().map(|word| singular(word)).collect();
        for word in &group {
            let others = group.iter().filter(|other| *other != word).cloned();
            related.entry(word.clone()).or_default().extend(others);
        }
    }
    related
});

/// Words that mean nearly the same as this one.
pub(super) fn related(word: &str) -> impl Iterator<Item = &'static str> {
    RELATED.get(word).into_iter().flatten().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(words("chat_postMessage"), ["chat", "post", "message"]);
        assert_eq!(words("sshKeys-create issues status"), ["ssh", "key", "create", "issue", "status"]);
        assert_eq!(
            words("Lists repositories, addresses; 2 boxes"),
            ["list", "repository", "address", "2", "boxe"]
        );
    }
}
