//! The script that reads pages, in the isolated world of each frame.

use std::sync::LazyLock;

/// The object that commands are called on, for one token. A world without it, or with another token, belongs
/// to another document.
static SOURCE: LazyLock<String> = LazyLock::new(|| {
    let parts = [
        include_str!("page/elements.js"),
        include_str!("page/walk.js"),
        include_str!("page/act.js"),
        include_str!("page/entry.js"),
    ];
    format!("\"use strict\";{}\nglobalThis.__toolwright = {{ token, commands }};", parts.concat())
});

/// Calls a command with the token that proves the world.
pub(crate) const CALL: &str = "function (token, command, args) {
  const own = globalThis.__toolwright;
  if (!own || own.token !== token) return { lost: true };
  return own.commands[command](...args);
}";

/// The same for an object of the page.
pub(crate) const CALL_ON: &str = "function (token, command) {
  const own = globalThis.__toolwright;
  if (!own || own.token !== token) return null;
  return own.commands[command](this);
}";

/// The source for a world of that token.
pub(crate) fn source(token: &str) -> String {
    format!("((token) => {{{}}})(\"{token}\")", *SOURCE)
}
