//! The attributes that turn Rust functions into tools.
