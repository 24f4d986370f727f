//! Commits in a repository's object store, read without starting git: loose files, and packs with their deltas.
//!
//! A reader of the beginning of the history and nothing more. Whatever it does not know (other hashes, alternates,
//! hundreds of packs, objects that are elsewhere) it says nothing about, and git is asked instead. That is why it is written by
//! hand, although `gix-object` and `gix-pack` exist: with git to ask in doubt, this much is enough.

use std::cell::OnceCell;
use std::fs::{self, File};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use loci_stdx::open_regular;

/// The largest commit, and the largest delta, that is read.
const MOST_BYTES: usize = 1024 * 1024;
/// The most packs that are looked through.
const MOST_PACKS: usize = 50;
/// The longest chain of deltas; git makes them of fifty.
const MOST_DELTAS: usize = 64;
/// The fewest digits that git shortens a name to.
const FEWEST_DIGITS: usize = 7;

/// The name of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ObjectId([u8; 20]);

impl ObjectId {
    /// Reads forty hexadecimal digits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        loci_core::hex::from_hex(text)?.try_into().ok().map(Self)
    }

    /// Takes the bytes of a name.
    pub(super) fn new(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    fn hex(self) -> String {
        loci_core::hex::to_hex(&self.0)
    }
}

/// The objects of one repository.
pub(super) struct ObjectStore {
    dir: PathBuf,
    packs: OnceCell<Option<Vec<Pack>>>,
}

impl ObjectStore {
    /// Opens the store of a repository's common directory; nothing, where objects may lie elsewhere or stand for others.
    pub(super) fn open(common: &Path) -> Option<Self> {
        let dir = common.join("objects");
        let elsewhere =
            [dir.join("info/alternates"), common.join("info/grafts"), common.join("refs/replace")];
        let is_plain = elsewhere.iter().all(|path| fs::symlink_metadata(path).is_err());
        is_plain.then(|| Self { dir, packs: OnceCell::new() })
    }

    /// Returns the tree of a commit.
    pub(super) fn tree_of(&self, commit: ObjectId) -> Option<ObjectId> {
        let commit = self.commit(commit)?;
        let digits = commit.strip_prefix(b"tree ")?.get(..40)?;
        ObjectId::parse(std::str::from_utf8(digits).ok()?)
    }

    /// Reads a commit.
    pub(super) fn commit(&self, id: ObjectId) -> Option<Vec<u8>> {
        self.loose_commit(id).or_else(|| {
            self.packs()?.iter().find_map(|pack| Some((pack, pack.find(id)?))).and_then(|(pack, offset)| {
                let (kind, bytes) = pack.object(offset, 0)?;
                (kind == Kind::Commit).then_some(bytes)
            })
        })
    }

    fn loose_commit(&self, id: ObjectId) -> Option<Vec<u8>> {
        let hex = id.hex();
        let file = open_regular(self.dir.join(&hex[..2]).join(&hex[2..])).ok()?;
        let bytes = inflate(file, MOST_BYTES)?;
        let header = bytes.iter().position(|byte| *byte == 0)?;
        bytes.starts_with(b"commit ").then(|| bytes[header + 1..].to_vec())
    }

    fn packs(&self) -> Option<&[Pack]> {
        self.packs.get_or_init(|| open_packs(&self.dir.join("pack"))).as_deref()
    }

    /// Shortens a name as git does: as many digits as the size of the store asks for, and no fewer than it takes to
    /// tell it from every other.
    pub(super) fn abbreviate(&self, id: ObjectId) -> Option<String> {
        let n_packed: u64 = self.packs()?.iter().map(|pack| u64::from(pack.n_objects)).sum();
        let bits = u64::BITS - n_packed.leading_zeros();
        let usual = (bits.max(1) as usize).div_ceil(2).max(FEWEST_DIGITS);
        let hex = id.hex();
        let mut n_shared = self.loose_neighbours(&hex);
        for pack in self.packs()? {
            n_shared = n_shared.max(pack.shared_digits(id, &hex)?);
        }
        Some(hex[..usual.max(n_shared + 1).min(hex.len())].to_owned())
    }

    /// Returns how many digits a name has in common with another loose object.
    fn loose_neighbours(&self, hex: &str) -> usize {
        let Ok(entries) = fs::read_dir(self.dir.join(&hex[..2])) else { return 0 };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let others = names.filter(|name| *name != hex[2..] && name.len() == hex.len() - 2);
        others.map(|name| 2 + shared_prefix(&name, &hex[2..])).max().unwrap_or(0)
    }
}

fn shared_prefix(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

/// What an entry of a pack is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Commit,
    Other,
}

/// A pack and its index.
struct Pack {
    pack: File,
    index: File,
    n_objects: u32,
}

/// Opens all packs; nothing, when there are too many or one cannot be read.
fn open_packs(dir: &Path) -> Option<Vec<Pack>> {
    let Ok(entries) = fs::read_dir(dir) else { return Some(Vec::new()) };
    let paths = entries.flatten().map(|entry| entry.path());
    let indexes: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "idx")).take(MOST_PACKS + 1).collect();
    if indexes.len() > MOST_PACKS {
        return None;
    }
    indexes.iter().map(|path| Pack::open(path)).collect()
}

const NAMES: u64 = 8 + 256 * 4;

impl Pack {
    fn open(index_path: &Path) -> Option<Self> {
        let index = open_regular(index_path).ok()?;
        let mut head = [0; 8];
        index.read_exact_at(&mut head, 0).ok()?;
        // Version 2, which git has written since 2007.
        if head != *b"\xfftOc\0\0\0\x02" {
            return None;
        }
        let pack = open_regular(index_path.with_extension("pack")).ok()?;
        let n_objects = read_u32(&index, NAMES - 4)?;
        Some(Self { pack, index, n_objects })
    }

    /// Returns the names that begin with a byte, and the place of the first.
    fn names_from(&self, first: u8) -> Option<(u32, Vec<u8>)> {
        let at = 8 + u64::from(first) * 4;
        let end = read_u32(&self.index, at)?;
        let begin = if first == 0 { 0 } else { read_u32(&self.index, at - 4)? };
        let n_names = end.checked_sub(begin).filter(|_| end <= self.n_objects)?;
        let mut names = vec![0; usize::try_from(n_names).ok()?.checked_mul(20)?];
        self.index.read_exact_at(&mut names, NAMES + u64::from(begin) * 20).ok()?;
        Some((begin, names))
    }

    /// Returns where an object lies in the pack.
    fn find(&self, id: ObjectId) -> Option<u64> {
        let (begin, names) = self.names_from(id.0[0])?;
        let names: Vec<&[u8]> = names.chunks_exact(20).collect();
        let idx = u64::from(begin) + names.binary_search(&&id.0[..]).ok()? as u64;
        let n_objects = u64::from(self.n_objects);
        let offsets = NAMES + n_objects * 24;
        let offset = read_u32(&self.index, offsets + idx * 4)?;
        if offset & 0x8000_0000 == 0 {
            return Some(u64::from(offset));
        }
        let mut large = [0; 8];
        let at = offsets + n_objects * 4 + u64::from(offset & 0x7fff_ffff) * 8;
        self.index.read_exact_at(&mut large, at).ok()?;
        Some(u64::from_be_bytes(large))
    }

    /// Returns how many digits a name has in common with another object of the pack.
    fn shared_digits(&self, id: ObjectId, hex: &str) -> Option<usize> {
        let (_, names) = self.names_from(id.0[0])?;
        let others = names.chunks_exact(20).filter(|name| **name != id.0);
        let longest = others.map(|name| {
            let n_bytes = name.iter().zip(&id.0).take_while(|(a, b)| a == b).count();
            let next = name.get(n_bytes).map(|byte| format!("{byte:02x}")).unwrap_or_default();
            2 * n_bytes + shared_prefix(&next, &hex[2 * n_bytes..])
        });
        Some(longest.max().unwrap_or(0))
    }

    /// Reads the object at an offset, deltas applied.
    fn object(&self, offset: u64, depth: usize) -> Option<(Kind, Vec<u8>)> {
        if depth > MOST_DELTAS {
            return None;
        }
        let mut head = [0; 64];
        let n_read = self.pack.read_at(&mut head, offset).ok()?;
        let mut head = &head[..n_read];
        let (kind, size) = entry_head(&mut head)?;
        let base = match kind {
            6 => Some(self.object(offset.checked_sub(base_distance(&mut head)?)?, depth + 1)?),
            7 => {
                let (id, rest) = head.split_at_checked(20)?;
                head = rest;
                let id = ObjectId(id.try_into().ok()?);
                let at = self.find(id)?;
                Some(self.object(at, depth + 1)?)
            }
            _ => None,
        };
        let n_head = (n_read - head.len()) as u64;
        let mut data = &self.pack;
        data.seek(SeekFrom::Start(offset + n_head)).ok()?;
        let bytes = inflate(BufReader::new(data), usize::try_from(size).ok()?.min(MOST_BYTES))?;
        if bytes.len() as u64 != size {
            return None;
        }
        match (kind, base) {
            (_, Some((kind, base))) => Some((kind, apply_delta(&base, &bytes)?)),
            (1, None) => Some((Kind::Commit, bytes)),
            (2..=4, None) => Some((Kind::Other, bytes)),
            _ => None,
        }
    }
}

fn read_u32(file: &File, at: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(u32::from_be_bytes(bytes))
}

fn inflate(data: impl Read, most: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    ZlibDecoder::new(data).take(most as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn next_byte(input: &mut &[u8]) -> Option<u8> {
    let (first, rest) = input.split_first()?;
    *input = rest;
    Some(*first)
}

/// Reads the type and the size of a pack's entry.
fn entry_head(input: &mut &[u8]) -> Option<(u8, u64)> {
    let first = next_byte(input)?;
    let mut size = u64::from(first & 0x0f);
    let (mut byte, mut shift) = (first, 4);
    while byte & 0x80 != 0 {
        byte = next_byte(input)?;
        size |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if shift > 60 {
            return None;
        }
    }
    Some(((first >> 4) & 7, size))
}

/// Reads how far before its delta a base lies.
fn base_distance(input: &mut &[u8]) -> Option<u64> {
    let mut byte = next_byte(input)?;
    let mut distance = u64::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = next_byte(input)?;
        distance = distance.checked_add(1)?.checked_mul(128)?.checked_add(u64::from(byte & 0x7f))?;
    }
    Some(distance)
}

fn delta_size(input: &mut &[u8]) -> Option<usize> {
    let (mut size, mut shift) = (0_usize, 0);
    loop {
        let byte = next_byte(input)?;
        size |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(size);
        }
        if shift > 56 {
            return None;
        }
    }
}

/// Makes an object from another one and what is different.
fn apply_delta(base: &[u8], mut delta: &[u8]) -> Option<Vec<u8>> {
    let (from, to) = (delta_size(&mut delta)?, delta_size(&mut delta)?);
    if from != base.len() || to > MOST_BYTES {
        return None;
    }
    let mut made = Vec::with_capacity(to);
    while let Some(code) = next_byte(&mut delta) {
        if code & 0x80 == 0 {
            let (new, rest) = delta.split_at_checked(usize::from(code)).filter(|_| code != 0)?;
            made.extend_from_slice(new);
            delta = rest;
        } else {
            let mut number = |n_bytes: u32, first_bit: u32| -> Option<usize> {
                let mut value = 0;
                for byte in 0..n_bytes {
                    if code & (1 << (first_bit + byte)) != 0 {
                        value |= usize::from(next_byte(&mut delta)?) << (8 * byte);
                    }
                }
                Some(value)
            };
            let (offset, size) = (number(4, 0)?, number(3, 4)?);
            let size = if size == 0 { 0x1_0000 } else { size };
            made.extend_from_slice(base.get(offset..offset.checked_add(size)?)?);
        }
        if made.len() > to {
            return None;
        }
    }
    (made.len() == to).then_some(made)
}
