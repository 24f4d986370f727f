//! Files reached without following a single symlink.
//!
//! Whoever was told that a path may be used was told so of the place it led to then. A symlink that is put on the
//! way since then would lead elsewhere, so here one anywhere on the way is an error (`ELOOP`), never followed. On
//! Linux the kernel sees to that in one step (`openat2`); elsewhere, and where that is not allowed, the way is gone
//! name by name, each opened inside the one before. Writing happens inside the directory that was opened,
//! wherever its name leads by then.
//!
//! It is written by hand, although `cap-std` exists: that crate follows symlinks as long as they stay inside a
//! directory, and here none may be followed at all.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::{EntryKind, WriteOptions, dir_entries};

/// How often another name is tried for a temporary file.
const ATTEMPTS: usize = 16;
/// What the names of files begin with that are about to take another's place; sixteen hexadecimal digits follow.
const TEMPORARY_PREFIX: &str = ".tmp-";

/// A directory that was opened by its real path.
#[derive(Debug)]
pub struct RealDir {
    fd: OwnedFd,
}

/// What lies under a name; a symlink is itself, not what it points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// Whether it is a regular file.
    pub is_file: bool,
    /// Whether it is a symlink.
    pub is_link: bool,
    /// The device it lies on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// Its size.
    pub size: u64,
    /// When it was modified, in seconds and nanoseconds.
    pub modified: (i64, i64),
    owner: (u32, u32),
    mode: u32,
}

/// How files are opened for reading: without waiting for a FIFO's other side.
const READING: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// How directories are opened.
const ENTERING: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Opens the file at a real path for reading, without waiting for a FIFO's other side.
pub fn open_real(path: &Path) -> io::Result<File> {
    Ok(File::from(open_unlinked(None, path, READING)?))
}

impl RealDir {
    /// Opens a directory by its real path.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { fd: open_unlinked(None, path, ENTERING)? })
    }

    /// Opens the file at a path below this directory for reading. Neither `..` nor a symlink leads out of it.
    pub fn open_below(&self, below: &Path) -> io::Result<File> {
        Ok(File::from(open_unlinked(Some(&self.fd), below, READING)?))
    }

    /// Opens the directory at a path below this one; the empty path is this one itself.
    pub fn dir_below(&self, below: &Path) -> io::Result<Self> {
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        Ok(Self { fd: open_unlinked(Some(&self.fd), below, ENTERING)? })
    }

    /// Opens a directory by its real path; returns it with what lies in it, in no order.
    pub fn open_listed(path: &Path) -> io::Result<(Self, Vec<(OsString, EntryKind)>)> {
        let dir = Self::open(path)?;
        let entries = dir_entries(&dir.fd, usize::MAX)?;
        Ok((dir, entries))
    }

    /// Returns at most `most` names in a directory below this one, and what each of them is, in no order.
    pub fn entries_below(&self, below: &Path, most: usize) -> io::Result<Vec<(OsString, EntryKind)>> {
        dir_entries(self.dir_below(below)?.fd, most)
    }

    /// Opens a directory by its real path and makes what is missing of it.
    pub fn create_all(path: &Path, mode: u32) -> io::Result<Self> {
        match Self::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let fd = walk(None, path, &mut |dir, name| {
            match step(dir, name, ENTERING) {
                Err(Errno::NOENT) => {}
                stepped => return stepped,
            }
            match rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(mode as rustix::fs::RawMode)) {
                Ok(()) | Err(Errno::EXIST) => step(dir, name, ENTERING),
                Err(error) => Err(error),
            }
        })?;
        Ok(Self { fd })
    }

    /// Looks at what lies under a name.
    pub fn stat(&self, name: &OsStr) -> io::Result<Option<FileStat>> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileStat::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes `bytes` the content of the file under a name, all or nothing. A file that takes the place of `before`
    /// keeps its mode and, where that is allowed, its owner. A symlink under the name is replaced, not followed.
    pub fn replace(
        &self,
        name: &OsStr,
        bytes: &[u8],
        options: &WriteOptions,
        before: Option<&FileStat>,
    ) -> io::Result<()> {
        let (temporary, file) = self.temporary(options.file_mode)?;
        let filled = fill(file, bytes, before)
            .and_then(|()| Ok(rustix::fs::renameat(&self.fd, &*temporary, &self.fd, name)?));
        if let Err(error) = filled {
            // It may be gone already; the first error is the one to tell.
            rustix::fs::unlinkat(&self.fd, &*temporary, AtFlags::empty()).ok();
            return Err(error);
        }
        // In place; only a power cut could still lose it.
        rustix::fs::fsync(&self.fd).ok();
        Ok(())
    }

    /// Writes a file with exactly these permission bits, to take another's place by [`Self::rename`] once it is
    /// synced; what lies under the name is removed first.
    pub fn stage(&self, name: &OsStr, bytes: &[u8], mode: u32) -> io::Result<File> {
        use std::os::unix::fs::PermissionsExt;
        match self.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&self.fd, name, flags, Mode::from_raw_mode(0o600))?);
        file.write_all(bytes)?;
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        Ok(file)
    }

    /// Gives what lies under one name another, in place of whatever has that.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Makes everything on the file system of this directory safe from a power cut, where that can be asked for in
    /// one go; false where it cannot.
    pub fn sync_file_system(&self) -> io::Result<bool> {
        #[cfg(target_os = "linux")]
        {
            rustix::fs::syncfs(&self.fd)?;
            Ok(true)
        }
        #[cfg(not(target_os = "linux"))]
        Ok(false)
    }

    /// Makes a symlink under a name that is free.
    pub fn link(&self, name: &OsStr, target: &Path) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.fd, name)?)
    }

    /// Makes a directory under a name that is free.
    pub fn make_dir(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o700))?;
        self.set_mode(name, mode)
    }

    /// Sets the permission bits of a directory or a file; a symlink is refused.
    pub fn set_mode(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        let fd = step(&self.fd, name, OFlags::RDONLY | OFlags::NONBLOCK)?;
        Ok(rustix::fs::fchmod(fd, Mode::from_raw_mode(mode as rustix::fs::RawMode))?)
    }

    /// Removes a file or a link.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    pub fn remove_dir(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)
    }

    /// Returns what a symlink points at.
    pub fn read_link(&self, name: &OsStr) -> io::Result<std::path::PathBuf> {
        use std::os::unix::ffi::OsStringExt;
        let target = rustix::fs::readlinkat(&self.fd, name, Vec::new())?;
        Ok(std::ffi::OsString::from_vec(target.into_bytes()).into())
    }

    /// Opens the file under a name for reading; a symlink is refused.
    pub fn open_file(&self, name: &OsStr) -> io::Result<File> {
        Ok(File::from(step(&self.fd, name, READING)?))
    }

    fn temporary(&self, mode: u32) -> io::Result<(String, File)> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode as rustix::fs::RawMode);
        for _ in 0..ATTEMPTS {
            let name = format!("{TEMPORARY_PREFIX}{:016x}", fastrand::u64(..));
            match rustix::fs::openat(&self.fd, &*name, flags, mode) {
                Ok(fd) => return Ok((name, File::from(fd))),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl FileStat {
    /// Returns when it was modified, as a time.
    pub fn modified_at(&self) -> SystemTime {
        let (seconds, nanos) = self.modified;
        let within = Duration::from_nanos(nanos.unsigned_abs());
        let whole = Duration::from_secs(seconds.unsigned_abs());
        if seconds < 0 { UNIX_EPOCH - whole + within } else { UNIX_EPOCH + whole + within }
    }

    #[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "widths differ between systems")]
    fn of(stat: &Stat) -> Self {
        Self {
            is_file: FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile,
            is_link: FileType::from_raw_mode(stat.st_mode) == FileType::Symlink,
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            owner: (stat.st_uid, stat.st_gid),
            mode: u32::from(stat.st_mode) & 0o7777,
        }
    }
}

fn fill(mut file: File, bytes: &[u8], before: Option<&FileStat>) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    if let Some(before) = before {
        let (uid, gid) = before.owner;
        let created = file.metadata()?;
        // Only root may give files away; for others the new file is theirs, as with any editor.
        if (created.uid(), created.gid()) != (uid, gid)
            && let Err(error) = fchown(&file, Some(uid), Some(gid))
            && error.kind() != io::ErrorKind::PermissionDenied
        {
            return Err(error);
        }
        // After the owner, since changing that clears the set-id bits.
        file.set_permissions(std::fs::Permissions::from_mode(before.mode))?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// Opens a path without following a symlink: an absolute one, or one below `dir` that stays there.
fn open_unlinked(dir: Option<&OwnedFd>, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, ResolveFlags, openat2};
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::CLOEXEC;
        let opened = match dir {
            Some(dir) => openat2(dir, path, flags, Mode::empty(), resolve | ResolveFlags::BENEATH),
            None => openat2(CWD, path, flags, Mode::empty(), resolve),
        };
        match opened {
            // Older kernels do not have it, and some sandboxes do not let it through.
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
            opened => return Ok(opened?),
        }
    }
    let last = path.components().filter(|part| matches!(part, Component::Normal(_))).count();
    let mut n_gone = 0;
    walk(dir, path, &mut |dir, name| {
        n_gone += 1;
        step(dir, name, if n_gone == last { flags } else { ENTERING })
    })
}

/// Goes the way to a path without `..`, name by name: from `dir`, or from the root to an absolute one.
fn walk(
    dir: Option<&OwnedFd>,
    path: &Path,
    step: &mut dyn FnMut(&OwnedFd, &OsStr) -> Result<OwnedFd, Errno>,
) -> io::Result<OwnedFd> {
    let mut here = match dir {
        Some(dir) => dir.try_clone()?,
        None => rustix::fs::open("/", ENTERING | OFlags::CLOEXEC, Mode::empty())?,
    };
    for part in path.components() {
        match part {
            Component::RootDir if dir.is_none() => {}
            Component::CurDir => {}
            Component::Normal(name) => here = step(&here, name)?,
            Component::RootDir | Component::ParentDir | Component::Prefix(_) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
    }
    Ok(here)
}

/// Opens a name inside a directory; a symlink is `ELOOP`, whatever the system calls it.
fn step(dir: &OwnedFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let opened =
        rustix::fs::openat(dir.as_fd(), name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
    let is_link = || {
        let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    };
    match opened {
        Err(Errno::NOTDIR | Errno::MLINK) if is_link() => Err(Errno::LOOP),
        opened => opened,
    }
}

/// Tells whether a name is that of a file that is being written beside the one whose place it will take.
pub fn is_temporary_name(name: &OsStr) -> bool {
    let digits = name.to_str().and_then(|name| name.strip_prefix(TEMPORARY_PREFIX));
    digits.is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Returns true when a symlink was in the way.
pub fn is_symlink_error(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    /// `real/file`, and links to each: `link -> real`, `real/alias -> file`.
    fn tree() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        std::fs::create_dir(path.join("real")).unwrap();
        std::fs::write(path.join("real/file"), "old").unwrap();
        symlink("real", path.join("link")).unwrap();
        symlink("file", path.join("real/alias")).unwrap();
        (root, path)
    }

    fn walked(path: &Path) -> io::Result<OwnedFd> {
        walk(None, path, &mut |dir, name| step(dir, name, OFlags::RDONLY | OFlags::NONBLOCK))
    }

    /// Both ways of going, the kernel's and ours, refuse the same (S-29).
    #[test]
    fn no_symlink_is_followed() {
        let (_root, path) = tree();
        for (name, expected) in [
            ("real/file", "opened"),
            ("link/file", "symlink"),
            ("real/alias", "symlink"),
            ("link", "symlink"),
            ("real/none", "missing"),
            ("none/file", "missing"),
        ] {
            let show = |error: Option<io::Error>| match error {
                None => "opened",
                Some(error) if is_symlink_error(&error) => "symlink",
                Some(error) if error.kind() == io::ErrorKind::NotFound => "missing",
                Some(_) => "other",
            };
            assert_eq!(show(open_real(&path.join(name)).err()), expected, "{name}");
            assert_eq!(show(walked(&path.join(name)).err()), expected, "{name}, name by name");
        }
    }

    /// Below a directory neither `..` nor a link nor an absolute path leads out, by both ways of going (S-29).
    #[test]
    fn nothing_leads_out_of_a_directory_that_was_opened() {
        let (_root, path) = tree();
        std::fs::create_dir(path.join("real/sub")).unwrap();
        std::fs::write(path.join("real/sub/deep"), "old").unwrap();
        std::fs::write(path.join("outside"), "secret").unwrap();
        symlink("..", path.join("real/up")).unwrap();
        let dir = RealDir::open(&path.join("real")).unwrap();
        // Its name leads elsewhere by now, and that is nothing to it.
        std::fs::rename(path.join("real"), path.join("moved")).unwrap();
        symlink(".", path.join("real")).unwrap();
        let absolute = path.join("outside");
        for (below, opens) in [
            (Path::new("file"), true),
            (Path::new("sub/deep"), true),
            (Path::new("./sub/deep"), true),
            (Path::new("alias"), false),
            (Path::new("up/outside"), false),
            (Path::new("../outside"), false),
            (Path::new("outside"), false),
            (&absolute, false),
        ] {
            let by_hand = walk(Some(&dir.fd), below, &mut |dir, name| step(dir, name, READING));
            assert_eq!(dir.open_below(below).is_ok(), opens, "{}", below.display());
            assert_eq!(by_hand.is_ok(), opens, "{}, name by name", below.display());
        }
        for (below, opens) in [("", true), ("sub", true), ("up", false), ("..", false), ("file", false)] {
            assert_eq!(dir.dir_below(Path::new(below)).is_ok(), opens, "{below}");
        }
        assert!(dir.stat(OsStr::new("alias")).unwrap().unwrap().is_link);
    }

    #[test]
    fn files_are_replaced_inside_the_directory_that_was_opened() {
        let (_root, path) = tree();
        let dir = RealDir::open(&path.join("real")).unwrap();
        // The name leads elsewhere now; what was opened is what is written.
        std::fs::rename(path.join("real"), path.join("moved")).unwrap();
        std::fs::create_dir(path.join("trap")).unwrap();
        symlink("trap", path.join("real")).unwrap();
        let name = OsStr::new("file");
        let before = dir.stat(name).unwrap();
        dir.replace(name, b"new", &WriteOptions::project(), before.as_ref()).unwrap();
        assert_eq!(std::fs::read(path.join("moved/file")).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(path.join("trap")).unwrap().count(), 0);
        // A link under the name goes away; what it pointed at stays.
        dir.replace(OsStr::new("alias"), b"own", &WriteOptions::project(), None).unwrap();
        assert_eq!(std::fs::read(path.join("moved/file")).unwrap(), b"new");
        let names: Vec<_> =
            std::fs::read_dir(path.join("moved")).unwrap().flatten().map(|it| it.file_name()).collect();
        assert_eq!(names.len(), 2, "nothing temporary is left: {names:?}");
    }

    #[test]
    fn directories_are_made_beside_links_and_never_through_them() {
        let (_root, path) = tree();
        RealDir::create_all(&path.join("real/a/b"), 0o755).unwrap();
        assert!(path.join("real/a/b").is_dir());
        RealDir::create_all(&path.join("real/a/b"), 0o755).unwrap();
        let error = RealDir::create_all(&path.join("link/c"), 0o755).unwrap_err();
        assert!(is_symlink_error(&error), "{error}");
        assert!(!path.join("real/c").exists());
    }
}
