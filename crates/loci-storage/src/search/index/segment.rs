//! One file of the index: passages of some stretches of session files, by their words. It is written once and never
//! changed.
//!
//! ```text
//! head       "LOCIIDX4", where the outline is, how long it is, its checksum (four times eight bytes)
//! lists      for each word the passages that have it: the step from the passage before, and how often; then for each
//!            of them where it stands among the passage's words: the step from the one before
//! words      blocks of up to 64 words in order: what a word shares with the one before, the rest, its list
//! columns    for each passage: how many words, time, voice, tool, branch, source and place
//! sources    which stretches of which files it covers ([`super::source`])
//! outline    JSON: names, where sources, blocks and columns are
//! ```
//!
//! Everything that is read has a checksum in what pointed to it, the places of passages aside: those are held against
//! the session file itself before anybody sees them. Checksums are those of [`super::part_sum`]. A word that begins with U+0001 is a file that a call names.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use loci_core::search::Term;
use loci_stdx::{Packed, in_parallel, open_regular};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::part_sum::part_sum;
use super::passage_reader::Spot;
use super::postings::PackedList;
use super::source::{SegmentSource, read_sources};

pub(super) const MAGIC: &[u8; 8] = b"LOCIIDX4";
pub(super) const HEAD: usize = 32;
/// How many bytes of `places` a passage has.
pub(super) const PLACE: usize = 16;
/// How many segments are opened at once.
const MOST_OPENERS: usize = 4;
/// What the names of files begin with.
pub(super) const FILE_MARK: char = '\u{1}';

/// A part of the file, with its checksum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) at: u64,
    pub(super) len: u64,
    pub(super) sum: u64,
}

/// Where the list of a word is, and how many passages it has.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListPart {
    pub(super) n_passages: u32,
    part: Part,
}

/// What a segment says about itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Outline {
    pub(super) n_passages: u32,
    #[serde(skip)]
    pub(super) sources: Vec<SegmentSource>,
    /// Where the sources are.
    pub(super) source_bytes: Part,
    /// Segments that this one takes the place of.
    pub(super) replaces: Vec<String>,
    /// Names of tools and branches; the number in a column is the place here, counted from one.
    pub(super) tools: Vec<String>,
    pub(super) branches: Vec<String>,
    /// The first word of each block and where it is, as bytes of their own.
    pub(super) blocks: Part,
    pub(super) lengths: Part,
    pub(super) times: Part,
    pub(super) voices: Part,
    pub(super) tool_numbers: Part,
    pub(super) branch_numbers: Part,
    pub(super) places: Part,
}

/// An open segment.
pub(super) struct Segment {
    pub(super) name: String,
    pub(super) outline: Outline,
    file: File,
    blocks: Vec<u8>,
    /// Where the passages of each source end: they are in the order of their sources.
    source_ends: Vec<u32>,
    lengths: OnceLock<Vec<u8>>,
    times: OnceLock<Vec<u8>>,
    tool_numbers: OnceLock<Vec<u8>>,
    branch_numbers: OnceLock<Vec<u8>>,
    places: OnceLock<Vec<u8>>,
}

/// One number of so many bytes for each passage, as they were read: few of them are ever looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column<'a, const N: usize>(&'a [[u8; N]]);

impl Column<'_, 2> {
    pub(super) fn get(&self, passage: usize) -> Option<u16> {
        self.0.get(passage).map(|row| u16::from_le_bytes(*row))
    }
}

impl Column<'_, 4> {
    pub(super) fn get(&self, passage: usize) -> Option<u32> {
        self.0.get(passage).map(|row| u32::from_le_bytes(*row))
    }
}

impl Column<'_, 8> {
    pub(super) fn get(&self, passage: usize) -> Option<i64> {
        self.0.get(passage).map(|row| i64::from_le_bytes(*row))
    }
}

/// What is not as it was written.
pub(super) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the index is damaged")
}

impl Segment {
    /// Opens a segment; one that is damaged is an error.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = open_regular(path)?;
        let mut head = [0; HEAD];
        file.read_exact_at(&mut head, 0)?;
        let number = |at: usize| {
            let bytes = head.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map(u64::from_le_bytes).ok_or_else(damaged)
        };
        if &head[..8] != MAGIC {
            return Err(damaged());
        }
        let text = read(&file, Part { at: number(8)?, len: number(16)?, sum: number(24)? })?;
        let mut outline: Outline = serde_json::from_slice(&text).map_err(|_| damaged())?;
        outline.sources = read_sources(&read(&file, outline.source_bytes)?).ok_or_else(damaged)?;
        let source_ends = source_ends(&outline).ok_or_else(damaged)?;
        let blocks = read(&file, outline.blocks)?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self {
            name,
            outline,
            file,
            blocks,
            source_ends,
            lengths: OnceLock::new(),
            times: OnceLock::new(),
            tool_numbers: OnceLock::new(),
            branch_numbers: OnceLock::new(),
            places: OnceLock::new(),
        })
    }

    /// Returns how many words each passage has.
    pub(super) fn lengths(&self) -> io::Result<Column<'_, 4>> {
        Ok(Column(column(&self.lengths, &self.file, self.outline.lengths)?.as_chunks().0))
    }

    /// Returns the time of each passage.
    pub(super) fn times(&self) -> io::Result<Column<'_, 8>> {
        Ok(Column(column(&self.times, &self.file, self.outline.times)?.as_chunks().0))
    }

    pub(super) fn voices(&self) -> io::Result<Vec<u8>> {
        read(&self.file, self.outline.voices)
    }

    pub(super) fn tool_numbers(&self) -> io::Result<Column<'_, 2>> {
        Ok(Column(column(&self.tool_numbers, &self.file, self.outline.tool_numbers)?.as_chunks().0))
    }

    pub(super) fn branch_numbers(&self) -> io::Result<Column<'_, 2>> {
        Ok(Column(column(&self.branch_numbers, &self.file, self.outline.branch_numbers)?.as_chunks().0))
    }

    /// Reads everything there is, so that any damage shows.
    pub(super) fn verify(&self) -> io::Result<()> {
        let Outline { lengths, times, voices, tool_numbers, branch_numbers, places, .. } = self.outline;
        for part in [lengths, times, voices, tool_numbers, branch_numbers, places] {
            read(&self.file, part)?;
        }
        let mut lists = Vec::new();
        self.each_word("", |_, n_passages, part| {
            lists.push((n_passages, part));
            true
        })?;
        for (n_passages, part) in lists {
            let list = self.read_list(n_passages, part)?;
            let mut postings = list.postings_with_positions()?;
            while postings.advance()? {}
        }
        Ok(())
    }

    /// Returns where the passages of each source end.
    pub(super) fn source_ends(&self) -> &[u32] {
        &self.source_ends
    }

    /// Returns the source of a passage, without looking at its place.
    pub(super) fn source_of(&self, passage: u32) -> usize {
        self.source_ends.partition_point(|end| *end <= passage)
    }

    /// Returns the source of a passage and its spot there.
    ///
    /// Few are asked for, unless [`Segment::read_places`] was called: each is then read by itself. They have no checksum to
    /// be held against, but what they name is.
    pub(super) fn place(&self, passage: u32) -> io::Result<(u32, Spot)> {
        let at = passage as usize * PLACE;
        let mut read = [0; PLACE];
        let row = match self.places.get() {
            Some(bytes) => bytes.get(at..at + PLACE).ok_or_else(damaged)?,
            None if passage < self.outline.n_passages => {
                self.file.read_exact_at(&mut read, self.outline.places.at + at as u64)?;
                &read
            }
            None => return Err(damaged()),
        };
        let (source, rest) = row.split_first_chunk::<4>().ok_or_else(damaged)?;
        let (offset, rest) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
        let (entry, part) = rest.split_first_chunk::<2>().ok_or_else(damaged)?;
        let part = part.first_chunk::<2>().ok_or_else(damaged)?;
        let spot = Spot {
            offset: u64::from_le_bytes(*offset),
            entry: u16::from_le_bytes(*entry),
            part: u16::from_le_bytes(*part),
        };
        Ok((u32::from_le_bytes(*source), spot))
    }

    /// Reads all places at once, for whoever is going to ask for many.
    pub(super) fn read_places(&self) -> io::Result<()> {
        column(&self.places, &self.file, self.outline.places).map(drop)
    }

    /// Returns how many words each passage has, read into room that is there.
    pub(super) fn lengths_in<'a>(&self, room: &'a mut Vec<u8>) -> io::Result<Column<'a, 4>> {
        read_into(&self.file, self.outline.lengths, room)?;
        Ok(Column(room.as_chunks().0))
    }

    /// Returns the time of each passage, read into room that is there.
    pub(super) fn times_in<'a>(&self, room: &'a mut Vec<u8>) -> io::Result<Column<'a, 8>> {
        read_into(&self.file, self.outline.times, room)?;
        Ok(Column(room.as_chunks().0))
    }

    /// Returns where the lists of the words are that a term means.
    pub(super) fn list_parts(&self, term: &Term) -> io::Result<Vec<ListPart>> {
        let mut found = Vec::new();
        self.each_word(&term.text, |word, n_passages, part| {
            if term.matches(word) && !word.starts_with(FILE_MARK) {
                found.push(ListPart { n_passages: n_passages.min(self.outline.n_passages), part });
            }
            word == term.text || word.starts_with(&term.text)
        })?;
        Ok(found)
    }

    /// Returns the list of all words that a term means, taken together.
    pub(super) fn joined_list(&self, parts: &[ListPart]) -> io::Result<PackedList> {
        let lists: io::Result<Vec<PackedList>> =
            parts.iter().map(|it| self.read_list(it.n_passages, it.part)).collect();
        Ok(PackedList::join(lists?)?)
    }

    /// Reads a list into the room of another.
    pub(super) fn read_list_into(&self, it: ListPart, list: &mut PackedList) -> io::Result<()> {
        let read = |room: &mut Vec<u8>| read_into(&self.file, it.part, room);
        list.refill(it.n_passages, self.outline.n_passages, read)
    }

    /// Returns the passages with calls that name a file of which `is_meant` says yes.
    pub(super) fn passages_with_file(&self, is_meant: impl Fn(&str) -> bool) -> io::Result<Vec<u32>> {
        let mut found = Vec::new();
        let mark = FILE_MARK.to_string();
        self.each_word(&mark, |word, n_passages, part| {
            if let Some(path) = word.strip_prefix(FILE_MARK).filter(|path| is_meant(path)) {
                let _: &str = path;
                found.push((n_passages, part));
            }
            word.starts_with(FILE_MARK)
        })?;
        let mut passages = Vec::new();
        for (n_passages, part) in found {
            let list = self.read_list(n_passages, part)?;
            let mut postings = list.postings();
            while postings.advance()? {
                passages.push(postings.passage());
            }
        }
        Ok(passages)
    }

    /// Hands out words in order, from the block that may have `from` on, until `take` says no for one after it.
    pub(super) fn each_word(
        &self,
        from: &str,
        mut take: impl FnMut(&str, u32, Part) -> bool,
    ) -> io::Result<()> {
        let mut blocks = self.blocks_from(from)?;
        while !blocks.is_empty() {
            let (_, part) = block_of(&mut blocks).ok_or_else(damaged)?;
            let bytes = read(&self.file, part)?;
            let mut bytes = Packed(&bytes);
            let mut word = String::new();
            while !bytes.is_empty() {
                let (n_passages, list) = next_word(&mut bytes, &mut word).ok_or_else(damaged)?;
                if word.as_str() >= from && !take(&word, n_passages, list) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the blocks that may have `word` or words after it: all from the last on that begins with `word` or before.
    fn blocks_from(&self, word: &str) -> io::Result<Packed<'_>> {
        let mut blocks = Packed(&self.blocks);
        let mut from = blocks;
        while !blocks.is_empty() {
            let here = blocks;
            let (first, _) = block_of(&mut blocks).ok_or_else(damaged)?;
            if first > word.as_bytes() {
                break;
            }
            from = here;
        }
        Ok(from)
    }

    pub(super) fn read_list(&self, n_passages: u32, part: Part) -> io::Result<PackedList> {
        Ok(PackedList::new(read(&self.file, part)?, n_passages, self.outline.n_passages))
    }
}

/// Adds up how many passages sources have; `None` when those are not the segment's.
fn source_ends(outline: &Outline) -> Option<Vec<u32>> {
    let mut ends = Vec::with_capacity(outline.sources.len());
    let mut end = 0_u32;
    for source in &outline.sources {
        end = end.checked_add(source.n_passages)?;
        ends.push(end);
    }
    (end == outline.n_passages).then_some(ends)
}

/// Reads the next word of a block into `word`, and returns where its list is.
fn next_word(bytes: &mut Packed<'_>, word: &mut String) -> Option<(u32, Part)> {
    let n_shared = usize::try_from(bytes.number()?).ok()?;
    if !word.is_char_boundary(n_shared) || n_shared > word.len() {
        return None;
    }
    word.truncate(n_shared);
    word.push_str(bytes.text()?);
    let n_passages = bytes.small()?;
    Some((n_passages, part_of(bytes)?))
}

/// Reads the first word of a block and where the block is.
fn block_of<'a>(bytes: &mut Packed<'a>) -> Option<(&'a [u8], Part)> {
    let n_bytes = usize::try_from(bytes.number()?).ok()?;
    Some((bytes.take(n_bytes)?, part_of(bytes)?))
}

fn part_of(bytes: &mut Packed<'_>) -> Option<Part> {
    let (at, len) = (bytes.number()?, bytes.number()?);
    let sum = bytes.take(8)?.try_into().ok().map(u64::from_le_bytes)?;
    Some(Part { at, len, sum })
}

fn read(file: &File, part: Part) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_into(file, part, &mut bytes)?;
    Ok(bytes)
}

/// Reads into room that is there. New room of a megabyte costs as much as what is read into it: each page of it is made when
/// it is first touched.
fn read_into(file: &File, part: Part, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.clear();
    let size = file.metadata()?.len();
    if part.at.checked_add(part.len).is_none_or(|end| end > size) {
        return Err(damaged());
    }
    // Bytes that are about to be read need not be zeros first.
    let len = usize::try_from(part.len).map_err(|_| damaged())?;
    bytes.reserve_exact(len);
    while bytes.len() < len {
        let at = part.at + bytes.len() as u64;
        match rustix::io::pread(file, spare_capacity(bytes), at) {
            Ok(0) => return Err(damaged()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // There may be room for more than was asked for.
    bytes.truncate(len);
    if part_sum(bytes) == part.sum { Ok(()) } else { Err(damaged()) }
}

fn column<'a>(cell: &'a OnceLock<Vec<u8>>, file: &File, part: Part) -> io::Result<&'a [u8]> {
    if cell.get().is_none() {
        // Filled by now in any case.
        drop(cell.set(read(file, part)?));
    }
    Ok(cell.get().map(Vec::as_slice).unwrap_or_default())
}

/// Opens the segments of a directory that can be read and are not replaced by another; the rest is passed over.
pub(super) fn open_all(dir: &Path) -> (Vec<Segment>, Vec<PathBuf>) {
    let entries = std::fs::read_dir(dir).map_or_else(|_| Vec::new(), |entries| entries.flatten().collect());
    let mut paths: Vec<PathBuf> = entries
        .iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|it| it == "seg"))
        .collect();
    paths.sort();
    let mut segments = Vec::new();
    let mut useless = Vec::new();
    let opened = in_parallel(paths.len(), MOST_OPENERS, |idx| Segment::open(&paths[idx]));
    for (path, opened) in paths.into_iter().zip(opened) {
        match opened {
            Ok(segment) => segments.push(segment),
            Err(_) => useless.push(path),
        }
    }
    let replaced: Vec<String> = segments.iter().flat_map(|it| it.outline.replaces.clone()).collect();
    let is_replaced = |segment: &Segment| replaced.contains(&segment.name);
    useless.extend(segments.iter().filter(|it| is_replaced(it)).map(|it| dir.join(&it.name)));
    segments.retain(|segment| !is_replaced(segment));
    (segments, useless)
}
