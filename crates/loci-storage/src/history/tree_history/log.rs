//! The log of a session's changes to the project.
//!
//! `<config home>/loci/tree-history/<session>.jsonl`: one [`HistoryLine`] a line, appended as it happens. A line that
//! cannot be read is passed over; a torn tail costs that line.

use std::fs::{self};
use std::io;
use std::path::{Path, PathBuf};

use loci_core::file_history::HistoryLine;
use loci_core::ids::{EntryId, SessionId, ToolUseId};
use loci_stdx::{AppendError, AppendFile, copy_regular, open_regular};
use memchr::memmem;

use crate::layout::ConfigHome;
use crate::sessions::session_file::each_line;

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
    let mut lines = Vec::new();
    each(path, |line| lines.extend(parse(line)))?;
    Ok(lines)
}

/// Reads what a log has since a prompt began; `None` when it does not know the prompt. Lines before are not parsed.
pub(crate) fn read_log_since(path: &Path, prompt: &EntryId) -> io::Result<Option<Vec<HistoryLine>>> {
    let name = as_written(prompt.as_str());
    let name = memmem::Finder::new(&name);
    let mut lines = None;
    each(path, |line| match &mut lines {
        Some(lines) => Vec::extend(lines, parse(line)),
        None if name.find(line).is_none() => {}
        None => {
            let is_it =
                matches!(parse(line), Some(HistoryLine::Point { prompt: point, .. }) if point == *prompt);
            lines = is_it.then(Vec::new);
        }
    })?;
    Ok(lines)
}

/// Tells whether a log has the changes of a call.
pub(crate) fn has_call(path: &Path, call: &ToolUseId) -> io::Result<bool> {
    let name = as_written(call.as_str());
    let name = memmem::Finder::new(&name);
    let is_its = |line: &[u8]| matches!(parse(line), Some(HistoryLine::Change(set)) if set.call.as_ref() == Some(call));
    let mut has = false;
    each(path, |line| has = has || (name.find(line).is_some() && is_its(line)))?;
    Ok(has)
}

/// Returns a name as it stands in a line.
fn as_written(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}

fn each(path: &Path, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut file = match open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    each_line(&mut file, |line| {
        take(line.bytes);
        true
    })
}

fn parse(line: &[u8]) -> Option<HistoryLine> {
    serde_json::from_slice(line).ok()
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
    copy_regular(&old, &new).map(drop)
}

#[cfg(test)]
mod tests {
    use loci_core::file_history::ChangeSet;

    use super::*;

    #[test]
    fn log_since_a_prompt_is_found_by_prompt_id() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log.jsonl");
        let change = |call: &str| {
            HistoryLine::Change(Box::new(ChangeSet {
                prompt: Some("p1".into()),
                call: Some(call.into()),
                by: "Bash".to_owned(),
                at: "t".to_owned(),
                root: PathBuf::from("/p").into(),
                changes: Vec::new(),
            }))
        };
        let point = |prompt: &str| HistoryLine::Point { prompt: prompt.into(), at: "t".to_owned() };
        let odd = "p \"quoted\" \u{7}ä";
        let lines = [point("p11"), change("c1"), point("p1"), change("p9"), point(odd), change("c\\2")];
        assert_eq!(read_log_since(&log, &"p1".into()).unwrap(), None, "there is no log yet");
        lines.iter().for_each(|line| append(&log, line).unwrap());
        assert_eq!(read_log(&log).unwrap(), lines);
        for (prompt, expected) in [
            ("p11", Some(&lines[1..])),
            ("p1", Some(&lines[3..])),
            (odd, Some(&lines[5..])),
            ("p9", None),
            ("p", None),
        ] {
            assert_eq!(read_log_since(&log, &prompt.into()).unwrap().as_deref(), expected, "{prompt}");
        }
        for (call, expected) in [("c1", true), ("p9", true), ("c\\2", true), ("p1", false), ("c", false)] {
            assert_eq!(has_call(&log, &call.into()).unwrap(), expected, "{call}");
        }
    }
}
