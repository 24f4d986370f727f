//! How memories are kept: the prose is in `memory.md`.

use super::Fragment;

/// `dir` is the directory of memories. Nothing here changes from day to day, so the prefix stays the same.
pub(super) fn fragment(dir: &str) -> Fragment {
    let text = include_str!("memory.md").trim_end();
    let types = include_str!("../memory/types.md").trim_end();
    Fragment { name: "memory", text: text.replace("{types}", types).replace("{dir}", dir) }
}
