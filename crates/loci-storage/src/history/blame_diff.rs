//! Looking at what was: what changed between two points of a session, and which prompt wrote each line of a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use loci_core::file_history::{ChangeSet, HistoryLine, PathState, line_origins, wanted};
use loci_core::ids::{EntryId, SessionId};
use loci_stdx::{Env, read_regular};

use crate::history::rewind::RewindContext;
use crate::history::rewind::contents::Contents;
use crate::history::tree_history::{log_path, logs_dir, read_log};
use crate::layout::ConfigHome;

/// Why there is nothing to look at.
#[derive(Debug, thiserror::Error)]
pub enum HistoryQueryError {
    /// The session kept no log of changes.
    #[error("The session has no record of changes to files")]
    NoRecord,
    /// The log does not know a prompt.
    #[error("No file checkpoint found for this message: `{prompt}`")]
    NoPoint {
        /// The prompt.
        prompt: EntryId,
    },
    /// A file could not be read.
    #[error("Failed to read: `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A path at two points.
#[derive(Debug)]
pub struct PathDiff {
    /// The path.
    pub path: PathBuf,
    /// What it was.
    pub before: PathState,
    /// What it became.
    pub after: PathState,
    /// The contents, where they are files and were kept.
    pub contents: (Option<Vec<u8>>, Option<Vec<u8>>),
}

/// Returns what changed from one prompt to another: from the first, when `from` is absent, to the end of the log, when
/// `to` is.
pub fn diff_points(
    ctx: &RewindContext<'_>,
    from: Option<&EntryId>,
    to: Option<&EntryId>,
) -> Result<Vec<PathDiff>, HistoryQueryError> {
    let log = log_path(ctx.home, ctx.session);
    let lines = read_log(&log).map_err(|source| HistoryQueryError::Read { path: log, source })?;
    if lines.is_empty() {
        return Err(HistoryQueryError::NoRecord);
    }
    let place = |prompt: &EntryId| {
        let is_point =
            |line: &HistoryLine| matches!(line, HistoryLine::Point { prompt: point, .. } if point == prompt);
        let found = lines.iter().position(is_point);
        found.ok_or_else(|| HistoryQueryError::NoPoint { prompt: prompt.clone() })
    };
    let start = from.map(place).transpose()?.unwrap_or(0);
    let end = to.map(place).transpose()?.unwrap_or(lines.len());
    let is_back = start > end;
    let range = if is_back { &lines[end..start] } else { &lines[start..end] };
    let mut contents = Contents::new(ctx.home, ctx.session, ctx.env);
    let changed = wanted(range, |root, a, b| contents.is_same(root, a, b));
    let diffs = changed.into_iter().filter_map(|it| {
        let (before, after) = if is_back { (it.expected, it.target) } else { (it.target, it.expected) };
        let old = content(&mut contents, &it.root, &before);
        let new = content(&mut contents, &it.root, &after);
        (before != after).then_some(PathDiff { path: it.path, before, after, contents: (old, new) })
    });
    Ok(diffs.collect())
}

/// A line of a file, and who wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlamedLine {
    /// The line without its end.
    pub line: String,
    /// The session, the prompt and the moment; `None` for what was there before or came from elsewhere.
    pub by: Option<(SessionId, EntryId, String)>,
}

/// Says which prompt of which session last changed each line of a file.
pub fn blame_file(home: &ConfigHome, env: &Env, path: &Path) -> Result<Vec<BlamedLine>, HistoryQueryError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| HistoryQueryError::Read { path, source }
    };
    let now = read_regular(path).map_err(failed(path))?;
    let now = String::from_utf8_lossy(&now);
    let changes = changes_of(home, path).map_err(failed(&logs_dir(home)))?;
    let mut versions: Vec<String> = Vec::new();
    let mut authors: Vec<Option<(SessionId, EntryId, String)>> = Vec::new();
    for change in &changes {
        let mut contents = Contents::new(home, &change.session, env);
        let mut text = |state: &PathState| {
            let bytes = content(&mut contents, &change.root, state).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (before, after) = (text(&change.before), text(&change.after));
        if versions.last() != Some(&before) {
            // What someone else wrote between two changes, or what was there before all.
            versions.push(before);
            authors.push(None);
        }
        versions.push(after);
        authors.push(change.prompt.clone().map(|prompt| (change.session.clone(), prompt, change.at.clone())));
    }
    let origins = line_origins(&versions, &now);
    let lines = now.split_inclusive('\n').zip(origins);
    Ok(lines
        .map(|(line, origin)| BlamedLine {
            line: line.trim_end_matches(['\n', '\r']).to_owned(),
            by: origin.and_then(|idx| authors.get(idx).cloned().flatten()),
        })
        .collect())
}

/// One change of one path.
struct FileRevision {
    session: SessionId,
    prompt: Option<EntryId>,
    at: String,
    root: PathBuf,
    before: PathState,
    after: PathState,
}

/// Returns the changes of a path in all sessions, under the names it had, oldest first.
fn changes_of(home: &ConfigHome, path: &Path) -> io::Result<Vec<FileRevision>> {
    let mut sets: Vec<(SessionId, Box<ChangeSet>)> = Vec::new();
    let logs = match fs::read_dir(logs_dir(home)) {
        Ok(logs) => logs.collect::<io::Result<Vec<_>>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    for log in logs.iter().map(fs::DirEntry::path) {
        let id = log.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| SessionId::parse(stem).ok());
        let Some(id) = id else { continue };
        sets.extend(read_log(&log)?.into_iter().filter_map(|line| match line {
            HistoryLine::Change(set) => Some((id.clone(), set)),
            HistoryLine::Point { .. } => None,
        }));
    }
    sets.sort_by(|(_, a), (_, b)| a.at.cmp(&b.at));
    let mut name = path.to_owned();
    let mut found = Vec::new();
    for (session, set) in sets.into_iter().rev() {
        let Some(change) = set.changes.iter().find(|change| change.path.as_path() == name) else { continue };
        let before = match &change.from {
            Some(from) => {
                name = from.as_path().to_owned();
                let old = set.changes.iter().find(|change| change.path.as_path() == name);
                old.map_or(PathState::None, |old| old.before.clone())
            }
            None => change.before.clone(),
        };
        let root = set.root.as_path().to_owned();
        let after = change.after.clone();
        found.push(FileRevision {
            session,
            prompt: set.prompt.clone(),
            at: set.at.clone(),
            root,
            before,
            after,
        });
    }
    found.reverse();
    Ok(found)
}

fn content(contents: &mut Contents, root: &Path, state: &PathState) -> Option<Vec<u8>> {
    match state {
        PathState::File { content, .. } => contents.read(root, content).ok(),
        PathState::None | PathState::Link { .. } | PathState::Dir { .. } | PathState::Other => None,
    }
}
