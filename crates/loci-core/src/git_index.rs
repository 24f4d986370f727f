//! Git's index: which files a repository tracks, and what they were like when git last looked at them.
//!
//! One reader for all who ask an index something: it says what stands there, and whoever calls it decides what that is good
//! for. An index that is cut short or of a version nobody knows is `None`, never a part of one. What an index does not spell
//! out itself (split and sparse ones) it names in an extension that must be understood
//! ([`GitIndexExtension::is_required`]).
//!
//! It is written by hand, although `gix-index` exists: a few fields of each entry are read and nothing is ever written.
//!
//! ```text
//! "DIRC" version:u32 n:u32, then n entries, big endian:
//!   ctime s,ns  mtime s,ns  dev ino mode uid gid size : u32 x 10,  id: 20 or 32 bytes,  flags: u16  [more flags: u16]
//!   name, NUL padded to 8 bytes (versions 2, 3), or: varint of bytes to drop from the last name, rest, NUL (4)
//! then extensions (signature: 4 bytes, length: u32, data), and a checksum as long as an id
//! ```

/// The bytes of an id in a repository that names objects by SHA-1, as nearly all do.
pub const SHA1_LEN: usize = 20;
/// The bytes of an id in a repository that names objects by SHA-256.
pub const SHA256_LEN: usize = 32;

/// Set in the flags of an entry that more flags follow.
const HAS_MORE_FLAGS: u16 = 0x4000;

/// A tracked file, as the index has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GitIndexEntry<'a> {
    /// When the file's node was changed: seconds, nanoseconds.
    pub changed: (u32, u32),
    /// When the file's content was modified: seconds, nanoseconds.
    pub modified: (u32, u32),
    /// The number of the file's node, cut to its lower half.
    pub inode: u32,
    /// Kind and permissions, as git keeps them.
    pub mode: u32,
    /// User and group.
    pub owner: (u32, u32),
    /// The length of the file, cut to its lower half.
    pub size: u32,
    /// The blob's name.
    pub id: &'a [u8],
    /// Assumed to be unchanged, more flags, two bits for the side of a conflict, and the length of the path.
    pub flags: u16,
    /// Left out of the working tree, only intended to be added.
    pub more_flags: u16,
    /// The path below the top of the repository, with `/` between its parts.
    pub path: &'a [u8],
}

impl GitIndexEntry<'_> {
    /// Tells whether the entry is a plain file.
    pub fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }

    /// Tells whether the entry stands for another repository, a submodule.
    pub fn is_submodule(&self) -> bool {
        self.mode & 0o170_000 == 0o160_000
    }
}

/// What stands behind the entries: caches, and how else the index is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GitIndexExtension<'a> {
    /// Four letters: which extension it is.
    pub signature: &'a [u8],
    /// What it says, in a form of its own.
    pub data: &'a [u8],
}

impl GitIndexExtension<'_> {
    /// Tells whether the entries mean something else to who does not understand this extension (`link`: the other half is in
    /// another file; `sdir`: entries stand for whole directories).
    pub fn is_required(&self) -> bool {
        !self.signature.first().is_some_and(u8::is_ascii_uppercase)
    }
}

/// Reads an index: shows its entries one after the other, in the order of their paths, and returns its extensions. `None`
/// where something is not as it should be, or `visit` returns that.
pub fn read_git_index<'a>(
    bytes: &'a [u8],
    id_len: usize,
    mut visit: impl FnMut(GitIndexEntry<'_>) -> Option<()>,
) -> Option<Vec<GitIndexExtension<'a>>> {
    // Git does not look at the checksum when it reads either; a setting has it write zeros.
    let bytes = bytes.get(..bytes.len().checked_sub(id_len)?)?;
    let version =
        number(bytes, 4).filter(|version| bytes.starts_with(b"DIRC") && (2..=4).contains(version))?;
    let mut path: Vec<u8> = Vec::new();
    let mut at = 12;
    for _ in 0..number(bytes, 8)? {
        at = read_entry(bytes, at, version, id_len, &mut path, &mut visit)?;
    }
    extensions(bytes.get(at..)?)
}

/// Shows the entry that begins at `start` and returns where the next one does. `path` is that of the entry before.
fn read_entry(
    bytes: &[u8],
    start: usize,
    version: u32,
    id_len: usize,
    path: &mut Vec<u8>,
    visit: &mut impl FnMut(GitIndexEntry<'_>) -> Option<()>,
) -> Option<usize> {
    let field = |n: usize| number(bytes, start + 4 * n);
    let flags_at = start + 40 + id_len;
    let flags = short(bytes, flags_at)?;
    let mut at = flags_at + 2;
    let mut more_flags = 0;
    if flags & HAS_MORE_FLAGS != 0 {
        more_flags = short(bytes, at)?;
        at += 2;
    }
    if version == 4 {
        let n_dropped = variable_number(bytes, &mut at)?;
        path.truncate(path.len().checked_sub(n_dropped)?);
    } else {
        path.clear();
    }
    let end = at + memchr::memchr(0, bytes.get(at..)?)?;
    path.extend_from_slice(&bytes[at..end]);
    visit(GitIndexEntry {
        changed: (field(0)?, field(1)?),
        modified: (field(2)?, field(3)?),
        inode: field(5)?,
        mode: field(6)?,
        owner: (field(7)?, field(8)?),
        size: field(9)?,
        id: bytes.get(start + 40..flags_at)?,
        flags,
        more_flags,
        path,
    })?;
    // Paths that are spelled out end with one to eight zeros, so that the next entry begins at a multiple of eight.
    Some(if version == 4 { end + 1 } else { start + (end - start + 8) / 8 * 8 })
}

fn extensions(mut bytes: &[u8]) -> Option<Vec<GitIndexExtension<'_>>> {
    let mut extensions = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at_checked(8)?;
        let (data, rest) = rest.split_at_checked(usize::try_from(number(head, 4)?).ok()?)?;
        extensions.push(GitIndexExtension { signature: &head[..4], data });
        bytes = rest;
    }
    Some(extensions)
}

/// Reads a number of git's: seven bits a byte, one added for each that follows.
fn variable_number(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0usize;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
        if byte & 128 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests;
