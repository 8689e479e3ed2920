//! Clients and servers over real pipes, hostile peers, pinning, and peers written by others.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stderr,
    reason = "these are tests"
)]

mod forwarding;
mod hostile;
mod hostile_content;
mod http;
mod http_bounds;
mod http_client;
mod http_client_faults;
mod http_client_streams;
mod http_elicitation;
mod peer_list;
mod peers;
mod peers_npm;
mod pinning;
mod pipes;
mod resource_server;
mod resource_subscriptions;
mod support;
mod task_client;
mod token_refresh;
mod wire;
