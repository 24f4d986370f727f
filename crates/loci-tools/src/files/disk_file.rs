//! Files as they lie on disk: opened only when they are plain files, and known again by their identity.
//!
//! Opening a FIFO waits for a writer and opening a device can have effects, so everything that is not a regular
//! file is refused by its metadata, before any open; a second look after opening closes the gap between. A path
//! is opened by where it led when it was allowed, and a symlink on the way is refused (S-29).

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path};

use loci_core::tool::PathEffect;
use loci_stdx::{FileStat, is_symlink_error, open_real};

/// Which file it was, and in what state: enough to notice that somebody else has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Identity {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

impl From<&FileStat> for Identity {
    fn from(found: &FileStat) -> Self {
        Self { device: found.device, inode: found.inode, size: found.size, modified: found.modified }
    }
}

/// Why a path could not be opened as a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("it does not exist")]
    Missing,
    #[error("it is a directory")]
    Directory,
    #[error("it is {0}, not a regular file")]
    Special(&'static str),
    #[error("its path leads elsewhere since it was allowed")]
    Moved,
    #[error("it shows the memory, environment or open files of a process")]
    ProcessSecret,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Opens a regular file for reading and returns it with its metadata.
pub(crate) fn open_regular(path: &PathEffect) -> Result<(File, Metadata), OpenError> {
    check_regular(path)?;
    let file = open_real(&path.real).map_err(open_error)?;
    let metadata = file.metadata()?;
    check_kind(&metadata)?;
    Ok((file, metadata))
}

/// Returns the metadata of a regular file without opening it.
pub(crate) fn check_regular(path: &PathEffect) -> Result<Metadata, OpenError> {
    if shows_process(&path.requested) || shows_process(&path.real) {
        return Err(OpenError::ProcessSecret);
    }
    let metadata = std::fs::metadata(&path.real).map_err(open_error)?;
    check_kind(&metadata)?;
    Ok(metadata)
}

fn open_error(error: io::Error) -> OpenError {
    match error.kind() {
        _ if is_symlink_error(&error) => OpenError::Moved,
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => OpenError::Missing,
        _ => OpenError::Io(error),
    }
}

fn check_kind(metadata: &Metadata) -> Result<(), OpenError> {
    let kind = metadata.file_type();
    if kind.is_file() {
        Ok(())
    } else if kind.is_dir() {
        Err(OpenError::Directory)
    } else if kind.is_fifo() {
        Err(OpenError::Special("a named pipe"))
    } else if kind.is_socket() {
        Err(OpenError::Special("a socket"))
    } else if kind.is_char_device() || kind.is_block_device() {
        Err(OpenError::Special("a device"))
    } else {
        Err(OpenError::Special("something special"))
    }
}

/// Returns true for the parts of `/proc/<process>` that hold secrets: environment, memory, open files.
fn shows_process(path: &Path) -> bool {
    let mut parts = path.components().skip(1).map(|part| match part {
        Component::Normal(name) => name.to_str().unwrap_or_default(),
        _ => "",
    });
    parts.next() == Some("proc") && parts.any(|part| matches!(part, "environ" | "mem" | "fd"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> String {
        match open_regular(&PathEffect::plain(path)) {
            Ok(_) => "open".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (file, fifo, socket) =
            (dir.path().join("file"), dir.path().join("fifo"), dir.path().join("socket"));
        std::fs::write(&file, "x").unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, expected) in [
            (file.as_path(), "open"),
            (dir.path(), "it is a directory"),
            (fifo.as_path(), "it is a named pipe, not a regular file"),
            (socket.as_path(), "it is a socket, not a regular file"),
            (Path::new("/dev/null"), "it is a device, not a regular file"),
            (&dir.path().join("none"), "it does not exist"),
            (&file.join("below"), "it does not exist"),
        ] {
            assert_eq!(open(path), expected, "{}", path.display());
        }
    }

    #[test]
    fn proc_files_with_process_secrets_are_refused() {
        for (path, refused) in [
            ("/proc/self/environ", true),
            ("/proc/1/mem", true),
            ("/proc/1/task/1/environ", true),
            ("/proc/self/fd/0", true),
            ("/proc/cpuinfo", false),
            ("/proc/self/status", false),
            ("/home/proc/environ", false),
        ] {
            assert_eq!(shows_process(Path::new(path)), refused, "{path}");
        }
    }

    #[test]
    fn identity_changes_with_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let identity = || Identity::of(&std::fs::metadata(&path).unwrap());
        std::fs::write(&path, "one").unwrap();
        let before = identity();
        assert_eq!(identity(), before);
        std::fs::write(&path, "longer").unwrap();
        assert_ne!(identity(), before, "size");
        let before = identity();
        File::options().write(true).open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_ne!(identity(), before, "time");
    }
}
