//! What the kernel says of a process: the time it computed, the memory it had.

use anyhow::Context;
use std::fs;

/// How many ticks of the kernel's accounts make a second; Linux has shown people 100 for decades.
const TICKS_A_SECOND: f64 = 100.0;

/// Returns how long the threads that a process has now have computed, in milliseconds.
pub(super) fn cpu_ms(id: u32) -> anyhow::Result<f64> {
    let mut nanoseconds = 0.0;
    for thread in fs::read_dir(format!("/proc/{id}/task")).context("Failed to list threads")? {
        let path = thread.context("Failed to list threads")?.path().join("schedstat");
        // A thread may have ended meanwhile.
        let text = fs::read_to_string(path).unwrap_or_default();
        nanoseconds += text.split(' ').next().and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    }
    Ok(nanoseconds / 1e6)
}

/// Returns how long the children that we have waited for have computed, in milliseconds.
pub(super) fn children_cpu_ms() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("Failed to read our own accounts")?;
    children_ticks(&stat).map(|ticks| ticks / TICKS_A_SECOND * 1e3).context("Our own accounts make no sense")
}

/// Fields 16 and 17, counted from 1; the second is a name in brackets that may hold anything.
fn children_ticks(stat: &str) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(fields.get(13)?.parse::<f64>().ok()? + fields.get(14)?.parse::<f64>().ok()?)
}

/// Returns the most memory that a process has had so far, in megabytes.
pub(super) fn peak_mb(id: u32) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).context("Failed to read its memory")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|text| text.trim().strip_suffix("kB")?.trim().parse::<f64>().ok());
    Ok(kib.context("The kernel does not say how much memory it has had")? * 1024.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "7 (odd ) name) S 1 7 7 0 -1 4194304 100 200 0 0 11 12 13 14 20 0 1 0";
        assert_eq!(children_ticks(stat), Some(27.0));
        assert_eq!(children_ticks("7 (x"), None);
    }
}
