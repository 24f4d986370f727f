//! Memories: what outlasts a session. One Markdown file each, and an index that is put before the model.
//!
//! ```text
//! ---
//! name: prefers-small-commits
//! description: commits hold one idea; asked for twice
//! type: feedback
//! modified: 2026-01-02T03:04:05.000Z
//! ---
//! The text, free Markdown.
//! ```
//!
//! This is their form alone; files are `loci-storage`'s.

mod claims;
mod file;
mod flags;
mod form;
mod index;
mod mentions;
mod related;
mod team;

pub use claims::contradictions;
pub use file::{MemoryFile, MemoryKind, with_modified_time};
pub use flags::{Flag, same_subject};
pub use form::{in_form_of, without_bom};
pub use index::{
    INDEX_BYTES, INDEX_LINES, IndexLevel, IndexLine, index_level, index_line, index_lines, render_index,
    with_index_line, without_index_lines,
};
pub use mentions::{Mention, mentions};
pub use related::most_related;
pub use team::{
    ContentHash, EntryName, EntryNameError, Hashes, Pull, Push, SecretFound, TEAM_DIR, TEAM_ENTRIES,
    TEAM_ENTRY_BYTES, case_clashes, find_secrets, pull_plan, push_plan, team_index,
};

const EXTRACTION: &str = include_str!("memory/extraction.md");
const PROPOSING: &str = include_str!("memory/proposing.md");

/// Returns what the agent that looks for memories is asked. `dir` is where it writes, `index` the index as it is; with
/// `is_proposing` it writes proposals, which a person looks at first.
pub fn extraction_instruction(dir: &str, index: &str, is_proposing: bool) -> String {
    let index = if index.trim().is_empty() { "(empty)" } else { index.trim_end() };
    let how = if is_proposing { PROPOSING } else { EXTRACTION };
    include_str!("memory/looking.md")
        .trim_end()
        .replace("{how}", how.trim_end())
        .replace("{types}", include_str!("memory/types.md").trim_end())
        .replace("{dir}", dir)
        .replace("{index}", index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_told_the_four_types_and_what_is_never_saved() {
        for is_proposing in [false, true] {
            let text = extraction_instruction("/m", "- [a](a.md): b\n", is_proposing);
            for kind in MemoryKind::ALL {
                assert!(text.contains(&format!("- `{}`: ", kind.as_str())), "{kind:?}");
            }
            let never = text.lines().find(|line| line.starts_with("Never save: ")).unwrap();
            for what in [
                "the code, its history",
                "instruction files",
                "how a bug was fixed",
                "the task at hand",
                "secrets",
            ] {
                assert!(never.contains(what), "{what}");
            }
            assert!(text.contains("<index>\n- [a](a.md): b\n</index>") && text.contains("/m"), "{text}");
            assert!(!text.contains(['{', '}']), "everything is filled in: {text}");
        }
        assert!(extraction_instruction("/m", " \n", false).contains("(empty)"));
    }
}
