//! What is old in the journal lies apart, packed: the journal, which every change reads, stays short.
//!
//! ```text
//! <config home>/loci/memory/<slug>/archive/<first>-<last>.jsonl.gz   lines of the journal, byte for byte
//! ```
//!
//! A journal of more than [`MOST_BYTES`] keeps its newest lines, up to [`KEPT_BYTES`] and at least one; the others go to a
//! new file of the archive, and nothing is thrown away: any change can be taken back, however old. The archive is
//! written first, so a crash in between leaves lines in both places; a change that is met twice counts once.

use std::collections::BTreeMap;
use std::fs::{self};
use std::io::{self, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use loci_stdx::{WriteOptions, open_regular, read_regular, write_atomic};

use super::{Change, changes_in};

/// A longer journal is cut.
const MOST_BYTES: u64 = 4 * 1024 * 1024;
/// What then stays, if one change is not longer by itself.
const KEPT_BYTES: usize = 1024 * 1024;

/// Moves what is old to the archive, if the journal is too long. Whoever calls holds the lock.
pub(in crate::memory) fn trim(journal: &Path, archive: &Path) -> io::Result<()> {
    match fs::metadata(journal)?.len() > MOST_BYTES {
        true => cut(journal, archive, KEPT_BYTES),
        false => Ok(()),
    }
}

fn cut(journal: &Path, archive: &Path, kept: usize) -> io::Result<()> {
    let bytes = read_regular(journal)?;
    let (old, new) = bytes.split_at(cut_at(&bytes, kept));
    let changes = changes_in(old);
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return Ok(()) };
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(old)?;
    let file = archive.join(format!("{}-{}.jsonl.gz", first.id, last.id));
    let options = WriteOptions::private();
    write_atomic(&file, &packed.finish()?, &WriteOptions::private().creating_parents())
        .map_err(io::Error::other)?;
    write_atomic(journal, new, &options).map_err(io::Error::other)
}

/// Returns where the newest lines begin that are kept: as many as fit, and at least the last that can be read, which is
/// the one that a crash may have cut short.
fn cut_at(bytes: &[u8], kept: usize) -> usize {
    let mut at = bytes.len();
    let mut has_change = false;
    for line in bytes.split_inclusive(|byte| *byte == b'\n').rev() {
        if has_change && bytes.len() - at + line.len() > kept {
            break;
        }
        at -= line.len();
        has_change |= !changes_in(line).is_empty();
    }
    at
}

/// Returns the changes of the archive and these, oldest first, each once. Files that cannot be read are passed over, as
/// lines are.
pub(in crate::memory) fn with_archived(archive: &Path, recent: Vec<Change>) -> Vec<Change> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(archive).into_iter().flatten().filter_map(Result::ok) {
        let is_ours = entry.file_name().to_string_lossy().ends_with(".jsonl.gz");
        let lines = if is_ours { decompress(&entry.path()) } else { Ok(Vec::new()) };
        all.extend(changes_in(&lines.unwrap_or_default()).into_iter().map(|change| (change.id, change)));
    }
    if all.is_empty() {
        return recent;
    }
    all.extend(recent.into_iter().map(|change| (change.id, change)));
    all.into_values().collect()
}

fn decompress(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    GzDecoder::new(open_regular(path)?).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::{Author, ChangeKind, append, read};
    use super::*;

    fn change(id: u64, n_bytes: usize) -> Change {
        let text = Some("x".repeat(n_bytes).into());
        let file = super::super::FileChange {
            area: super::super::MemoryArea::Memory,
            file: "a.md".to_owned(),
            before: None,
            after: text,
        };
        Change {
            id,
            at: "now".to_owned(),
            act: ChangeKind::Write,
            by: Author::Model,
            session: None,
            message: None,
            undoes: None,
            files: vec![file],
        }
    }

    fn ids(changes: &[Change]) -> Vec<u64> {
        changes.iter().map(|change| change.id).collect()
    }

    /// Invariant 11 of `docs/design/memory.md`.
    #[test]
    fn a_long_journal_keeps_what_is_new_and_nothing_is_thrown_away() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, archive) = (dir.path().join("journal.jsonl"), dir.path().join("archive"));
        let mut n_kept = Vec::new();
        for id in 1..=12 {
            append(&journal, &change(id, 700 * 1024)).unwrap();
            trim(&journal, &archive).unwrap();
            assert!(fs::metadata(&journal).unwrap().len() <= MOST_BYTES, "after {id}");
            let recent = read(&journal).unwrap();
            n_kept.push(recent.len());
            assert_eq!(ids(&with_archived(&archive, recent)), (1..=id).collect::<Vec<_>>(), "after {id}");
        }
        assert_eq!(n_kept, [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2]);
        assert_eq!(fs::read_dir(&archive).unwrap().count(), 2);
    }

    /// Invariant 11 of `docs/design/memory.md`. A crash may come after the archive and before the journal; lines that
    /// cannot be read go along.
    #[test]
    fn change_in_journal_and_archive_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, archive) = (dir.path().join("journal.jsonl"), dir.path().join("archive"));
        for id in 1..=4 {
            append(&journal, &change(id, 10)).unwrap();
            fs::File::options().append(true).open(&journal).unwrap().write_all(b"{torn\n").unwrap();
        }
        let whole = fs::read(&journal).unwrap();
        cut(&journal, &archive, 250).unwrap();
        let kept = fs::read(&journal).unwrap();
        let packed = decompress(&archive.join("1-3.jsonl.gz")).unwrap();
        assert_eq!([packed, kept].concat(), whole, "byte for byte");
        fs::write(&journal, &whole).unwrap();
        assert_eq!(ids(&with_archived(&archive, read(&journal).unwrap())), [1, 2, 3, 4]);
        cut(&journal, &archive, 1).unwrap();
        assert_eq!(ids(&read(&journal).unwrap()), [4], "the last is always there");
        fs::write(archive.join("9-9.jsonl.gz"), "not packed").unwrap();
        assert_eq!(ids(&with_archived(&archive, read(&journal).unwrap())), [1, 2, 3, 4]);
    }
}
