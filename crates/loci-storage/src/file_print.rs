//! What tells one state of a file from another: its place on disk, size and times.
//!
//! Files are compared rather than watched: that holds on every file system, through links and renames, costs a few
//! microseconds a file, and runs only when somebody looks.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most files of directories that are looked at.
const MOST_FILES: usize = 2000;
/// How deep directories are looked into.
const DEEPEST: usize = 8;

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePrint {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FilePrint {
    /// Looks at a path; none when nothing is there.
    pub fn read(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().as_ref().map(Self::from_metadata)
    }

    /// Takes what a look below a directory showed.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "widths differ between systems")]
    pub(crate) fn from_stat(stat: &rustix::fs::Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    pub(crate) fn from_metadata(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Looks at files, and at all files below directories, as far as there are not too many.
pub fn file_prints(paths: &[PathBuf]) -> BTreeMap<PathBuf, FilePrint> {
    let mut prints = BTreeMap::new();
    for path in paths {
        collect_prints(path, 0, &mut prints);
    }
    prints
}

fn collect_prints(path: &Path, depth: usize, prints: &mut BTreeMap<PathBuf, FilePrint>) {
    let Ok(metadata) = fs::metadata(path) else { return };
    if !metadata.is_dir() {
        prints.insert(path.to_owned(), FilePrint::from_metadata(&metadata));
        return;
    }
    // A link to a directory above would lead round in a circle.
    let is_link = depth > 0 && fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink());
    if is_link || depth >= DEEPEST {
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if prints.len() >= MOST_FILES {
            return;
        }
        collect_prints(&entry.path(), depth + 1, prints);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_directories_are_looked_at_and_circles_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("dir/deep")).unwrap();
        fs::write(at("dir/deep/a"), "a").unwrap();
        fs::write(at("plain"), "b").unwrap();
        std::os::unix::fs::symlink(root.path(), at("dir/circle")).unwrap();
        let seen = file_prints(&[at("dir"), at("plain"), at("absent")]);
        assert_eq!(seen.keys().cloned().collect::<Vec<_>>(), [at("dir/deep/a"), at("plain")]);
        fs::write(at("plain"), "bb").unwrap();
        let now = file_prints(&[at("dir"), at("plain")]);
        assert_ne!(now[&at("plain")], seen[&at("plain")]);
        assert_eq!(now[&at("dir/deep/a")], seen[&at("dir/deep/a")]);
    }
}
