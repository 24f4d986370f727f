//! How to work: the fixed part of the prompt, as prose in `working.md`.

use super::Fragment;

pub(super) fn fragment() -> Fragment {
    Fragment { name: "working", text: include_str!("working.md").trim_end().to_owned() }
}
