//! Which parts of which session files the index knows, held against the files as they are now.
//!
//! A file only grows, so a stretch that was read once stays as it was. What does not fit that (a file that shrank,
//! that was changed without growing, or whose bytes before the growth are not those that were read) is read anew.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use loci_core::passage::CallNames;
use loci_stdx::checksum;

use super::passage_reader::Body;
use super::segment::Segment;
use super::source::SegmentSource;
use crate::foreign::rollout::{is_compressed, rollouts};
use crate::layout::{ConfigHome, Dialect, SessionPlace};
use crate::sessions::archive::{PackedTranscript, packed_transcripts};
use crate::sessions::find::{FileStamp, FindError, ListedFile, all_session_files_with};

/// How many bytes before the end of a stretch are compared.
const TAIL: u64 = 256;

/// A file that may hold messages, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexableFile {
    /// Relative to the directory of all projects.
    pub(super) path: String,
    pub(super) session: SessionPlace,
    /// The subagent whose transcript it is, and where that lies.
    pub(super) agent: Option<(String, PathBuf)>,
    /// The packed file, of a session that was put away.
    pub(super) pack: Option<PathBuf>,
    /// How many bytes it has on disk.
    pub(super) size: u64,
    pub(super) modified_ns: i64,
}

impl IndexableFile {
    /// Returns where it lies, or lay before it was put away.
    pub(super) fn file(&self) -> &Path {
        match &self.agent {
            Some((_, file)) => file,
            None => self.session.file(),
        }
    }

    /// Returns true when the file is a rollout that Codex compressed.
    pub(super) fn is_compressed(&self) -> bool {
        self.session.dialect() == Dialect::Codex && is_compressed(self.file())
    }
}

/// Lists the files of all sessions and of their subagents, in the order of their paths, and the directories that cannot be
/// listed.
pub(super) fn files_on_disk(home: &ConfigHome) -> Result<(Vec<IndexableFile>, Vec<PathBuf>), FindError> {
    let root = home.projects_dir();
    let (mut files, unread) =
        all_session_files_with(home, |ListedFile { place, stamp, has_companion }, files| {
            if has_companion {
                files.extend(subagents(&root, &place));
            }
            files.extend(on_disk(&root, stamp, place, None));
        })?;
    files.extend(packed_transcripts(home).into_iter().filter_map(packed));
    let foreign = rollouts(home);
    if !foreign.is_empty() {
        let own: HashSet<String> = files.iter().map(|file| file.session.id().to_string()).collect();
        // What was imported is found in its import.
        let foreign = foreign.into_iter().filter(|place| !own.contains(place.id().as_str()));
        files.extend(foreign.filter_map(rollout));
    }
    files.sort_by(|left, right| left.path.cmp(&right.path));
    Ok((files, unread))
}

fn subagents(root: &Path, session: &SessionPlace) -> Vec<IndexableFile> {
    let entries = fs::read_dir(session.subagents_dir()).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let agent = name.strip_suffix(".jsonl")?.to_owned();
        // One that is gone by now, or cannot be looked at, is no file.
        let stamp = FileStamp::read(&entry.path())?;
        on_disk(root, stamp, session.clone(), Some((agent, entry.path())))
    });
    found.collect()
}

/// A session that was put away and is in its place again is searched there.
fn packed(packed: PackedTranscript) -> Option<IndexableFile> {
    if packed.session.file().exists() {
        return None;
    }
    Some(IndexableFile {
        path: format!("archive:{}", packed.pack.display()),
        agent: packed.agent.map(|agent| (agent, packed.session.file().to_owned())),
        session: packed.session,
        pack: Some(packed.pack),
        size: packed.size,
        modified_ns: packed.modified_ms,
    })
}

/// A session of Codex.
fn rollout(session: SessionPlace) -> Option<IndexableFile> {
    let stamp = FileStamp::read(session.file())?;
    Some(IndexableFile {
        path: format!("codex:{}", session.file().display()),
        session,
        agent: None,
        pack: None,
        size: stamp.size,
        modified_ns: modified_ns(stamp),
    })
}

fn on_disk(
    root: &Path,
    stamp: FileStamp,
    session: SessionPlace,
    agent: Option<(String, PathBuf)>,
) -> Option<IndexableFile> {
    let path = below(root, agent.as_ref().map_or(session.file(), |(_, file)| file))?;
    let (size, modified_ns) = (stamp.size, modified_ns(stamp));
    Some(IndexableFile { path, session, agent, pack: None, size, modified_ns })
}

/// Returns a path relative to a directory that it begins with. There are ten thousand of them, so it is not taken apart.
fn below(root: &Path, file: &Path) -> Option<String> {
    let rest = file.as_os_str().as_bytes().strip_prefix(root.as_os_str().as_bytes())?;
    let rest = rest.strip_prefix(b"/")?;
    Some(match std::str::from_utf8(rest) {
        Ok(rest) => rest.to_owned(),
        Err(_) => String::from_utf8_lossy(rest).into_owned(),
    })
}

fn modified_ns(stamp: FileStamp) -> i64 {
    stamp.modified_s.wrapping_mul(1_000_000_000).wrapping_add(stamp.modified_ns)
}

/// What the index knows of the files there are.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// For each segment and each of its sources the file it belongs to, if it still counts.
    pub(super) live: Vec<Vec<Option<u32>>>,
    /// What is not known, by file.
    pub(super) rest: Vec<UnindexedTail>,
}

/// The end of a file that the index does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnindexedTail {
    pub(super) file: usize,
    pub(super) start: u64,
    pub(super) calls: CallNames,
}

impl Coverage {
    /// Holds segments against files, which are in the order of their paths.
    pub(super) fn from_segments(files: &[IndexableFile], segments: &[Segment]) -> Self {
        let mut known: Vec<(&str, (usize, usize))> = Vec::new();
        for (segment, it) in segments.iter().enumerate() {
            let sources = it.outline.sources.iter().enumerate();
            known.extend(sources.map(|(source, stretch)| (stretch.path.as_str(), (segment, source))));
        }
        known.sort_by_key(|(path, _)| *path);
        let mut known = known.as_slice();
        let mut coverage = Self {
            live: segments.iter().map(|it| vec![None; it.outline.sources.len()]).collect(),
            rest: Vec::new(),
        };
        let source = |(segment, source): (usize, usize)| &segments[segment].outline.sources[source];
        for (idx, file) in files.iter().enumerate() {
            known = &known[known.iter().take_while(|(path, _)| *path < file.path.as_str()).count()..];
            let n_here = known.iter().take_while(|(path, _)| *path == file.path).count();
            let (here, after) = known.split_at(n_here);
            known = after;
            let chain = chain(here.iter().map(|(_, at)| *at).collect(), source);
            let last = chain.last().map(|at| source(*at)).filter(|last| is_unchanged(file, last));
            let start = last.map_or(0, |last| last.end);
            if last.is_some() {
                let number = u32::try_from(idx).ok();
                chain.iter().for_each(|(segment, source)| coverage.live[*segment][*source] = number);
            }
            // What is compressed is known as a whole, and its size is not that of what it says.
            let is_known = last.is_some() && file.is_compressed();
            if start < file.size && !is_known {
                let calls = last.map(|last| last.calls.iter().cloned().collect()).unwrap_or_default();
                coverage.rest.push(UnindexedTail { file: idx, start, calls });
            }
        }
        coverage
    }

    /// Returns how many bytes the index does not know.
    pub(super) fn n_unknown(&self, files: &[IndexableFile]) -> u64 {
        self.rest.iter().map(|rest| files[rest.file].size.saturating_sub(rest.start)).sum()
    }
}

/// Returns stretches that follow one another from the beginning of the file.
fn chain<'a>(
    mut stretches: Vec<(usize, usize)>,
    source: impl Fn((usize, usize)) -> &'a SegmentSource,
) -> Vec<(usize, usize)> {
    stretches.sort_by_key(|at| (source(*at).start, std::cmp::Reverse(source(*at).end)));
    let mut end = 0;
    let mut chain = Vec::new();
    for at in stretches {
        if source(at).start == end && source(at).end > end {
            end = source(at).end;
            chain.push(at);
        }
    }
    chain
}

/// Returns true when a file is what it was when its last stretch was read, or has only grown since.
fn is_unchanged(file: &IndexableFile, last: &SegmentSource) -> bool {
    match file.size.cmp(&last.size) {
        std::cmp::Ordering::Equal => file.modified_ns == last.modified_ns,
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater if file.is_compressed() => false,
        std::cmp::Ordering::Greater => {
            Body::open(file).and_then(|body| tail_of(&body, last.end)).is_ok_and(|tail| tail == last.tail)
        }
    }
}

/// Returns the checksum of the last bytes before `end`.
pub(super) fn tail_of(body: &Body, end: u64) -> io::Result<u64> {
    Ok(checksum(&body.range(end.saturating_sub(TAIL), end)?))
}

/// Returns the checksum of a whole stretch, read a block at a time.
pub(super) fn stretch_sum(body: &Body, start: u64, end: u64) -> io::Result<u64> {
    const BLOCK: u64 = 1024 * 1024;
    let mut sum = 0_u64;
    let mut at = start;
    while at < end {
        let next = end.min(at + BLOCK);
        sum = sum.rotate_left(1) ^ checksum(&body.range(at, next)?);
        at = next;
    }
    Ok(sum)
}
