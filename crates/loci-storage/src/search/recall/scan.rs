//! Reading a session file for what has a word of a query, several parts at once.
//!
//! A part is a stretch of so many bytes; the lines that begin in it are its own. Parts know nothing of one another: what
//! goes from one to the next, such as which tool a result is of, is for whoever puts them together.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use loci_core::entry::Entry;
use loci_core::ids::EntryId;
use loci_core::passage::{Passage, Voice, passages};
use loci_core::search::{Query, Tally};
use serde_json::Value;

use super::stretch::Stretch;
use crate::sessions::session_file::{LoadedTranscript, each_line_from, read_line};

/// How many bytes a part has, how many are read before they are put together, and by how many threads at most.
const PART: u64 = 1 << 20;
const PARTS_AT_ONCE: u64 = 16;
const MOST_READERS: usize = 4;

/// Where a line lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) offset: u64,
    pub(super) len: usize,
}

/// A passage with a word of the query.
pub(super) struct MatchCandidate {
    /// Which of the stretches it is in.
    pub(super) stretch: usize,
    pub(super) span: Span,
    pub(super) entry: usize,
    pub(super) part: usize,
    pub(super) counts: Vec<u32>,
    pub(super) n_words: u32,
    pub(super) n_literals: usize,
    /// How many pairs of words follow one another as they do in the query.
    pub(super) n_neighbours: usize,
    pub(super) voice: Voice,
    pub(super) uuid: EntryId,
    pub(super) tool: Option<String>,
}

/// A passage, without its words.
pub(super) struct ScannedPassage {
    pub(super) passage: Passage,
    pub(super) n_words: u32,
    pub(super) candidate: Option<MatchCandidate>,
}

/// What a part of the file has.
#[derive(Default)]
pub(super) struct ScannedPart {
    pub(super) seen: Vec<ScannedPassage>,
    /// Where its last compaction lies, and what that preserved.
    pub(super) boundary: Option<(u64, HashSet<EntryId>)>,
}

/// Hands out what the parts of a stretch have, in their order, until `stop` says so. Only passages of `voice` are looked
/// into, if one is given.
pub(super) fn each_part(
    stretch: &Stretch,
    query: &Query,
    voice: Option<Voice>,
    stop: &AtomicBool,
    take: impl FnMut(ScannedPart),
) -> io::Result<()> {
    each_part_of(PART, stretch.len()?, stop, |part| scan(&stretch.file, part, query, voice), take)
}

fn each_part_of(
    size: u64,
    whole: u64,
    stop: &AtomicBool,
    scan: impl Fn(Range<u64>) -> io::Result<ScannedPart> + Sync,
    mut take: impl FnMut(ScannedPart),
) -> io::Result<()> {
    let mut begin = 0;
    while begin < whole && !stop.load(Ordering::Relaxed) {
        let end = whole.min(begin + size * PARTS_AT_ONCE);
        let n_parts = usize::try_from((end - begin).div_ceil(size)).unwrap_or(usize::MAX);
        let scanned = loci_stdx::in_parallel(n_parts, MOST_READERS, |idx| {
            let start = begin + idx as u64 * size;
            scan(start..end.min(start + size))
        });
        for part in scanned {
            take(part?);
        }
        begin = end;
    }
    Ok(())
}

/// Looks at the lines that begin in a part.
fn scan(file: &File, part: Range<u64>, query: &Query, voice: Option<Voice>) -> io::Result<ScannedPart> {
    let mut scanned = ScannedPart::default();
    let Some(first) = first_line(file, &part)? else { return Ok(scanned) };
    let mut tally = Tally::default();
    let mut reader = ReadFrom { file, offset: first };
    each_line_from(&mut reader, first, |line| {
        if line.offset >= part.end {
            return false;
        }
        let span = Span { offset: line.offset, len: line.bytes.len() };
        let mut loaded = LoadedTranscript::default();
        read_line(line, &mut loaded);
        for (idx, entry) in loaded.entries.iter().enumerate().filter(|(_, it)| !it.head().is_sidechain) {
            if entry.is_compact_boundary() {
                scanned.boundary = Some((span.offset, preserved(entry)));
            }
            for (part, passage) in passages(entry).into_iter().enumerate() {
                let is_wanted = voice.is_none_or(|voice| voice == passage.voice);
                let candidate = is_wanted
                    .then(|| MatchCandidate::new((span, idx, part), entry, &passage, query, &mut tally))
                    .flatten();
                let passage = Passage { text: String::new(), ..passage };
                scanned.seen.push(ScannedPassage { passage, n_words: tally.n_words, candidate });
            }
        }
        true
    })?;
    Ok(scanned)
}

impl MatchCandidate {
    /// Counts what a passage has of the query; `None` when that is not enough to be found.
    fn new(
        (span, idx, part): (Span, usize, usize),
        entry: &Entry,
        passage: &Passage,
        query: &Query,
        tally: &mut Tally,
    ) -> Option<Self> {
        query.tally(&passage.text, tally);
        if tally.is_empty() {
            return None;
        }
        Some(Self {
            stretch: 0,
            span,
            entry: idx,
            part,
            n_literals: query.n_literals(&passage.text)?,
            counts: tally.counts.clone(),
            n_words: tally.n_words,
            n_neighbours: tally.n_neighbours(),
            voice: passage.voice,
            uuid: entry.head().uuid.clone()?,
            tool: None,
        })
    }
}

fn preserved(boundary: &Entry) -> HashSet<EntryId> {
    let about: Value = boundary.fields().read("compactMetadata").unwrap_or_default();
    let kept = about["preservedMessages"]["uuids"].as_array().into_iter().flatten();
    kept.filter_map(Value::as_str).map(EntryId::from).collect()
}

/// Returns where the first line of a part begins.
fn first_line(file: &File, part: &Range<u64>) -> io::Result<Option<u64>> {
    if part.start == 0 {
        return Ok(Some(0));
    }
    let mut buffer = vec![0; 16 * 1024];
    let mut at = part.start - 1;
    while at + 1 < part.end {
        let n_read = file.read_at(&mut buffer, at)?;
        if n_read == 0 {
            return Ok(None);
        }
        if let Some(newline) = memchr::memchr(b'\n', &buffer[..n_read]) {
            let line = at + newline as u64 + 1;
            return Ok((line < part.end).then_some(line));
        }
        at += n_read as u64;
    }
    Ok(None)
}

/// Reads on from a place in a file that several read at once.
pub(super) struct ReadFrom<'a> {
    pub(super) file: &'a File,
    pub(super) offset: u64,
}

impl Read for ReadFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.file.read_at(buffer, self.offset)?;
        self.offset += n_read as u64;
        Ok(n_read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where parts end makes no difference to what is found, nor do long lines, blank ones and a last one without an end.
    #[test]
    fn recall_scan_finds_the_same_with_any_part_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let line = |n: usize| {
            let text = format!("é port {n} {}", "x".repeat(n * 37 % 200));
            format!(r#"{{"type":"user","uuid":"u{n}","message":{{"content":"{text}"}}}}"#)
        };
        let lines: Vec<String> = (0..40).map(line).chain([String::new(), " ".to_owned(), line(99)]).collect();
        std::fs::write(&path, lines.join("\n")).unwrap();
        let stretch = Stretch::whole(&path).unwrap();
        let query = Query::parse("port");
        let found = |size: u64| {
            let mut found = Vec::new();
            let scan = |part| scan(&stretch.file, part, &query, None);
            each_part_of(size, stretch.len().unwrap(), &AtomicBool::new(false), scan, |part| {
                let candidates = part.seen.into_iter().filter_map(|seen| seen.candidate);
                found.extend(candidates.map(|it| (it.uuid.to_string(), it.span.offset, it.span.len)));
            })
            .unwrap();
            found
        };
        let whole = found(1 << 20);
        assert_eq!(whole.len(), 41);
        for size in [1, 2, 7, 50, 99, 100, 101, 250, 5_000] {
            assert_eq!(found(size), whole, "{size}");
        }
        let stopped =
            each_part(&stretch, &query, None, &AtomicBool::new(true), |_| panic!("nothing is read"));
        assert!(stopped.is_ok());
    }
}
