//! The writer: whole lines, in order, and none lost while the disk fails.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use loci_core::entry::Entry;
use loci_stdx::Attachment;
use loci_storage::sessions::{
    AppendError, LogWarning, MemorySink, SessionLog, Sink, last_prompt_text, load_transcript,
};
use proptest::prelude::*;

use crate::support::{World, session_id, user};

fn uuids(bytes: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(|line| Entry::parse(line).unwrap().head().uuid.as_ref().unwrap().to_string()).collect()
}

fn entry(uuid: &str) -> Entry {
    user(uuid, Path::new("/p"))
}

/// Invariant 17 of `docs/design/session-log.md`.
#[test]
fn the_file_is_made_with_the_first_entry_and_is_private() {
    let world = World::new();
    let place = world.home.session(world.cwd(), &session_id(1));
    let mut log = SessionLog::on_disk(place.file());
    log.sync().unwrap();
    assert!(!world.home.root().exists());
    log.append(&[&entry("u1"), &entry("u2")]).unwrap();
    log.sync().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(place.file()), mode(place.file().parent().unwrap())), (0o600, 0o700));
    assert_eq!(uuids(&fs::read(place.file()).unwrap()), ["u1", "u2"]);
    assert_eq!(log.take_warning(), None);
}

/// Invariant 4 of `docs/design/session-log.md`.
#[test]
fn a_torn_line_is_left_alone_and_the_next_one_is_whole() {
    let world = World::new();
    let path = world.write("s.jsonl", format!("{}\n{{\"type\":\"us", entry("u1").line()));
    let mut log = SessionLog::on_disk(&path);
    log.append(&[&entry("u2")]).unwrap();
    let loaded = load_transcript(&path).unwrap();
    assert_eq!(loaded.entries.len(), 2);
    assert_eq!(loaded.skipped.len(), 1);
}

#[test]
fn hand_written_json_becomes_one_line() {
    let sink = MemorySink::default();
    let mut log = SessionLog::with_sink(Box::new(sink.clone()));
    log.append(&[&Entry::parse("{\n  \"type\": \"mode\"\r\n}").unwrap()]).unwrap();
    assert_eq!(sink.bytes(), b"{   \"type\": \"mode\"  }\n");
}

#[test]
fn a_session_that_is_not_saved_accepts_everything() {
    let mut log = SessionLog::in_memory();
    log.append(&[&entry("u1")]).unwrap();
    log.sync().unwrap();
    assert_eq!((log.take_warning(), log.has_unsaved()), (None, false));
    assert_eq!(log.path(), None);
}

/// A disk that fails as told: each append takes the next number of bytes and an error, then all is well.
#[derive(Debug)]
struct Failing {
    disk: MemorySink,
    faults: VecDeque<Fault>,
}

#[derive(Debug, Clone, Copy)]
struct Fault {
    n_written: usize,
    kind: io::ErrorKind,
}

impl Sink for Failing {
    fn append(&mut self, lines: &[u8]) -> io::Result<Attachment> {
        let torn = self.disk.bytes().last().is_some_and(|byte| *byte != b'\n');
        let bytes = if torn { [b"\n", lines].concat() } else { lines.to_vec() };
        match self.faults.pop_front() {
            Some(fault) => {
                self.disk.append(&bytes[..fault.n_written.min(bytes.len())])?;
                Err(fault.kind.into())
            }
            None => self.disk.append(&bytes),
        }
    }

    fn sync(&mut self) -> io::Result<Attachment> {
        Ok(Attachment::Kept)
    }
}

fn failing(faults: &[Fault]) -> (SessionLog, MemorySink) {
    let disk = MemorySink::default();
    let sink = Failing { disk: disk.clone(), faults: faults.iter().copied().collect() };
    (SessionLog::with_sink(Box::new(sink)), disk)
}

#[test]
fn a_full_disk_is_reported_once_and_loses_nothing() {
    let full = Fault { n_written: 0, kind: io::ErrorKind::StorageFull };
    let (mut log, disk) = failing(&[full, full]);
    assert!(matches!(log.append(&[&entry("u1")]), Err(AppendError::Append(_))));
    let Some(LogWarning::Began { message, hint }) = log.take_warning() else { panic!("not reported") };
    assert!(message.starts_with("Failed to save the session"), "{message}");
    assert!(hint.starts_with("Free some space"), "{hint}");
    assert!(log.append(&[&entry("u2")]).is_err());
    assert_eq!(log.take_warning(), None, "reported once");
    assert!(log.has_unsaved());
    log.append(&[&entry("u3")]).unwrap();
    assert_eq!(log.take_warning(), Some(LogWarning::Ended));
    assert_eq!(log.take_warning(), None);
    assert_eq!(uuids(&disk.bytes()), ["u1", "u2", "u3"]);
}

/// Invariant 9 of `docs/design/session-log.md`.
#[test]
fn every_append_failure_is_reported_once_and_survived() {
    use io::ErrorKind as Kind;
    for (kind, hint) in [
        (Kind::StorageFull, "Free some space"),
        (Kind::QuotaExceeded, "Free some space"),
        (Kind::ReadOnlyFilesystem, "Make the file writable"),
        (Kind::PermissionDenied, "Make the file writable"),
        (Kind::NotFound, "The session is kept in memory"),
        (Kind::StaleNetworkFileHandle, "The session is kept in memory"),
        (Kind::Other, "The session is kept in memory"),
    ] {
        let fault = |n_written| Fault { n_written, kind };
        let (mut log, disk) = failing(&[fault(0), fault(7), fault(300), fault(0)]);
        let mut told = Vec::new();
        for n in 1..=6 {
            let saved = log.append(&[&entry(&format!("u{n}"))]).is_ok();
            assert_eq!(saved, n > 4, "{kind}");
            told.extend(log.take_warning());
        }
        let [LogWarning::Began { hint: said, .. }, LogWarning::Ended] = told.as_slice() else {
            panic!("{kind}: {told:?}")
        };
        assert!(said.starts_with(hint), "{kind}: {said}");
        let world = World::new();
        let loaded = load_transcript(&world.write("s.jsonl", disk.bytes())).unwrap();
        let last = loaded.entries.iter().rev().take(6).rev();
        let uuids: Vec<&str> = last.map(|entry| entry.head().uuid.as_ref().unwrap().as_str()).collect();
        assert_eq!(uuids, ["u1", "u2", "u3", "u4", "u5", "u6"], "{kind}");
    }
}

#[test]
fn sync_tries_again_too() {
    let (mut log, disk) = failing(&[Fault { n_written: 0, kind: io::ErrorKind::PermissionDenied }]);
    assert!(log.append(&[&entry("u1")]).is_err());
    log.sync().unwrap();
    assert_eq!(uuids(&disk.bytes()), ["u1"]);
    assert_eq!(log.take_warning(), None, "over before anybody was told");
}

/// Invariant 11 of `docs/design/session-log.md`.
#[test]
fn a_file_taken_away_is_put_back_and_the_user_is_told_once() {
    let world = World::new();
    let place = world.home.session(world.cwd(), &session_id(1));
    let mut log = SessionLog::on_disk(place.file());
    log.append(&[&entry("u1")]).unwrap();
    fs::remove_dir_all(world.home.root()).unwrap();
    log.append(&[&entry("u2")]).unwrap();
    let Some(LogWarning::Replaced { message }) = log.take_warning() else { panic!("not reported") };
    assert!(message.starts_with("The session file was removed by another program"), "{message}");
    log.append(&[&entry("u3")]).unwrap();
    assert_eq!(log.take_warning(), None);
    assert_eq!(uuids(&fs::read(place.file()).unwrap()), ["u1", "u2", "u3"]);
}

/// Invariant 11 of `docs/design/session-log.md`.
#[test]
fn a_file_replaced_by_another_is_left_as_it_is_and_appended_to() {
    let world = World::new();
    let path = world.env.home.join("s.jsonl");
    let mut log = SessionLog::on_disk(&path);
    log.append(&[&entry("u1")]).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, format!("{}\n", entry("theirs").line())).unwrap();
    log.append(&[&entry("u2")]).unwrap();
    let Some(LogWarning::Replaced { message }) = log.take_warning() else { panic!("not reported") };
    assert!(message.starts_with("The session file was replaced by another program"), "{message}");
    assert_eq!(uuids(&fs::read(&path).unwrap()), ["theirs", "u2"]);
}

#[test]
fn prompts_are_repeated_on_one_short_line() {
    assert_eq!(last_prompt_text(" fix\n the  bug "), "fix the bug");
    assert_eq!(last_prompt_text(&"é".repeat(300)).chars().count(), 200);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Invariant 9 of `docs/design/session-log.md`.
    #[test]
    fn no_entry_is_lost_whatever_the_disk_does(
        batches in prop::collection::vec(1..4_usize, 1..6),
        faults in prop::collection::vec((0..600_usize, any::<bool>()), 0..4),
    ) {
        let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::Other];
        let faults: Vec<Fault> =
            faults.iter().map(|(n_written, kind)| Fault { n_written: *n_written, kind: kinds[usize::from(*kind)] }).collect();
        let (mut log, disk) = failing(&faults);
        let mut expected = Vec::new();
        for n_entries in batches {
            let batch: Vec<Entry> = (0..n_entries).map(|n| entry(&format!("u{}", expected.len() + n))).collect();
            expected.extend(batch.iter().map(|entry| entry.head().uuid.as_ref().unwrap().to_string()));
            let saved = log.append(&batch.iter().collect::<Vec<_>>());
            prop_assert_eq!(saved.is_err(), log.has_unsaved());
        }
        for _ in 0..faults.len() {
            log.sync().unwrap_or_default();
        }
        prop_assert!(!log.has_unsaved());
        // Lines that reached the disk before a failure are there twice; the last one counts.
        let world = World::new();
        let loaded = load_transcript(&world.write("s.jsonl", disk.bytes())).unwrap();
        let mut seen = Vec::new();
        for entry in loaded.entries {
            let uuid = entry.head().uuid.as_ref().unwrap().to_string();
            if !seen.contains(&uuid) {
                seen.push(uuid);
            }
        }
        prop_assert_eq!(seen, expected);
    }
}

/// Invariants 1 and 2 of `docs/design/session-log.md`.
#[test]
fn a_crash_at_any_byte_costs_at_most_the_line_being_written() {
    let world = World::new();
    let file: String = ["u1", "é2", "u3"].iter().map(|uuid| format!("{}\n", entry(uuid).line())).collect();
    for cut in 0..=file.len() {
        let path = world.write("s.jsonl", &file.as_bytes()[..cut]);
        let whole = file.as_bytes()[..cut].iter().filter(|byte| **byte == b'\n').count();
        let is_unterminated_but_whole = file.as_bytes().get(cut) == Some(&b'\n');
        let mut log = SessionLog::on_disk(&path);
        log.append(&[&entry("after")]).unwrap();
        let loaded = load_transcript(&path).unwrap();
        let uuids: Vec<&str> =
            loaded.entries.iter().map(|entry| entry.head().uuid.as_ref().unwrap().as_str()).collect();
        let n_expected = whole + usize::from(is_unterminated_but_whole);
        assert_eq!(uuids[..uuids.len() - 1], ["u1", "é2", "u3"][..n_expected], "cut at {cut}");
        assert_eq!(uuids.last(), Some(&"after"), "cut at {cut}");
        assert_eq!(fs::read(&path).unwrap()[..cut], file.as_bytes()[..cut], "nothing before is touched");
    }
}

/// A disk that takes so many appends and then turns read-only; what it took and had not synced by then is gone.
#[derive(Debug)]
struct TurnsReadOnly {
    file: std::path::PathBuf,
    n_appends: usize,
}

impl Sink for TurnsReadOnly {
    fn append(&mut self, lines: &[u8]) -> io::Result<Attachment> {
        if self.n_appends == 0 {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        self.n_appends -= 1;
        let mut file = loci_stdx::AppendFile::open(&self.file, 0o600).unwrap();
        Ok(file.append_lines(lines).unwrap())
    }

    fn sync(&mut self) -> io::Result<Attachment> {
        match self.n_appends {
            0 => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
            _ => Ok(Attachment::Kept),
        }
    }
}

/// Invariant 10 of `docs/design/session-log.md`: what no sync followed counts as not saved, whatever the file says.
#[test]
fn lines_behind_the_last_sync_are_kept_and_none_is_written_twice() {
    // How many of the lines that were written and not synced the disk has in the end.
    for n_survived in 0..=3 {
        let mut world = World::new();
        world.env.vars = world.env.vars.with("TMPDIR", world.env.home.join("tmp").display().to_string());
        world.home = loci_storage::layout::ConfigHome::from_env(&world.env);
        let place = world.home.session(world.cwd(), &crate::support::session_id(1));
        std::fs::create_dir_all(place.file().parent().unwrap()).unwrap();
        let sink = TurnsReadOnly { file: place.file().to_owned(), n_appends: 5 };
        let mut log = SessionLog::with_sink(Box::new(sink)).with_fallback(&world.home, &place);
        log.append(&[&entry("u1")]).unwrap();
        log.sync().unwrap();
        for name in ["u2", "u3", "u4", "u5"] {
            log.append(&[&entry(name)]).unwrap();
        }
        assert!(log.append(&[&entry("u6")]).is_err());
        let text = std::fs::read_to_string(place.file()).unwrap();
        let kept: String = text.split_inclusive('\n').take(1 + n_survived).collect();
        assert!(log.close().is_err());
        assert!(!log.has_lost_lines());
        // The machine was started anew.
        std::fs::write(place.file(), kept).unwrap();
        let back = loci_storage::sessions::recover_unsaved(&world.home, &world.env);
        assert_eq!(back, std::slice::from_ref(&place));
        let text = std::fs::read(place.file()).unwrap();
        assert_eq!(uuids(&text), ["u1", "u2", "u3", "u4", "u5", "u6"], "{n_survived} survived");
    }
}
