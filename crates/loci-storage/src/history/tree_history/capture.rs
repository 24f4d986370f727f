//! Finding out what a path holds, and keeping it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use loci_core::file_history::{FileContent, PathState};

use super::TreeLimits;
use super::blobs::BlobStore;
use super::git_index::GitIndex;
use super::stamp::{Kind, NodeStamp};
use super::tree::{Difference, FileNode};

/// How often a file that changes while it is read is read again.
const ATTEMPTS: usize = 3;
/// Fewer files than this are not worth a second thread.
const MANY_FILES: usize = 16;
/// More threads than this only get into each other's way.
const MOST_THREADS: usize = 8;

/// What files are kept with.
pub(super) struct Capture<'a> {
    pub(super) root: &'a Path,
    /// The root's path below the top of its repository.
    pub(super) below_top: Option<&'a Path>,
    pub(super) index: &'a GitIndex,
    pub(super) store: &'a BlobStore,
    pub(super) limits: TreeLimits,
}

/// What could not be kept.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct CaptureSkips {
    /// Files over the largest size.
    pub(super) n_large: usize,
    /// Files for which there was no room.
    pub(super) n_no_room: usize,
    /// Files that could not be read.
    pub(super) n_unreadable: usize,
}

/// A difference with what is there now.
#[derive(Debug)]
pub(super) struct CapturedChange {
    pub(super) path: PathBuf,
    pub(super) before: Option<FileNode>,
    pub(super) after: Option<FileNode>,
    pub(super) is_taken_in: bool,
    /// Where it was moved from.
    pub(super) from: Option<PathBuf>,
}

impl Capture<'_> {
    /// Finds out what each difference is about and keeps what is new. `now` is when the look began.
    pub(super) fn all(&self, differences: Vec<Difference>, now: i128) -> (Vec<CapturedChange>, CaptureSkips) {
        let moved = moved(&differences);
        let room = CaptureBudget::default();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut seen = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(difference) = differences.get(at) else { return seen };
                seen.push((at, self.capture_one(difference, &moved, &room, now)));
            }
        };
        let n_threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let mut seen = if differences.len() < MANY_FILES || n_threads == 1 {
            work()
        } else {
            thread::scope(|scope| {
                // Without another thread this one does all the work.
                let another = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
                let threads: Vec<_> = (1..n_threads).filter_map(another).collect();
                let mut seen = work();
                threads.into_iter().for_each(|thread| seen.extend(thread.join().unwrap_or_default()));
                seen
            })
        };
        seen.sort_by_key(|(at, _)| *at);
        let skips = room.skips();
        let seen = differences.into_iter().zip(seen).map(|(difference, (_, (after, from)))| CapturedChange {
            path: difference.path,
            before: difference.before,
            after,
            is_taken_in: difference.is_taken_in,
            from,
        });
        (seen.collect(), skips)
    }

    fn capture_one(
        &self,
        difference: &Difference,
        moved: &HashMap<MoveKey, (&PathBuf, &FileNode)>,
        room: &CaptureBudget,
        now: i128,
    ) -> (Option<FileNode>, Option<PathBuf>) {
        let Some(stamp) = difference.now else { return (None, None) };
        if difference.before.is_none()
            && let Some((from, node)) = move_key(&stamp).and_then(|key| moved.get(&key))
            && let PathState::File { content, size, .. } = &node.state
            && *content != FileContent::Lost
        {
            let state = PathState::File { content: content.clone(), mode: stamp.mode, size: *size };
            let node = FileNode { stamp, is_racy: stamp.is_racy(now), state };
            return (Some(node), Some((*from).clone()));
        }
        let may_keep = !difference.is_taken_in || room.has_room_for(stamp.size, &self.limits);
        let (stamp, state) = self.state(&difference.path, stamp, may_keep, room);
        (stamp.map(|stamp| FileNode { stamp, is_racy: stamp.is_racy(now), state }), None)
    }

    /// Returns what lies at a path below the root, with its content kept; the `stat` is that of what was read.
    pub(super) fn state(
        &self,
        path: &Path,
        stamp: NodeStamp,
        may_keep: bool,
        room: &CaptureBudget,
    ) -> (Option<NodeStamp>, PathState) {
        match stamp.kind {
            Kind::Dir | Kind::Other => (Some(stamp), stamp.plain_state()),
            Kind::Link => match std::fs::read_link(self.root.join(path)) {
                Ok(to) => (Some(stamp), PathState::Link { to: to.into() }),
                Err(_) => (None, PathState::None),
            },
            Kind::File => {
                let held = self.below_top.map(|below| below.join(path));
                let blob = held.and_then(|path| self.index.blob(path.as_os_str().as_bytes(), &stamp));
                let file = |content| PathState::File { content, mode: stamp.mode, size: stamp.size };
                match blob {
                    Some(id) => (Some(stamp), file(FileContent::Git(id))),
                    None if stamp.size > self.limits.file_bytes => {
                        room.n_large.fetch_add(1, Ordering::Relaxed);
                        (Some(stamp), file(FileContent::Lost))
                    }
                    None if !may_keep => {
                        room.n_no_room.fetch_add(1, Ordering::Relaxed);
                        (Some(stamp), file(FileContent::Lost))
                    }
                    None => self.store(path, stamp, room),
                }
            }
        }
    }

    fn store(&self, path: &Path, stamp: NodeStamp, room: &CaptureBudget) -> (Option<NodeStamp>, PathState) {
        let path = self.root.join(path);
        let lost = |stamp: NodeStamp| {
            let state = PathState::File { content: FileContent::Lost, mode: stamp.mode, size: stamp.size };
            (Some(stamp), state)
        };
        match read_steadily(&path) {
            Ok((stamp, bytes)) => match self.store.put(&bytes) {
                Ok(digest) => {
                    let content = FileContent::Blob(digest);
                    let size = bytes.len() as u64;
                    (Some(stamp), PathState::File { content, mode: stamp.mode, size })
                }
                Err(_) => {
                    room.n_no_room.fetch_add(1, Ordering::Relaxed);
                    lost(stamp)
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => (None, PathState::None),
            Err(_) => {
                room.n_unreadable.fetch_add(1, Ordering::Relaxed);
                lost(stamp)
            }
        }
    }
}

/// How much has been taken in, and what was not.
#[derive(Debug, Default)]
pub(super) struct CaptureBudget {
    n_bytes: AtomicU64,
    n_files: AtomicUsize,
    n_large: AtomicUsize,
    n_no_room: AtomicUsize,
    n_unreadable: AtomicUsize,
}

impl CaptureBudget {
    fn has_room_for(&self, size: u64, limits: &TreeLimits) -> bool {
        let n_bytes = self.n_bytes.fetch_add(size, Ordering::Relaxed);
        let n_files = self.n_files.fetch_add(1, Ordering::Relaxed);
        n_bytes + size <= limits.first_bytes && n_files < limits.first_files
    }

    fn skips(&self) -> CaptureSkips {
        CaptureSkips {
            n_large: self.n_large.load(Ordering::Relaxed),
            n_no_room: self.n_no_room.load(Ordering::Relaxed),
            n_unreadable: self.n_unreadable.load(Ordering::Relaxed),
        }
    }
}

/// Reads a file whose `stat` is the same before and after; one that never holds still is taken as it was read last.
pub(super) fn read_steadily(path: &Path) -> io::Result<(NodeStamp, Vec<u8>)> {
    let mut last = None;
    for _ in 0..ATTEMPTS {
        let mut file = open_file(path)?;
        let before = NodeStamp::from_stat(&rustix::fs::fstat(&file)?);
        if before.kind != Kind::File {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut bytes = Vec::with_capacity(before.size as usize);
        file.read_to_end(&mut bytes)?;
        let after = NodeStamp::from_stat(&rustix::fs::fstat(&file)?);
        if before == after {
            return Ok((after, bytes));
        }
        last = Some((after, bytes));
    }
    last.ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn open_file(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// What a file keeps when it is moved: inode, size, time of modification.
type MoveKey = (u64, u64, (i64, i64));

fn move_key(stamp: &NodeStamp) -> Option<MoveKey> {
    (stamp.kind == Kind::File).then_some((stamp.inode, stamp.size, stamp.modified))
}

/// Returns the files that are gone, by what they would have kept.
fn moved(differences: &[Difference]) -> HashMap<MoveKey, (&PathBuf, &FileNode)> {
    let gone = differences.iter().filter(|it| it.now.is_none());
    gone.filter_map(|it| {
        let before = it.before.as_ref().filter(|before| !before.is_racy)?;
        Some((move_key(&before.stamp)?, (&it.path, before)))
    })
    .collect()
}
