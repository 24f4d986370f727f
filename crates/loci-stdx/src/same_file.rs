//! Whether an open file is still the one its path leads to.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Tells whether `path` still leads to `file`: false once it was removed, moved away or replaced.
#[cfg(unix)]
pub(crate) fn is_at_path(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    match fs::metadata(path) {
        Ok(there) => {
            let here = file.metadata()?;
            Ok((here.dev(), here.ino()) == (there.dev(), there.ino()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Tells whether there is a file at `path`; systems without inodes refuse to replace an open one.
#[cfg(not(unix))]
pub(crate) fn is_at_path(_file: &File, path: &Path) -> io::Result<bool> {
    fs::exists(path)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removal_moving_and_replacement_are_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let other = dir.path().join("other");
        let file = File::create(&path).unwrap();
        assert!(is_at_path(&file, &path).unwrap());
        fs::rename(&path, &other).unwrap();
        assert!(!is_at_path(&file, &path).unwrap());
        fs::write(&path, "another").unwrap();
        assert!(!is_at_path(&file, &path).unwrap());
        fs::rename(&other, &path).unwrap();
        assert!(is_at_path(&file, &path).unwrap());
    }
}
