//! Scanning the project tree: `stat` of everything that is remembered, and the names in a directory.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::DirNode;
use crate::history::tree_history::stamp::NodeStamp;

/// More threads than this only get into each other's way.
const MOST_THREADS: usize = 8;
/// Trees with fewer directories are not worth a second thread.
const MANY_DIRS: usize = 64;
/// Directories that a thread takes at once.
const BATCH: usize = 32;

/// Something that is not as it is remembered.
#[derive(Debug)]
pub(super) enum DirChange {
    /// The names in a directory may be others.
    DirListing(PathBuf),
    /// A file has another `stat`, or its content is in doubt.
    File { dir: PathBuf, name: OsString, now: Option<NodeStamp> },
}

/// Compares what is remembered of some directories with what is there.
pub(super) fn scan_dirs(root: &Path, dirs: Vec<(&PathBuf, &DirNode)>) -> io::Result<Vec<DirChange>> {
    let root = open_dir(CWD, root)?;
    let n_threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        loop {
            let start = next.fetch_add(BATCH, Ordering::Relaxed);
            let Some(batch) =
                dirs.get(start..dirs.len().min(start + BATCH)).filter(|batch| !batch.is_empty())
            else {
                return found;
            };
            batch.iter().for_each(|(path, node)| scan_dir(&root, path, node, &mut found));
        }
    };
    if dirs.len() < MANY_DIRS || n_threads == 1 {
        return Ok(work());
    }
    Ok(thread::scope(|scope| {
        // Without another thread this one does all the work.
        let another = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let threads: Vec<_> = (1..n_threads).filter_map(another).collect();
        let mut found = work();
        for thread in threads {
            // A thread that panicked found nothing more; its directories are looked at again the next time.
            found.extend(thread.join().unwrap_or_default());
        }
        found
    }))
}

fn scan_dir(root: &OwnedFd, path: &Path, node: &DirNode, found: &mut Vec<DirChange>) {
    let Ok(fd) = open_dir(root, if path.as_os_str().is_empty() { Path::new(".") } else { path }) else {
        return found.push(DirChange::DirListing(path.to_owned()));
    };
    let stamp = rustix::fs::fstat(&fd).ok().map(|stat| NodeStamp::from_stat(&stat));
    // The size of a directory says nothing, and on some file systems changes by itself.
    let is_same = node.stamp.zip(stamp).is_some_and(|(old, new)| NodeStamp { size: old.size, ..new } == old);
    if !is_same || node.is_racy {
        found.push(DirChange::DirListing(path.to_owned()));
    }
    for (name, file) in &node.files {
        let now = match rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Some(NodeStamp::from_stat(&stat)),
            Err(_) => None,
        };
        if file.is_racy || now != Some(file.stamp) {
            found.push(DirChange::File { dir: path.to_owned(), name: name.clone(), now });
        }
    }
}

/// The names in a directory, each with its `stat`.
pub(super) struct DirListing {
    pub(super) stamp: NodeStamp,
    /// `None` when it may not be listed.
    pub(super) names: Option<Vec<(OsString, NodeStamp)>>,
}

impl DirListing {
    /// Lists a directory; `None` when it is gone, is a link now, or lies on another device.
    pub(super) fn read(dir: &Path, device: u64) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match rustix::fs::open(dir, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            // What is in it stays as it is remembered.
            Err(Errno::ACCESS | Errno::PERM) => {
                let stat = rustix::fs::lstat(dir)?;
                return Ok(Some(Self { stamp: NodeStamp::from_stat(&stat), names: None }));
            }
            Err(error) => return Err(error.into()),
        };
        let stamp = NodeStamp::from_stat(&rustix::fs::fstat(&fd)?);
        if stamp.device != device {
            return Ok(None);
        }
        let mut names = Vec::new();
        for entry in Dir::read_from(&fd)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name == b"." || name == b".." {
                continue;
            }
            let name = OsString::from_vec(name);
            match rustix::fs::statat(&fd, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => names.push((name, NodeStamp::from_stat(&stat))),
                // Gone in this moment.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(Self { stamp, names: Some(names) }))
    }
}

fn open_dir(at: impl std::os::fd::AsFd, path: &Path) -> io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    let how = OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    let how = OFlags::RDONLY;
    let flags = how | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(at, path, flags, Mode::empty())?)
}
