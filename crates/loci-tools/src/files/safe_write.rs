//! Writing a project's file: the last look before it is replaced.
//!
//! Between reading a file and replacing it others may write too. The write goes ahead only if what lies at the
//! place is exactly what the change was made from, and the place is still where the permission was given for:
//! no symlink has slipped into the path (S-29).

use std::io;
use std::path::Path;
use std::time::SystemTime;

use loci_stdx::{RealDir, WriteOptions, is_symlink_error};

use crate::files::disk_file::Identity;

/// What must lie at the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Nothing: the file is new.
    Absent,
    /// The file the change was made from.
    Unchanged(Identity),
}

/// Why a file was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SafeWriteError {
    #[error("it changed on disk while the change was being made")]
    Changed,
    #[error("a file of this name has appeared meanwhile")]
    Appeared,
    #[error("its directory leads elsewhere now")]
    Moved,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Makes `bytes` the content of the file at `real` (a path without symlinks), missing directories included, and
/// returns its new modification time. All of it happens inside the directory that is opened first.
pub(crate) fn safe_write(
    real: &Path,
    bytes: &[u8],
    expected: Expected,
) -> Result<SystemTime, SafeWriteError> {
    let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput).into());
    };
    let options = WriteOptions::project();
    let dir = RealDir::create_all(parent, options.dir_mode).map_err(moved)?;
    let found = dir.stat(name)?;
    match (expected, found.as_ref()) {
        (Expected::Absent, None) => {}
        (Expected::Absent, Some(_)) => return Err(SafeWriteError::Appeared),
        (Expected::Unchanged(before), now) => {
            if now.filter(|now| now.is_file).map(Identity::from) != Some(before) {
                return Err(SafeWriteError::Changed);
            }
        }
    }
    dir.replace(name, bytes, &options, found.as_ref())?;
    match dir.stat(name)? {
        Some(found) => Ok(found.modified_at()),
        None => Err(SafeWriteError::Changed),
    }
}

fn moved(error: io::Error) -> SafeWriteError {
    if is_symlink_error(&error) { SafeWriteError::Moved } else { SafeWriteError::Io(error) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;

    struct Dir {
        _root: tempfile::TempDir,
        path: PathBuf,
    }

    fn dir() -> Dir {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        Dir { _root: root, path }
    }

    fn unchanged(path: &Path) -> Expected {
        Expected::Unchanged(Identity::of(&std::fs::metadata(path).unwrap()))
    }

    #[test]
    fn new_files_and_directories_are_made() {
        let dir = dir();
        let path = dir.path.join("a/b/c.txt");
        let modified = safe_write(&path, b"new", Expected::Absent).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), modified);
    }

    #[test]
    fn the_mode_is_kept() {
        let dir = dir();
        let path = dir.path.join("script");
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
        safe_write(&path, b"new", unchanged(&path)).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o751);
    }

    #[test]
    fn file_changed_by_others_is_not_overwritten() {
        let dir = dir();
        let path = dir.path.join("file");
        let check = |expected: Expected, says: &str, content: &str| {
            let error = safe_write(&path, b"ours", expected).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), content);
        };
        std::fs::write(&path, "old").unwrap();
        let before = unchanged(&path);
        std::fs::write(&path, "theirs").unwrap();
        check(before, "it changed on disk", "theirs");
        check(Expected::Absent, "has appeared", "theirs");
        let before = unchanged(&path);
        std::fs::remove_file(&path).unwrap();
        check(before, "it changed on disk", "");
        std::fs::write(dir.path.join("other"), "theirs").unwrap();
        symlink("other", &path).unwrap();
        check(before, "it changed on disk", "theirs");
        check(Expected::Absent, "has appeared", "theirs");
        symlink("nowhere", dir.path.join("dangling")).unwrap();
        assert!(safe_write(&dir.path.join("dangling"), b"ours", Expected::Absent).is_err());
    }

    #[test]
    fn a_directory_that_became_a_link_is_noticed() {
        let dir = dir();
        std::fs::create_dir(dir.path.join("elsewhere")).unwrap();
        symlink("elsewhere", dir.path.join("sub")).unwrap();
        for name in ["sub/file", "sub/new/file"] {
            let error = safe_write(&dir.path.join(name), b"ours", Expected::Absent).unwrap_err();
            assert!(matches!(error, SafeWriteError::Moved), "{error}");
        }
        assert_eq!(dir.path.join("elsewhere").read_dir().unwrap().count(), 0);
    }
}
