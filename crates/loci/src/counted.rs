//! Numbers of things in words.

/// Returns a number with what it counts: `1 session`, `2 sessions`.
pub(crate) fn counted(n: u64, one: &str, several: &str) -> String {
    let what = if n == 1 { one } else { several };
    format!("{n} {what}")
}
