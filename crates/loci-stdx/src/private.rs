//! Files that are the user's alone: whoever makes one that nobody else may read opens it through here.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Returns options for opening a file that is readable by the user alone when this makes it (mode 0600 where modes
/// exist).
///
/// A file that exists keeps its mode.
#[must_use]
pub fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens a file for writing from its beginning, readable by the user alone when this makes it.
pub fn create_private(path: &Path) -> io::Result<File> {
    private_file().write(true).create(true).truncate(true).open(path)
}

/// Makes `bytes` the content of a file, readable by the user alone when this makes it. A crash may leave a part of them.
pub fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_private(path)?.write_all(bytes)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn new_files_are_private_and_old_ones_keep_their_mode() {
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let dir = tempfile::tempdir().unwrap();
        let (new, old) = (dir.path().join("new"), dir.path().join("old"));
        fs::write(&old, "something longer").unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o640)).unwrap();
        for (path, expected) in [(&new, 0o600), (&old, 0o640)] {
            write_private(path, b"text").unwrap();
            assert_eq!((fs::read_to_string(path).unwrap().as_str(), mode(path)), ("text", expected));
        }
        assert!(private_file().write(true).create_new(true).open(&new).is_err());
    }
}
