//! Which files a repository already holds, read from its index without asking git.
//!
//! The index says for each tracked file what `stat` said when its content was last known to be that of a blob. A
//! file whose `stat` is still the same has that content, and the blob is its backup. Anything doubtful counts as not
//! held: a file written in the moment the index was (git calls that racy), flags that suspend the comparison,
//! conflicts, formats we do not know, and repositories that convert contents between index and files.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use loci_core::git_index::{SHA1_LEN, read_git_index};
use loci_stdx::{read_regular, read_regular_to_string};

use super::stamp::NodeStamp;

/// The most of an index that is read.
const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// Words in attribute files that may mean that contents are converted.
const CONVERTING: [&str; 6] = ["filter", "text", "eol", "crlf", "ident", "working-tree-encoding"];

/// The tracked files of a repository.
#[derive(Debug, Default)]
pub(super) struct GitIndex {
    /// The files, by their path below the top of the repository.
    held: HashMap<Vec<u8>, Held>,
    /// When the index was written; what was modified later, or then, is in doubt.
    written: (i64, i64),
    /// Whether blobs are the files' very bytes.
    is_plain: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Held {
    modified: (u32, u32),
    changed: (u32, u32),
    inode: u32,
    size: u32,
    id: [u8; 20],
    is_comparable: bool,
}

/// What tells one state of the index from another.
pub(super) type IndexStamp = (u64, i64, i64, u64);

/// Returns what tells whether the index of a git directory changed.
pub(super) fn index_stamp(git_dir: &Path) -> Option<IndexStamp> {
    let metadata = fs::metadata(git_dir.join("index")).ok()?;
    Some((metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.len()))
}

impl GitIndex {
    /// Reads the index of a repository; one that cannot be read holds nothing. `configs` are further files of
    /// configuration that apply.
    pub(super) fn read(top: &Path, git_dir: &Path, configs: &[PathBuf]) -> Self {
        let path = git_dir.join("index");
        let Ok(metadata) = fs::metadata(&path) else { return Self::default() };
        if metadata.len() > MOST_BYTES {
            return Self::default();
        }
        let held = read_regular(&path).ok().and_then(|bytes| parse(&bytes)).unwrap_or_default();
        let is_plain = is_plain(top, git_dir, configs, &held);
        Self { held, written: (metadata.mtime(), metadata.mtime_nsec()), is_plain }
    }

    /// Returns the blob that has the content of a file, if one surely does.
    pub(super) fn blob(&self, path: &[u8], stamp: &NodeStamp) -> Option<[u8; 20]> {
        let held = self.held.get(path)?;
        let is_same = held.modified == short(stamp.modified)
            && held.changed == short(stamp.changed)
            && held.inode == stamp.inode as u32
            && held.size == stamp.size as u32;
        let is_sure = self.is_plain && held.is_comparable && stamp.modified < self.written;
        (is_same && is_sure).then_some(held.id)
    }

    /// Returns true for a tracked file; such a file is never ignored.
    pub(super) fn tracks(&self, path: &[u8]) -> bool {
        self.held.contains_key(path)
    }
}

fn short((seconds, nanos): (i64, i64)) -> (u32, u32) {
    (seconds as u32, nanos as u32)
}

fn parse(bytes: &[u8]) -> Option<HashMap<Vec<u8>, Held>> {
    let mut held = HashMap::new();
    read_git_index(bytes, SHA1_LEN, |entry| {
        let of_entry = Held {
            changed: entry.changed,
            modified: entry.modified,
            inode: entry.inode,
            size: entry.size,
            id: entry.id.try_into().ok()?,
            // Neither assumed valid, nor of a conflict, nor left out of the working tree, nor only intended.
            is_comparable: entry.is_file() && entry.flags & 0xb000 == 0 && entry.more_flags & 0x6000 == 0,
        };
        held.insert(entry.path.to_owned(), of_entry);
        Some(())
    })?;
    Some(held)
}

/// Tells whether nothing is configured that makes files differ from their blobs.
fn is_plain(top: &Path, git_dir: &Path, configs: &[PathBuf], held: &HashMap<Vec<u8>, Held>) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let common = read_regular_to_string(git_dir.join("commondir")).ok();
    let common = common.map_or_else(|| git_dir.to_owned(), |dir| git_dir.join(dir.trim()));
    let own = [common.join("config"), git_dir.join("config.worktree")];
    let is_converting_config = |path: &PathBuf| {
        let text = read_regular_to_string(path).unwrap_or_default().to_ascii_lowercase();
        ["autocrlf", "attributesfile", "objectformat"].iter().any(|word| text.contains(word))
    };
    if own.iter().chain(configs).any(is_converting_config) {
        return false;
    }
    let is_converting = |path: PathBuf| {
        let text = read_regular_to_string(path).unwrap_or_default();
        CONVERTING.iter().any(|word| text.contains(word))
    };
    let is_attributes = |path: &&Vec<u8>| path.ends_with(b".gitattributes");
    let tracked = held.keys().filter(is_attributes).map(|path| top.join(std::ffi::OsStr::from_bytes(path)));
    !tracked.chain([top.join(".gitattributes"), common.join("info/attributes")]).any(is_converting)
}
