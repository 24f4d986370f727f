//! Listing sessions: a few facts about each, read off both ends of its file, and kept for the next time.
//!
//! Every session file is listed, whatever wrote it. A file costs one or two reads of at most 64 KiB, spread over
//! a few threads, so ten thousand of them take a fraction of a second; of files that are as they were the facts are
//! known from before (`cache`), and every file is looked at, so nothing can go stale. Newest first means
//! by the last entry of the conversation: a title that was added, or a copy of the file, does not make a session
//! new.
//!
//! What is exact and what is not: title, tag, prompts, branch and times are exact as long as whoever wrote the
//! file kept them within 64 KiB of an end (see `labels`); messages and cost are exact up to 128 KiB, beyond that
//! the number of messages is an estimate and the cost is left out.

mod cache;
mod first_prompt;
mod head_tail;
mod rollout;
pub(crate) mod scan;
mod tally;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cache::{CachedRecord, ListingCache};
pub use head_tail::{Labels, SessionMetadata};
pub use rollout::list_rollouts;
pub use tally::MessageCount;

use loci_stdx::in_parallel;

use crate::layout::{ConfigHome, Dialect, SessionPlace};
use crate::project::Project;
use crate::sessions::find::{
    FileStamp, FindError, ListedFile, SessionFiles, all_session_files, named_sessions_in, session_files_in,
    subdirectories,
};

/// More readers than this only wait for each other.
const MOST_READERS: usize = 8;
/// How many sessions each looks up at once in what was kept.
const PART: usize = 256;
/// Where more sessions than this are unknown, the files are asked which of them are new.
const MOST_UNKNOWN: usize = 256;

/// A session and what the ends of its file say about it.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSummary {
    /// Its id and file.
    pub place: SessionPlace,
    /// What is known of it.
    pub facts: SessionMetadata,
}

/// Sessions, the newest first, and what kept others from being among them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionList {
    /// The sessions.
    pub sessions: Vec<SessionSummary>,
    /// Files, and directories of projects, that could not be read.
    pub unread: Vec<PathBuf>,
}

/// Lists the sessions of a project or of all, the newest first and no more than so many; says what could not be read.
pub fn list_sessions(
    home: &ConfigHome,
    project: Option<&Project>,
    most: usize,
) -> Result<SessionList, FindError> {
    let SessionFiles { sessions, unread } = match project {
        Some(project) => project.list_files(home)?,
        None => all_session_files(home)?,
    };
    // Which of them are the project's own is known only when they have been read.
    let most_read = if project.is_some() { usize::MAX } else { most };
    let mut list = cached_or_read(home, stamped(sessions), most_read);
    if let Some(project) = project {
        project.retain_own(home, &mut list.sessions);
        list.sessions.truncate(most);
    }
    list.unread.splice(..0, unread);
    Ok(list)
}

/// Lists the sessions of a project or of all that were used last, about so many, the newest first: of the others nothing is
/// read. Says whether these are all there are; where they are not, somebody may see them a moment before they are all
/// known, and nothing is kept.
pub fn list_recent(
    home: &ConfigHome,
    project: Option<&Project>,
    most: usize,
) -> Result<(SessionList, bool), FindError> {
    let dirs = match project {
        Some(project) => project.dirs(home)?,
        None => subdirectories(&home.projects_dir())?,
    };
    let cache = ListingCache::read(home);
    let (mut list, is_whole) = match recent_by_cache(&cache, &dirs, most) {
        Some(files) => (known_or_read(&cache, files), false),
        None => {
            let SessionFiles { mut sessions, unread } = session_files_in(&dirs);
            let is_whole = sessions.len() <= most;
            if !is_whole {
                sessions.select_nth_unstable_by_key(most, |file| std::cmp::Reverse(file.stamp.time_ns()));
                sessions.truncate(most);
                // What is known is looked up in the order of paths.
                sessions.sort_unstable_by(|left, right| left.place.file().cmp(right.place.file()));
            }
            let mut list = match is_whole {
                true => cached_or_read(home, stamped(sessions), usize::MAX),
                // Keeping what was read waits for the disk, and whoever wants all of it keeps it a moment later.
                false => known_or_read(&cache, stamped(sessions)),
            };
            list.unread.splice(..0, unread);
            (list, is_whole)
        }
    };
    if let Some(project) = project {
        project.retain_own(home, &mut list.sessions);
    }
    Ok((list, is_whole))
}

/// Returns the files of sessions that were used last as far as is known, about so many, and those that nothing is known of:
/// to look at ten thousand files takes longer than anybody wants to wait for a list. None where too little is known, or
/// where there are no more than so many.
fn recent_by_cache(
    cache: &ListingCache,
    dirs: &[PathBuf],
    most: usize,
) -> Option<Vec<(SessionPlace, FileStamp)>> {
    let places = named_sessions_in(dirs);
    if places.len() <= most {
        return None;
    }
    let known = by_part(&places, |part| cache.newest_of(part));
    let (mut recent, mut unknown) = (Vec::new(), Vec::new());
    for (place, newest_ms) in places.into_iter().zip(known.into_iter().flatten()) {
        match newest_ms {
            Some(newest_ms) => recent.push((newest_ms, place)),
            None => unknown.push(place),
        }
    }
    if unknown.len() > MOST_UNKNOWN || recent.is_empty() {
        return None;
    }
    if recent.len() > most {
        recent.select_nth_unstable_by_key(most, |(newest_ms, _)| std::cmp::Reverse(*newest_ms));
        recent.truncate(most);
    }
    let mut places: Vec<SessionPlace> = recent.into_iter().map(|(_, place)| place).chain(unknown).collect();
    places.sort_unstable_by(|left, right| left.file().cmp(right.file()));
    let stamped = places.into_iter().filter_map(|place| {
        let stamp = FileStamp::read(place.file())?;
        Some((place, stamp))
    });
    Some(stamped.collect())
}

/// Lists the sessions of a project, the newest first; what cannot be read is left out.
pub fn list_project(home: &ConfigHome, project: &Project) -> Result<Vec<SessionSummary>, FindError> {
    Ok(list_sessions(home, Some(project), usize::MAX)?.sessions)
}

/// Lists the sessions of all projects, the newest first; what cannot be read is left out.
pub fn list_all(home: &ConfigHome) -> Result<Vec<SessionSummary>, FindError> {
    list_newest(home, usize::MAX)
}

/// Lists the newest sessions of all projects, no more than so many: of the others only their age is looked up.
pub fn list_newest(home: &ConfigHome, most: usize) -> Result<Vec<SessionSummary>, FindError> {
    Ok(list_sessions(home, None, most)?.sessions)
}

/// Files are looked at before they are read: what is written in between changes the stamp.
fn stamped(listed: Vec<ListedFile>) -> Vec<(SessionPlace, FileStamp)> {
    listed.into_iter().map(|listed| (listed.place, listed.stamp)).collect()
}

/// Reads the facts about one session file; `None` when it is empty.
pub fn session_summary(place: &SessionPlace) -> Result<Option<SessionSummary>, FindError> {
    let failed = |source| FindError::Read { path: place.file().to_owned(), source };
    let facts = metadata_at(place, &mut Vec::new()).map_err(failed)?;
    Ok(facts.map(|facts| SessionSummary { place: place.clone(), facts }))
}

/// Reads the facts of a session in the form it is written in.
fn metadata_at(place: &SessionPlace, buffer: &mut Vec<u8>) -> io::Result<Option<SessionMetadata>> {
    match place.dialect() {
        Dialect::Own => SessionMetadata::read_with(place.file(), buffer),
        Dialect::Codex => rollout::facts(place.file(), buffer),
    }
}

/// A session in a list, and where its facts are.
struct Row {
    newest_ms: i64,
    place: SessionPlace,
    facts: MetadataSource,
}

enum MetadataSource {
    /// The record of what was kept.
    Cached(usize),
    Read(Box<SessionMetadata>),
}

/// Takes the facts of files that are as they were from what was kept, and reads the others; returns the newest ones, the
/// newest first. Facts are large, so rows are sorted, and facts unpacked in the order in which they are handed out.
fn cached_or_read(home: &ConfigHome, places: Vec<(SessionPlace, FileStamp)>, most: usize) -> SessionList {
    let cache = ListingCache::read(home);
    list_with(&cache, places, most, |rows, unknown| read_and_cache(home, &cache, rows, unknown))
}

/// Does the same with all of the files, and keeps nothing.
fn known_or_read(cache: &ListingCache, places: Vec<(SessionPlace, FileStamp)>) -> SessionList {
    list_with(cache, places, usize::MAX, |_, unknown| {
        summaries(&unknown.into_iter().map(|(place, _)| place).collect::<Vec<_>>())
    })
}

fn list_with(
    cache: &ListingCache,
    places: Vec<(SessionPlace, FileStamp)>,
    most: usize,
    read: impl FnOnce(&[Row], Vec<(SessionPlace, FileStamp)>) -> SessionList,
) -> SessionList {
    let known = by_part(&places, |part| cache.look_up(part));
    let mut rows = Vec::with_capacity(places.len());
    let (mut unknown, mut unread) = (Vec::new(), Vec::new());
    for ((place, stamp), known) in places.into_iter().zip(known.into_iter().flatten()) {
        match known {
            Some(CachedRecord { record, newest_ms }) => {
                rows.push(Row { newest_ms, place, facts: MetadataSource::Cached(record) });
            }
            None => unknown.push((place, stamp)),
        }
    }
    if !unknown.is_empty() {
        let read = read(&rows, unknown);
        unread = read.unread;
        rows.extend(read.sessions.into_iter().map(|SessionSummary { place, facts }| Row {
            newest_ms: facts.newest_ms(),
            place,
            facts: MetadataSource::Read(Box::new(facts)),
        }));
    }
    rows.sort_unstable_by(|left, right| {
        let by_path = || left.place.file().as_os_str().cmp(right.place.file().as_os_str());
        right.newest_ms.cmp(&left.newest_ms).then_with(by_path)
    });
    rows.truncate(most);
    SessionList { sessions: decode_rows(cache, rows), unread }
}

/// Reads sessions that nothing is known of, and keeps what was read for the next time.
fn read_and_cache(
    home: &ConfigHome,
    cache: &ListingCache,
    rows: &[Row],
    unknown: Vec<(SessionPlace, FileStamp)>,
) -> SessionList {
    let (places, stamps): (Vec<SessionPlace>, Vec<FileStamp>) = unknown.into_iter().unzip();
    let stamps: HashMap<&Path, FileStamp> = places.iter().map(SessionPlace::file).zip(stamps).collect();
    let read = summaries(&places);
    let unchanged = rows.iter().filter_map(|row| match row.facts {
        MetadataSource::Cached(record) => Some(record),
        MetadataSource::Read(_) => None,
    });
    cache.write(home, &unchanged.collect(), &stamps, &read.sessions);
    read
}

/// Puts the facts of rows in their place.
fn decode_rows(cache: &ListingCache, rows: Vec<Row>) -> Vec<SessionSummary> {
    let facts = by_part(&rows, |part| -> Vec<Option<SessionMetadata>> {
        let unpack = |row: &Row| match row.facts {
            MetadataSource::Cached(record) => cache.metadata_at(record),
            MetadataSource::Read(_) => None,
        };
        part.iter().map(unpack).collect()
    });
    let session = |(row, facts): (Row, Option<SessionMetadata>)| {
        let facts = match row.facts {
            MetadataSource::Read(facts) => Some(*facts),
            // What cannot be unpacked, though its checksum is right, is read.
            MetadataSource::Cached(_) => {
                facts.or_else(|| metadata_at(&row.place, &mut Vec::new()).ok().flatten())
            }
        };
        facts.map(|facts| SessionSummary { place: row.place, facts })
    };
    rows.into_iter().zip(facts.into_iter().flatten()).filter_map(session).collect()
}

/// Does the same with everything, a part at a time on a few threads.
fn by_part<T: Send, U: Sync>(items: &[U], each: impl Fn(&[U]) -> T + Sync) -> Vec<T> {
    let parts: Vec<&[U]> = items.chunks(PART).collect();
    in_parallel(parts.len(), MOST_READERS, |idx| each(parts[idx]))
}

/// Returns the file of what is kept, when it knows a session otherwise than it is.
pub(crate) fn stale_list(home: &ConfigHome, places: &[SessionPlace]) -> Option<PathBuf> {
    let cache = ListingCache::read(home);
    let is_wrong = |place: &SessionPlace| {
        let known = FileStamp::read(place.file()).and_then(|stamp| cache.facts(place, stamp));
        known.is_some_and(|known| SessionMetadata::read(place.file()).is_ok_and(|facts| facts != Some(known)))
    };
    places.iter().any(is_wrong).then(|| cache::file(home))
}

/// Reads many files with a few threads, in any order; one that cannot be read does not hide the others.
fn summaries(places: &[SessionPlace]) -> SessionList {
    let n_readers =
        thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS).min(places.len() / 16 + 1);
    let next = AtomicUsize::new(0);
    let found = Mutex::new(SessionList::default());
    let read = || {
        let mut buffer = Vec::new();
        let mut mine = SessionList::default();
        while let Some(place) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
            match metadata_at(place, &mut buffer) {
                Ok(Some(facts)) => mine.sessions.push(SessionSummary { place: place.clone(), facts }),
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    mine.unread.push(place.file().to_owned());
                }
                // Empty, or gone by now.
                Ok(None) | Err(_) => {}
            }
        }
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.sessions.append(&mut mine.sessions);
        found.unread.append(&mut mine.unread);
    };
    thread::scope(|scope| {
        for _ in 1..n_readers {
            // Without another thread this one does all the work.
            drop(thread::Builder::new().spawn_scoped(scope, read));
        }
        read();
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.unread.sort_unstable();
    found
}

/// Returns the directory that a session's file lies in.
pub(crate) fn dir_of(place: &SessionPlace) -> PathBuf {
    place.file().parent().map(Path::to_path_buf).unwrap_or_default()
}
