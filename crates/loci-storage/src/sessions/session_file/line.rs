//! One line of a session file, with what crashes and other programs do to it.
//!
//! In this order: NUL bytes around the line are dropped; bytes that are not UTF-8 become U+FFFD; escapes of
//! half a surrogate pair become `\ufffd` (JSON readers refuse them); and where a line is not one object, every
//! whole entry in it is found: `{…}{…}` after a lost newline, or the tail `{…}` after a torn beginning.

use std::borrow::Cow;
use std::sync::Arc;

use loci_core::entry::{BadEntry, Entry};
use loci_stdx::Line;
use memchr::memmem;
use serde::de::IgnoredAny;

use super::{LoadedTranscript, SkipReason, SkippedLine};

/// How many places in a torn line are tried as the beginning of an entry.
const TRIES: usize = 1_000;

/// Reads one line into `loaded`.
pub(crate) fn read(line: Line<'_>, loaded: &mut LoadedTranscript) {
    let bytes = line.bytes.trim_ascii();
    let without_nul = trim_nul(bytes);
    if without_nul.is_empty() {
        return loaded.skip(line.offset, line.bytes.len(), SkipReason::Nul);
    }
    // Nearly every line is UTF-8, which is seen faster than it is mended.
    let text = match std::str::from_utf8(without_nul) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(without_nul),
    };
    let text = whole_surrogates(&text);
    match Entry::parse(text.as_ref()) {
        Ok(entry) => loaded.entries.push(Arc::new(entry)),
        Err(error) => {
            let found = entries_within(&text);
            let reason = match error {
                BadEntry::NoType => SkipReason::NotAnEntry,
                BadEntry::NotAnObject(error) if error.is_data() => SkipReason::NotAnEntry,
                BadEntry::NotAnObject(_) if !line.terminated => SkipReason::Torn,
                BadEntry::NotAnObject(_) => SkipReason::NotJson,
            };
            if found.n_lost > 0 {
                loaded.skip(line.offset, found.n_lost, reason);
            }
            loaded.entries.extend(found.entries.into_iter().map(Arc::new));
        }
    }
}

impl LoadedTranscript {
    fn skip(&mut self, offset: u64, len: usize, reason: SkipReason) {
        self.skipped.push(SkippedLine { offset, len: len as u64, reason });
    }
}

fn trim_nul(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(start, |last| last + 1);
    bytes[start..end].trim_ascii()
}

/// The entries in a line that is not one entry.
struct Within {
    entries: Vec<Entry>,
    /// How many bytes belong to none of them.
    n_lost: usize,
}

fn entries_within(text: &str) -> Within {
    let mut within = Within { entries: Vec::new(), n_lost: 0 };
    let mut tries = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let found = entry_at(rest).filter(|(entry, _)| at == 0 || is_of_a_session(entry));
        if let Some((entry, length)) = found {
            within.entries.push(entry);
            at += length;
            continue;
        }
        tries += 1;
        let next = if tries > TRIES { None } else { next_start(rest) };
        let skipped = next.unwrap_or(rest.len());
        within.n_lost += skipped;
        at += skipped;
    }
    within
}

/// Reads the entry that `text` begins with, if an entry or the end of the line follows it.
fn entry_at(text: &str) -> Option<(Entry, usize)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let length = values.byte_offset();
    let rest = text[length..].trim_start();
    if !(rest.is_empty() || rest.starts_with('{')) {
        return None;
    }
    let entry = Entry::parse(text[..length].trim()).ok()?;
    Some((entry, length))
}

/// Tells entries from the objects within them, which also have a `type`.
fn is_of_a_session(entry: &Entry) -> bool {
    entry.head().type_name.as_ref() == "file-history-snapshot" || entry.fields().get("sessionId").is_some()
}

/// Returns where, after its first byte, `text` has something that looks like the beginning of an entry.
fn next_start(text: &str) -> Option<usize> {
    let from = 1.min(text.len());
    let bytes = &text.as_bytes()[from..];
    let starts = [r#"{"type":"#, r#"{"parentUuid":"#, r#"{"uuid":"#];
    starts.iter().filter_map(|start| memmem::find(bytes, start.as_bytes())).min().map(|at| at + from)
}

/// Replaces escapes of half a surrogate pair by `\ufffd`; everything else keeps its bytes.
fn whole_surrogates(text: &str) -> Cow<'_, str> {
    if memmem::find(text.as_bytes(), br"\ud").is_none() && memmem::find(text.as_bytes(), br"\uD").is_none() {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut lone = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found;
        match unit_at(bytes, at) {
            None => at += 2,
            Some(0xD800..=0xDBFF) if matches!(unit_at(bytes, at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                lone.push(at);
                at += 6;
            }
            Some(_) => at += 6,
        }
        if at >= bytes.len() {
            break;
        }
    }
    if lone.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(replaced(text, &lone)) }
}

/// Reads the UTF-16 unit of a `\uXXXX` escape at `at`.
fn unit_at(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(br"\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn replaced(text: &str, escapes: &[usize]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for &at in escapes {
        out.push_str(&text[from..at]);
        out.push_str(r"\ufffd");
        from = at + 6;
    }
    out.push_str(&text[from..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &[u8], terminated: bool, entries: &[&str], skipped: &[(u64, u64, SkipReason)]) {
        let mut loaded = LoadedTranscript::default();
        read(Line { offset: 0, bytes: line, terminated }, &mut loaded);
        let actual: Vec<&str> = loaded.entries.iter().map(|entry| entry.line()).collect();
        let lost: Vec<_> = loaded.skipped.iter().map(|part| (part.offset, part.len, part.reason)).collect();
        assert_eq!((actual.as_slice(), lost.as_slice()), (entries, skipped), "{}", line.escape_ascii());
    }

    const MODE: &str = r#"{"type":"mode","mode":"normal","sessionId":"s"}"#;
    const TAG: &str = r#"{"type":"tag","tag":"x","sessionId":"s"}"#;

    #[test]
    fn whole_lines_are_entries() {
        check(MODE.as_bytes(), true, &[MODE], &[]);
        check(MODE.as_bytes(), false, &[MODE], &[]);
        check(format!("\0\0 {MODE}\0").as_bytes(), true, &[MODE], &[]);
        check(br#"{"type":"unknown thing"}"#, true, &[r#"{"type":"unknown thing"}"#], &[]);
    }

    #[test]
    fn skipped_line_has_a_reason() {
        use SkipReason::{NotAnEntry, NotJson, Nul, Torn};
        for (line, terminated, reason) in [
            ("null", true, NotAnEntry),
            ("[]", true, NotAnEntry),
            ("17", true, NotAnEntry),
            (r#"{"no":"type"}"#, true, NotAnEntry),
            (r#"{"type":5}"#, true, NotAnEntry),
            ("nonsense", true, NotJson),
            (r#"{"type":"mode","mode":"nor"#, true, NotJson),
            (r#"{"type":"mode","mode":"nor"#, false, Torn),
            ("\0\0\0", true, Nul),
        ] {
            check(line.as_bytes(), terminated, &[], &[(0, line.len() as u64, reason)]);
        }
    }

    #[test]
    fn glued_lines_are_taken_apart() {
        check(format!("{MODE}{TAG}").as_bytes(), true, &[MODE, TAG], &[]);
        check(format!("{MODE} {TAG}{MODE}").as_bytes(), true, &[MODE, TAG, MODE], &[]);
        let bare = r#"{"type":"future"}"#;
        check(format!("{bare}{TAG}").as_bytes(), true, &[bare, TAG], &[]);
    }

    #[test]
    fn an_entry_behind_a_torn_one_is_found() {
        let torn = r#"{"type":"user","message":{"content":[{"type":"text","text":"cut he"#;
        check(
            format!("{torn}{MODE}").as_bytes(),
            true,
            &[MODE],
            &[(0, torn.len() as u64, SkipReason::NotJson)],
        );
        check(
            format!("{torn}{MODE}{TAG}").as_bytes(),
            true,
            &[MODE, TAG],
            &[(0, torn.len() as u64, SkipReason::NotJson)],
        );
    }

    #[test]
    fn objects_within_a_torn_entry_are_no_entries() {
        let torn = r#"{"type":"user","sessionId":"s","message":{"content":[{"type":"text","text":"x"}"#;
        check(torn.as_bytes(), false, &[], &[(0, torn.len() as u64, SkipReason::Torn)]);
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        check(
            b"{\"type\":\"tag\",\"tag\":\"a\xff\"}",
            true,
            &["{\"type\":\"tag\",\"tag\":\"a\u{fffd}\"}"],
            &[],
        );
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced_and_a_whole_one_kept() {
        for (escape, expected) in [
            (r"\ud83d\ude00", r"\ud83d\ude00"),
            (r"\uD83D\uDE00", r"\uD83D\uDE00"),
            (r"\ud83d", r"\ufffd"),
            (r"\ude00x", r"\ufffdx"),
            (r"\ud83d\ud83d\ude00", r"\ufffd\ud83d\ude00"),
            (r"\ud83d\n", r"\ufffd\n"),
            (r"\\ud83d", r"\\ud83d"),
            (r"\\\ud83d", r"\\\ufffd"),
        ] {
            let line = |text: &str| format!(r#"{{"type":"tag","tag":"{text}"}}"#);
            check(line(escape).as_bytes(), true, &[&line(expected)], &[]);
        }
    }
}
