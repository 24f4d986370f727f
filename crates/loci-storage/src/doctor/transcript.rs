//! One transcript, line by line: what is wrong with it, and what it says when that is mended. Bytes in, bytes out.
//!
//! A line that is one entry and nothing else keeps its bytes. Of any other line the entries that can be read are kept,
//! a line each; the rest is what the file had before, aside. In a main transcript entries whose place is wrong then get
//! the place that a loader gives them anyway: a parent in the file, an id of their own.

use std::io::{self, Read, Write};
use std::sync::Arc;

use loci_core::conversation::{Fault, faults};
use loci_core::entry::Entry;
use loci_core::hex::to_hex;
use loci_core::raw::RawObject;
use loci_stdx::{Line, counted};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::finding::FindingKind;
use crate::sessions::session_file::{LoadedTranscript, SkipReason, each_line, read_line};

/// How often the tree is looked at anew: an entry that gets its own id may itself be misplaced.
const MOST_ROUNDS: usize = 4;

/// A transcript as it was read.
#[derive(Debug, Default)]
pub(super) struct CheckedTranscript {
    pub(super) entries: Vec<LocatedEntry>,
    pub(super) flaws: Vec<Flaw>,
}

/// An entry and where it was found.
#[derive(Debug, Clone)]
pub(super) struct LocatedEntry {
    /// Where its line begins.
    pub(super) offset: u64,
    pub(super) entry: Arc<Entry>,
    /// The line as it was, where that is fine but other than the entry's.
    raw: Option<Box<[u8]>>,
}

/// Something that is wrong at a place of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) kind: FindingKind,
    pub(super) offset: u64,
    pub(super) meaning: String,
}

/// Whose transcript it is. A subagent's entries make no tree of the session's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TranscriptKind {
    Session,
    Agent,
}

/// Reads a transcript and judges its lines.
pub(super) fn read(reader: &mut impl Read) -> io::Result<CheckedTranscript> {
    let mut reading = CheckedTranscript::default();
    each_line(reader, |line| {
        reading.add(line);
        true
    })?;
    Ok(reading)
}

impl CheckedTranscript {
    fn add(&mut self, line: Line<'_>) {
        let mut loaded = LoadedTranscript::default();
        read_line(line, &mut loaded);
        let flaws = flaws(line, &loaded);
        let is_fine = flaws.is_empty();
        for entry in loaded.entries {
            let raw = (is_fine && entry.line().as_bytes() != line.bytes).then(|| line.bytes.into());
            self.entries.push(LocatedEntry { offset: line.offset, entry, raw });
        }
        self.flaws.extend(flaws);
    }

    fn plain(&self) -> Vec<Arc<Entry>> {
        self.entries.iter().map(|kept| Arc::clone(&kept.entry)).collect()
    }

    /// Returns what is wrong with the places of entries.
    pub(super) fn tree_flaws(&self) -> Vec<Flaw> {
        let flaw = |(idx, fault): (usize, Fault)| {
            let (kind, meaning) = described(&fault);
            Flaw { kind, offset: self.entries[idx].offset, meaning }
        };
        faults(&self.plain()).into_iter().map(flaw).collect()
    }

    /// Writes the transcript with its flaws mended.
    pub(super) fn write_mended(&self, whose: TranscriptKind, out: &mut impl Write) -> io::Result<()> {
        let mended = match whose {
            TranscriptKind::Session => mended(self.plain()),
            TranscriptKind::Agent => self.plain(),
        };
        for (kept, entry) in self.entries.iter().zip(&mended) {
            match &kept.raw {
                Some(raw) if Arc::ptr_eq(&kept.entry, entry) => out.write_all(raw)?,
                Some(_) | None => out.write_all(entry.line().as_bytes())?,
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    }
}

/// Judges one line; `loaded` is what was read of it.
fn flaws(line: Line<'_>, loaded: &LoadedTranscript) -> Vec<Flaw> {
    let mut flaws = Vec::new();
    let mut add = |kind, meaning: String| flaws.push(Flaw { kind, offset: line.offset, meaning });
    let n_entries = loaded.entries.len();
    let n_lost: u64 = loaded.skipped.iter().map(|part| part.len).sum();
    let is_nul = loaded.skipped.iter().any(|part| part.reason == SkipReason::Nul);
    if !line.terminated {
        let what = match n_lost {
            0 => "only its end is missing".to_owned(),
            n => format!("{} no entry", counted(n, "byte of it is", "bytes of it are")),
        };
        add(FindingKind::TornTail, format!("the last line was never ended; {what}"));
    }
    if line.bytes.starts_with(&[0]) || line.bytes.ends_with(&[0]) {
        let n_nul = line.bytes.iter().filter(|byte| **byte == 0).count() as u64;
        let nuls = counted(n_nul, "NUL byte", "NUL bytes");
        add(FindingKind::NulBytes, format!("{nuls}, as a crash leaves them"));
    }
    if std::str::from_utf8(line.bytes).is_err() {
        add(FindingKind::NotUtf8, "the line has bytes that are no text".to_owned());
    }
    if n_entries > 1 || (n_entries == 1 && n_lost > 0) {
        add(
            FindingKind::GluedLines,
            "entries stand on one line; other programs read none of them".to_owned(),
        );
    }
    if n_lost > 0 && !is_nul && line.terminated {
        let lost = counted(n_lost, "byte is", "bytes are");
        add(FindingKind::BrokenLine, format!("{lost} no entry and cannot be read"));
    }
    flaws
}

fn described(fault: &Fault) -> (FindingKind, String) {
    match fault {
        Fault::LostParent { missing, found: Some(found) } => (
            FindingKind::LostParent,
            format!("the entry before it, {missing}, is nowhere; it follows {found}"),
        ),
        Fault::LostParent { missing, found: None } => (
            FindingKind::LostParent,
            format!("the entry before it, {missing}, is nowhere; the session begins here"),
        ),
        Fault::Circle { .. } => {
            (FindingKind::Circle, "it is among entries that are each other's parents".to_owned())
        }
        Fault::Double => (
            FindingKind::DoubleId,
            "a later entry has its id and says something else, so this one is not shown".to_owned(),
        ),
    }
}

/// Gives entries the places that a loader gives them; one that needs none stays the same.
fn mended(mut entries: Vec<Arc<Entry>>) -> Vec<Arc<Entry>> {
    for _ in 0..MOST_ROUNDS {
        let faults = faults(&entries);
        if faults.is_empty() {
            break;
        }
        for (idx, fault) in faults {
            let mended = match fault {
                Fault::LostParent { found, .. } | Fault::Circle { found } => {
                    let parent = found.map_or(Value::Null, |found| Value::from(found.as_str()));
                    entries[idx].with_field("parentUuid", &parent).ok()
                }
                Fault::Double => renamed(&entries[idx]),
            };
            if let Some(mended) = mended {
                entries[idx] = Arc::new(mended);
            }
        }
    }
    entries
}

/// Gives an entry an id of its own, and a response too, so that it stands as a branch and joins no other.
fn renamed(entry: &Entry) -> Option<Entry> {
    let hex = to_hex(&Sha256::digest(entry.line().as_bytes()));
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    let uuid = format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30));
    let renamed = entry.with_field("uuid", &Value::from(uuid)).ok()?;
    let Some(response) = &entry.head().message_id else { return Some(renamed) };
    let fields = renamed.fields();
    let mut message = RawObject::parse(fields.get("message")?.get()).ok()?;
    message.set("id", &format!("{response}-{}", part(30, 38))).ok()?;
    let message = serde_json::value::RawValue::from_string(message.to_json()).ok()?;
    let mut fields = renamed.fields();
    fields.set("message", &message).ok()?;
    Entry::parse(fields.to_json()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(uuid: &str, parent: &str, text: &str) -> String {
        format!(
            r#"{{"type":"user","uuid":"{uuid}","parentUuid":{parent},"sessionId":"s","message":{{"id":"m","content":"{text}"}}}}"#
        )
    }

    fn check(bytes: &[u8], kinds: &[FindingKind], mended: &str) {
        let reading = read(&mut &bytes[..]).unwrap();
        let found: Vec<FindingKind> =
            reading.flaws.iter().chain(&reading.tree_flaws()).map(|flaw| flaw.kind).collect();
        let mut out = Vec::new();
        reading.write_mended(TranscriptKind::Session, &mut out).unwrap();
        assert_eq!((found.as_slice(), String::from_utf8(out.clone()).unwrap().as_str()), (kinds, mended));
        let again = read(&mut out.as_slice()).unwrap();
        assert!(again.flaws.is_empty() && again.tree_flaws().is_empty(), "{again:?}");
    }

    #[test]
    fn valid_line_keeps_its_bytes() {
        let half = line("a", "null", r"half \ud83d");
        let odd = r#"  {"type" : "tag", "tag":1 }  "#;
        check(format!("{half}\n{odd}\n").as_bytes(), &[], &format!("{half}\n{odd}\n"));
    }

    #[test]
    fn torn_and_glued_lines_are_repaired() {
        use FindingKind::{BrokenLine, GluedLines, NotUtf8, NulBytes, TornTail};
        let (a, b) = (line("a", "null", "x"), line("b", "\"a\"", "y"));
        let both = format!("{a}\n{b}\n");
        check(format!("{a}\n{b}").as_bytes(), &[TornTail], &both);
        check(format!("{a}\n{{\"type\":\"us").as_bytes(), &[TornTail], &format!("{a}\n"));
        check(format!("{a}{b}\n").as_bytes(), &[GluedLines], &both);
        check(format!("{a}\nnull\n{b}\n").as_bytes(), &[BrokenLine], &both);
        check(format!("{a}\n\0\0\0{b}\n").as_bytes(), &[NulBytes], &both);
        check(format!("{a}\n\0\0\0\n{b}\n").as_bytes(), &[NulBytes], &both);
        check(
            format!("{a}\n{{\"type\":\"user\",\"x\":\"cut {b}\n").as_bytes(),
            &[GluedLines, BrokenLine],
            &both,
        );
        let mut bytes = both.clone().into_bytes();
        let at = bytes.iter().rposition(|byte| *byte == b'y').unwrap();
        bytes[at] = 0xff;
        check(&bytes, &[NotUtf8], &both.replace("\"y\"", "\"\u{fffd}\""));
    }

    #[test]
    fn misplaced_entries_get_parent_and_id() {
        use FindingKind::{Circle, DoubleId, LostParent};
        let (a, b) = (line("a", "null", "x"), line("b", "\"gone\"", "y"));
        check(
            format!("{a}\n{b}\n").as_bytes(),
            &[LostParent],
            &format!("{a}\n{}\n", line("b", "\"a\"", "y")),
        );
        let (c, d) = (line("c", "\"d\"", "c"), line("d", "\"c\"", "d"));
        check(format!("{c}\n{d}\n").as_bytes(), &[Circle], &format!("{}\n{d}\n", line("c", "null", "c")));
        let (one, two) = (line("a", "null", "one"), line("a", "null", "two"));
        let reading = read(&mut format!("{one}\n{two}\n").as_bytes()).unwrap();
        let kinds: Vec<FindingKind> = reading.tree_flaws().iter().map(|flaw| flaw.kind).collect();
        assert_eq!(kinds, [DoubleId]);
        let mut out = Vec::new();
        reading.write_mended(TranscriptKind::Session, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let (first, last) = out.trim_end().split_once('\n').unwrap();
        assert!(
            first.contains("one") && !first.contains(r#""uuid":"a""#) && !first.contains(r#""id":"m""#),
            "{first}"
        );
        assert_eq!(last, two);
    }
}
