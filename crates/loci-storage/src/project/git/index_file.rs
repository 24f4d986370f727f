//! The index of a repository: which files are tracked, and what they were like when git last looked at them.
//!
//! Only what a plain one has: no conflicts, no split or sparse index, no entries with flags of their own, no submodules.
//! Nothing is said of any other, and git is asked.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use loci_core::git_index::{GitIndexEntry, GitIndexExtension, SHA1_LEN, read_git_index};
use loci_stdx::open_regular;

use super::objects::ObjectId;

/// The largest index that is read; a larger one has more files than are looked at here.
const MOST_BYTES: u64 = 256 * 1024;

/// A plain index.
#[derive(Debug)]
pub(super) struct IndexFile {
    /// Sorted by path, byte by byte.
    pub(super) entries: Vec<IndexEntry>,
    /// The tree that all entries together make, where git has noted it and nothing was added since.
    pub(super) tree: Option<ObjectId>,
    /// When the file was written, in seconds.
    pub(super) written: i64,
}

/// A tracked file.
#[derive(Debug)]
pub(super) struct IndexEntry {
    pub(super) path: String,
    pub(super) kind: EntryKind,
    pub(super) id: ObjectId,
    pub(super) stat: EntryStat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    File { is_executable: bool },
    Symlink,
}

/// What the disk said of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryStat {
    changed: (u32, u32),
    modified: (u32, u32),
    inode: u32,
    owner: (u32, u32),
    size: u32,
}

impl EntryStat {
    /// Takes what the disk says now, cut to what the index has room for.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the index keeps the lower half"
    )]
    pub(super) fn of(metadata: &std::fs::Metadata) -> Self {
        Self {
            changed: (metadata.ctime() as u32, metadata.ctime_nsec() as u32),
            modified: (metadata.mtime() as u32, metadata.mtime_nsec() as u32),
            inode: metadata.ino() as u32,
            owner: (metadata.uid(), metadata.gid()),
            size: metadata.size() as u32,
        }
    }

    /// Tells whether the file may have been written in the second in which the index was, or later: nothing can be told
    /// from times then.
    pub(super) fn is_racy(&self, written: i64) -> bool {
        i64::from(self.modified.0) >= written
    }
}

impl IndexFile {
    /// Reads the index of a git directory.
    pub(super) fn read(git_dir: &Path) -> Option<Self> {
        let mut file = open_regular(git_dir.join("index")).ok()?;
        let metadata = file.metadata().ok().filter(|it| it.len() <= MOST_BYTES)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let (entries, tree) = parse(&bytes)?;
        Some(Self { entries, tree, written: metadata.mtime() })
    }

    /// Tells whether a file of this path is tracked.
    pub(super) fn has_file(&self, path: &str) -> bool {
        self.entries.binary_search_by(|entry| entry.path.as_str().cmp(path)).is_ok()
    }

    /// Tells whether a file below this directory is tracked; its name ends with a slash.
    pub(super) fn has_below(&self, dir: &str) -> bool {
        let at = self.entries.partition_point(|entry| entry.path.as_str() < dir);
        self.entries.get(at).is_some_and(|entry| entry.path.starts_with(dir))
    }
}

fn parse(bytes: &[u8]) -> Option<(Vec<IndexEntry>, Option<ObjectId>)> {
    let mut entries: Vec<IndexEntry> = Vec::new();
    let extensions = read_git_index(bytes, SHA1_LEN, |entry| {
        let entry = plain_entry(&entry)?;
        let is_in_order = entries.last().is_none_or(|last| last.path < entry.path);
        is_in_order.then(|| entries.push(entry))
    })?;
    if extensions.iter().any(GitIndexExtension::is_required) {
        return None;
    }
    let tree = extensions.iter().rfind(|it| it.signature == b"TREE").and_then(|it| root_tree(it.data));
    Some((entries, tree))
}

fn plain_entry(entry: &GitIndexEntry<'_>) -> Option<IndexEntry> {
    // Neither assumed to be unchanged, nor with more flags, nor one side of a conflict.
    if entry.flags & 0xf000 != 0 {
        return None;
    }
    let kind = match entry.mode {
        0o100_644 => EntryKind::File { is_executable: false },
        0o100_755 => EntryKind::File { is_executable: true },
        0o120_000 => EntryKind::Symlink,
        _ => return None,
    };
    let stat = EntryStat {
        changed: entry.changed,
        modified: entry.modified,
        inode: entry.inode,
        owner: entry.owner,
        size: entry.size,
    };
    let path = String::from_utf8(entry.path.to_owned()).ok()?;
    Some(IndexEntry { path, kind, id: ObjectId::new(entry.id.try_into().ok()?), stat })
}

/// Reads the first row of the tree extension: no name, how many entries (-1 when it does not hold any more), how many
/// trees below, and its name.
fn root_tree(data: &[u8]) -> Option<ObjectId> {
    let rest = data.strip_prefix(b"\0")?;
    let (counts, rest) = rest.split_at_checked(memchr::memchr(b'\n', rest)?)?;
    let is_current = !counts.starts_with(b"-");
    is_current.then_some(ObjectId::new(rest.get(1..21)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_plain_index_is_left_to_git_and_none_of_it_panics() {
        let mut plain = b"DIRC\0\0\0\x02\0\0\0\x01".to_vec();
        let mut entry = [0; 62];
        entry[24..28].copy_from_slice(&0o100_644_u32.to_be_bytes());
        plain.extend(entry);
        plain.extend(b"a\0");
        let n_before = plain.len();
        plain.extend(b"TREE\0\0\0\x19\x001 0\n");
        plain.extend([7; 20]);
        plain.extend([0; 20]);
        let (entries, tree) = parse(&plain).unwrap();
        assert_eq!((entries.len(), entries[0].path.as_str()), (1, "a"));
        assert_eq!(tree, Some(ObjectId::new([7; 20])));
        for length in 0..plain.len() {
            let _: Option<_> = parse(&plain[..length]);
        }
        let with = |at: usize, byte: u8| {
            let mut changed = plain.clone();
            changed[at] = byte;
            parse(&changed)
        };
        assert!(with(7, 5).is_none(), "another version");
        assert!(with(12 + 60, 0x80).is_none(), "assumed to be unchanged");
        assert!(with(12 + 60, 0x10).is_none(), "one side of a conflict");
        assert!(with(12 + 26, 0xe0).is_none(), "a submodule");
        assert!(with(n_before, b'l').is_none(), "an extension that must be known");
        assert_eq!(with(n_before + 9, b'-').unwrap().1, None, "the tree does not hold any more");
    }
}
