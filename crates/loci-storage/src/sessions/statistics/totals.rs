//! What one session has used: its last `cost-state`, and the responses that were written after it.
//!
//! Without such a line it is the sum of its responses, those of its agents too. Where a session is long and the line is
//! near its end, as loci and its peers write it, nothing before it is read.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use loci_core::cost_state::{COST_STATE, CostState};
use loci_core::model::facts;
use loci_stdx::{TimeZone, open_regular};
use memchr::memmem;
use rustc_hash::FxHashSet;

use super::line_reader::{LineReader, UsageKind, UsageRecord};
use super::{StatisticsQuery, TranscriptFile, subagents};
use crate::layout::SessionPlace;
use crate::sessions::listing::scan;
use crate::sessions::session_file::each_line;

/// How far from its end the last `cost-state` of a file is looked for.
const TAIL: u64 = 256 * 1024;
/// The type of such a line.
const STATE_TYPE: &[u8] = b"\"cost-state\"";

/// Returns what a session used by the time its file had `n_bytes`, at `now_ms`, and whatever else its last `cost-state`
/// says. What cannot be read says nothing.
pub fn session_totals(place: &SessionPlace, n_bytes: u64, now_ms: i64) -> CostState {
    let query = StatisticsQuery { until_ms: Some(now_ms), ..StatisticsQuery::new(TimeZone::UTC) };
    let mut reader = LineReader::new(&query);
    let own = read_end(place.file(), n_bytes, &mut reader).unwrap_or_default();
    let last = own.iter().rposition(|record| matches!(record.what, UsageKind::State(_)));
    let (mut state, since_ms) = match last.map(|at| &own[at]) {
        Some(UsageRecord { what: UsageKind::State(state), time_ms, .. }) => (*state.clone(), *time_ms),
        Some(_) | None => (CostState::default(), None),
    };
    let mut later: Vec<UsageRecord> = own.into_iter().skip(last.map_or(0, |at| at + 1)).collect();
    for agent in subagents(place) {
        let records = read_agent(&agent, since_ms.filter(|_| last.is_some()), &mut reader);
        later.extend(records.unwrap_or_default());
    }
    let mut seen = FxHashSet::default();
    for record in later.iter().filter(|record| seen.insert(record.key)) {
        if let (UsageKind::Response(usage), Some(model)) = (&record.what, &record.model) {
            state.totals.add(model, &facts(model), usage);
        }
    }
    state
}

/// Reads a transcript from its last `cost-state` on, where that is near the end, and else as a whole.
fn read_end(path: &Path, n_bytes: u64, reader: &mut LineReader<'_>) -> io::Result<Vec<UsageRecord>> {
    let mut file = open_regular(path)?;
    let start = last_state(&mut file, n_bytes)?.unwrap_or_default();
    file.seek(SeekFrom::Start(start))?;
    read_lines(&mut file.take(n_bytes - start), reader)
}

/// Returns where the last `cost-state` begins, if it is near the end.
fn last_state(file: &mut File, n_bytes: u64) -> io::Result<Option<u64>> {
    let start = n_bytes.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.take(n_bytes - start).read_to_end(&mut tail)?;
    Ok(last_state_in(&tail).map(|at| start + at as u64))
}

/// Returns where the last `cost-state` of a text begins, whose first line may be cut.
fn last_state_in(text: &[u8]) -> Option<usize> {
    let mut rest = text;
    loop {
        let at = memmem::rfind(rest, STATE_TYPE)?;
        let line = memchr::memrchr(b'\n', &rest[..at])? + 1;
        if scan::leading_type(&text[line..]) == Some(COST_STATE.as_bytes()) {
            return Some(line);
        }
        rest = &rest[..at];
    }
}

fn read_lines(lines: &mut impl Read, reader: &mut LineReader<'_>) -> io::Result<Vec<UsageRecord>> {
    each_line(lines, |line| {
        reader.read_line(line.bytes);
        true
    })?;
    Ok(reader.finish_file().1)
}

/// Tells whether nothing was written to a file since a moment, with a second for clocks that disagree.
fn is_older(path: &Path, since_ms: i64) -> bool {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let age = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    age.and_then(|age| i64::try_from(age.as_millis()).ok()).is_some_and(|time| time + 1_000 < since_ms)
}

/// Reads what an agent used after a moment; the file of one that was done by then is not opened.
fn read_agent(
    agent: &TranscriptFile,
    since_ms: Option<i64>,
    reader: &mut LineReader<'_>,
) -> io::Result<Vec<UsageRecord>> {
    if since_ms.is_some_and(|since| is_older(agent.path(), since)) {
        return Ok(Vec::new());
    }
    let mut records = read_lines(&mut agent.open()?, reader)?;
    records.retain(|record| {
        record.is_wanted && since_ms.is_none_or(|since| record.time_ms.is_some_and(|time| time > since))
    });
    Ok(records)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn last_state_is_a_line_of_its_own() {
        for (text, expected) in [
            ("x\n{\"type\":\"cost-state\",\"a\":1}\n{}\n", Some(2)),
            ("x\n{\"type\": \"cost-state\"}\n{\"text\":\"cost-state\"}\n", Some(2)),
            ("{\"type\":\"cost-state\"}\n", None),
            ("x\n{\"text\":\"cost-state\"}\n", None),
        ] {
            assert_eq!(last_state_in(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn only_files_that_nothing_was_written_to_since_are_older() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.jsonl");
        assert!(!is_older(&path, i64::MAX), "what cannot be looked at may be new");
        File::create(&path).unwrap().set_modified(UNIX_EPOCH + Duration::from_secs(100)).unwrap();
        for (since_ms, expected) in [(99_000, false), (100_500, false), (101_000, false), (102_000, true)] {
            assert_eq!(is_older(&path, since_ms), expected, "{since_ms}");
        }
    }
}
