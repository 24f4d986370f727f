//! The memories of an agent: a directory by its scope, and the index that its prompt begins with.

use std::path::{Path, PathBuf};

use loci_context::AgentMemory;
use loci_core::agent::{AgentDefinition, MemoryScope};
use loci_core::permission::Rulebook;
use loci_stdx::read_regular_to_string;
use loci_storage::layout::ConfigHome;
use loci_storage::memory::MEMORY_INDEX;
use loci_tools::real_path;

use crate::conversation::host::file_name;

/// The most of the index that is told.
const MOST_LINES: usize = 200;
const MOST_BYTES: usize = 25 * 1024;

/// Returns where an agent keeps its memories, if it keeps any.
pub(crate) fn memory_dir(agent: &AgentDefinition, home: &ConfigHome, root: &Path) -> Option<PathBuf> {
    let name = file_name(&agent.name);
    Some(match agent.memory? {
        MemoryScope::User => home.root().join("agent-memory").join(name),
        MemoryScope::Project => root.join(".claude").join("agent-memory").join(name),
        MemoryScope::Local => root.join(".claude").join("agent-memory-local").join(name),
    })
}

/// Returns what an agent is told of its memories.
pub(crate) fn agent_memory(dir: &Path) -> AgentMemory {
    let index = read_regular_to_string(dir.join(MEMORY_INDEX)).unwrap_or_default();
    AgentMemory { dir: dir.display().to_string(), index: bounded(&index) }
}

/// Returns the memories of the agent that a main conversation runs as, if it keeps any, and lets it write them.
pub fn main_agent_memory(
    agent: &AgentDefinition,
    home: &ConfigHome,
    root: &Path,
    book: &mut Rulebook,
) -> Option<AgentMemory> {
    let dir = memory_dir(agent, home, root)?;
    admit(book, &dir);
    Some(agent_memory(&dir))
}

/// Lets an agent read and write its memories without a question.
pub(crate) fn admit(book: &mut Rulebook, dir: &Path) {
    let spellings = [dir.to_owned(), real_path(dir)];
    book.read_dirs.extend(spellings.clone());
    book.memory_dirs.extend(spellings);
}

fn bounded(index: &str) -> String {
    let mut text = String::new();
    for line in index.lines().take(MOST_LINES) {
        if text.len() + line.len() > MOST_BYTES {
            break;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_is_cut_at_lines_and_bytes() {
        let line = "x".repeat(100);
        assert_eq!(bounded(&format!("{line}\n").repeat(500)).lines().count(), 200);
        let long = "y".repeat(1_000);
        assert_eq!(bounded(&format!("{long}\n").repeat(100)).lines().count(), 25);
        assert_eq!(bounded(""), "");
    }
}
