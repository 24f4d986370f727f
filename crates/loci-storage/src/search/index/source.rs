//! What a segment knows of each stretch it covers, and its bytes.
//!
//! A store may have ten thousand sessions, and every search reads all of this before it can begin; as JSON that took a third
//! of a search for a rare word. So a source is a few packed numbers:
//!
//! ```text
//! path       its length and its bytes
//! numbers    start, end, size of the file, passages, words, open calls
//! fixed      time of the file, checksum of the tail, of the whole: eight bytes each
//! calls      for each: id and tool, a text each
//! ```

use loci_stdx::{Packed, put_number, put_text};

/// A stretch of a session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentSource {
    /// The file, relative to the directory of all projects.
    pub(super) path: String,
    /// The stretch.
    pub(super) start: u64,
    pub(super) end: u64,
    /// What the file was when it was read.
    pub(super) size: u64,
    pub(super) modified_ns: i64,
    /// The checksum of the last bytes of the stretch.
    pub(super) tail: u64,
    /// The checksum of the whole stretch.
    pub(super) sum: u64,
    /// How many passages and words it has.
    pub(super) n_passages: u32,
    pub(super) n_words: u64,
    /// Calls whose results come after it.
    pub(super) calls: Vec<(String, String)>,
}

/// Packs sources, one after another.
pub(super) fn put_sources(sources: &[SegmentSource]) -> Vec<u8> {
    let mut out = Vec::with_capacity(sources.len() * 128);
    for source in sources {
        put_text(&mut out, &source.path);
        let SegmentSource { start, end, size, n_words, n_passages, calls, .. } = source;
        for number in [*start, *end, *size, u64::from(*n_passages), *n_words, calls.len() as u64] {
            put_number(&mut out, number);
        }
        out.extend_from_slice(&source.modified_ns.to_le_bytes());
        out.extend_from_slice(&source.tail.to_le_bytes());
        out.extend_from_slice(&source.sum.to_le_bytes());
        for (call, tool) in calls {
            put_text(&mut out, call);
            put_text(&mut out, tool);
        }
    }
    out
}

/// Reads sources; `None` when the bytes are not some.
pub(super) fn read_sources(bytes: &[u8]) -> Option<Vec<SegmentSource>> {
    let mut bytes = Packed(bytes);
    let mut sources = Vec::new();
    while !bytes.is_empty() {
        sources.push(read_source(&mut bytes)?);
    }
    Some(sources)
}

fn read_source(bytes: &mut Packed<'_>) -> Option<SegmentSource> {
    let path = bytes.text()?.to_owned();
    let (start, end, size) = (bytes.number()?, bytes.number()?, bytes.number()?);
    let (n_passages, n_words, n_calls) = (bytes.small()?, bytes.number()?, bytes.number()?);
    let modified_ns = i64::from_le_bytes(*bytes.take(8)?.first_chunk()?);
    let tail = u64::from_le_bytes(*bytes.take(8)?.first_chunk()?);
    let sum = u64::from_le_bytes(*bytes.take(8)?.first_chunk()?);
    let mut calls = Vec::new();
    for _ in 0..n_calls {
        calls.push((bytes.text()?.to_owned(), bytes.text()?.to_owned()));
    }
    Some(SegmentSource { path, start, end, size, modified_ns, tail, sum, n_passages, n_words, calls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_round_trip_and_a_cut_is_noticed() {
        let plain = SegmentSource {
            path: "-p/ä.jsonl".to_owned(),
            start: 0,
            end: 300,
            size: u64::MAX,
            modified_ns: -1,
            tail: 7,
            sum: u64::MAX,
            n_passages: u32::MAX,
            n_words: 1 << 40,
            calls: Vec::new(),
        };
        let calls = vec![("toolu_1".to_owned(), "Bash".to_owned()), ("".to_owned(), "Read".to_owned())];
        let sources = vec![plain.clone(), SegmentSource { calls, start: 300, end: 301, ..plain }];
        let bytes = put_sources(&sources);
        assert_eq!(read_sources(&bytes), Some(sources));
        let first = put_sources(&read_sources(&bytes).unwrap()[..1]).len();
        for cut in (1..bytes.len()).filter(|cut| *cut != first) {
            assert_eq!(read_sources(&bytes[..cut]), None, "{cut}");
        }
    }
}
