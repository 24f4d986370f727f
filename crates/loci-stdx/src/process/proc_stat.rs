//! `/proc/<pid>/stat` of Linux: one line, whose second field may hold anything, parentheses too.

use std::fs;

/// The fields we use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcStat {
    /// Field 3: one letter, such as `R`, `S` or `Z`.
    pub(super) state: u8,
    /// Field 5: the process group.
    pub(super) group: u32,
    /// Field 22: when it started, in clock ticks since boot.
    pub(super) start_ticks: u64,
}

impl ProcStat {
    /// Reads the line of `pid`; none where there is no such process or no such file system.
    pub(super) fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Tells whether the process has ended and only waits for its parent to take note.
    pub(super) fn is_ended(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    fn parse(line: &[u8]) -> Option<Self> {
        // The name may contain `)`, the fields after it may not: so the last one ends the name.
        let after_name = &line[memchr::memrchr(b')', line)? + 1..];
        let mut fields = str::from_utf8(after_name).ok()?.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let group = fields.nth(1)?.parse().ok()?;
        let start_ticks = fields.nth(16)?.parse().ok()?;
        Some(Self { state, group, start_ticks })
    }
}

/// Tells whether any process of `group` has not ended yet; none where `/proc` cannot be read.
pub(super) fn group_has_running_member(group: u32) -> Option<bool> {
    let entries = fs::read_dir("/proc").ok()?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Some(pids.filter_map(ProcStat::read).any(|stat| stat.group == group && !stat.is_ended()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "1 4242 4242 0 -1 4194560 9 0 0 0 1 2 0 0 20 0 1 0 987654 8192 0";

    fn check(line: &str, expected: Option<u8>) {
        let expected = expected.map(|state| ProcStat { state, group: 4242, start_ticks: 987_654 });
        assert_eq!(ProcStat::parse(line.as_bytes()), expected, "{line}");
    }

    #[test]
    fn process_name_in_proc_stat_may_hold_anything() {
        for name in ["sh", "", "a b", "a) R 1 2 3", "((", "tmux: server", "x)\ny"] {
            check(&format!("77 ({name}) S {REST}"), Some(b'S'));
        }
    }

    #[test]
    fn broken_proc_stat_line_is_no_process() {
        for line in ["", "77", "77 (sh)", "77 (sh) S", "77 (sh) S 1 x 3", "77 (sh) S 1 4242 4242 0"] {
            check(line, None);
        }
    }

    #[test]
    fn a_zombie_has_ended() {
        check(&format!("77 (sh) Z {REST}"), Some(b'Z'));
        assert!(ProcStat { state: b'Z', group: 1, start_ticks: 1 }.is_ended());
        assert!(!ProcStat { state: b'D', group: 1, start_ticks: 1 }.is_ended());
    }
}
