//! Reading a rollout from its file, and from the files it goes on from.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_stdx::open_regular;

use loci_core::entry::Entry;
use loci_core::entry::draft::Stamp;
use loci_core::ids::EntryId;
use serde_json::Value;

use super::compressed::{is_compressed, rollout_bytes};
use super::convert::convert;
use super::item::{RolloutItem, RolloutLine};
use super::place::file_of;
use crate::layout::{ConfigHome, SessionPlace};
use crate::sessions::session_file::each_line;

/// How many files a rollout may go on from; whoever wrote more wrote a circle.
const MOST_BASES: usize = 32;

/// Why a rollout could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// The file is none.
    #[error("Not a Codex session: `{}`", path.display())]
    NotARollout {
        /// The file.
        path: PathBuf,
    },
    /// It goes on from another one that is not there.
    #[error("The Codex session goes on from another one that is not there: {base}")]
    NoBase {
        /// The other one.
        base: String,
    },
    /// An entry could not be made of it.
    #[error("Failed to translate an entry of `{}`", path.display())]
    Translate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: loci_core::entry::BadEntry,
    },
    /// The file could not be read.
    #[error("Failed to read: `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What the first line says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RolloutHead {
    pub(crate) thread: Option<String>,
    pub(crate) time: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) originator: Option<String>,
    pub(crate) forked_from: Option<String>,
    pub(crate) is_subagent: bool,
    base: Option<(String, u64)>,
}

/// Reads what the first line of a rollout says of it; `None` when it says nothing of the kind.
pub(crate) fn head_of(line: &[u8]) -> Option<RolloutHead> {
    match RolloutLine::parse(&String::from_utf8_lossy(line))?.item {
        RolloutItem::Meta(meta) => Some(RolloutHead::from_meta(&meta)),
        _ => None,
    }
}

impl RolloutHead {
    fn from_meta(meta: &Value) -> Self {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let base = &meta["history_base"];
        Self {
            thread: text(&meta["id"]),
            time: text(&meta["timestamp"]),
            cwd: text(&meta["cwd"]),
            branch: text(&meta["git"]["branch"]),
            originator: text(&meta["originator"]),
            forked_from: text(&meta["forked_from_id"]),
            is_subagent: meta["source"]["subagent"].is_string() || meta["source"]["subagent"].is_object(),
            base: text(&base["thread_id"]).zip(base["end_byte_offset"].as_u64()),
        }
    }
}

/// What a rollout holds.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) head: RolloutHead,
    pub(super) lines: Vec<RolloutLine>,
    /// How many lines could not be read.
    pub(crate) n_skipped: usize,
}

/// Reads a rollout as a whole.
pub(crate) fn read_rollout(home: &ConfigHome, file: &Path) -> Result<Read, RolloutError> {
    read_rollout_observed(home, file, &|_, _| {})
}

/// Does the same, and tells how many bytes of how many of the file itself are read.
pub(crate) fn read_rollout_observed(
    home: &ConfigHome,
    file: &Path,
    progress: &dyn Fn(u64, u64),
) -> Result<Read, RolloutError> {
    let mut read = read_up_to(file, u64::MAX, progress)?;
    let mut base = read.head.base.clone();
    for _ in 0..MOST_BASES {
        let Some((rollout, end)) = base.take() else { return Ok(read) };
        let file = file_of(home, &rollout).ok_or(RolloutError::NoBase { base: rollout })?;
        let mut before = read_up_to(&file, end, &|_, _| {})?;
        before.lines.append(&mut read.lines);
        (read.lines, base) = (before.lines, before.head.base);
        read.n_skipped += before.n_skipped;
    }
    Err(RolloutError::NoBase { base: "in a circle".to_owned() })
}

fn read_up_to(path: &Path, end: u64, progress: &dyn Fn(u64, u64)) -> Result<Read, RolloutError> {
    let failed = |source| RolloutError::Read { path: path.to_owned(), source };
    let mut read = Read::default();
    let mut head = None;
    let file = open(path).map_err(failed)?;
    // What is compressed is longer than its file; the bar is full then, and waits.
    let n_total = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let mut n_read: u64 = 0;
    each_line(&mut file.take(end), |line| {
        n_read += line.bytes.len() as u64 + 1;
        progress(n_read.min(n_total), n_total);
        if line.bytes.trim_ascii().is_empty() {
            return true;
        }
        match RolloutLine::parse(&String::from_utf8_lossy(line.bytes)) {
            // A fork repeats what its source said of itself; the first is its own.
            Some(RolloutLine { item: RolloutItem::Meta(meta), .. }) => {
                head.get_or_insert_with(|| RolloutHead::from_meta(&meta));
            }
            Some(RolloutLine { item: RolloutItem::Nothing, .. }) => {}
            Some(line) => read.lines.push(line),
            None => read.n_skipped += 1,
        }
        // Without a first line of its own it is something else, however long.
        head.is_some()
    })
    .map_err(failed)?;
    read.head = head.ok_or_else(|| RolloutError::NotARollout { path: path.to_owned() })?;
    Ok(read)
}

fn open(path: &Path) -> io::Result<Box<dyn io::Read>> {
    match is_compressed(path) {
        true => Ok(Box::new(io::Cursor::new(rollout_bytes(path)?))),
        false => Ok(Box::new(open_regular(path)?)),
    }
}

/// Returns the lines of a rollout as Codex wrote them.
pub fn rollout_text(place: &SessionPlace) -> Result<String, RolloutError> {
    let path = place.file();
    let bytes = rollout_bytes(path);
    let bytes = bytes.map_err(|source| RolloutError::Read { path: path.to_owned(), source })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads a rollout as entries of a session, for showing it; returns them and how many lines could not be read.
pub fn load_rollout(
    home: &ConfigHome,
    place: &SessionPlace,
) -> Result<(Vec<Arc<Entry>>, usize), RolloutError> {
    let read = read_rollout(home, place.file())?;
    let stamp = Stamp {
        session_id: place.id().clone(),
        cwd: read.head.cwd.clone().unwrap_or_default(),
        version: String::new(),
        git_branch: read.head.branch.clone().unwrap_or_default(),
        entrypoint: read.head.originator.clone().unwrap_or_default(),
        slug: None,
        agent: None,
        agent_type: None,
    };
    let mut n_ids = 0;
    let mut id = || {
        n_ids += 1;
        EntryId::new(format!("codex-{n_ids}"))
    };
    let converted = convert(&read, &stamp, &mut id)
        .map_err(|source| RolloutError::Translate { path: place.file().to_owned(), source })?;
    Ok((converted.entries, read.n_skipped))
}
