//! Empty directories (for git: files) that stand where nothing may be made while a command runs.
//!
//! Git does not see empty directories, so that `git status` shows none of them, inside or outside. They are marked by
//! their permissions, and whoever uses one holds a shared lock on it: it is removed by the last, and one that a killed
//! command left is removed by the next.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, fchmod, flock, fstat, mkdirat, openat};

use crate::plan::{MountStep, PLACEHOLDER_DIR, PLACEHOLDER_FILE, Placeholder, Plan, is_placeholder};
use crate::policy::FileRules;

/// How often one is made anew that somebody else removes.
const ATTEMPTS: usize = 100;

/// Makes the placeholders of a plan; they are held as long as what is returned lives.
///
/// Where the user may not make one, a command cannot make the real thing either: its mount is left out.
pub(super) fn make(plan: &mut Plan) -> io::Result<Vec<OwnedFd>> {
    let mut held = Vec::new();
    for placeholder in std::mem::take(&mut plan.placeholders) {
        match make_one(&placeholder).map_err(|error| named(&placeholder.path, &error))? {
            Some(fd) => {
                held.push(fd);
                plan.placeholders.push(placeholder);
            }
            None => plan.mounts.retain(|step| *step != MountStep::Shut(placeholder.path.clone())),
        }
    }
    Ok(held)
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

fn make_one(placeholder: &Placeholder) -> io::Result<Option<OwnedFd>> {
    use rustix::io::Errno;
    let Placeholder { path, is_file } = placeholder;
    for _ in 0..ATTEMPTS {
        let is_new = match create(path, *is_file) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NOTDIR) => return Ok(None),
            Err(other) => return Err(other.into()),
        };
        let fd = match open_one(path) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => continue,
            // Somebody has put something else there; it is shut as it is.
            Err(Errno::LOOP | Errno::ACCESS) => {
                return Err(io::Error::other("it appeared while the sandbox was made"));
            }
            Err(other) => return Err(other.into()),
        };
        if is_new {
            let mode = if *is_file { PLACEHOLDER_FILE } else { PLACEHOLDER_DIR };
            fchmod(&fd, Mode::from_raw_mode(mode))?;
        }
        if flock(&fd, FlockOperation::NonBlockingLockShared).is_ok() && fstat(&fd)?.st_nlink > 0 {
            return Ok(Some(fd));
        }
        std::thread::yield_now();
    }
    Err(io::Error::other("others keep removing it"))
}

fn create(path: &Path, is_file: bool) -> rustix::io::Result<()> {
    if !is_file {
        return mkdirat(CWD, path, Mode::from_raw_mode(PLACEHOLDER_DIR));
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::from_raw_mode(0o444)).map(drop)
}

fn open_one(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    openat(CWD, path, flags, Mode::empty())
}

/// Removes every placeholder of these rules that nobody uses. One that cannot be removed is left to the next.
pub(crate) fn sweep(rules: &FileRules) {
    let below = |path: &Path| -> Vec<PathBuf> {
        let root =
            rules.roots.iter().filter(|root| path.starts_with(root)).max_by_key(|it| it.components().count());
        let parts = path.ancestors().take_while(|it| root.is_some_and(|root| *it != root.as_path()));
        parts.map(Path::to_path_buf).collect()
    };
    for path in rules.shut.iter().flat_map(|path| below(path)) {
        if fs::symlink_metadata(&path).is_ok_and(|found| is_placeholder(&found))
            && let Err(error) = remove_unused(&path)
        {
            tracing::debug!(target: "loci::sandbox", path = %path.display(), %error, "a placeholder is left");
        }
    }
}

fn remove_unused(path: &Path) -> io::Result<()> {
    let fd = open_one(path)?;
    flock(&fd, FlockOperation::NonBlockingLockExclusive)?;
    let file = File::from(fd);
    let found = file.metadata()?;
    match is_placeholder(&found) {
        true if found.is_dir() => fs::remove_dir(path),
        true => fs::remove_file(path),
        false => Ok(()),
    }
}
