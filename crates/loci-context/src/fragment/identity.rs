//! Who speaks.

use super::Fragment;

pub(super) fn fragment() -> Fragment {
    Fragment {
        name: "identity",
        text: "You are loci, a coding agent working in the user's terminal and files.".to_owned(),
    }
}
