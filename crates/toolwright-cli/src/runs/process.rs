//! When a process began, to tell it from a later one with the same number.

use std::fs;
use std::path::Path;

/// When the process of that number began, in microseconds since 1970; 0 where the system does not say, and
/// `None` when there is no such process.
pub fn began(process: u32) -> Option<u64> {
    let folder = format!("/proc/{process}");
    Path::new(&folder).exists().then(|| told(&folder).unwrap_or(0))
}

fn told(folder: &str) -> Option<u64> {
    let about = fs::read_to_string(format!("{folder}/stat")).ok()?;
    // The name before it may hold anything, also blanks and brackets.
    let (_, after) = about.rsplit_once(')')?;
    let ticks: u64 = after.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot: u64 = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    let since_boot = ticks.saturating_mul(1_000_000) / rustix::param::clock_ticks_per_second().max(1);
    Some(boot.saturating_mul(1_000_000).saturating_add(since_boot))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_process_began_a_short_while_ago() {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_micros() as u64;
        let began = began(std::process::id()).unwrap_or_default();
        // The system knows when it started to the second.
        assert!(began <= now + 2_000_000 && began > now - 3_600_000_000, "{began}, and now it is {now}");
        assert_eq!(super::began(u32::MAX), None);
    }
}
