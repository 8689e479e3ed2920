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

mod hostile;
mod hostile_words;
mod http;
mod http_asking;
mod http_bounds;
mod http_client;
mod http_client_faults;
mod http_client_streams;
mod misbehaving;
mod passed_on;
mod peers;
mod peers_npm;
mod pinning;
mod pipes;
mod renewing;
mod resource_server;
mod support;
mod task_client;
mod watching;
mod wire;
