//! Session files as their directories list them, each with the stamp (size, time, inode) that tells whether it changed.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use loci_core::ids::SessionId;
use loci_stdx::in_parallel;
use rustix::fs::{AtFlags, FileType, statat};

use super::{FindError, entries_of, subdirectories};
use crate::layout::{ConfigHome, SessionPlace};

/// How many threads list directories and look at files, and how many files each takes at once.
const MOST_LISTERS: usize = 4;
const PART: usize = 256;

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) size: u64,
    pub(crate) modified_s: i64,
    pub(crate) modified_ns: i64,
    pub(crate) inode: u64,
}

impl FileStamp {
    pub(crate) fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            size: metadata.len(),
            modified_s: metadata.mtime(),
            modified_ns: metadata.mtime_nsec(),
            inode: metadata.ino(),
        }
    }

    /// Looks at a file without reading it.
    pub(crate) fn read(file: &Path) -> Option<Self> {
        fs::metadata(file).ok().filter(Metadata::is_file).map(|metadata| Self::from_metadata(&metadata))
    }

    /// Looks at a file of an open directory, which spares the system the way there.
    #[allow(clippy::unnecessary_cast, reason = "the types of these fields differ between systems")]
    fn read_in(dir: &File, name: &OsStr) -> Option<Self> {
        let stat = statat(dir, name, AtFlags::empty()).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode).is_file();
        is_file.then_some(Self {
            size: u64::try_from(stat.st_size).ok()?,
            modified_s: stat.st_mtime as i64,
            modified_ns: stat.st_mtime_nsec as i64,
            inode: stat.st_ino as u64,
        })
    }

    /// Returns when the file was changed, in nanoseconds since 1970.
    pub(crate) fn time_ns(self) -> i128 {
        i128::from(self.modified_s) * 1_000_000_000 + i128::from(self.modified_ns)
    }
}

/// A session file.
#[derive(Debug)]
pub(crate) struct ListedFile {
    pub(crate) place: SessionPlace,
    pub(crate) stamp: FileStamp,
    /// Whether there is a directory beside it with what belongs to it.
    pub(crate) has_companion: bool,
}

/// Session files, and what hides others.
#[derive(Debug, Default)]
pub(crate) struct SessionFiles {
    pub(crate) sessions: Vec<ListedFile>,
    /// Directories that could not be listed.
    pub(crate) unread: Vec<PathBuf>,
}

/// Returns the session files of all projects.
pub(crate) fn all_session_files(home: &ConfigHome) -> Result<SessionFiles, FindError> {
    Ok(session_files_in(&subdirectories(&home.projects_dir())?))
}

/// Hands every session file of all projects to `take`, which adds what it makes of it to a list, and returns all that was
/// made and the directories that could not be listed. `take` is called on several threads. Files come in the order of their
/// paths, so that whoever sorts by those has next to nothing to move.
pub(crate) fn all_session_files_with<T: Send>(
    home: &ConfigHome,
    take: impl Fn(ListedFile, &mut Vec<T>) + Sync,
) -> Result<(Vec<T>, Vec<PathBuf>), FindError> {
    let mut dirs = subdirectories(&home.projects_dir())?;
    // As it is in paths: what is below a directory comes behind a longer name whose next letter is before the slash.
    dirs.sort_by_cached_key(|dir| [dir.as_os_str().as_bytes(), b"/"].concat());
    Ok(session_files_with(&dirs, take))
}

/// Returns the session files of some directories, those of each in order. A link counts as what it leads to; a file that is
/// gone by now is none. A directory that cannot be listed does not hide the others.
pub(crate) fn session_files_in(dirs: &[PathBuf]) -> SessionFiles {
    let (sessions, unread) = session_files_with(dirs, |listed, sessions| sessions.push(listed));
    SessionFiles { sessions, unread }
}

/// Returns the session files that some directories name, those of each in order; none of them is looked at.
pub(crate) fn named_sessions_in(dirs: &[PathBuf]) -> Vec<SessionPlace> {
    let named = in_parallel(dirs.len(), MOST_LISTERS, |idx| Names::read(&dirs[idx]));
    let place = |dir: &Path, name: &OsString| Some(SessionPlace::new(dir.join(name), id_of_name(name)?));
    let places = named.iter().flatten().flat_map(|names| names.files.iter().map(|name| (names.dir, name)));
    places.filter_map(|(dir, name)| place(dir, name)).collect()
}

fn id_of_name(name: &OsStr) -> Option<SessionId> {
    SessionId::parse(name.to_str()?.strip_suffix(".jsonl")?).ok()
}

fn session_files_with<T: Send>(
    dirs: &[PathBuf],
    take: impl Fn(ListedFile, &mut Vec<T>) + Sync,
) -> (Vec<T>, Vec<PathBuf>) {
    let named = in_parallel(dirs.len(), MOST_LISTERS, |idx| Names::read(&dirs[idx]));
    let unread = named.iter().zip(dirs).filter(|(names, _)| names.is_err()).map(|(_, dir)| dir.clone());
    let unread = unread.collect();
    let listings: Vec<Names<'_>> = named.into_iter().flatten().collect();
    // Directories differ much in size, so files are shared out, not directories.
    let parts: Vec<(&Names<'_>, &[OsString])> =
        listings.iter().flat_map(|names| names.files.chunks(PART).map(move |part| (names, part))).collect();
    let listed = in_parallel(parts.len(), MOST_LISTERS, |idx| {
        let (names, part) = parts[idx];
        // A directory that cannot be opened any more is looked into by its path, which says how it is.
        #[expect(clippy::disallowed_methods, reason = "a directory that was just listed")]
        let dir = File::open(names.dir).ok();
        let mut made = Vec::with_capacity(part.len());
        part.iter().filter_map(|name| names.listed(dir.as_ref(), name)).for_each(|it| take(it, &mut made));
        made
    });
    (listed.into_iter().flatten().collect(), unread)
}

/// The names in a directory that matter here.
struct Names<'a> {
    dir: &'a Path,
    files: Vec<OsString>,
    companions: HashSet<OsString>,
}

impl<'a> Names<'a> {
    fn read(dir: &'a Path) -> Result<Self, FindError> {
        let (mut files, mut companions) = (Vec::new(), HashSet::new());
        for entry in entries_of(dir)? {
            let name = entry.file_name();
            match Path::new(&name).extension() {
                Some(extension) if extension == "jsonl" => files.push(name),
                Some(_) => {}
                None => drop(companions.insert(name)),
            }
        }
        files.sort_unstable();
        Ok(Self { dir, files, companions })
    }

    fn listed(&self, dir: Option<&File>, name: &OsStr) -> Option<ListedFile> {
        let id = id_of_name(name)?;
        let file = self.dir.join(name);
        let stamp = dir.map_or_else(|| FileStamp::read(&file), |dir| FileStamp::read_in(dir, name))?;
        let has_companion =
            !self.companions.is_empty() && self.companions.contains(Path::new(name).file_stem()?);
        Some(ListedFile { place: SessionPlace::new(file, id), stamp, has_companion })
    }
}
