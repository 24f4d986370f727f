//! Putting sessions away by age, and bringing them back byte for byte.
//!
//! ```text
//! <config home>/loci/archive/<time>-<session>/origin.json   what was where, with sizes, checksums, modes and times
//! <config home>/loci/archive/<time>-<session>/<n>.gz        one file each: the transcript is 0
//! <config home>/loci/pins.jsonl                             a line for each time a session was pinned or unpinned
//! ```
//!
//! A session goes only when its packed copy has been read back and is what it was, and its files have not changed
//! meanwhile. Every move leaves a line in `audit.log` before it is made. A crash in between leaves a copy too many,
//! never one too few.

mod pack;
mod pins;
mod sweep;

use std::fs::{self};
use std::io;
use std::path::{Path, PathBuf};

use loci_core::ids::SessionId;
use loci_stdx::{
    Timestamp, WriteOptions, create_private_dir, create_private_dir_all, read_regular, rfc3339_millis,
    sync_dir, write_atomic,
};
use serde::{Deserialize, Serialize};

use pins::is_pinned;
pub use pins::{pin_session, pinned_sessions, unpin_session};
pub use sweep::{ArchiveSweep, archive_older, archive_older_observed};

use crate::layout::{ConfigHome, SessionPlace};
use crate::sessions::listing::SessionMetadata;
use crate::sessions::remove::{audit_record, process_on};
use pack::Packed;

/// Why a session could not be put away or brought back.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Another process works on it.
    #[error("Session {id} is in use by process {pid}")]
    InUse {
        /// The session.
        id: SessionId,
        /// The process.
        pid: i32,
    },
    /// It was pinned.
    #[error("Session {id} is pinned")]
    Pinned {
        /// The session.
        id: SessionId,
    },
    /// It changed while it was packed.
    #[error("The session changed while it was packed: `{}`", path.display())]
    Changed {
        /// What changed.
        path: PathBuf,
    },
    /// No such session was archived.
    #[error("No archived session has this id: {id}")]
    NotArchived {
        /// What was asked for.
        id: SessionId,
    },
    /// Something is where the session would go.
    #[error("A session is there already: `{}`", path.display())]
    Exists {
        /// The place.
        path: PathBuf,
    },
    /// What was packed cannot be unpacked as it was.
    #[error("The archive is damaged: `{}`", path.display())]
    Damaged {
        /// The packed file.
        path: PathBuf,
    },
    /// The disk said no.
    #[error("Failed to {action}: `{}`", path.display())]
    Disk {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

pub(crate) fn disk<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> ArchiveError + 'a {
    move |source| ArchiveError::Disk { action, path: path.to_owned(), source }
}

/// What was put away, as `origin.json` has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArchiveManifest {
    session_id: SessionId,
    /// Where the transcript was.
    file: PathBuf,
    archived_at: String,
    last_activity_ms: Option<i64>,
    headline: Option<String>,
    files: Vec<Packed>,
}

/// A session that was put away.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedSession {
    /// Its id, and where its transcript was.
    pub place: SessionPlace,
    /// When it was put away, as written.
    pub archived_at: String,
    /// When somebody last said something, in milliseconds since 1970.
    pub last_activity_ms: Option<i64>,
    /// What it is about.
    pub headline: Option<String>,
    /// How many bytes its files have unpacked.
    pub size: u64,
    /// Where it lies.
    pub dir: PathBuf,
}

/// Packs a session, checks the copy, and takes the session's files away; returns where the copy lies.
pub fn archive_session(
    home: &ConfigHome,
    place: &SessionPlace,
    now: Timestamp,
) -> Result<PathBuf, ArchiveError> {
    let id = place.id();
    if let Some(pid) = process_on(home, id) {
        return Err(ArchiveError::InUse { id: id.clone(), pid });
    }
    if is_pinned(home, id)? {
        return Err(ArchiveError::Pinned { id: id.clone() });
    }
    let time = rfc3339_millis(now);
    let root = archive_dir(home);
    let dir = root.join(format!("{}-{id}", time.replace([':', '.'], "")));
    let beside = dir.with_extension("new");
    create_private_dir_all(&root).map_err(disk("create", &root))?;
    create_private_dir(&beside).map_err(disk("create", &beside))?;
    match copy(place, &beside, &time) {
        Ok(()) => {
            fs::rename(&beside, &dir).map_err(disk("rename", &beside))?;
            // The copy has to outlast a power cut before the session goes.
            sync_dir(&root).map_err(disk("sync", &root))?;
        }
        Err(error) => {
            // Our own half copy; the session is untouched.
            fs::remove_dir_all(&beside).map_err(disk("remove", &beside))?;
            return Err(error);
        }
    }
    let recorded = audit_record(home, &time, "archive", id.as_str(), place.file(), &dir);
    recorded.map_err(|error| disk("write", &home.loci_dir().join("audit.log"))(io::Error::other(error)))?;
    remove_originals(place)?;
    Ok(dir)
}

fn copy(place: &SessionPlace, dir: &Path, time: &str) -> Result<(), ArchiveError> {
    let facts = SessionMetadata::read(place.file()).map_err(disk("read", place.file()))?;
    let files = pack::pack_all(place, dir)?;
    let origin = ArchiveManifest {
        session_id: place.id().clone(),
        file: place.file().to_owned(),
        archived_at: time.to_owned(),
        last_activity_ms: facts.as_ref().and_then(|it| it.last_activity).map(Timestamp::as_millisecond),
        headline: facts.as_ref().and_then(|it| it.headline().map(str::to_owned)),
        files,
    };
    let path = dir.join("origin.json");
    let text = serde_json::to_vec(&origin).map_err(|error| disk("write", &path)(io::Error::other(error)))?;
    write_atomic(&path, &text, &WriteOptions::private())
        .map_err(|error| disk("write", &path)(io::Error::other(error)))?;
    pack::check_all(place, dir, &origin.files)
}

/// The copy has been checked and written down; what is left is to make room.
fn remove_originals(place: &SessionPlace) -> Result<(), ArchiveError> {
    fs::remove_file(place.file()).map_err(disk("remove", place.file()))?;
    let dir = place.dir();
    if dir.exists() { fs::remove_dir_all(&dir).map_err(disk("remove", &dir)) } else { Ok(()) }
}

/// Brings back the session that was put away last under this id, byte for byte, and returns its place.
pub fn unarchive_session(
    home: &ConfigHome,
    id: &SessionId,
    now: Timestamp,
) -> Result<SessionPlace, ArchiveError> {
    let dir = dirs(home)?.into_iter().filter(|dir| id_of(dir).as_ref() == Some(id)).max();
    let dir = dir.ok_or_else(|| ArchiveError::NotArchived { id: id.clone() })?;
    let origin = origin_of(&dir)?;
    let place = SessionPlace::new(origin.file.clone(), id.clone());
    for path in [place.file().to_owned(), place.dir()] {
        if path.exists() {
            return Err(ArchiveError::Exists { path });
        }
    }
    pack::unpack_all(&place, &dir, &origin.files)?;
    let recorded = audit_record(home, &rfc3339_millis(now), "unarchive", id.as_str(), place.file(), &dir);
    recorded.map_err(|error| disk("write", &home.loci_dir().join("audit.log"))(io::Error::other(error)))?;
    fs::remove_dir_all(&dir).map_err(disk("remove", &dir))?;
    Ok(place)
}

/// Lists what was put away, the latest first; what cannot be read is left out.
pub fn archived_sessions(home: &ConfigHome) -> Result<Vec<ArchivedSession>, ArchiveError> {
    let mut dirs = dirs(home)?;
    dirs.sort();
    let archived = dirs.into_iter().rev().filter_map(|dir| {
        let origin = origin_of(&dir).ok()?;
        Some(ArchivedSession {
            size: origin.files.iter().map(Packed::size).sum(),
            place: SessionPlace::new(origin.file, origin.session_id),
            archived_at: origin.archived_at,
            last_activity_ms: origin.last_activity_ms,
            headline: origin.headline,
            dir,
        })
    });
    Ok(archived.collect())
}

/// A transcript that was put away.
#[derive(Debug, Clone)]
pub(crate) struct PackedTranscript {
    pub(crate) session: SessionPlace,
    pub(crate) agent: Option<String>,
    pub(crate) pack: PathBuf,
    pub(crate) size: u64,
    pub(crate) modified_ms: i64,
}

/// Returns the transcripts of everything that was put away, subagents' too; of a session that was put away twice the
/// latest. What cannot be read is left out.
pub(crate) fn packed_transcripts(home: &ConfigHome) -> Vec<PackedTranscript> {
    let mut dirs = dirs(home).unwrap_or_default();
    dirs.sort_by(|left, right| right.cmp(left));
    let mut seen = std::collections::HashSet::new();
    let origins = dirs.into_iter().filter_map(|dir| Some((origin_of(&dir).ok()?, dir)));
    let latest = origins.filter(|(origin, _)| seen.insert(origin.file.clone()));
    latest
        .flat_map(|(origin, dir)| pack::transcripts(&origin.file, &origin.session_id, &dir, &origin.files))
        .collect()
}

/// Returns where a session was put away, if it was and all of it is there.
pub(crate) fn archived_dir_of(home: &ConfigHome, id: &SessionId) -> Option<PathBuf> {
    let dirs = dirs(home).unwrap_or_default().into_iter().filter(|dir| id_of(dir).as_ref() == Some(id));
    dirs.filter(|dir| is_whole(dir)).max()
}

/// Returns the sessions that were put away and are in their places all the same, and whether they say what was packed.
/// One in its place may have gone on since.
pub(crate) fn doubled_archives(home: &ConfigHome) -> Vec<(PathBuf, SessionPlace, bool)> {
    let doubled = dirs(home).unwrap_or_default().into_iter().filter_map(|dir| {
        let origin = origin_of(&dir).ok()?;
        let place = SessionPlace::new(origin.file, origin.session_id);
        let is_same = || pack::is_contained(&place, &dir, &origin.files);
        place.file().exists().then(|| (dir.clone(), place.clone(), is_same()))
    });
    doubled.collect()
}

/// Returns what was put away and is not all there.
pub(crate) fn damaged_archives(home: &ConfigHome) -> Vec<PathBuf> {
    dirs(home).unwrap_or_default().into_iter().filter(|dir| !is_whole(dir)).collect()
}

fn is_whole(dir: &Path) -> bool {
    origin_of(dir).is_ok_and(|origin| pack::are_there(dir, origin.files.len()))
}

fn origin_of(dir: &Path) -> Result<ArchiveManifest, ArchiveError> {
    let path = dir.join("origin.json");
    let text = read_regular(&path).map_err(disk("read", &path))?;
    serde_json::from_slice(&text).map_err(|_| ArchiveError::Damaged { path })
}

fn archive_dir(home: &ConfigHome) -> PathBuf {
    home.loci_dir().join("archive")
}

fn dirs(home: &ConfigHome) -> Result<Vec<PathBuf>, ArchiveError> {
    let root = archive_dir(home);
    match fs::read_dir(&root) {
        Ok(entries) => {
            let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
            Ok(paths.filter(|path| path.extension().is_none() && id_of(path).is_some()).collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(disk("read", &root)(error)),
    }
}

fn id_of(dir: &Path) -> Option<SessionId> {
    let name = dir.file_name()?.to_str()?;
    SessionId::parse(name.get(name.len().checked_sub(36)?..)?).ok()
}
