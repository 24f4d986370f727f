//! The store as it is at one moment: which sessions there are, and which of them somebody works on.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use loci_core::ids::SessionId;
use loci_stdx::{Env, FileLock, read_regular};

use super::finding::{Finding, FindingKind};
use super::fix::Case;
use crate::layout::{ConfigHome, SessionPlace};
use crate::sessions::find::{FindError, places_in, subdirectories};
use crate::sessions::remove::process_on;

/// A temporary file may be in use for so long.
pub(super) const HOUR_MS: i64 = 60 * 60 * 1_000;
/// A registration of another machine's process may be as old as this.
pub(super) const DAY_MS: i64 = 24 * HOUR_MS;

/// What every examination looks at.
pub(super) struct Store<'a> {
    pub(super) home: &'a ConfigHome,
    /// The directories of projects.
    pub(super) projects: Vec<PathBuf>,
    /// Why some of them could not be listed.
    unlisted: Vec<FindError>,
    pub(super) places: Vec<SessionPlace>,
    in_use: HashSet<SessionId>,
    now_ms: i64,
}

impl<'a> Store<'a> {
    pub(super) fn open(home: &'a ConfigHome, env: &Env) -> Result<Self, FindError> {
        let mut projects = subdirectories(&home.projects_dir())?;
        projects.sort();
        let (mut places, unlisted) = places_in(&projects);
        places.sort_by(|left, right| left.file().cmp(right.file()));
        Ok(Self {
            home,
            projects,
            unlisted,
            places,
            in_use: in_use(home),
            now_ms: env.clock.now().as_millisecond(),
        })
    }

    /// Finds directories of projects that cannot be listed, with whatever is in them.
    pub(super) fn unlisted_cases(&self) -> Vec<Case> {
        let case = |error: &FindError| {
            let FindError::Read { path, source } = error else { return None };
            let meaning = format!("what is in it cannot be listed: {source}");
            let finding = Finding::new(FindingKind::Unreadable, path, meaning);
            Some(Case::unfixable(finding, "see to it that you may read it"))
        };
        self.unlisted.iter().filter_map(case).collect()
    }

    /// Returns true while another process works on the session.
    pub(super) fn is_in_use(&self, session: &SessionId) -> bool {
        self.in_use.contains(session)
    }

    /// Returns the sessions whose files were changed last, no more than so many and so many bytes, those of their subagents
    /// included.
    pub(super) fn newest(&self, most: usize, most_bytes: u64) -> Vec<SessionPlace> {
        let changed = |place: &SessionPlace| fs::metadata(place.file()).and_then(|it| it.modified()).ok();
        let mut places: Vec<_> = self.places.iter().map(|place| (changed(place), place)).collect();
        places.sort_by_key(|(changed, _)| std::cmp::Reverse(*changed));
        let mut n_left = most_bytes;
        let fits = |(_, place): &(_, &SessionPlace)| {
            let files = std::iter::once(place.file().to_owned()).chain(files_in(&place.subagents_dir()));
            let n_bytes: u64 = files.filter_map(|file| fs::metadata(file).ok()).map(|it| it.len()).sum();
            let left = n_left.checked_sub(n_bytes);
            n_left = left.unwrap_or(n_left);
            left.is_some()
        };
        places.into_iter().take(most).filter(fits).map(|(_, place)| place.clone()).collect()
    }

    /// Returns true for what was last changed so long ago that nobody is still at it.
    pub(super) fn is_older_than(&self, path: &Path, ms: i64) -> bool {
        let Ok(modified) = fs::symlink_metadata(path).and_then(|it| it.modified()) else { return false };
        let modified = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        self.now_ms.saturating_sub(i64::try_from(modified).unwrap_or(i64::MAX)) > ms
    }

    /// Returns the transcripts of a session: its own, of which a copy may lie elsewhere.
    pub(super) fn places_of<'b>(&'b self, id: &'b SessionId) -> impl Iterator<Item = &'b SessionPlace> {
        self.places.iter().filter(move |place| place.id() == id)
    }
}

/// Returns the sessions that living processes have: by our leases, and by the registry of interactive ones.
fn in_use(home: &ConfigHome) -> HashSet<SessionId> {
    let dir = home.loci_dir().join("leases");
    let locked = files_in(&dir).into_iter().filter_map(|path| {
        let id = SessionId::parse(path.file_name()?.to_str()?.strip_suffix(".lock")?).ok()?;
        // A lock that cannot be asked about counts as held.
        let is_free = matches!(FileLock::try_acquire(&path), Ok(Some(_)));
        (!is_free).then_some(id)
    });
    let locked: HashSet<SessionId> = locked.collect();
    let registered = files_in(&home.root().join("sessions")).into_iter().filter_map(|path| {
        let text = read_regular(path).ok()?;
        let value: serde_json::Value = serde_json::from_slice(&text).ok()?;
        let id = SessionId::parse(value.get("sessionId")?.as_str()?).ok()?;
        process_on(home, &id).map(|_| id)
    });
    locked.into_iter().chain(registered).collect()
}

/// Returns what lies in a directory, in order; nothing when it cannot be listed.
pub(super) fn files_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Returns the permission bits of what a path leads to.
pub(super) fn mode_of(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|metadata| metadata.mode() & 0o777)
}
