//! How the program comes by the tokens of MCP servers that want one (OAuth).

use std::sync::Arc;

use toolwright::mcp::{LoopbackBrowser, OAuthOptions, TokenStore};

use crate::prompt::printable;

/// Tokens are kept in the user's data folder. A person who is there is sent to a page in the browser; without one, only
/// tokens that were got before are used and renewed.
pub fn options(person: bool) -> std::io::Result<OAuthOptions> {
    let mut oauth = OAuthOptions::default();
    if person {
        oauth.browser = Some(Arc::new(LoopbackBrowser::new(|page| {
            eprintln!(
                "The server wants you to allow this. Open this page in your browser:\n\n    {}\n",
                printable(page)
            );
        })?));
    }
    if let Some(folder) = crate::runs::data() {
        oauth.store = TokenStore::in_file(folder.join("mcp-tokens.json"));
    }
    Ok(oauth)
}
