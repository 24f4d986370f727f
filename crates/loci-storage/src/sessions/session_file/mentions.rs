//! Looking for names in a part of a file without reading its lines.
//!
//! A name is looked for as the value of `"uuid"` (the entry itself) and of `"parentUuid"` (what hangs from it), in
//! the raw bytes, last to first. Inside of texts these keys have escaped quotes and are not met; inside of nested
//! objects they are, so what is found is a place to read from, not yet an entry.

use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Seek, SeekFrom};

use loci_core::conversation::MissingEntries;
use loci_core::ids::EntryId;
use memchr::memmem;

/// The most that is read at once.
const BLOCK: u64 = 1024 * 1024;
/// The longest key, with its opening quote, that ends at what is searched for.
const BEFORE: u64 = 16;
/// The longest name that is looked for, with what stands between it and its key.
const AFTER: u64 = 512;
/// What both keys end with.
const KEY_END: &[u8] = br#"uid""#;

/// What a search found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Mentions {
    /// The first byte that must be read; `None` when there is nothing to read.
    pub(super) from: Option<u64>,
    /// The names that nothing before that byte mentions.
    pub(super) settled: Vec<EntryId>,
}

/// Looks for what a gap asks for before `end`.
///
/// Without a gap of parents the search ends when all entries are found; otherwise it goes to the start. What is
/// looked for is mostly near, so it begins with a block of `first` bytes and doubles from there.
pub(super) fn search(
    reader: &mut (impl Read + Seek),
    end: u64,
    first: usize,
    gap: &MissingEntries,
) -> io::Result<Mentions> {
    let names = || gap.entries.iter().chain(&gap.parents);
    if !names().all(is_plain) {
        return Ok(Mentions { from: Some(0), settled: names().cloned().collect() });
    }
    let mut search = MentionSearch {
        open: gap.entries.iter().map(|name| name.as_str().as_bytes()).collect(),
        names: names().map(|name| name.as_str().as_bytes()).collect(),
        from: None,
        first_child: HashMap::new(),
    };
    let mut buffer = Vec::new();
    let mut block = first as u64;
    let mut block_end = end;
    while block_end > 0 && !(search.open.is_empty() && gap.parents.is_empty()) {
        let block_start = block_end.saturating_sub(block.clamp(1, BLOCK));
        let read_start = block_start.saturating_sub(BEFORE);
        reader.seek(SeekFrom::Start(read_start))?;
        buffer.clear();
        reader.take((block_end + AFTER).min(end) - read_start).read_to_end(&mut buffer)?;
        search.block(&buffer, read_start, block_start..block_end);
        block_end = block_start;
        block = block.saturating_mul(2);
    }
    Ok(search.outcome(gap))
}

/// Returns true for a name that has only one spelling in JSON.
fn is_plain(name: &EntryId) -> bool {
    let name = name.as_str();
    !name.is_empty()
        && name.len() as u64 <= AFTER / 2
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

struct MentionSearch<'n> {
    names: HashSet<&'n [u8]>,
    /// The entries not found yet.
    open: HashSet<&'n [u8]>,
    /// The first place of the entries that were found.
    from: Option<u64>,
    first_child: HashMap<Vec<u8>, u64>,
}

impl MentionSearch<'_> {
    /// Looks at the keys that lie within `range` of the file; `bytes` has a little more on both sides.
    fn block(&mut self, bytes: &[u8], offset: u64, range: std::ops::Range<u64>) {
        for at in memmem::find_iter(bytes, KEY_END) {
            let place = offset + at as u64;
            if !range.contains(&place) {
                continue;
            }
            let Some(name) = value_after(&bytes[at + KEY_END.len()..]) else { continue };
            if !self.names.contains(name) {
                continue;
            }
            if bytes[..at].ends_with(br#""u"#) {
                if self.open.remove(name) {
                    self.from = Some(self.from.map_or(place, |from| from.min(place)));
                }
            } else if bytes[..at].ends_with(br#""parentU"#) {
                let first = self.first_child.entry(name.to_vec()).or_insert(place);
                *first = place.min(*first);
            }
        }
    }

    fn outcome(self, gap: &MissingEntries) -> Mentions {
        let is_open = |name: &&EntryId| self.open.contains(name.as_str().as_bytes());
        let settled: Vec<EntryId> = gap.entries.iter().filter(is_open).chain(&gap.parents).cloned().collect();
        let children = settled.iter().filter_map(|name| self.first_child.get(name.as_str().as_bytes()));
        Mentions { from: children.copied().chain(self.from).min(), settled }
    }
}

/// Reads the string that follows a key: `:"…"`, with or without spaces.
fn value_after(bytes: &[u8]) -> Option<&[u8]> {
    let bytes = bytes.get(..AFTER as usize - KEY_END.len()).unwrap_or(bytes);
    let value = bytes.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
    memchr::memchr(b'"', value).map(|end| &value[..end])
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn check(file: &str, entries: &[&str], parents: &[&str], from: Option<usize>, settled: &[&str]) {
        let ids = |names: &[&str]| names.iter().map(|name| EntryId::from(*name)).collect();
        let gap = MissingEntries { entries: ids(entries), parents: ids(parents) };
        let from = from.map(|from| from as u64);
        for first in [1, 7, 1 << 20] {
            let found = search(&mut Cursor::new(file), file.len() as u64, first, &gap).unwrap();
            assert_eq!(found, Mentions { from, settled: ids(settled) }, "{file}");
        }
    }

    const FILE: &str = "{\"uuid\":\"a\",\"parentUuid\":null}\n{ \"uuid\" : \"b\", \"parentUuid\" : \"a\" }\n{\"parentUuid\":\"a\",\"uuid\":\"c\"}\n";

    #[test]
    fn entries_are_found_where_they_are() {
        let b = FILE.find("uid\" : \"b\"").unwrap();
        check(FILE, &["b"], &[], Some(b), &[]);
        check(FILE, &["b", "c"], &[], Some(b), &[]);
        check(FILE, &["x"], &[], None, &["x"]);
        check(FILE, &["b", "x"], &[], Some(b), &["x"]);
    }

    #[test]
    fn children_are_found_down_to_the_first() {
        let first = FILE.find("uid\" : \"a\"").unwrap();
        check(FILE, &[], &["a"], Some(first), &["a"]);
        check(FILE, &[], &["c"], None, &["c"]);
        let orphans = "{\"uuid\":\"o\",\"parentUuid\":\"x\"}";
        check(orphans, &["x"], &[], Some(orphans.find("uid\":\"x\"").unwrap()), &["x"]);
    }

    #[test]
    fn mentions_ignore_texts_and_other_keys() {
        check(
            r#"{"text":"\"uuid\":\"a\"","leafUuid":"a","logicalParentUuid":"a"}"#,
            &["a"],
            &[],
            None,
            &["a"],
        );
        check("\"uuid\":\"a", &["a"], &[], None, &["a"]);
    }

    #[test]
    fn mention_search_skips_ids_that_json_could_escape() {
        check(r#"{"uuid":"\u00e4"}"#, &["ä"], &[], Some(0), &["ä"]);
    }

    #[test]
    fn mention_across_two_blocks_is_found() {
        for padding in 0..60 {
            let file = format!("{{\"uuid\":\"name-1\"}}{}", " ".repeat(BLOCK as usize - 30 + padding));
            check(&file, &["name-1"], &[], Some(3), &[]);
        }
    }
}
