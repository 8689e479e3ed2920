//! How the program comes by the tokens of MCP servers that want one (OAuth).

use std::io::IsTerminal as _;
use std::sync::Arc;

use toolwright::mcp::{LoopbackBrowser, OAuthOptions, TokenStore};

use crate::console::Console;
use crate::prompt::printable;

/// Tokens are kept in the user's data folder. A person who is there is sent to a page in the browser; without
/// one, only tokens that were got before are used and renewed.
pub fn options(console: &Console) -> OAuthOptions {
    let console_of_page = console.clone();
    let show = move |page: &str| {
        console_of_page.notice(&format!(
            "The server wants you to allow this. Open this page in your browser:\n\n    {}\n",
            printable(page)
        ));
    };
    with(console, console.stderr().is_terminal().then(|| LoopbackBrowser::new(show)))
}

/// The options with this browser. An unavailable browser leaves everything else usable.
fn with(console: &Console, browser: Option<std::io::Result<LoopbackBrowser>>) -> OAuthOptions {
    let mut oauth = OAuthOptions::default();
    if let Some(folder) = crate::runs::data() {
        oauth.store = TokenStore::in_file(folder.join("mcp-tokens.json"));
    }
    match browser {
        Some(Ok(browser)) => oauth.browser = Some(Arc::new(browser)),
        Some(Err(error)) => console.say(format_args!("no server can send you to a page: {error}")),
        None => {}
    }
    oauth
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::Output;

    #[test]
    fn tokens_that_are_there_are_used_when_no_page_can_be_opened() {
        let console = Console::new(Output::Text);
        let stored = |browser| format!("{:?}", with(&console, browser).store);
        let failed = with(&console, Some(Err(std::io::Error::other("no port"))));
        assert!(failed.browser.is_none());
        assert_eq!(format!("{:?}", failed.store), stored(None));
    }
}
