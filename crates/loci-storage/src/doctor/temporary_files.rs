//! Temporary files that nobody came back for: whoever made them was killed before they took their place.
//!
//! The doctor names them after an hour and puts them aside. After a day, which nobody who lives needs for one file, they
//! are removed by the daily sweep and by `loci sessions gc`: what they were to replace is whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::finding::{Finding, FindingKind};
use super::fix::{Case, Fix};
use super::repair_backup::OWN_TEMPORARY;
use super::store::{HOUR_MS, Store, files_in};
use crate::layout::ConfigHome;

/// How deep files of sessions lie below the directories that are looked through.
const MOST_DEPTH: usize = 6;
/// Nobody who lives needs so long for one file.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// What is in these was put there to be left alone.
const PASSED_OVER: [&str; 4] = ["aside", "trash", "index", "archive"];

/// Finds temporary files, and packs that were never finished.
pub(super) fn cases(store: &Store<'_>) -> Vec<Case> {
    let mut found = found_in(store.home);
    found.extend(
        files_in(&store.home.loci_dir().join("archive")).into_iter().filter(|it| has_ending(it, "new")),
    );
    let is_own =
        |path: &Path| path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(OWN_TEMPORARY));
    found.retain(|path| is_own(path) || store.is_older_than(path, HOUR_MS));
    found.into_iter().map(case).collect()
}

/// Finds those that can be found without looking through the sessions.
pub(super) fn quick_cases(store: &Store<'_>) -> Vec<Case> {
    let mut found = Vec::new();
    walk(store.home.root(), 0, &mut found);
    found.retain(|path| store.is_older_than(path, HOUR_MS));
    found.into_iter().map(case).collect()
}

/// Returns the temporary files that nobody has written to for a day; `now` is the time.
pub fn stale_temporary_files(home: &ConfigHome, now: SystemTime) -> Vec<PathBuf> {
    let age = |path: &PathBuf| now.duration_since(fs::symlink_metadata(path).ok()?.modified().ok()?).ok();
    let mut found = found_in(home);
    found.retain(|path| age(path).is_some_and(|age| age > DAY));
    found
}

/// Removes them, and returns those that are gone.
pub fn sweep_temporary_files(home: &ConfigHome, now: SystemTime) -> Vec<PathBuf> {
    let stale = stale_temporary_files(home, now);
    // One that cannot be removed stays; the next sweep tries again.
    stale.into_iter().filter(|path| fs::remove_file(path).is_ok()).collect()
}

fn found_in(home: &ConfigHome) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(home.root(), 0, &mut found);
    for name in ["projects", "file-history", "tasks", "loci"] {
        walk(&home.root().join(name), MOST_DEPTH, &mut found);
    }
    found
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_older_than_a_day_are_swept_and_others_left() {
        let dir = tempfile::tempdir().unwrap();
        let env = loci_stdx::Env::for_test(dir.path(), dir.path());
        let home = ConfigHome::from_env(&env);
        let now = SystemTime::now();
        let mut paths = Vec::new();
        for (name, hours) in [
            (".tmp-aaaaaa", 30),
            ("projects/-p/s/subagents/.tmp-bbbbbb", 30),
            ("projects/-p/.tmp-cccccc", 2),
            ("settings.json", 90),
            ("loci/aside/.tmp-dddddd", 90),
        ] {
            let path = home.root().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let modified = now - Duration::from_secs(hours * 60 * 60);
            fs::File::create(&path).unwrap().set_modified(modified).unwrap();
            paths.push(path);
        }
        let mut stale = stale_temporary_files(&home, now);
        stale.sort();
        assert_eq!(stale, paths[..2]);
        sweep_temporary_files(&home, now);
        assert_eq!(
            paths.iter().map(|path| path.exists()).collect::<Vec<_>>(),
            [false, false, true, true, true]
        );
    }
}
