//! Clients and servers over real pipes, hostile peers, pinning, and peers written by others.

mod hostile;
mod peers;
mod pinning;
mod pipes;
mod support;
mod wire;
