//! Regular files, opened and read without ever waiting.
//!
//! Whatever a user or a repository puts in the place of a file may be a FIFO, a device or a socket. Opening a FIFO
//! waits for somebody at its other end, so everything that is not ours alone is opened here: without waiting, and given
//! back as an error when it is no regular file. For a regular file that costs one `fstat` more.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file for reading; anything else is an error of the kind [`io::ErrorKind::InvalidInput`].
pub fn open_regular(path: impl AsRef<Path>) -> io::Result<File> {
    open_regular_with(OpenOptions::new().read(true), path.as_ref())
}

/// Opens a regular file by these options, which may create it.
pub fn open_regular_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    without_waiting(options);
    let file = options.open(path).map_err(|error| match has_no_reader(&error) {
        true => irregular(),
        false => error,
    })?;
    let metadata = file.metadata()?;
    match (metadata.is_file(), metadata.is_dir()) {
        (true, _) => Ok(file),
        (_, true) => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(irregular()),
    }
}

/// Reads a regular file to its end.
pub fn read_regular(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a regular file to its end, as text.
pub fn read_regular_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let mut text = String::new();
    open_regular(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Copies a regular file with its permissions, as [`std::fs::copy`] does, and returns the copy, which is not synced yet.
pub fn copy_regular(from: &Path, to: &Path) -> io::Result<File> {
    let mut source = open_regular(from)?;
    let permissions = source.metadata()?.permissions();
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(
        &mut options,
        std::os::unix::fs::PermissionsExt::mode(&permissions),
    );
    let mut copy = open_regular_with(&mut options, to)?;
    copy.set_permissions(permissions)?;
    io::copy(&mut source, &mut copy)?;
    Ok(copy)
}

fn irregular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

#[cfg(unix)]
fn without_waiting(options: &mut OpenOptions) {
    use rustix::fs::OFlags;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags.bits().cast_signed());
}

#[cfg(not(unix))]
fn without_waiting(_options: &mut OpenOptions) {}

/// Tells whether a FIFO was to be written that nobody reads, or a socket was to be opened.
#[cfg(unix)]
fn has_no_reader(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error())
}

#[cfg(not(unix))]
fn has_no_reader(_error: &io::Error) -> bool {
    false
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use super::*;

    fn fifo(dir: &Path) -> PathBuf {
        let path = dir.join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        path
    }

    #[test]
    fn fifo_socket_device_and_directory_are_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let fifo = fifo(dir);
        let socket = dir.join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        let link = dir.join("link");
        std::os::unix::fs::symlink(&fifo, &link).unwrap();
        for path in [&fifo, &socket, &link, Path::new("/dev/null")] {
            assert_eq!(
                open_regular(path).unwrap_err().to_string(),
                "not a regular file",
                "{}",
                path.display()
            );
            assert!(read_regular(path).is_err() && read_regular_to_string(path).is_err());
            let mut options = OpenOptions::new();
            let options = options.append(true).create(true);
            assert!(open_regular_with(options, path).is_err(), "{}", path.display());
        }
        assert_eq!(open_regular(dir).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(open_regular(dir.join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn copy_has_content_and_mode_and_a_fifo_is_not_copied() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (file, copy) = (dir.path().join("file"), dir.path().join("copy"));
        std::fs::write(&file, "text").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).unwrap();
        copy_regular(&file, &copy).unwrap();
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), "text");
        assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o400);
        let other = dir.path().join("other");
        assert_eq!(copy_regular(&fifo(dir.path()), &other).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(!other.exists(), "nothing is made for what cannot be copied");
    }

    #[test]
    fn regular_files_are_read_and_created() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut options = OpenOptions::new();
        open_regular_with(options.write(true).create(true), &path).unwrap();
        std::fs::write(&path, "text").unwrap();
        assert_eq!(read_regular(&path).unwrap(), b"text");
        assert_eq!(read_regular_to_string(&path).unwrap(), "text");
    }
}
