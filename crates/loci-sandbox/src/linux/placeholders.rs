//! Empty directories (for git: files) that stand where nothing may be made while a command runs.
//!
//! Git does not see empty directories, so that `git status` shows none of them, inside or outside. They are marked by
//! their permissions. Whoever uses some holds a shared lock on the directory they lie in: they are removed by the last, and
//! what a killed command left is removed by the next. All this happens outside the mounts, where a symlink that a command
//! has left would lead anywhere: the way to each is opened without following one (SB-2).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, ResolveFlags, flock, mkdirat, openat, openat2,
    statat, unlinkat,
};
use rustix::io::Errno;

use super::mounts::open_path;
use crate::plan::{MountStep, Placeholder, Plan, is_placeholder_mode, placeholder_mode};
use crate::policy::FileRules;

/// How often, and after how long, a lock is tried again: who removes placeholders holds it for a moment.
const ATTEMPTS: usize = 1000;
const PAUSE: Duration = Duration::from_millis(1);

/// Makes the placeholders of a plan; they are held as long as what is returned lives.
///
/// Where the user may not make one, a command cannot make the real thing either: its mount is left out.
pub(super) fn make(plan: &mut Plan) -> io::Result<Vec<OwnedFd>> {
    let mut by_dir: BTreeMap<PathBuf, Vec<Placeholder>> = BTreeMap::new();
    for placeholder in std::mem::take(&mut plan.placeholders) {
        let parent = placeholder.path.parent().unwrap_or(Path::new("/")).to_owned();
        by_dir.entry(parent).or_default().push(placeholder);
    }
    // Permissions are the mark.
    let mask = rustix::process::umask(Mode::empty());
    let made = by_dir.into_iter().map(|(dir, names)| make_in(plan, &dir, names)).collect();
    rustix::process::umask(mask);
    made
}

fn make_in(plan: &mut Plan, dir: &Path, placeholders: Vec<Placeholder>) -> io::Result<OwnedFd> {
    let held = open_dir(dir).and_then(|fd| lock(&fd, FlockOperation::NonBlockingLockShared).map(|()| fd));
    let held = held.map_err(|error| named(dir, &error))?;
    for placeholder in placeholders {
        match create(held.as_fd(), &placeholder) {
            Ok(()) | Err(Errno::EXIST) => plan.placeholders.push(placeholder),
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NOTDIR) => {
                plan.mounts.retain(|step| *step != MountStep::Shut(placeholder.path.clone()));
            }
            Err(other) => return Err(named(&placeholder.path, &other.into())),
        }
    }
    Ok(held)
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

/// Opens a directory, no part of whose path may be a symlink.
fn open_dir(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat2(CWD, dir, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

fn lock(dir: &OwnedFd, operation: FlockOperation) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        match flock(dir, operation) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            other => return Ok(other?),
        }
    }
    Err(io::Error::other("somebody else keeps it locked"))
}

fn create(dir: BorrowedFd<'_>, placeholder: &Placeholder) -> rustix::io::Result<()> {
    let name = placeholder.path.file_name().unwrap_or_default();
    let mode = Mode::from_raw_mode(placeholder_mode(placeholder));
    if !placeholder.is_file {
        return mkdirat(dir, name, mode);
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, mode).map(drop)
}

/// Removes every placeholder of these rules and this plan that nobody uses. One that cannot be removed is left to the next.
pub(super) fn sweep(rules: &FileRules, plan: &Plan) {
    let below = |path: &Path| -> Vec<PathBuf> {
        let root =
            rules.roots.iter().filter(|root| path.starts_with(root)).max_by_key(|it| it.components().count());
        let parts = path.ancestors().take_while(|it| root.is_some_and(|root| *it != root.as_path()));
        parts.map(Path::to_path_buf).collect()
    };
    let mut by_dir: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    let planned = plan.placeholders.iter().map(|it| it.path.clone());
    for path in rules.shut.iter().flat_map(|path| below(path)).chain(planned) {
        if let Some(parent) = path.parent() {
            by_dir.entry(parent.to_owned()).or_default().insert(path);
        }
    }
    for (dir, paths) in by_dir {
        if let Err(error) = sweep_in(&dir, &paths) {
            tracing::debug!(target: "loci::sandbox", dir = %dir.display(), %error, "placeholders are left");
        }
    }
}

fn sweep_in(dir: &Path, paths: &BTreeSet<PathBuf>) -> io::Result<()> {
    let fd = match open_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    flock(&fd, FlockOperation::NonBlockingLockExclusive)?;
    paths.iter().filter_map(|path| path.file_name()).try_for_each(|name| remove_placeholder(fd.as_fd(), name))
}

fn remove_placeholder(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let found = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    let kind = FileType::from_raw_mode(found.st_mode);
    if !is_placeholder_mode(found.st_mode, kind == FileType::Directory, found.st_size == 0) {
        return Ok(());
    }
    let flags = if kind == FileType::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    Ok(unlinkat(dir, name, flags)?)
}

/// Removes what a command has made although it must not be there; a directory only if it is empty.
pub(super) fn remove_made(path: &Path) -> io::Result<()> {
    let (parent, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    let parent = open_path(parent)?;
    match unlinkat(&parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => Ok(unlinkat(&parent, name, AtFlags::REMOVEDIR)?),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(path: PathBuf) -> Plan {
        Plan { placeholders: vec![Placeholder { path, is_file: false }], ..Plan::default() }
    }

    #[test]
    fn nothing_is_made_or_removed_behind_a_symlink() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("elsewhere")).unwrap();
        std::fs::write(root.join("elsewhere/commondir"), "kept").unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere"), root.join("link")).unwrap();
        assert!(make(&mut plan(root.join("link/.envrc"))).is_err());
        assert!(!root.join("elsewhere/.envrc").exists());
        assert!(remove_made(&root.join("link/commondir")).is_err());
        assert!(root.join("elsewhere/commondir").exists());
        remove_made(&root.join("elsewhere/commondir")).unwrap();
        assert!(!root.join("elsewhere/commondir").exists());
    }

    #[test]
    fn placeholders_go_with_the_last_who_uses_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join(".envrc");
        let rules = FileRules::default();
        let (mut one, mut other) = (plan(path.clone()), plan(path.clone()));
        let (first, second) = (make(&mut one).unwrap(), make(&mut other).unwrap());
        drop(first);
        sweep(&rules, &one);
        assert!(path.exists(), "it is in use");
        drop(second);
        sweep(&rules, &other);
        assert!(!path.exists());
        // What is no placeholder is never removed.
        std::fs::create_dir(&path).unwrap();
        sweep(&rules, &other);
        assert!(path.exists());
    }
}
