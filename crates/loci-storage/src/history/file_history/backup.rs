//! One backup: making it, comparing with it, reading it.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use loci_core::file_history::{Backup, backup_file_name};
use loci_stdx::{create_private_dir_all, open_regular};
use sha2::{Digest, Sha256};

/// How much is compared at once.
const BLOCK: usize = 64 * 1024;

/// Returns the name of a file's backup.
fn name_of(path: &Path, version: u64) -> String {
    use std::os::unix::ffi::OsStrExt;
    backup_file_name(&loci_core::hex::to_hex(&Sha256::digest(path.as_os_str().as_bytes())), version)
}

/// Returns the first version that no backup of this file has.
pub(super) fn next_version(dir: &Path, path: &Path) -> io::Result<u64> {
    let mut version = 1;
    while fs::exists(dir.join(name_of(path, version)))? {
        version += 1;
    }
    Ok(version)
}

/// Keeps a file as it is now; `None` for what is not a regular file.
pub(super) fn write_backup(dir: &Path, path: &Path, version: u64, now: &str) -> io::Result<Option<Backup>> {
    let backup = |file_name| Backup { file_name, version, time: now.to_owned() };
    match metadata_of(path)? {
        None => return Ok(Some(backup(None))),
        Some(metadata) if !metadata.is_file() => return Ok(None),
        Some(_) => {}
    }
    let name = name_of(path, version);
    create_private_dir_all(dir)?;
    let mut source = open_without_links(path)?;
    let mut copy = tempfile::Builder::new().prefix(".tmp-").tempfile_in(dir)?;
    io::copy(&mut source, copy.as_file_mut())?;
    let mode = source.metadata()?.permissions().mode() & 0o777;
    // Kept readable for us, or it could not be brought back.
    copy.as_file().set_permissions(fs::Permissions::from_mode(mode | 0o400))?;
    copy.as_file().sync_all()?;
    copy.persist(dir.join(&name)).map_err(|failure| failure.error)?;
    Ok(Some(backup(Some(name))))
}

/// Tells whether a file is no longer what its backup holds: existence, then size and mode, then times, then bytes.
pub(super) fn has_changed(dir: &Path, path: &Path, backup: &Backup) -> io::Result<bool> {
    let (now, name) = match (metadata_of(path)?, &backup.file_name) {
        (None, None) => return Ok(false),
        (None, Some(_)) | (Some(_), None) => return Ok(true),
        (Some(now), Some(name)) => (now, name),
    };
    let kept_path = dir.join(name);
    let Some(kept) = metadata_of(&kept_path)? else { return Ok(true) };
    let mode = |metadata: &Metadata| metadata.permissions().mode() & 0o777;
    if !now.is_file() || now.len() != kept.len() || (mode(&now) | 0o400) != mode(&kept) {
        return Ok(true);
    }
    if now.modified()? < kept.modified()? {
        return Ok(false);
    }
    Ok(!is_same(open_without_links(path)?, open_regular(kept_path)?)?)
}

/// Reads a backup and the mode it was kept with.
pub(crate) fn read_backup(dir: &Path, name: &str) -> io::Result<(Vec<u8>, u32)> {
    let mut file = open_without_links(&dir.join(name))?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok((bytes, mode))
}

fn metadata_of(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn open_without_links(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

fn is_same(mut left: File, mut right: File) -> io::Result<bool> {
    let (mut a, mut b) = (vec![0; BLOCK], vec![0; BLOCK]);
    loop {
        let n_left = fill(&mut left, &mut a)?;
        let n_right = fill(&mut right, &mut b)?;
        if n_left != n_right || a[..n_left] != b[..n_right] {
            return Ok(false);
        }
        if n_left == 0 {
            return Ok(true);
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut n_read = 0;
    while n_read < buffer.len() {
        match file.read(&mut buffer[n_read..]) {
            Ok(0) => break,
            Ok(n) => n_read += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n_read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backup_file_names_match_the_reference() {
        assert_eq!(name_of(Path::new("/home/dev/project/code.txt"), 2), "b8547272bf2ad8b8@v2");
    }

    #[test]
    fn backup_notices_every_kind_of_change() {
        let root = tempfile::tempdir().unwrap();
        let (dir, file) = (root.path().join("kept"), root.path().join("file"));
        fs::write(&file, "one").unwrap();
        let backup = write_backup(&dir, &file, 1, "t").unwrap().unwrap();
        let check = |expected: bool, why: &str| {
            assert_eq!(has_changed(&dir, &file, &backup).unwrap(), expected, "{why}");
        };
        check(false, "nothing happened");
        fs::write(&file, "two").unwrap();
        check(true, "bytes");
        fs::write(&file, "one").unwrap();
        check(false, "the same bytes, written again");
        let old = std::time::SystemTime::UNIX_EPOCH;
        fs::write(&file, "two").unwrap();
        File::options().write(true).open(&file).unwrap().set_modified(old).unwrap();
        check(false, "older than its backup: not read");
        fs::write(&file, "one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        check(true, "mode");
        fs::write(&file, "longer").unwrap();
        check(true, "size");
        fs::remove_file(&file).unwrap();
        check(true, "gone");
        std::os::unix::fs::symlink("nowhere", &file).unwrap();
        check(true, "a link now");
        let none = Backup { file_name: None, version: 1, time: String::new() };
        assert!(has_changed(&dir, &file, &none).unwrap(), "there was nothing");
        assert_eq!(write_backup(&dir, &file, 2, "t").unwrap(), None, "links are not followed");
    }
}
