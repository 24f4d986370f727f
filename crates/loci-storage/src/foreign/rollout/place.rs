//! Where rollouts lie.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use loci_stdx::read_regular_to_string;

use loci_core::ids::SessionId;
use serde_json::Value;

use super::load::{RolloutError, read_rollout};
use crate::layout::{ConfigHome, SessionPlace};

/// How deep rollouts lie below `sessions`: year, month, day.
const DEPTH: usize = 3;

/// Lists the rollouts there are, one for each thread: of several files the one written last.
pub(crate) fn rollouts(home: &ConfigHome) -> Vec<SessionPlace> {
    let mut newest: HashMap<SessionId, (SystemTime, PathBuf)> = HashMap::new();
    for (file, id) in files(home) {
        let modified = fs::metadata(&file).and_then(|it| it.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let known = newest.entry(id).or_insert_with(|| (modified, file.clone()));
        if *known < (modified, file.clone()) {
            *known = (modified, file);
        }
    }
    let mut places: Vec<SessionPlace> =
        newest.into_iter().map(|(id, (_, file))| SessionPlace::rollout(file, id)).collect();
    places.sort_by(|left, right| left.file().cmp(right.file()));
    places
}

fn files(home: &ConfigHome) -> Vec<(PathBuf, SessionId)> {
    let mut found = Vec::new();
    collect(&home.codex_home().join("sessions"), DEPTH, &mut found);
    collect(&home.codex_home().join("archived_sessions"), DEPTH, &mut found);
    found
}

/// A directory that cannot be read has nothing in it.
fn collect(dir: &Path, depth: usize, found: &mut Vec<(PathBuf, SessionId)>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if kind.is_dir() && depth > 0 {
            collect(&path, depth - 1, found);
        } else if kind.is_file()
            && let Some(ids) = ids_of(&path)
            && let Ok(id) = SessionId::parse(ids.get(..36).unwrap_or_default())
        {
            found.push((path, id));
        }
    }
}

/// Returns the part of a file name that names thread and rollout.
fn ids_of(file: &Path) -> Option<&str> {
    let name = file.file_name()?.to_str()?.strip_prefix("rollout-")?;
    let name = name.strip_suffix(".zst").unwrap_or(name).strip_suffix(".jsonl")?;
    // A time such as 2026-01-31T12-00-00 comes first.
    name.get(19..)?.strip_prefix('-')
}

/// Returns the file of a rollout by its own id, which ends its name.
pub(super) fn file_of(home: &ConfigHome, rollout: &str) -> Option<PathBuf> {
    let is_it = |ids: &str| ids.rsplit('_').next() == Some(rollout);
    files(home).into_iter().map(|(file, _)| file).find(|file| ids_of(file).is_some_and(is_it))
}

/// Returns the names that people gave to threads in Codex.
pub(crate) fn titles(home: &ConfigHome) -> HashMap<String, String> {
    let text = read_regular_to_string(home.codex_home().join("session_index.jsonl")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    // The last name counts.
    lines
        .filter_map(|line| Some((line["id"].as_str()?.to_owned(), line["thread_name"].as_str()?.to_owned())))
        .filter(|(_, name)| !name.is_empty())
        .collect()
}

/// Returns the rollout that a person named by its path, its id or the name it has in Codex; `None` when there is none.
pub fn find_rollout(
    home: &ConfigHome,
    real_cwd: &Path,
    name: &str,
) -> Result<Option<SessionPlace>, RolloutError> {
    if name.ends_with(".jsonl") || name.ends_with(".jsonl.zst") {
        return by_path(home, &real_cwd.join(name));
    }
    let rollouts = rollouts(home);
    let session_by_id = SessionId::parse(name).ok();
    if let Some(place) = rollouts.iter().find(|place| Some(place.id()) == session_by_id.as_ref()) {
        return Ok(Some(place.clone()));
    }
    let titles = titles(home);
    let mut called = rollouts
        .into_iter()
        .filter(|place| titles.get(place.id().as_str()).is_some_and(|title| title == name));
    // A name that fits several is none.
    let first = called.next();
    Ok(first.filter(|_| called.next().is_none()))
}

fn by_path(home: &ConfigHome, file: &Path) -> Result<Option<SessionPlace>, RolloutError> {
    let read = match read_rollout(home, file) {
        Err(RolloutError::NotARollout { .. }) => return Ok(None),
        read => read?,
    };
    let id = read.head.thread.as_deref().or_else(|| ids_of(file)?.get(..36));
    let id = id.and_then(|id| SessionId::parse(id).ok());
    let id = id.ok_or_else(|| RolloutError::NotARollout { path: file.to_owned() })?;
    Ok(Some(SessionPlace::rollout(file.to_owned(), id)))
}
