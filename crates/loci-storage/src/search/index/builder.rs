//! Making a segment: passages in, one file out.

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use loci_core::passage::Passage;
use loci_core::search::each_word;
use loci_stdx::{create_private, put_number, put_text};
use rustc_hash::FxHashMap;

use super::part_sum::part_sum;
use super::passage_reader::{LocatedPassage, Spot, voice_number};
use super::segment::{FILE_MARK, HEAD, MAGIC, Outline, Part, Segment, damaged};
use super::source::{SegmentSource, put_sources};

/// How many words a block has.
const BLOCK: usize = 64;

/// Collects passages until they are written.
#[derive(Default)]
pub(super) struct Builder {
    numbers: FxHashMap<Box<str>, u32>,
    lists: Vec<Growing>,
    outline: Outline,
    tools: FxHashMap<String, u16>,
    branches: FxHashMap<String, u16>,
    columns: Columns,
}

/// A list that grows.
#[derive(Default)]
struct Growing {
    bytes: Vec<u8>,
    /// Where the word stands in each passage: the step from the word before.
    positions: Vec<u8>,
    /// The last of them.
    position: u32,
    n_passages: u32,
    /// The last passage, and how often the word was in it so far.
    last: u32,
    count: u32,
    /// The passage before it.
    before: u32,
}

#[derive(Default)]
struct Columns {
    lengths: Vec<u8>,
    times: Vec<u8>,
    voices: Vec<u8>,
    tools: Vec<u8>,
    branches: Vec<u8>,
    places: Vec<u8>,
}

impl Builder {
    /// Returns how many bytes of session files are covered.
    pub(super) fn n_covered(&self) -> u64 {
        self.outline.sources.iter().map(|source| source.end - source.start).sum()
    }

    /// Returns true when it is time to write.
    pub(super) fn is_full(&self, n_bytes: u64) -> bool {
        self.n_covered() >= n_bytes || self.branches.len() > 60_000 || self.tools.len() > 60_000
    }

    pub(super) fn is_empty(&self) -> bool {
        self.outline.sources.is_empty()
    }

    /// Returns the number that the next source will have.
    fn source_number(&self) -> u32 {
        u32::try_from(self.outline.sources.len()).unwrap_or(u32::MAX)
    }

    /// Adds a passage of the source that is being read; returns how many words it has.
    pub(super) fn add(&mut self, located: &LocatedPassage<'_>) -> u32 {
        let passage = self.outline.n_passages;
        let mut n_words = 0;
        let (numbers, lists) = (&mut self.numbers, &mut self.lists);
        each_word(&located.passage.text, |word, _| {
            list_of(numbers, lists, word).add(passage, n_words);
            n_words += 1;
        });
        for file in &located.passage.files {
            list_of(numbers, lists, &format!("{FILE_MARK}{file}")).add(passage, 0);
        }
        self.add_row(located, n_words);
        self.outline.n_passages += 1;
        n_words
    }

    fn add_row(&mut self, located: &LocatedPassage<'_>, n_words: u32) {
        let Passage { voice, tool, .. } = &located.passage;
        let tool = numbered(&mut self.tools, &mut self.outline.tools, tool.as_deref());
        let branch = numbered(&mut self.branches, &mut self.outline.branches, located.branch);
        let source = self.source_number();
        self.columns.push(n_words, located.time_ms, voice_number(*voice), tool, branch);
        self.columns.push_place(source, located.spot);
    }

    /// Ends the source whose passages were added last.
    pub(super) fn end_source(&mut self, source: SegmentSource) {
        self.outline.sources.push(source);
    }

    /// Adds what counts of a segment; sources that no longer do are left behind.
    pub(super) fn absorb(&mut self, segment: &Segment, is_live: impl Fn(usize) -> bool) -> io::Result<()> {
        let first = self.source_number();
        let mut sources = Vec::new();
        for (idx, source) in segment.outline.sources.iter().enumerate() {
            sources.push(is_live(idx).then(|| first + u32::try_from(sources_kept(&sources)).unwrap_or(0)));
            if is_live(idx) {
                self.outline.sources.push(source.clone());
            }
        }
        let passages = self.absorb_rows(segment, &sources)?;
        let mut found = Vec::new();
        segment.each_word("", |word, n_passages, part| {
            found.push((word.to_owned(), n_passages, part));
            true
        })?;
        for (word, n_passages, part) in found {
            let list = segment.read_list(n_passages, part)?;
            let mut postings = list.postings_with_positions()?;
            let mut kept = Vec::new();
            while postings.advance()? {
                let positions = postings.positions()?;
                if let Some(passage) = passages.get(postings.passage() as usize).copied().flatten() {
                    kept.push((passage, postings.count(), positions.0));
                }
            }
            // A word that nothing of what is kept has does not come along.
            if !kept.is_empty() {
                let growing = list_of(&mut self.numbers, &mut self.lists, &word);
                kept.into_iter().for_each(|(passage, count, positions)| {
                    growing.add_counted(passage, count, positions);
                });
            }
        }
        Ok(())
    }

    /// Adds the rows of passages whose sources are kept, and returns the new number of each passage.
    fn absorb_rows(&mut self, segment: &Segment, sources: &[Option<u32>]) -> io::Result<Vec<Option<u32>>> {
        let (lengths, times, voices) = (segment.lengths()?, segment.times()?, segment.voices()?);
        segment.read_places()?;
        let (tools, branches) = (segment.tool_numbers()?, segment.branch_numbers()?);
        let name = |names: &[String], number: u16| names.get(usize::from(number).checked_sub(1)?).cloned();
        let row = |idx: usize| {
            let (tool, branch) = (tools.get(idx)?, branches.get(idx)?);
            Some((lengths.get(idx)?, times.get(idx)?, *voices.get(idx)?, tool, branch))
        };
        let mut passages = Vec::with_capacity(segment.outline.n_passages as usize);
        for number in 0..segment.outline.n_passages {
            let (source, spot) = segment.place(number)?;
            let Some(source) = sources.get(source as usize).copied().flatten() else {
                passages.push(None);
                continue;
            };
            let (n_words, time, voice, tool, branch) = row(number as usize).ok_or_else(damaged)?;
            let tool = name(&segment.outline.tools, tool);
            let branch = name(&segment.outline.branches, branch);
            let tool = numbered(&mut self.tools, &mut self.outline.tools, tool.as_deref());
            let branch = numbered(&mut self.branches, &mut self.outline.branches, branch.as_deref());
            self.columns.push(n_words, time, voice, tool, branch);
            self.columns.push_place(source, spot);
            passages.push(Some(self.outline.n_passages));
            self.outline.n_passages += 1;
        }
        Ok(passages)
    }

    /// Says which segments this one takes the place of.
    pub(super) fn replace(&mut self, names: Vec<String>) {
        self.outline.replaces = names;
    }

    /// Writes the segment to `dir` under a name that nothing there has.
    pub(super) fn write(self, dir: &Path, unique: &str) -> io::Result<()> {
        let beside = dir.join(format!("{unique}.new"));
        let written = self.write_to(&beside);
        let written = written.and_then(|()| fs::rename(&beside, dir.join(format!("{unique}.seg"))));
        if written.is_err() {
            // Half a segment is of no use to anybody, and may be what fills the disk.
            drop(fs::remove_file(&beside));
        }
        written
    }

    fn write_to(mut self, path: &Path) -> io::Result<()> {
        let mut out =
            SegmentWriter { file: BufWriter::with_capacity(1 << 20, create_private(path)?), at: HEAD as u64 };
        out.file.write_all(&[0; HEAD])?;
        let mut words: Vec<(Box<str>, u32)> = std::mem::take(&mut self.numbers).into_iter().collect();
        words.sort_unstable();
        let mut entries = Vec::with_capacity(words.len());
        for (word, number) in words {
            let list = std::mem::take(&mut self.lists[number as usize]).finished();
            entries.push((word, list.n_passages, out.put(&list.bytes)?));
        }
        self.outline.blocks = write_words(&mut out, &entries)?;
        self.write_columns(&mut out)?;
        self.outline.source_bytes = out.put(&put_sources(&self.outline.sources))?;
        let text = serde_json::to_vec(&self.outline)?;
        let part = out.put(&text)?;
        let mut file = out.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        let mut head = MAGIC.to_vec();
        [part.at, part.len, part.sum].iter().for_each(|number| head.extend_from_slice(&number.to_le_bytes()));
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&head)
    }

    fn write_columns(&mut self, out: &mut SegmentWriter) -> io::Result<()> {
        let columns = &self.columns;
        self.outline.lengths = out.put(&columns.lengths)?;
        self.outline.times = out.put(&columns.times)?;
        self.outline.voices = out.put(&columns.voices)?;
        self.outline.tool_numbers = out.put(&columns.tools)?;
        self.outline.branch_numbers = out.put(&columns.branches)?;
        self.outline.places = out.put(&columns.places)?;
        Ok(())
    }
}

impl Columns {
    fn push(&mut self, n_words: u32, time_ms: i64, voice: u8, tool: u16, branch: u16) {
        self.lengths.extend_from_slice(&n_words.to_le_bytes());
        self.times.extend_from_slice(&time_ms.to_le_bytes());
        self.voices.push(voice);
        self.tools.extend_from_slice(&tool.to_le_bytes());
        self.branches.extend_from_slice(&branch.to_le_bytes());
    }

    fn push_place(&mut self, source: u32, spot: Spot) {
        self.places.extend_from_slice(&source.to_le_bytes());
        self.places.extend_from_slice(&spot.offset.to_le_bytes());
        self.places.extend_from_slice(&spot.entry.to_le_bytes());
        self.places.extend_from_slice(&spot.part.to_le_bytes());
    }
}

fn sources_kept(sources: &[Option<u32>]) -> usize {
    sources.iter().flatten().count()
}

fn list_of<'a>(
    numbers: &mut FxHashMap<Box<str>, u32>,
    lists: &'a mut Vec<Growing>,
    word: &str,
) -> &'a mut Growing {
    let number = match numbers.get(word) {
        Some(number) => *number,
        None => {
            let number = u32::try_from(lists.len()).unwrap_or(u32::MAX);
            numbers.insert(word.into(), number);
            lists.push(Growing::default());
            number
        }
    };
    &mut lists[number as usize]
}

impl Growing {
    fn add_counted(&mut self, passage: u32, count: u32, positions: &[u8]) {
        self.flush();
        (self.last, self.count) = (passage, count);
        self.positions.extend_from_slice(positions);
    }

    fn add(&mut self, passage: u32, position: u32) {
        if self.count > 0 && self.last == passage {
            self.count += 1;
        } else {
            self.flush();
            (self.last, self.count, self.position) = (passage, 1, 0);
        }
        // A file may be named twice at one place.
        put_number(&mut self.positions, u64::from(position.saturating_sub(self.position)));
        self.position = position;
    }

    fn flush(&mut self) {
        if self.count == 0 {
            return;
        }
        let step = if self.n_passages == 0 { self.last } else { self.last - self.before };
        put_number(&mut self.bytes, u64::from(step));
        put_number(&mut self.bytes, u64::from(self.count));
        self.before = self.last;
        self.n_passages += 1;
        self.count = 0;
    }

    fn finished(mut self) -> Self {
        self.flush();
        self.bytes.append(&mut self.positions);
        self
    }
}

/// Returns the number of a name, counted from one; zero is none, and so is every name when there are too many.
fn numbered(known: &mut FxHashMap<String, u16>, names: &mut Vec<String>, name: Option<&str>) -> u16 {
    let Some(name) = name else { return 0 };
    if let Some(number) = known.get(name) {
        return *number;
    }
    let Ok(number) = u16::try_from(names.len() + 1) else { return 0 };
    names.push(name.to_owned());
    known.insert(name.to_owned(), number);
    number
}

struct SegmentWriter {
    file: BufWriter<File>,
    at: u64,
}

impl SegmentWriter {
    fn put(&mut self, bytes: &[u8]) -> io::Result<Part> {
        self.file.write_all(bytes)?;
        let part = Part { at: self.at, len: bytes.len() as u64, sum: part_sum(bytes) };
        self.at += part.len;
        Ok(part)
    }
}

fn write_words(out: &mut SegmentWriter, entries: &[(Box<str>, u32, Part)]) -> io::Result<Part> {
    let mut index = Vec::new();
    for block in entries.chunks(BLOCK) {
        let mut bytes = Vec::new();
        let mut before: &str = "";
        for (word, n_passages, list) in block {
            let n_shared = shared(before, word);
            put_number(&mut bytes, n_shared as u64);
            put_text(&mut bytes, &word[n_shared..]);
            put_number(&mut bytes, u64::from(*n_passages));
            put_part(&mut bytes, *list);
            before = word;
        }
        let part = out.put(&bytes)?;
        put_text(&mut index, block.first().map_or("", |(word, ..)| word));
        put_part(&mut index, part);
    }
    out.put(&index)
}

fn put_part(out: &mut Vec<u8>, part: Part) {
    put_number(out, part.at);
    put_number(out, part.len);
    out.extend_from_slice(&part.sum.to_le_bytes());
}

/// Returns how many bytes two words share at their beginning, in whole letters.
fn shared(left: &str, right: &str) -> usize {
    let letters = left.char_indices().zip(right.chars());
    let differs = letters.into_iter().find(|((_, left), right)| left != right);
    differs.map_or(left.len().min(right.len()), |((at, _), _)| at)
}
