//! When a process began, to tell it from a later one with the same number.

/// When the process of that number began, in microseconds since 1970; `None` when there is none.
pub fn began(process: u32) -> Option<u64> {
    let about = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it may hold anything, also blanks and brackets.
    let (_, after) = about.rsplit_once(')')?;
    let ticks: u64 = after.split_ascii_whitespace().nth(19)?.parse().ok()?;
    let system = std::fs::read_to_string("/proc/stat").ok()?;
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
