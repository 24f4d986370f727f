//! Copies of plugins that nothing is installed from any more: an older version, or one that was taken away.
//!
//! A session that began before goes on using its copy, so that it stays for a fortnight: `.orphaned_at` is written into it,
//! which other programs that share the cache look for, too, and the time of that file counts. A copy is removed
//!
//! 1. only where the list of installed plugins can be read and has at least one;
//! 2. never when an entry of that list lies in it, whoever marked it: then the mark goes;
//! 3. never when a process that is alive has left its number in `.in_use`;
//! 4. never by way of a link, which may lead to somebody's own work.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use loci_stdx::{WriteOptions, is_alive, write_atomic};

use super::state::read_plugin_state;

/// The file that says since when nothing is installed from a copy.
const MARK: &str = ".orphaned_at";
/// The directory in which programs leave the number of their process while they use a copy.
const IN_USE: &str = ".in_use";
/// How long a copy stays.
const GRACE: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// Takes note that nothing is installed from a copy any more. One that lies outside the cache, or is a link, is nobody's to
/// mark; one that is marked keeps its time.
pub fn mark_orphaned(dir: &Path, copy: &Path, now: SystemTime) -> io::Result<()> {
    let is_ours = copy.starts_with(dir.join("cache")) && is_real_dir(copy);
    let mark = copy.join(MARK);
    if !is_ours || mark.symlink_metadata().is_ok() {
        return Ok(());
    }
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    write_atomic(&mark, since.to_string().as_bytes(), &WriteOptions::private()).map_err(io::Error::other)
}

/// Marks copies that nothing is installed from, and removes those that were marked a fortnight ago; returns which.
pub fn sweep_orphans(dir: &Path, now: SystemTime) -> Vec<PathBuf> {
    let (state, problems) = read_plugin_state(dir);
    if !problems.is_empty() || state.installed.is_empty() {
        return Vec::new();
    }
    // A link on the way to an installed plugin leads where its files are.
    let reals = state.installed.iter().filter_map(|plugin| plugin.path.canonicalize().ok());
    let used: Vec<PathBuf> = state.installed.iter().map(|plugin| plugin.path.clone()).chain(reals).collect();
    let mut removed = Vec::new();
    for marketplace in real_dirs(&dir.join("cache")) {
        for plugin in real_dirs(&marketplace) {
            for copy in real_dirs(&plugin) {
                match sweep_copy(dir, &used, &copy, now) {
                    Ok(true) => removed.push(copy),
                    Ok(false) => {}
                    Err(error) => {
                        let copy = copy.display();
                        tracing::debug!(target: "loci::skills", %copy, %error, "an old copy stays");
                    }
                }
            }
            remove_empty(&plugin);
        }
        remove_empty(&marketplace);
    }
    removed
}

/// Marks or removes one copy, or takes its mark away; true when it is gone.
fn sweep_copy(dir: &Path, used: &[PathBuf], copy: &Path, now: SystemTime) -> io::Result<bool> {
    let mark = copy.join(MARK);
    let marked = mark.symlink_metadata().and_then(|metadata| metadata.modified());
    // The cache itself may lie behind a link, too.
    let real = copy.canonicalize()?;
    if used.iter().any(|path| path.starts_with(copy) || path.starts_with(&real)) {
        return marked.map_or(Ok(()), |_| fs::remove_file(&mark)).map(|()| false);
    }
    let Ok(since) = marked else { return mark_orphaned(dir, copy, now).map(|()| false) };
    let is_due = now.duration_since(since).is_ok_and(|age| age >= GRACE);
    if !is_due || is_in_use(copy) {
        return Ok(false);
    }
    fs::remove_dir_all(copy).map(|()| true)
}

/// Tells whether a process that is alive uses a copy. What cannot be read as a number counts for one.
fn is_in_use(copy: &Path) -> bool {
    let Ok(entries) = fs::read_dir(copy.join(IN_USE)) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.split('.').next()?.parse::<u32>().ok());
        number.is_none_or(is_alive)
    })
}

/// Returns the directories in a directory that are no links, and whose names hide nothing.
fn real_dirs(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let is_fit = |entry: &fs::DirEntry| {
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    entries.filter(is_fit).map(|entry| entry.path()).collect()
}

fn is_real_dir(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// Removes a directory that has nothing in it; another stays, since only an empty one can be removed so.
fn remove_empty(dir: &Path) {
    if let Err(error) = fs::remove_dir(dir) {
        tracing::trace!(target: "loci::skills", dir = %dir.display(), %error, "a directory of the cache stays");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    struct Cache {
        dir: tempfile::TempDir,
        now: SystemTime,
    }

    impl Cache {
        /// A cache with an installed plugin and these copies besides.
        fn new(copies: &[&str]) -> Self {
            let cache = Self { dir: tempfile::tempdir().unwrap(), now: SystemTime::now() };
            for copy in copies.iter().chain(&["m/kit/2.0.0"]) {
                fs::create_dir_all(cache.copy(copy)).unwrap();
                fs::write(cache.copy(copy).join("file"), "x").unwrap();
            }
            let path = cache.copy("m/kit/2.0.0");
            let installed =
                serde_json::json!({"plugins": {"kit@m": [{"scope": "user", "installPath": path}]}});
            fs::write(cache.dir.path().join("installed_plugins.json"), installed.to_string()).unwrap();
            cache
        }

        fn copy(&self, name: &str) -> PathBuf {
            self.dir.path().join("cache").join(name)
        }

        fn mark(&self, name: &str, days: u32) {
            let file = fs::File::create(self.copy(name).join(MARK)).unwrap();
            file.set_modified(self.now - DAY * days).unwrap();
        }

        fn sweep(&self) -> Vec<String> {
            let removed = sweep_orphans(self.dir.path(), self.now);
            let name = |path: &PathBuf| path.strip_prefix(self.copy("")).unwrap().display().to_string();
            let mut removed: Vec<String> = removed.iter().map(name).collect();
            removed.sort();
            removed
        }
    }

    #[test]
    fn copy_that_nothing_is_installed_from_is_marked_and_removed_a_fortnight_later() {
        let cache = Cache::new(&["m/kit/1.0.0", "m/kit/0.9.0", "gone/old/1.0.0"]);
        cache.mark("m/kit/0.9.0", 15);
        cache.mark("gone/old/1.0.0", 14);
        assert_eq!(cache.sweep(), ["gone/old/1.0.0", "m/kit/0.9.0"]);
        assert!(!cache.copy("gone").exists(), "what held it is empty and gone");
        assert!(cache.copy("m/kit/1.0.0").join(MARK).exists(), "its time begins now");
        assert_eq!(cache.sweep(), [""; 0]);
        cache.mark("m/kit/1.0.0", 13);
        assert_eq!(cache.sweep(), [""; 0]);
        assert!(cache.copy("m/kit/2.0.0").is_dir() && !cache.copy("m/kit/2.0.0").join(MARK).exists());
    }

    #[test]
    fn copy_that_is_installed_or_in_use_stays_however_old_its_mark() {
        let cache = Cache::new(&["m/kit/1.0.0", "m/kit/0.9.0"]);
        for copy in ["m/kit/2.0.0", "m/kit/1.0.0", "m/kit/0.9.0"] {
            cache.mark(copy, 99);
        }
        fs::create_dir(cache.copy("m/kit/1.0.0").join(IN_USE)).unwrap();
        fs::write(cache.copy("m/kit/1.0.0").join(IN_USE).join(std::process::id().to_string()), "").unwrap();
        assert_eq!(cache.sweep(), ["m/kit/0.9.0"]);
        assert!(!cache.copy("m/kit/2.0.0").join(MARK).exists(), "it is installed again");
    }

    #[test]
    fn links_and_what_they_lead_to_stay() {
        let cache = Cache::new(&["m/kit/1.0.0"]);
        let work = cache.dir.path().join("work");
        fs::create_dir_all(&work).unwrap();
        fs::create_dir_all(cache.copy("m/mine")).unwrap();
        std::os::unix::fs::symlink(&work, cache.copy("m/mine/dev")).unwrap();
        mark_orphaned(cache.dir.path(), &cache.copy("m/mine/dev"), cache.now).unwrap();
        mark_orphaned(cache.dir.path(), &work, cache.now).unwrap();
        assert_eq!(cache.sweep(), [""; 0]);
        assert!(cache.copy("m/mine/dev").exists() && !work.join(MARK).exists());
    }

    #[test]
    fn nothing_is_removed_when_it_is_not_known_what_is_installed() {
        for list in ["{ half", r#"{"plugins": {}}"#] {
            let cache = Cache::new(&["m/kit/1.0.0"]);
            cache.mark("m/kit/1.0.0", 99);
            fs::write(cache.dir.path().join("installed_plugins.json"), list).unwrap();
            assert_eq!(cache.sweep(), [""; 0], "{list}");
        }
    }
}
