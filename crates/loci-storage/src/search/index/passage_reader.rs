//! What is searched: every passage of a stretch of a session file, with where it lies and what it can be told by.
//!
//! Index and scan both read files through here, so that they know the same passages by the same places.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use flate2::read::GzDecoder;
use loci_core::entry::Entry;
use loci_core::passage::{CallNames, Passage, Voice, passages};
use loci_stdx::{Line, Timestamp, open_regular};
use memchr::memmem;

use super::coverage::IndexableFile;
use crate::foreign::rollout::{entries_of, rollout_bytes};
use crate::layout::Dialect;
use crate::sessions::listing::scan::last_text_start;
use crate::sessions::session_file::{LoadedTranscript, each_line, read_line};

/// The time of an entry without one.
pub(super) const NO_TIME: i64 = i64::MIN;

/// Where a passage lies within its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot {
    /// Where its line begins.
    pub(super) offset: u64,
    /// Which entry of the line it is in: lines that lost their end may have several.
    pub(super) entry: u16,
    /// Which passage of the entry it is.
    pub(super) part: u16,
}

/// A passage and what it can be told by.
#[derive(Debug)]
pub(super) struct LocatedPassage<'a> {
    pub(super) spot: Spot,
    pub(super) time_ms: i64,
    pub(super) branch: Option<&'a str>,
    pub(super) passage: Passage,
}

/// Where reading ended.
#[derive(Debug, Default)]
pub(super) struct ReadEnd {
    /// The end of the last line that was read.
    pub(super) end: u64,
    /// Calls whose results are yet to come.
    pub(super) calls: CallNames,
}

/// What to do about a last line that has no end yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLine {
    /// It is read as far as it goes.
    Read,
    /// It is left for later.
    Leave,
}

/// Hands out the passages from `start` to `end`, both at the start of a line, until `take` returns false.
pub(super) fn each_passage(
    body: &Body,
    start: u64,
    end: u64,
    last: LastLine,
    mut calls: CallNames,
    mut take: impl FnMut(LocatedPassage<'_>) -> bool,
) -> io::Result<ReadEnd> {
    let mut read_to = start;
    let mut reader = body.read_from(start)?;
    each_line(&mut (&mut *reader).take(end.saturating_sub(start)), |line| {
        if last == LastLine::Leave && !line.terminated {
            return false;
        }
        let offset = start + line.offset;
        read_to = offset + line.bytes.len() as u64 + u64::from(line.terminated);
        passages_in(offset, &entries_in(body.dialect, line.bytes), &mut calls, &mut take)
    })?;
    Ok(ReadEnd { end: read_to, calls })
}

fn passages_in(
    offset: u64,
    entries: &[Arc<Entry>],
    calls: &mut CallNames,
    take: &mut impl FnMut(LocatedPassage<'_>) -> bool,
) -> bool {
    for (idx, entry) in entries.iter().enumerate() {
        let mut said = passages(entry);
        if said.is_empty() {
            continue;
        }
        let time_ms = time_of(entry);
        let branch = branch_of(entry);
        for (part, mut passage) in said.drain(..).enumerate() {
            calls.complete(&mut passage);
            let (Ok(entry), Ok(part)) = (u16::try_from(idx), u16::try_from(part)) else { break };
            let spot = Spot { offset, entry, part };
            if !take(LocatedPassage { spot, time_ms, branch, passage }) {
                return false;
            }
        }
    }
    true
}

/// Reads the entries of a line, whichever program wrote it.
fn entries_in(dialect: Dialect, bytes: &[u8]) -> Vec<Arc<Entry>> {
    match dialect {
        // Most of what is no message need not be parsed to be passed over.
        Dialect::Own if memmem::find(bytes, br#""uuid""#).is_none() => Vec::new(),
        Dialect::Own => {
            let mut loaded = LoadedTranscript::default();
            read_line(Line { offset: 0, bytes, terminated: true }, &mut loaded);
            loaded.entries
        }
        Dialect::Codex => entries_of(bytes).into_iter().map(Arc::new).collect(),
    }
}

fn time_of(entry: &Entry) -> i64 {
    entry.head().timestamp.as_deref().and_then(milliseconds).unwrap_or(NO_TIME)
}

/// Reads a moment; the usual form (`2026-01-31T12:00:00.000Z`) without ado, since there is one in every entry.
pub(crate) fn milliseconds(text: &str) -> Option<i64> {
    let usual = || {
        let bytes: &[u8; 24] = text.as_bytes().try_into().ok()?;
        let digits = |range: std::ops::Range<usize>| {
            bytes[range]
                .iter()
                .try_fold(0_i64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
        };
        let signs = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
        if signs.iter().any(|(at, sign)| bytes[*at] != *sign) {
            return None;
        }
        let (year, month, day) = (digits(0..4)?, digits(5..7)?, digits(8..10)?);
        let (hour, minute, second, ms) = (digits(11..13)?, digits(14..16)?, digits(17..19)?, digits(20..23)?);
        let is_plain =
            (1..=12).contains(&month) && (1..=28).contains(&day) && hour < 24 && minute < 60 && second < 60;
        is_plain.then(|| (((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second) * 1_000 + ms)
    };
    usual().or_else(|| text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond))
}

/// Returns the days from 1970 to a day of the calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years are counted from March, so that the day that comes and goes is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Finds the branch without taking the line apart: a quote inside of a text is escaped, so this is a key.
fn branch_of(entry: &Entry) -> Option<&str> {
    let line = entry.line();
    let quote = last_text_start(line.as_bytes(), "gitBranch")?;
    let rest = line.get(quote + 1..)?;
    rest.get(..rest.find('"')?)
}

/// Reads one passage again; `None` when there is none at this place.
pub(super) fn read_spot(body: &Body, spot: Spot) -> io::Result<Option<(Entry, Passage)>> {
    let entries = entries_in(body.dialect, &body.line_at(spot.offset)?);
    let Some(entry) = entries.get(usize::from(spot.entry)) else { return Ok(None) };
    let passage = passages(entry).into_iter().nth(usize::from(spot.part));
    Ok(passage.map(|passage| (Entry::clone(entry), passage)))
}

/// What a file says, and in which form.
pub(super) struct Body {
    dialect: Dialect,
    bytes: Bytes,
}

/// Bytes are read as needed, or unpacked at once.
enum Bytes {
    Plain(File),
    Unpacked(Vec<u8>),
}

impl Body {
    /// Opens a file as it is now.
    pub(super) fn open(on_disk: &IndexableFile) -> io::Result<Self> {
        let bytes = match &on_disk.pack {
            None if on_disk.is_compressed() => Bytes::Unpacked(rollout_bytes(on_disk.file())?),
            None => Bytes::Plain(open_regular(on_disk.file())?),
            Some(pack) => {
                let mut bytes = Vec::new();
                GzDecoder::new(open_regular(pack)?).read_to_end(&mut bytes)?;
                Bytes::Unpacked(bytes)
            }
        };
        Ok(Self { dialect: on_disk.session.dialect(), bytes })
    }

    /// Returns where what is to be read ends; a file that grows is read as far as it was seen.
    pub(super) fn end(&self, on_disk: &IndexableFile) -> u64 {
        match &self.bytes {
            Bytes::Plain(_) => on_disk.size,
            Bytes::Unpacked(bytes) => bytes.len() as u64,
        }
    }

    fn read_from(&self, start: u64) -> io::Result<Box<dyn Read + '_>> {
        match &self.bytes {
            Bytes::Plain(file) => {
                let mut reader = file;
                reader.seek(SeekFrom::Start(start))?;
                Ok(Box::new(reader))
            }
            Bytes::Unpacked(bytes) => Ok(Box::new(rest_of(bytes, start))),
        }
    }

    fn line_at(&self, offset: u64) -> io::Result<Vec<u8>> {
        match &self.bytes {
            Bytes::Plain(file) => line_at(file, offset),
            Bytes::Unpacked(bytes) => {
                let rest = rest_of(bytes, offset);
                Ok(rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())].to_vec())
            }
        }
    }

    /// Reads the bytes of a range, all of which must be there.
    pub(super) fn range(&self, start: u64, end: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let n_bytes = end.saturating_sub(start);
        let n_read = self.read_from(start)?.take(n_bytes).read_to_end(&mut bytes)?;
        if n_read as u64 == n_bytes { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

fn rest_of(bytes: &[u8], start: u64) -> &[u8] {
    usize::try_from(start).ok().and_then(|start| bytes.get(start..)).unwrap_or_default()
}

fn line_at(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut block = 16 * 1024;
    loop {
        let n_known = bytes.len();
        bytes.resize(n_known + block, 0);
        let n_read = file.read_at(&mut bytes[n_known..], offset + n_known as u64)?;
        bytes.truncate(n_known + n_read);
        if let Some(newline) = memchr::memchr(b'\n', &bytes[n_known..]) {
            bytes.truncate(n_known + newline);
            return Ok(bytes);
        }
        if n_read == 0 {
            return Ok(bytes);
        }
        block = (block * 2).min(4 * 1024 * 1024);
    }
}

/// Returns the voice of a number in the index.
pub(super) fn voice_of(number: u8) -> Option<Voice> {
    Voice::ALL.get(usize::from(number)).copied()
}

/// Returns the number of a voice in the index.
pub(super) fn voice_number(voice: Voice) -> u8 {
    let place = Voice::ALL.iter().position(|it| *it == voice);
    place.and_then(|place| u8::try_from(place).ok()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_parsed_like_the_calendar() {
        for text in [
            "1970-01-01T00:00:00.000Z",
            "2026-02-28T23:59:59.999Z",
            "2024-02-29T12:00:00.001Z",
            "2000-03-01T00:00:00.000Z",
            "1969-12-31T00:00:00.500Z",
            "2026-12-31T00:00:00.000Z",
            "2026-01-01T00:00:00Z",
            "2026-01-01T01:00:00+01:00",
        ] {
            let expected = text.parse::<Timestamp>().unwrap().as_millisecond();
            assert_eq!(milliseconds(text), Some(expected), "{text}");
        }
        for text in ["", "2026-13-01T00:00:00.000Z", "2026-02-30T00:00:00.000Z", "yesterday at noon or later"]
        {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}
