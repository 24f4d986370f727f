//! Moving a file or directory, across file systems if need be.

use std::fs;
use std::io;
use std::path::Path;

use loci_stdx::{copy_regular, create_private_dir};

/// Moves `from` to `to`, which must not exist.
///
/// Where a rename cannot reach, everything is copied and synced first; the original goes only then.
pub(crate) fn move_path(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            copy(from, to)?;
            if from.is_dir() { fs::remove_dir_all(from) } else { fs::remove_file(from) }
        }
        result => result,
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return copy_regular(from, to)?.sync_all();
    }
    create_private_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn move_across_file_systems_copies_everything() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a"), dir.path().join("b"));
        fs::create_dir_all(from.join("sub")).unwrap();
        fs::write(from.join("sub/x"), "text").unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("sub/x")).unwrap(), "text");
        move_path(&to, &dir.path().join("c")).unwrap();
        assert!(!to.exists() && dir.path().join("c/sub/x").exists());
        // A FIFO among them is an error, not a wait.
        let fifo = from.join("sub/fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(copy(&from, &dir.path().join("d")).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
