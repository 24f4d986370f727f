//! Facts that were read before, kept so that a list need not read ten thousand files again.
//!
//! They lie in `<config home>/loci/listing.jsonl`: a line that names the form, then one line a session. A line counts only
//! while its file has the size, the time and the number on disk that it had when the facts were read, and only if that
//! time lies before this file was written: what changed in the very moment could have kept all three. The file may be
//! deleted at any time, and one that cannot be read or written is no obstacle.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use loci_stdx::{Timestamp, WriteOptions, create_private_dir_all, in_parallel, write_atomic};
use rustc_hash::{FxBuildHasher, FxHashMap};
use serde::{Deserialize, Serialize};

use super::{Count, Facts, Labels, SessionSummary};
use crate::layout::{ConfigHome, SessionPlace};

/// Changes when what is kept changes.
const FORM: &str = "loci listing 1";
/// How much older than this file a session must be: file systems count time in steps.
const STEP_NS: i128 = 50_000_000;
/// How many threads read lines, and how many lines each takes at once.
const MOST_READERS: usize = 4;
const PART: usize = 512;
/// So many files are read again rather than kept.
const FEW: usize = 16;

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    size: u64,
    modified_s: i64,
    modified_ns: i64,
    inode: u64,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.len(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
            inode: metadata.ino(),
        }
    }

    fn time_ns(self) -> i128 {
        i128::from(self.modified_s) * 1_000_000_000 + i128::from(self.modified_ns)
    }
}

/// What is known from before.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// By file, which the lines themselves no longer name. They are large and stay where they were read.
    known: FxHashMap<PathBuf, Box<Line>>,
}

impl Kept {
    /// Reads what was kept; nothing when that cannot be done.
    pub(super) fn read(home: &ConfigHome) -> Self {
        let path = file(home);
        let (Ok(text), Ok(metadata)) = (fs::read_to_string(&path), fs::metadata(&path)) else {
            return Self::default();
        };
        let mut lines = text.lines();
        if lines.next() != Some(FORM) {
            return Self::default();
        }
        let written = Stamp::of(&metadata).time_ns();
        let lines: Vec<&str> = lines.collect();
        let parts: Vec<&[&str]> = lines.chunks(PART).collect();
        let read = |line: &&str| serde_json::from_str::<Box<Line>>(line).ok();
        let parsed = in_parallel(parts.len(), MOST_READERS, |idx| -> Vec<(PathBuf, Box<Line>)> {
            let settled = parts[idx].iter().filter_map(read);
            let settled = settled.filter(|line| line.stamp.time_ns() + STEP_NS < written);
            settled.map(|mut line| (std::mem::take(&mut line.file), line)).collect()
        });
        let mut known = FxHashMap::with_capacity_and_hasher(lines.len(), FxBuildHasher);
        known.extend(parsed.into_iter().flatten());
        Self { known }
    }

    /// Gives away the facts of a file that is as it was.
    pub(super) fn take(&mut self, place: &SessionPlace, stamp: Stamp) -> Option<Facts> {
        let line = self.known.remove(place.file())?;
        (line.stamp == stamp).then(|| line.into_facts())?
    }

    /// Keeps the facts for the next time, where enough of them are new.
    pub(super) fn write(&self, home: &ConfigHome, all: &[(SessionSummary, Stamp)], n_read: usize) {
        if n_read < FEW {
            return;
        }
        let mut text = format!("{FORM}\n");
        let lines = all.iter().map(|(session, stamp)| Line::of(session, *stamp));
        // Those of other projects stay known; nobody has taken them.
        let others = self.known.iter().filter(|(file, _)| file.exists());
        let others = others.map(|(file, line)| Line { file: file.clone(), ..Line::clone(line) });
        for line in lines.chain(others) {
            if let Ok(line) = serde_json::to_string(&line) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        // A list that cannot be kept is read again next time.
        drop(create_private_dir_all(&home.loci_dir()));
        drop(write_atomic(&file(home), text.as_bytes(), &WriteOptions::private()));
    }
}

/// Looks at a file without reading it.
pub(super) fn stamp(place: &SessionPlace) -> Option<Stamp> {
    fs::metadata(place.file()).ok().map(|metadata| Stamp::of(&metadata))
}

pub(super) fn file(home: &ConfigHome) -> PathBuf {
    home.loci_dir().join("listing.jsonl")
}

fn parts(time: Timestamp) -> (i64, i32) {
    (time.as_second(), time.subsec_nanosecond())
}

/// One session's facts as they are kept.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    file: PathBuf,
    stamp: Stamp,
    modified_ms: i64,
    last_activity: Option<(i64, i32)>,
    created: Option<(i64, i32)>,
    labels: [Option<String>; 6],
    first_prompt: Option<String>,
    git_branch: Option<String>,
    cwd: Option<String>,
    entrypoint: Option<String>,
    first_entry: Option<String>,
    forked_from: Option<String>,
    is_sidechain: bool,
    is_empty: bool,
    n_messages: u64,
    is_exact: bool,
    /// The bits of the number, which survive.
    cost: Option<u64>,
}

impl Line {
    fn of(session: &SessionSummary, stamp: Stamp) -> Self {
        let facts = session.facts.clone();
        let Labels { custom, generated, name, tag, last_prompt, summary } = facts.labels;
        Self {
            file: session.place.file().to_owned(),
            stamp,
            modified_ms: facts.modified_ms,
            last_activity: facts.last_activity.map(parts),
            created: facts.created.map(parts),
            labels: [custom, generated, name, tag, last_prompt, summary],
            first_prompt: facts.first_prompt,
            git_branch: facts.git_branch,
            cwd: facts.cwd,
            entrypoint: facts.entrypoint,
            first_entry: facts.first_entry,
            forked_from: facts.forked_from,
            is_sidechain: facts.is_sidechain,
            is_empty: facts.is_empty,
            n_messages: facts.messages.number(),
            is_exact: facts.messages.is_exact(),
            cost: facts.cost_usd.map(f64::to_bits),
        }
    }

    /// Returns the facts; `None` when a time is none.
    fn into_facts(self) -> Option<Facts> {
        let time = |parts: Option<(i64, i32)>| match parts {
            Some((second, nanosecond)) => Timestamp::new(second, nanosecond).map(Some).ok(),
            None => Some(None),
        };
        let [custom, generated, name, tag, last_prompt, summary] = self.labels;
        Some(Facts {
            size: self.stamp.size,
            modified_ms: self.modified_ms,
            last_activity: time(self.last_activity)?,
            created: time(self.created)?,
            labels: Labels { custom, generated, name, tag, last_prompt, summary },
            first_prompt: self.first_prompt,
            git_branch: self.git_branch,
            cwd: self.cwd,
            entrypoint: self.entrypoint,
            first_entry: self.first_entry,
            forked_from: self.forked_from,
            is_sidechain: self.is_sidechain,
            is_empty: self.is_empty,
            messages: if self.is_exact {
                Count::Exactly(self.n_messages)
            } else {
                Count::About(self.n_messages)
            },
            cost_usd: self.cost.map(f64::from_bits),
        })
    }
}
