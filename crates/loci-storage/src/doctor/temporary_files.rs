//! Temporary files that nobody came back for.

use std::fs;
use std::path::{Path, PathBuf};

use super::finding::{Finding, FindingKind};
use super::fix::{Case, Fix};
use super::repair_backup::OWN_TEMPORARY;
use super::store::{HOUR_MS, Store, files_in};

/// How deep files of sessions lie below the directories that are looked through.
const MOST_DEPTH: usize = 6;
/// What is in these was put there to be left alone.
const PASSED_OVER: [&str; 4] = ["aside", "trash", "index", "archive"];

/// Finds temporary files, and packs that were never finished.
pub(super) fn cases(store: &Store<'_>) -> Vec<Case> {
    let mut found = Vec::new();
    for name in ["projects", "file-history", "tasks", "loci"] {
        walk(&store.home.root().join(name), MOST_DEPTH, &mut found);
    }
    found.extend(
        files_in(&store.home.loci_dir().join("archive")).into_iter().filter(|it| has_ending(it, "new")),
    );
    let is_own =
        |path: &Path| path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(OWN_TEMPORARY));
    found.retain(|path| is_own(path) || store.is_older_than(path, HOUR_MS));
    found.into_iter().map(case).collect()
}

fn case(path: PathBuf) -> Case {
    let finding = Finding::new(FindingKind::Leftover, &path, "a temporary file that was never used");
    Case::new(finding.remedy("it goes aside"), Fix::MoveAside { paths: vec![path] })
}

fn walk(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for path in files_in(dir) {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if metadata.is_dir() && depth > 0 && !PASSED_OVER.contains(&name.as_str()) {
            walk(&path, depth - 1, found);
        } else if metadata.is_file() && (name.starts_with(".tmp-") || has_ending(&path, "unpacking")) {
            found.push(path);
        }
    }
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|it| it == ending)
}
