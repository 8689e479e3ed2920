//! What was built, and from what.

/// The version alone.
pub const SHORT: &str = env!("CARGO_PKG_VERSION");

/// The version with the commit, the target and the profile.
pub const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("TOOLWRIGHT_COMMIT"),
    ", ",
    env!("TOOLWRIGHT_TARGET"),
    ", ",
    env!("TOOLWRIGHT_PROFILE"),
    ")"
);
