//! Where lies what of a command's doing git must not use outside the sandbox: moved, never removed.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, RenameFlags, mkdirat, openat, renameat_with};
use rustix::io::Errno;

/// Its name in a directory of git.
pub(super) const SET_ASIDE: &str = "sandbox-set-aside";
/// How many names are tried for one thing: others of its name may have been set aside before.
const MOST_OF_A_NAME: usize = 1000;
/// How many names of what is set aside are told.
const MOST_NAMES: usize = 10;

/// What is set aside in a directory of git.
pub(super) struct SetAside<'a> {
    git: BorrowedFd<'a>,
    /// Made when something lies in it.
    dir: Option<OwnedFd>,
    /// What, in words.
    pub(super) told: Vec<String>,
}

impl<'a> SetAside<'a> {
    pub(super) fn new(git: BorrowedFd<'a>) -> Self {
        Self { git, dir: None, told: Vec::new() }
    }

    /// Sets something aside, and remembers to tell of it.
    pub(super) fn take(&mut self, dir: BorrowedFd<'_>, name: &OsStr, path: &Path) -> io::Result<()> {
        self.take_untold(dir, name, path)?;
        self.told.push(shown(&path.display().to_string()));
        Ok(())
    }

    /// Moves something to where it is not used, by its path with other letters in the place of slashes.
    pub(super) fn take_untold(&mut self, dir: BorrowedFd<'_>, name: &OsStr, path: &Path) -> io::Result<()> {
        let aside = match self.dir.take() {
            Some(aside) => aside,
            None => make(self.git)?,
        };
        let bytes: Vec<u8> =
            path.as_os_str().as_bytes().iter().map(|it| if *it == b'/' { b'_' } else { *it }).collect();
        // A name is at most so long, and there may be two of one.
        let short = &bytes[..bytes.len().min(200)];
        let aside = self.dir.insert(aside);
        for number in 0..MOST_OF_A_NAME {
            match rename(dir, name, aside.as_fd(), OsStr::from_bytes(&numbered(short, number))) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                other => return other,
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

fn numbered(name: &[u8], number: usize) -> Vec<u8> {
    let suffix = if number == 0 { String::new() } else { format!("~{number}") };
    [name, suffix.as_bytes()].concat()
}

/// Makes the directory, or takes the one that is there; what a command has put in its place is left alone.
fn make(git: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    for number in 0..MOST_OF_A_NAME {
        let name = numbered(SET_ASIDE.as_bytes(), number);
        let name = OsStr::from_bytes(&name);
        match mkdirat(git, name, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(other) => return Err(other.into()),
        }
        match open_in(git, name, OFlags::DIRECTORY) {
            Err(error) if is_no_directory(&error) => {}
            other => return other,
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Tells whether something was not opened because it is a symlink, or anything but a directory.
fn is_no_directory(error: &io::Error) -> bool {
    [Errno::LOOP, Errno::NOTDIR].iter().any(|it| error.raw_os_error() == Some(it.raw_os_error()))
}

/// Returns a name as it may stand in a sentence.
pub(super) fn shown(name: &str) -> String {
    name.replace(|c: char| c.is_control() || c == '`', "?")
}

/// Says what is in a list, as far as it is short.
pub(super) fn listed(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(MOST_NAMES).map(|name| format!("`{name}`")).collect();
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown.join(", "),
        n => format!("{} and {n} more", shown.join(", ")),
    }
}

pub(super) fn rename(
    from: BorrowedFd<'_>,
    name: impl rustix::path::Arg,
    to: BorrowedFd<'_>,
    new: impl rustix::path::Arg,
) -> io::Result<()> {
    Ok(renameat_with(from, name, to, new, RenameFlags::NOREPLACE)?)
}

/// Opens something in a directory, without following a symlink.
pub(super) fn open_in(dir: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> io::Result<OwnedFd> {
    // What is no file might keep whoever opens it waiting.
    let always = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(openat(dir, name, flags | always, Mode::empty())?)
}
