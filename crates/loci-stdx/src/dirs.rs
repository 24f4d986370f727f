//! Directories: making private ones, and making their entries durable.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Creates `path` and its missing parents, readable by the user alone (mode 0700 where modes exist).
///
/// Directories that exist keep their mode.
pub fn create_private_dir_all(path: &Path) -> io::Result<()> {
    create_dir_all_with_mode(path, 0o700)
}

/// Creates `path`, which must not exist, in a directory that does, readable by the user alone (mode 0700 where modes exist).
pub fn create_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates `path` and its missing parents with `mode` less the umask.
#[cfg(unix)]
pub(crate) fn create_dir_all_with_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(mode).create(path)
}

#[cfg(not(unix))]
pub(crate) fn create_dir_all_with_mode(path: &Path, _mode: u32) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Returns the directory that holds `path`; a bare name lies in the current one.
pub(crate) fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes creations and renames in `path` survive a power cut.
///
/// File systems that cannot sync a directory say `EINVAL`; they are taken at their best effort.
pub fn sync_dir(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(path)?.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            Ok(())
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn new_directories_are_private_and_old_ones_keep_their_mode() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        create_private_dir_all(&dir.path().join("a/b")).unwrap();
        create_private_dir_all(&dir.path().join("a/b")).unwrap();
        assert_eq!(mode(dir.path()), 0o755);
        assert_eq!(mode(&dir.path().join("a")), 0o700);
        assert_eq!(mode(&dir.path().join("a/b")), 0o700);
        create_private_dir(&dir.path().join("c")).unwrap();
        assert_eq!(mode(&dir.path().join("c")), 0o700);
        assert!(create_private_dir(&dir.path().join("c")).is_err(), "it is there");
    }

    #[test]
    fn parent_of_bare_names_and_roots_is_the_current_directory() {
        for (path, parent) in [("a/b", "a"), ("b", "."), ("/b", "/"), ("/", "."), ("", ".")] {
            assert_eq!(parent_of(Path::new(path)), Path::new(parent), "{path}");
        }
    }

    #[test]
    fn a_directory_can_be_synced() {
        sync_dir(tempfile::tempdir().unwrap().path()).unwrap();
    }
}
