//! How the program comes by the tokens of MCP servers that want one (OAuth).

use std::sync::Arc;

use toolwright::mcp::{LoopbackBrowser, OAuthOptions, TokenStore};

use crate::lines;
use crate::prompt::printable;

/// Tokens are kept in the user's data folder. A person who is there is sent to a page in the browser; without one, only
/// tokens that were got before are used and renewed.
pub fn options(person: bool) -> OAuthOptions {
    let show = |page: &str| {
        lines::tell(&format!(
            "The server wants you to allow this. Open this page in your browser:\n\n    {}\n",
            printable(page)
        ));
    };
    with(person.then(|| LoopbackBrowser::new(show)))
}

/// The options with this browser. One that cannot be had takes nothing else away.
fn with(browser: Option<std::io::Result<LoopbackBrowser>>) -> OAuthOptions {
    let mut oauth = OAuthOptions::default();
    if let Some(folder) = crate::runs::data() {
        oauth.store = TokenStore::in_file(folder.join("mcp-tokens.json"));
    }
    match browser {
        Some(Ok(browser)) => oauth.browser = Some(Arc::new(browser)),
        Some(Err(error)) => eprintln!("no server can send you to a page: {error}"),
        None => {}
    }
    oauth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_are_there_are_used_when_no_page_can_be_opened() {
        let stored = |browser| format!("{:?}", with(browser).store);
        let failed = with(Some(Err(std::io::Error::other("no port"))));
        assert!(failed.browser.is_none());
        assert_eq!(format!("{:?}", failed.store), stored(None));
    }
}
