//! What the agents, skills and commands of a folder would run or be allowed, beyond their words.
//!
//! They are read for the question about trust alone: nothing in them counts by that.

use std::fs;
use std::path::{Path, PathBuf};

use loci_core::front_matter;
use loci_stdx::{read_regular_to_string, single_line, visible};

use super::MOST_OF_A_VALUE;

/// So many files of a kind are read.
const MOST_FILES: usize = 200;
/// The fields that run something, or let something run.
const FIELDS: [&str; 4] = ["hooks", "mcpServers", "permissionMode", "allowed-tools"];

/// Lists what definitions in a directory's `.claude` would grant, a line each.
pub(super) fn definition_grants(dir: &Path) -> Vec<String> {
    let claude = dir.join(".claude");
    let skills = entries(&claude.join("skills")).into_iter().map(|skill| skill.join("SKILL.md"));
    let files =
        entries(&claude.join("agents")).into_iter().chain(entries(&claude.join("commands"))).chain(skills);
    files.flat_map(|file| grants_of(&file, dir)).collect()
}

/// Returns what lies in a directory, in the order of the names.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = read.take(MOST_FILES).map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn grants_of(file: &Path, dir: &Path) -> Vec<String> {
    let is_markdown = file.extension().is_some_and(|extension| extension == "md");
    let text = is_markdown.then(|| read_regular_to_string(file).ok()).flatten().unwrap_or_default();
    let Some((head, _)) = front_matter::split(&text) else { return Vec::new() };
    let fields = front_matter::parse(head).map(|it| it.fields).unwrap_or_default();
    let name = file.strip_prefix(dir).unwrap_or(file).display().to_string();
    let grant = |field: &&str| {
        let value = fields.get(*field)?;
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let value = single_line(&visible(&value), MOST_OF_A_VALUE);
        Some(format!("{field}: {value}  ({})", single_line(&visible(&name), MOST_OF_A_VALUE)))
    };
    FIELDS.iter().filter_map(grant).collect()
}
