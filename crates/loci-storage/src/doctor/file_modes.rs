//! What others can read of what belongs to sessions: directories that let them through, and files of loci's own.
//!
//! Files in a directory need not be private one by one, as the format has it, while no one else gets that far. So only the
//! topmost directory that lets others through is a finding, and closing it closes everything below. What loci makes in
//! its own directory is private one by one all the same: it holds what was said in every project, and may be copied.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::finding::{Finding, FindingKind};
use super::fix::{Case, Fix};
use super::store::{Store, files_in, mode_of};

/// Directories of the config home that hold what was said, or what files held.
const PRIVATE: [&str; 4] = ["projects", "file-history", "tasks", "loci"];
/// What is in these was not made by loci but moved, and keeps its modes until it goes back.
const MOVED: [&str; 2] = ["aside", "trash"];
/// How deep files of loci's own lie.
const MOST_DEPTH: usize = 6;

/// Finds directories that are open to others.
pub(super) fn cases(store: &Store<'_>) -> Vec<Case> {
    if !is_open(store.home.root()) {
        return Vec::new();
    }
    let dirs = PRIVATE.iter().map(|name| store.home.root().join(name)).filter(|dir| is_open(dir));
    dirs.map(case).collect()
}

/// Finds what loci made in its own directory and others may use.
pub(super) fn own_cases(store: &Store<'_>) -> Vec<Case> {
    let dir = store.home.loci_dir();
    let below = files_in(&dir).into_iter().filter(|path| !MOVED.iter().any(|name| path.ends_with(name)));
    let mut paths = Vec::new();
    below.for_each(|path| walk(path, MOST_DEPTH, &mut paths));
    let Some(first) = paths.first() else { return Vec::new() };
    let example = first.strip_prefix(&dir).unwrap_or(first).display();
    let meaning = match paths.len() {
        1 => format!("others may use `{example}` in it"),
        n => format!("others may use {n} files and directories in it, such as `{example}`"),
    };
    let finding = Finding::new(FindingKind::Exposed, &dir, meaning).remedy("their modes become 600 and 700");
    vec![Case::new(finding, Fix::Close { paths })]
}

/// Collects a file or directory that is open to others, and what is so below it. Links are nobody's but their maker's.
fn walk(path: PathBuf, depth: usize, open: &mut Vec<PathBuf>) {
    let Ok(metadata) = fs::symlink_metadata(&path) else { return };
    if !metadata.is_file() && !metadata.is_dir() {
        return;
    }
    let below = if metadata.is_dir() && depth > 0 { files_in(&path) } else { Vec::new() };
    if metadata.mode() & 0o077 != 0 {
        open.push(path);
    }
    below.into_iter().for_each(|path| walk(path, depth - 1, open));
}

/// Returns true for a directory that others may list or go through.
fn is_open(dir: &Path) -> bool {
    mode_of(dir).is_some_and(|mode| mode & 0o077 != 0)
}

fn case(dir: PathBuf) -> Case {
    let mode = mode_of(&dir).unwrap_or_default();
    let meaning = format!("others get to what belongs to sessions (mode {mode:03o})");
    let finding = Finding::new(FindingKind::Exposed, &dir, meaning).remedy("its mode becomes 700");
    Case::new(finding, Fix::Close { paths: vec![dir] })
}
