//! Sockets, and some empty directories and files, that stand where nothing may be made while a command runs.
//!
//! Git sees neither sockets nor empty directories, so that `git status` shows none of them, inside or outside. A socket
//! takes no block of the disk: a directory takes one, whose release is most of what a placeholder costs. They are marked by
//! their permissions. Whoever uses some holds a shared lock on the directory they lie in: they are removed by the last, and
//! what a killed command left is removed by the next. All this happens outside the mounts, where a symlink that a command
//! has left would lead anywhere: the way to each is opened without following one (SB-2).

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, ResolveFlags, fchmod, flock, fstat, linkat,
    mkdirat, mknodat, openat, openat2, statat, unlinkat,
};
use rustix::io::Errno;

use super::mounts::open_path;
use super::staging::{is_staging, names_in};
use crate::plan::{
    PLACEHOLDER_DIR, PLACEHOLDER_FILE, Placeholder, PlaceholderKind, Plan, is_placeholder_mode,
};
use crate::policy::FileRules;

/// How often, and after how long, a lock is tried again. Who removes placeholders holds it for a moment, which is seconds
/// where a disk is busy; somebody else who keeps a directory locked is not waited for without end.
const ATTEMPTS: usize = 30_000;
const PAUSE: Duration = Duration::from_millis(1);

/// Placeholders that are there.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// Keeps them as long as it lives.
    _held: Vec<OwnedFd>,
    /// Those that the user may not make: a command cannot make the real thing either, and nothing can be mounted there.
    pub(super) left_out: Vec<PathBuf>,
}

/// Makes placeholders.
pub(super) fn make(placeholders: &[Placeholder]) -> io::Result<Made> {
    let mut by_dir: BTreeMap<&Path, Vec<&Placeholder>> = BTreeMap::new();
    for placeholder in placeholders {
        by_dir.entry(placeholder.path.parent().unwrap_or(Path::new("/"))).or_default().push(placeholder);
    }
    // Permissions are the mark.
    let mask = rustix::process::umask(Mode::empty());
    let mut left_out = Vec::new();
    let made: io::Result<_> = by_dir.iter().map(|(dir, names)| make_in(dir, names, &mut left_out)).collect();
    rustix::process::umask(mask);
    Ok(Made { _held: made?, left_out })
}

fn make_in(dir: &Path, placeholders: &[&Placeholder], left_out: &mut Vec<PathBuf>) -> io::Result<OwnedFd> {
    let held = open_dir(dir).and_then(|fd| lock(&fd, FlockOperation::NonBlockingLockShared).map(|()| fd));
    let held = held.map_err(|error| named(dir, &error))?;
    let mut sockets = SocketNode::default();
    for placeholder in placeholders {
        match create(held.as_fd(), placeholder, &mut sockets) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::NOTDIR) => {
                left_out.push(placeholder.path.clone());
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
pub(super) fn open_dir(dir: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat2(CWD, dir, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

pub(super) fn lock(dir: &OwnedFd, operation: FlockOperation) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        match flock(dir, operation) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE),
            other => return Ok(other?),
        }
    }
    Err(io::Error::other("somebody else keeps it locked"))
}

/// A socket of a directory; others in it are links to it, which take nothing but their names.
#[derive(Default)]
struct SocketNode(Option<OwnedFd>);

impl SocketNode {
    fn create(&mut self, dir: BorrowedFd<'_>, name: &OsStr, mode: Mode) -> rustix::io::Result<()> {
        if let Some(node) = &self.0 {
            // By its descriptor: whatever has its name by now, this is ours.
            let node = format!("/proc/self/fd/{}", node.as_raw_fd());
            match linkat(CWD, node, dir, name, AtFlags::SYMLINK_FOLLOW) {
                done @ (Ok(()) | Err(Errno::EXIST)) => return done,
                // Some disks have no links.
                Err(_) => self.0 = None,
            }
        }
        mknodat(dir, name, FileType::Socket, mode, 0)?;
        let node = openat(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
        let found = fstat(&node)?;
        self.0 = is_placeholder_mode(found.st_mode, found.st_size == 0).then_some(node);
        Ok(())
    }
}

fn create(
    dir: BorrowedFd<'_>,
    placeholder: &Placeholder,
    sockets: &mut SocketNode,
) -> rustix::io::Result<()> {
    let name = placeholder.path.file_name().unwrap_or_default();
    let (file, directory) = (Mode::from_raw_mode(PLACEHOLDER_FILE), Mode::from_raw_mode(PLACEHOLDER_DIR));
    match placeholder.kind {
        PlaceholderKind::Socket => match sockets.create(dir, name, file) {
            // Some disks have no sockets; every one has directories.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                mkdirat(dir, name, directory)
            }
            other => other,
        },
        PlaceholderKind::Dir => mkdirat(dir, name, directory),
        PlaceholderKind::File => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(dir, name, flags, file).map(drop)
        }
    }
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
    if !is_placeholder_mode(found.st_mode, found.st_size == 0) {
        return Ok(());
    }
    let is_dir = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    if is_dir {
        return match unlinkat(dir, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY) => adopt(dir, name),
            other => Ok(other?),
        };
    }
    Ok(unlinkat(dir, name, AtFlags::empty())?)
}

/// Makes a directory, into which somebody outside has written meanwhile, one like any other; one in which there is only what
/// commands have not finished stays what it is.
fn adopt(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = openat(dir, name, flags, Mode::empty())?;
    match names_in(dir.as_fd())?.iter().all(|name| is_staging(name)) {
        true => Ok(()),
        false => Ok(fchmod(dir, Mode::from_raw_mode(0o755))?),
    }
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

    const KINDS: [PlaceholderKind; 3] =
        [PlaceholderKind::Socket, PlaceholderKind::Dir, PlaceholderKind::File];

    fn plan(path: PathBuf, kind: PlaceholderKind) -> Plan {
        Plan { placeholders: vec![Placeholder { path, kind }], ..Plan::default() }
    }

    #[test]
    fn nothing_is_made_or_removed_behind_a_symlink() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("elsewhere")).unwrap();
        std::fs::write(root.join("elsewhere/commondir"), "kept").unwrap();
        std::os::unix::fs::symlink(root.join("elsewhere"), root.join("link")).unwrap();
        for kind in KINDS {
            assert!(make(&plan(root.join("link/.envrc"), kind).placeholders).is_err());
            assert!(!root.join("elsewhere/.envrc").exists());
        }
        assert!(remove_made(&root.join("link/commondir")).is_err());
        assert!(root.join("elsewhere/commondir").exists());
        remove_made(&root.join("elsewhere/commondir")).unwrap();
        assert!(!root.join("elsewhere/commondir").exists());
    }

    #[test]
    fn sockets_of_a_directory_are_one_node_and_what_is_there_is_none_of_them() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::write(root.join("a"), "kept").unwrap();
        let names = ["a", "b", "c", "d"];
        let placeholder = |name: &&str| Placeholder { path: root.join(name), kind: PlaceholderKind::Socket };
        let plan = Plan { placeholders: names.iter().map(placeholder).collect(), ..Plan::default() };
        drop(make(&plan.placeholders).unwrap());
        let links = |name: &str| root.join(name).symlink_metadata().unwrap().nlink();
        assert_eq!(names.map(links), [1, 3, 3, 3]);
        sweep(&FileRules::default(), &plan);
        let left: Vec<_> = std::fs::read_dir(&root).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left, ["a"]);
        assert_eq!(std::fs::read_to_string(root.join("a")).unwrap(), "kept");
    }

    #[test]
    fn settings_that_are_saved_meanwhile_stay_in_a_directory_like_any_other() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join(".claude");
        let plan = plan(path.clone(), PlaceholderKind::Dir);
        let made = make(&plan.placeholders).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o200, 0o200, "its owner may write into it");
        std::fs::write(path.join("settings.local.json"), "{}").unwrap();
        drop(made);
        sweep(&FileRules::default(), &plan);
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o755);
        assert_eq!(std::fs::read_to_string(path.join("settings.local.json")).unwrap(), "{}");
    }

    #[test]
    fn command_waits_for_one_that_removes_placeholders_on_a_busy_disk() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let removing = open_dir(&root).unwrap();
        flock(&removing, FlockOperation::NonBlockingLockExclusive).unwrap();
        let waiting =
            std::thread::spawn(move || make(&plan(root.join("x"), KINDS[0]).placeholders).map(drop));
        std::thread::sleep(Duration::from_secs(3));
        assert!(!waiting.is_finished(), "what is being removed is nobody's placeholder");
        drop(removing);
        waiting.join().unwrap().unwrap();
    }

    #[test]
    fn placeholders_go_with_the_last_who_uses_them() {
        let dir = tempfile::tempdir().unwrap();
        let rules = FileRules::default();
        for kind in KINDS {
            let path = dir.path().canonicalize().unwrap().join(".envrc");
            let plan = plan(path.clone(), kind);
            let [first, second] = [(); 2].map(|()| make(&plan.placeholders).unwrap());
            drop(first);
            sweep(&rules, &plan);
            assert!(path.symlink_metadata().is_ok(), "{kind:?} is in use");
            drop(second);
            sweep(&rules, &plan);
            assert!(path.symlink_metadata().is_err(), "{kind:?}");
            // What is no placeholder is never removed.
            std::fs::create_dir(&path).unwrap();
            sweep(&rules, &plan);
            assert!(path.exists());
            std::fs::remove_dir(&path).unwrap();
        }
    }
}
