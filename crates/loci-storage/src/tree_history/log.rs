//! The log of a session's changes to the project.
//!
//! `<config home>/loci/tree-history/<session>.jsonl`: one [`HistoryLine`] a line, appended as it happens. A line that
//! cannot be read is passed over; a torn tail costs that line.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use loci_core::file_history::HistoryLine;
use loci_core::ids::SessionId;
use loci_stdx::{AppendError, AppendFile};

use crate::layout::ConfigHome;
use crate::session_file::each_line;

/// Returns the directory of all logs.
pub(crate) fn logs_dir(home: &ConfigHome) -> PathBuf {
    home.loci_dir().join("tree-history")
}

/// Returns the place of a session's log.
pub(crate) fn log_path(home: &ConfigHome, session: &SessionId) -> PathBuf {
    logs_dir(home).join(format!("{session}.jsonl"))
}

/// Reads a log; one that does not exist is empty.
pub(crate) fn read_log(path: &Path) -> io::Result<Vec<HistoryLine>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut lines = Vec::new();
    each_line(&mut file, |line| {
        lines.extend(serde_json::from_slice::<HistoryLine>(line.bytes).ok());
        true
    })?;
    Ok(lines)
}

/// Appends a line.
pub(crate) fn append(path: &Path, line: &HistoryLine) -> Result<(), AppendError> {
    let failed =
        |error: serde_json::Error| AppendError::Append { path: path.to_owned(), source: error.into() };
    let mut text = serde_json::to_vec(line).map_err(failed)?;
    text.push(b'\n');
    AppendFile::open(path, AppendFile::PRIVATE)?.append_lines(&text).map(drop)
}

/// Gives a fork the log of its source.
pub(crate) fn copy_log(home: &ConfigHome, from: &SessionId, to: &SessionId) -> io::Result<()> {
    let (old, new) = (log_path(home, from), log_path(home, to));
    if !fs::exists(&old)? || fs::exists(&new)? {
        return Ok(());
    }
    fs::copy(old, new).map(drop)
}
