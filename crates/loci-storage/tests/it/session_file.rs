//! The reader, on the fixtures and on files as crashes leave them.

use std::fs;

use loci_core::conversation::Conversation;
use loci_storage::sessions::{SkipReason, load_transcript};
use proptest::prelude::*;

use crate::support::{World, fixtures, user};

#[test]
fn every_line_of_the_fixtures_is_an_entry_but_the_torn_one() {
    for file in fs::read_dir(fixtures()).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let loaded = load_transcript(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let skipped: Vec<SkipReason> = loaded.skipped.iter().map(|part| part.reason).collect();
        let expected: &[SkipReason] =
            if path.ends_with("truncated_tail.jsonl") { &[SkipReason::Torn] } else { &[] };
        assert_eq!(skipped, expected, "{}", path.display());
        let lines: Vec<&str> = text.lines().take(loaded.entries.len()).collect();
        let kept: Vec<&str> = loaded.entries.iter().map(|entry| entry.line()).collect();
        assert_eq!(kept, lines, "byte for byte: {}", path.display());
        assert!(Conversation::build(loaded.entries).leaf().is_some());
    }
}

/// Invariant 14 of `docs/design/session-log.md`.
#[test]
fn broken_lines_are_named_with_their_place() {
    let world = World::new();
    let (first, second) = (user("u1", world.cwd()), user("u2", world.cwd()));
    let (first, second) = (first.line(), second.line());
    let path =
        world.write("s.jsonl", format!("\u{feff}{first}\r\n\nnull\n\0\0\0\nhalf {{\n{second}\n{{\"ty"));
    let loaded = load_transcript(&path).unwrap();
    let lines: Vec<&str> = loaded.entries.iter().map(|entry| entry.line()).collect();
    assert_eq!(lines, [first, second]);
    let start = (3 + first.len() + 3) as u64;
    let after = start + 5 + 4 + 7 + second.len() as u64 + 1;
    let skipped: Vec<_> = loaded.skipped.iter().map(|part| (part.offset, part.len, part.reason)).collect();
    assert_eq!(
        skipped,
        [
            (start, 4, SkipReason::NotAnEntry),
            (start + 5, 3, SkipReason::Nul),
            (start + 9, 6, SkipReason::NotJson),
            (after, 4, SkipReason::Torn),
        ]
    );
}

#[test]
fn a_line_of_50_megabytes_is_one_entry() {
    let world = World::new();
    let huge =
        format!(r#"{{"type":"user","uuid":"big","message":{{"content":"{}"}}}}"#, "x".repeat(50_000_000));
    let path = world.write("s.jsonl", format!("{{\"type\":\"a\"}}\n{huge}\n{{\"type\":\"b\"}}\n"));
    let loaded = load_transcript(&path).unwrap();
    assert_eq!(loaded.entries.len(), 3);
    assert_eq!(loaded.entries[1].line().len(), huge.len());
}

#[test]
fn a_missing_file_is_an_error_that_names_it() {
    let world = World::new();
    let error = load_transcript(&world.env.home.join("none.jsonl")).unwrap_err();
    assert!(error.to_string().ends_with("none.jsonl`"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Invariant 14 of `docs/design/session-log.md`.
    #[test]
    fn load_transcript_accepts_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let world = World::new();
        load_transcript(&world.write("s.jsonl", bytes)).unwrap();
    }

    /// Invariant 14 of `docs/design/session-log.md`.
    #[test]
    fn broken_bytes_cost_only_the_lines_they_are_in(at in 0..2_000_usize, junk in prop::collection::vec(any::<u8>(), 1..20)) {
        let world = World::new();
        let lines: Vec<String> = (0..8).map(|n| user(&format!("u{n}"), world.cwd()).line().to_owned()).collect();
        let mut file = lines.join("\n").into_bytes();
        let at = at % file.len();
        let end = (at + junk.len()).min(file.len());
        let touched = |line: usize| {
            let start = lines[..line].iter().map(|line| line.len() + 1).sum::<usize>();
            // A newline belongs to the lines on both its sides.
            start <= end && at <= start + lines[line].len()
        };
        file[at..end].copy_from_slice(&junk[..end - at]);
        let loaded = load_transcript(&world.write("s.jsonl", &file)).unwrap();
        for (n, line) in lines.iter().enumerate().filter(|(n, _)| !touched(*n)) {
            prop_assert!(loaded.entries.iter().any(|entry| entry.line() == line), "line {} is lost", n);
        }
    }
}
