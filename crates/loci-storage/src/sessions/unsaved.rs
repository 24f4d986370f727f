//! What a run could not save by its end, kept outside the config home until it can be.
//!
//! A disk may be full from a session's first line to its last. What waits in memory then goes to the temporary
//! directory, which is often another disk: `<tmp>/claude-<uid>/unsaved/<session>.jsonl`, 0600, a first line
//! `{"type":"unsaved","file":"<transcript>"}` and then the lines as they would have been appended. The next run
//! appends them where they belong, under the session's lease, and takes the file away.
//!
//! What is kept begins behind the last sync, so that a part of it may be in the transcript all the same: those lines are
//! not appended again.
//!
//! 1. Lines are removed from here only after they are synced in their transcript.
//! 2. Only our own files in our own directory are believed, and only transcripts of this config home written.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use loci_core::ids::SessionId;
use loci_stdx::{AppendError, AppendFile, Env, WriteError, WriteOptions, read_regular, write_atomic};
use serde_json::{Value, json};

use crate::layout::UserTmpError;
use crate::layout::{ConfigHome, SessionPlace};
use crate::sessions::lease::{Lease, LeaseError};

/// Why lines could not be kept here, or not brought back yet.
#[derive(Debug, thiserror::Error)]
pub enum UnsavedError {
    /// There is no directory that is ours alone.
    #[error(transparent)]
    Dir(#[from] UserTmpError),
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The file could not be read or taken away.
    #[error("Failed to read what was not saved: `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not a file that we wrote.
    #[error("Not a file of unsaved entries: `{}`", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else is writing the session.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The transcript cannot be written yet.
    #[error(transparent)]
    Append(#[from] AppendError),
}

/// Keeps whole lines that belong to a session, and returns the file they are in.
pub(crate) fn save_unsaved(
    home: &ConfigHome,
    place: &SessionPlace,
    lines: &[u8],
) -> Result<PathBuf, UnsavedError> {
    let path = home.create_unsaved_dir()?.join(format!("{}.jsonl", place.id()));
    // What an earlier run left here, and nobody has brought back since, comes first.
    let earlier = read(home, &path).map(|(_, lines)| lines).unwrap_or_default();
    let head = json!({"type": "unsaved", "file": place.file()});
    let text = [head.to_string().as_bytes(), b"\n", &earlier, lines].concat();
    write_atomic(&path, &text, &WriteOptions::private())?;
    Ok(path)
}

/// Tells whether an earlier run left entries that are not in their session yet.
pub fn has_unsaved(home: &ConfigHome) -> bool {
    fs::read_dir(home.unsaved_dir()).is_ok_and(|mut entries| entries.next().is_some())
}

/// Appends what earlier runs could not save to the transcripts it belongs to, as far as that works now.
///
/// Returns the sessions that were completed; what still cannot be written stays where it is.
pub fn recover_unsaved(home: &ConfigHome, env: &Env) -> Vec<SessionPlace> {
    let Ok(entries) = fs::read_dir(home.unsaved_dir()) else { return Vec::new() };
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    files.filter_map(|path| recover(home, env, &path).ok().flatten()).collect()
}

/// Brings back one file; returns its session if something of it was missing there.
fn recover(home: &ConfigHome, env: &Env, path: &Path) -> Result<Option<SessionPlace>, UnsavedError> {
    let (place, lines) = read(home, path)?;
    let _lease = Lease::acquire(home, place.id(), env)?;
    let failed = |source| UnsavedError::Read { path: place.file().to_owned(), source };
    let lines = missing_lines(place.file(), &lines).map_err(failed)?;
    let mut file = AppendFile::open(place.file(), AppendFile::PRIVATE)?;
    file.append_lines(&lines)?;
    // What is in the file need not be on the disk: the process that wrote it could not sync.
    file.sync()?;
    fs::remove_file(path).map_err(|source| UnsavedError::Read { path: path.to_owned(), source })?;
    Ok((!lines.is_empty()).then_some(place))
}

/// Returns the lines that the end of a transcript does not have. Only a part as long as they are is read, and a little more
/// for what another program may have added.
fn missing_lines(transcript: &Path, lines: &[u8]) -> io::Result<Vec<u8>> {
    let mut file = match loci_stdx::open_regular(transcript) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(lines.to_vec()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(lines.len() as u64 + ADDED_BY_OTHERS)))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let there: HashSet<&[u8]> = tail.split_inclusive(|byte| *byte == b'\n').collect();
    Ok(lines
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !there.contains(line))
        .flatten()
        .copied()
        .collect())
}

/// How much others may have added to a transcript since, such as a title.
const ADDED_BY_OTHERS: u64 = 64 * 1024;

/// Reads a file of ours: the session it belongs to, and its lines.
fn read(home: &ConfigHome, path: &Path) -> Result<(SessionPlace, Vec<u8>), UnsavedError> {
    let failed = |source| UnsavedError::Read { path: path.to_owned(), source };
    let metadata = fs::symlink_metadata(path).map_err(failed)?;
    let is_ours = metadata.is_file() && metadata.uid() == rustix::process::geteuid().as_raw();
    let bytes = if is_ours { read_regular(path).map_err(failed)? } else { Vec::new() };
    let end = memchr::memchr(b'\n', &bytes).unwrap_or(0);
    let place = place(home, path, &bytes[..end]).filter(|_| home.is_unsaved_dir_ours());
    let place = place.ok_or_else(|| UnsavedError::Foreign { path: path.to_owned() })?;
    Ok((place, bytes[end + 1..].to_vec()))
}

/// The session that a file's name and first line agree on, if its transcript is one of this config home.
fn place(home: &ConfigHome, path: &Path, head: &[u8]) -> Option<SessionPlace> {
    let id = SessionId::parse(path.file_stem()?.to_str()?).ok()?;
    let head: Value = serde_json::from_slice(head).ok()?;
    let file = PathBuf::from(head["file"].as_str()?);
    let is_named_so = file.file_name()?.to_str()? == format!("{id}.jsonl");
    let is_here = file.parent()?.parent()? == home.projects_dir();
    (is_named_so && is_here).then(|| SessionPlace::new(file, id))
}
