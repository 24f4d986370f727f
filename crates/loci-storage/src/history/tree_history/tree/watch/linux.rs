//! Directories watched by inotify.
//!
//! What happens to a name is queued before the system call that does it returns, so that after a command all it did
//! has been told. Not told are: what happens through another hard link, which is why files with several links are
//! looked at each time; what is written to a mapped file that is still mapped; what other machines do. Only file
//! systems that are local are watched.
//!
//! It is written by hand, although `notify` exists: that crate reads the queue on a thread of its own, and what matters
//! here is to know, after a command, that all it did has been read.
//!
//! 1. A directory that is watched anew is told as touched once more: what happened to it before is not known.
//! 2. A directory that was moved, made or removed takes the watches of all below it with it; they are touched.
//! 3. When the queue was full, nothing is known and everything must be looked at.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::fs::statfs;
use rustix::io::Errno;

/// File systems that tell everything: ext2 to ext4, XFS, Btrfs, F2FS, tmpfs, ZFS, bcachefs, overlayfs.
const LOCAL: [i64; 8] =
    [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994, 0x2FC1_2FC1, 0xCA45_1A4E, 0x794C_7630];
/// Watches are counted for each user; others need some, too.
const SHARE: usize = 4;
const LIMIT: &str = "/proc/sys/fs/inotify/max_user_watches";

/// What is known of the watched directories.
#[derive(Debug)]
pub(in super::super) struct TreeWatcher {
    root: PathBuf,
    queue: OwnedFd,
    most: usize,
    paths: HashMap<i32, PathBuf>,
    watches: BTreeMap<PathBuf, i32>,
    /// Watched since the last look, so that it is not known what happened before.
    fresh: BTreeSet<PathBuf>,
    /// Not to be watched, for want of permission.
    silent: BTreeSet<PathBuf>,
    has_lost: bool,
}

impl TreeWatcher {
    /// Begins to watch nothing; `None` where the system cannot be relied upon.
    pub(in super::super) fn new(root: &Path) -> Option<Self> {
        // The type's width differs between machines.
        #[allow(clippy::unnecessary_cast, reason = "widths differ between machines")]
        let kind = statfs(root).ok()?.f_type as i64;
        if !LOCAL.contains(&kind) {
            return None;
        }
        let most = loci_stdx::read_regular_to_string(LIMIT).ok()?.trim().parse::<usize>().ok()? / SHARE;
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        Some(Self {
            root: root.to_owned(),
            queue,
            most,
            paths: HashMap::new(),
            watches: BTreeMap::new(),
            fresh: BTreeSet::new(),
            silent: BTreeSet::new(),
            has_lost: true,
        })
    }

    /// Takes the directories in which something may have happened since the last time; `None` when that is not
    /// known.
    pub(in super::super) fn take(&mut self) -> Option<BTreeSet<PathBuf>> {
        let mut touched = std::mem::take(&mut self.fresh);
        touched.extend(self.silent.iter().cloned());
        let mut uprooted = BTreeSet::new();
        let mut is_known = true;
        let mut room = [MaybeUninit::<u8>::uninit(); 16 * 1024];
        let mut events = Reader::new(&self.queue, &mut room);
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(_) => {
                    is_known = false;
                    break;
                }
            };
            let what = event.events();
            if what.intersects(ReadFlags::QUEUE_OVERFLOW | ReadFlags::UNMOUNT) {
                is_known = false;
            }
            let Some(dir) = self.paths.get(&event.wd()) else { continue };
            touched.insert(dir.clone());
            let is_renewed =
                ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
            if what.contains(ReadFlags::ISDIR) && what.intersects(is_renewed) {
                let name =
                    event.file_name().map_or(OsStr::new(""), |name| OsStr::from_bytes(name.to_bytes()));
                uprooted.insert(dir.join(name));
            }
            if what.intersects(ReadFlags::MOVE_SELF | ReadFlags::DELETE_SELF | ReadFlags::IGNORED) {
                uprooted.insert(dir.clone());
            }
        }
        for dir in uprooted {
            touched.extend(self.unwatch_below(&dir));
        }
        if !is_known {
            self.unwatch_below(Path::new(""));
            return None;
        }
        Some(touched)
    }

    /// Returns true when directories are no longer watched that were.
    pub(in super::super) fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// Watches these directories from now on; false when that cannot be done.
    pub(in super::super) fn follow<'a>(&mut self, dirs: impl Iterator<Item = &'a PathBuf>) -> bool {
        self.has_lost = false;
        self.silent.clear();
        let mut n_dirs = 0;
        for dir in dirs {
            n_dirs += 1;
            if n_dirs > self.most || (!self.watches.contains_key(dir) && !self.watch(dir)) {
                return false;
            }
        }
        true
    }

    /// Returns false when no more can be watched. One that is gone again is not watched; its parent tells.
    fn watch(&mut self, dir: &Path) -> bool {
        let flags = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW
            | WatchFlags::EXCL_UNLINK;
        // The path is looked up from the top each time; what changes on the way is told by the watch above it.
        let watch = match inotify::add_watch(&self.queue, self.root.join(dir), flags) {
            Ok(watch) => watch,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return true,
            Err(Errno::ACCESS) => return self.silent.insert(dir.to_owned()),
            Err(_) => return false,
        };
        self.fresh.insert(dir.to_owned());
        if let Some(other) = self.paths.insert(watch, dir.to_owned())
            && other != dir
        {
            // The same directory by another path; which of them is right is seen at the next look.
            self.watches.remove(&other);
            self.fresh.insert(other);
        }
        self.watches.insert(dir.to_owned(), watch);
        true
    }

    /// Gives up the watches of a directory and all below it, and returns them.
    fn unwatch_below(&mut self, dir: &Path) -> Vec<PathBuf> {
        let below = self.watches.range(dir.to_owned()..).take_while(|(path, _)| path.starts_with(dir));
        let below: Vec<(PathBuf, i32)> = below.map(|(path, watch)| (path.clone(), *watch)).collect();
        self.has_lost |= !below.is_empty();
        for (path, watch) in &below {
            self.watches.remove(path);
            self.paths.remove(watch);
            // Gone already when the directory is.
            inotify::remove_watch(&self.queue, *watch).ok();
        }
        below.into_iter().map(|(path, _)| path).collect()
    }
}
