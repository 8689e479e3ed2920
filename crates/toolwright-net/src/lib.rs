//! How Toolwright dials. Models, MCP servers, search engines and pages are reached through [`Dial`] and in
//! no other way; a sandbox's proxy judges addresses by the same [`Reach`]. (`toolwright doctor` knocks at
//! ports of this machine to see whether a model listens there.)
//!
//! It reads no environment: no proxy variables, no credentials; callers say which [`Proxies`] to use.
//! Redirects are never followed by a client itself, because they could carry a key to another host.

mod address;
#[cfg(feature = "http")]
mod dial;
#[cfg(feature = "http")]
mod exchange;
mod hosts;
#[cfg(feature = "http")]
mod lobby;
#[cfg(feature = "http")]
mod page;
#[cfg(feature = "http")]
mod proxy;
mod reach;
#[cfg(feature = "http")]
mod resolve;
mod sse;

pub use address::{is_open, is_own, is_public};
#[cfg(feature = "http")]
pub use dial::{Dial, SetupError, client};
#[cfg(feature = "http")]
pub use exchange::{ApiExchange, ExchangeReply};
pub use hosts::{Host, HostRules, split_port};
#[cfg(feature = "http")]
pub use lobby::{Lobby, LobbyGuest};
#[cfg(feature = "http")]
pub use page::{FetchedPage, PageClient, PageError, PageRequest, belongs_to_connection};
#[cfg(feature = "http")]
pub use proxy::{Proxies, ProxyError};
pub use reach::{Reach, RefusedAddress};
#[cfg(feature = "http")]
pub use reqwest;
pub use sse::{SseError, SseEvent, SseReader};
