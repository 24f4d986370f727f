//! Memories: Markdown files in a directory that is given to the model to write.

use std::path::{Component, Path};

use super::{Mode, Rulebook};
use crate::tool::{CallEffects, PathEffect};

/// Names that steer agents wherever they lie.
const STEERING: &[&str] = &["claude.md", "claude.local.md", "agents.md", "skill.md"];

/// Returns true when `path` names a memory below `dir`: a Markdown file, nothing hidden on the way to it, no step that
/// leads out again, and no name that would make it an instruction.
pub fn is_memory_file(dir: &Path, path: &Path) -> bool {
    let Ok(below) = path.strip_prefix(dir) else { return false };
    let is_plain = |part: Component<'_>| match part {
        Component::Normal(name) => !name.to_string_lossy().starts_with('.'),
        _ => false,
    };
    let name = below.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    below.components().all(is_plain)
        && below.extension().is_some_and(|it| it == "md")
        && !STEERING.contains(&name.as_str())
}

/// Returns the memory that a call writes, when it writes memories and does nothing else. While a plan is made, nothing
/// is written, memories included.
pub(super) fn written_memory<'e>(effects: &'e CallEffects, book: &Rulebook) -> Option<&'e Path> {
    let is_only_paths = effects.commands.is_empty()
        && effects.hosts.is_empty()
        && effects.removals.is_empty()
        && effects.unclear.is_empty()
        && effects.unknown.is_empty();
    let is_memory = |path: &PathEffect| {
        let below = |spelling: &Path| book.memory_dirs.iter().any(|dir| is_memory_file(dir, spelling));
        below(&path.requested) && below(&path.real)
    };
    let may_read = |path: &PathEffect| effects.writes.contains(path) || book.may_read(path);
    let is_fine = is_only_paths
        && book.mode != Mode::Plan
        && effects.writes.iter().all(is_memory)
        && effects.reads.iter().all(may_read);
    effects.writes.first().filter(|_| is_fine).map(|path| path.real.as_path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_plain_markdown_files_below_the_directory() {
        for (path, expected) in [
            ("/m/MEMORY.md", true),
            ("/m/user-role.md", true),
            ("/m/logs/2026/01/2026-01-02.md", true),
            ("/m", false),
            ("/m/", false),
            ("/m/run.sh", false),
            ("/m/a.MD", false),
            ("/m/sub/Claude.md", false),
            ("/m/AGENTS.md", false),
            ("/m/.hidden.md", false),
            ("/m/.git/hooks/x.md", false),
            ("/m/../p/CLAUDE.md", false),
            ("/mm/a.md", false),
            ("/other/a.md", false),
        ] {
            assert_eq!(is_memory_file(Path::new("/m"), Path::new(path)), expected, "{path}");
        }
    }
}
