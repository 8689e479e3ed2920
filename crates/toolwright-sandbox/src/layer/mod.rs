//! The protections, one file each. The launcher puts them together.

pub(crate) mod cgroup;
pub(crate) mod commit_rules;
pub(crate) mod compute;
mod git;
mod git_command;
mod git_settings;
pub(crate) mod guard;
pub(crate) mod home;
pub(crate) mod identity;
pub(crate) mod landlock;
pub(crate) mod mounts;
pub mod seccomp;
pub(crate) mod sockets;
pub(crate) mod stage;
pub(crate) mod view;
