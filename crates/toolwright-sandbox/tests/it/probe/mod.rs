//! The attacker: runs inside a sandbox and tries one thing. Ends with `BLOCKED` and the reason, or `ESCAPED`
//! and how.
//!
//! Each probe is its own row with the id of the case it belongs to. A probe must be able to succeed: what it
//! tries works on the host, or did in some sandbox before it was fixed.

mod attempts;
mod files;
mod reach;
mod rights;

use std::path::PathBuf;
use std::sync::LazyLock;

use self::attempts::Attempt;

pub(crate) const BLOCKED: i32 = 10;
pub(crate) const ESCAPED: i32 = 66;

/// What the attacker knows: everything, as a careful designer assumes.
struct Target {
    /// A folder outside that anybody on the host may read and change.
    canary: PathBuf,
    other: PathBuf,
    abstract_name: String,
    port: u16,
    host_pid: i32,
}

#[derive(Clone, Copy)]
pub(crate) struct Probe {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    run: fn(&Target) -> Attempt,
    /// The attempt ends in death by SIGSYS when it is blocked.
    pub(crate) deadly: bool,
}

/// Runs one probe and ends the process.
pub(crate) fn main(name: &str) -> ! {
    let get = |name: &str| std::env::var(name).unwrap_or_default();
    let target = Target {
        canary: get("CANARY").into(),
        other: get("OTHER").into(),
        abstract_name: get("ABSTRACT"),
        port: get("PORT").parse().unwrap_or(1),
        host_pid: get("HOST_PID").parse().unwrap_or(1),
    };
    let Some(probe) = PROBES.iter().find(|probe| probe.name == name) else {
        println!("UNKNOWN probe {name}");
        std::process::exit(2);
    };
    match (probe.run)(&target) {
        Ok(reason) => {
            println!("BLOCKED {reason}");
            std::process::exit(BLOCKED)
        }
        Err(how) => {
            println!("ESCAPED {how}");
            std::process::exit(ESCAPED)
        }
    }
}

/// Rows of a table, as probes.
macro_rules! probes {
    ($(($id:literal, $name:literal, $run:expr)),* $(,)?) => {
        &[$($crate::probe::Probe { id: $id, name: $name, run: $run, deadly: false }),*]
    };
}
use probes;

/// All of them, in the order of their ids.
pub(crate) static PROBES: LazyLock<Vec<Probe>> =
    LazyLock::new(|| [files::PROBES, rights::PROBES, reach::PROBES].concat());
