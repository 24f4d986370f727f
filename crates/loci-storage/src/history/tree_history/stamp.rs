//! What `stat` says about a path, as far as it tells one state from another.

use loci_core::file_history::PathState;
use rustix::fs::{FileType, Stat};

/// What kind of thing lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Link,
    Dir,
    Other,
}

/// What `stat` says about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeStamp {
    pub(super) kind: Kind,
    pub(super) mode: u32,
    pub(super) size: u64,
    pub(super) modified: (i64, i64),
    pub(super) changed: (i64, i64),
    pub(super) inode: u64,
    pub(super) device: u64,
    pub(super) n_links: u64,
}

/// The coarsest step in which file systems with fractions of seconds count, in nanoseconds: a tick of 100 a second.
const TICK: i128 = 20_000_000;
/// The same for those without.
const SECONDS: i128 = 2_000_000_000;

impl NodeStamp {
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion, reason = "widths differ between systems")]
    pub(super) fn from_stat(stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Symlink => Kind::Link,
            FileType::Directory => Kind::Dir,
            _ => Kind::Other,
        };
        Self {
            kind,
            mode: u32::from(stat.st_mode) & 0o7777,
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            inode: stat.st_ino as u64,
            device: stat.st_dev as u64,
            n_links: stat.st_nlink as u64,
        }
    }

    /// Returns true when something could still happen at the path that `stat` would not show: it was changed so
    /// shortly before `now` (nanoseconds since 1970) that the clock of the file system may not have moved on.
    pub(super) fn is_racy(&self, now: i128) -> bool {
        let nanos = |(seconds, nanos): (i64, i64)| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        let slack = if self.changed.1 == 0 { SECONDS } else { TICK };
        nanos(self.changed).max(nanos(self.modified)) + slack >= now
    }

    /// Returns the state of a directory or of something special; files and links need a look inside.
    pub(super) fn plain_state(&self) -> PathState {
        match self.kind {
            Kind::Dir => PathState::Dir { mode: self.mode },
            Kind::File | Kind::Link | Kind::Other => PathState::Other,
        }
    }
}
