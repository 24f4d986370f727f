//! One path on disk: what lies there, and making it something else. No symlink is ever followed on the way.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use loci_core::file_history::{FileContent, PathState, RewindStep};
use loci_stdx::{RealDir, is_symlink_error};
use sha2::{Digest, Sha256};

use super::contents::Contents;
use crate::history::tree_history::Digest32;

/// The mode of directories that must be made to put something in them.
const DIR_MODE: u32 = 0o755;

/// More files than this are synced all at once.
const MANY_FILES: usize = 16;

/// What lies at a path now.
#[derive(Debug)]
pub(super) struct CurrentState {
    pub(super) state: PathState,
    /// Whether the file has other names.
    pub(super) has_other_names: bool,
    /// Whether something that is no directory stands where a parent should be.
    pub(super) is_barred: bool,
}

/// Looks at a path; contents are named by their digest and not kept.
pub(super) fn current_state(path: &Path) -> io::Result<CurrentState> {
    let nothing = |is_barred| CurrentState { state: PathState::None, has_other_names: false, is_barred };
    let dir = match parent(path) {
        Ok(dir) => dir,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(nothing(false)),
        Err(error) if is_symlink_error(&error) || error.kind() == io::ErrorKind::NotADirectory => {
            return Ok(nothing(true));
        }
        Err(error) => return Err(error),
    };
    let name = name_of(path)?;
    if dir.stat(name)?.is_none() {
        return Ok(nothing(false));
    }
    let (state, has_other_names) = state_of(&dir, name, path)?;
    Ok(CurrentState { state, has_other_names, is_barred: false })
}

fn state_of(dir: &RealDir, name: &OsStr, path: &Path) -> io::Result<(PathState, bool)> {
    let metadata = std::fs::symlink_metadata(path)?;
    let mode = metadata.permissions().mode() & 0o7777;
    if metadata.is_symlink() {
        return Ok((PathState::Link { to: dir.read_link(name)?.into() }, false));
    }
    if metadata.is_dir() {
        return Ok((PathState::Dir { mode }, false));
    }
    if !metadata.is_file() {
        return Ok((PathState::Other, false));
    }
    let mut bytes = Vec::new();
    dir.open_file(name)?.read_to_end(&mut bytes)?;
    let digest: Digest32 = Sha256::digest(&bytes).into();
    let state = PathState::File { content: FileContent::Blob(digest), mode, size: bytes.len() as u64 };
    Ok((state, metadata.nlink() > 1))
}

/// What became of a step.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// It was done.
    Yes,
    /// The directory holds what others put there, and stays.
    StillUsed,
}

/// Does one step that writes no file; what lies at the path must be what the step says, or nothing.
pub(super) fn perform(step: &RewindStep) -> io::Result<Done> {
    let path = step.path.as_path();
    let name = name_of(path)?;
    if matches!(step.to, PathState::None) {
        return remove(path, name);
    }
    let dir = made_parent(path)?;
    let opened = Opened::new(path)?;
    let here = std::fs::symlink_metadata(path).ok();
    let is_dir = here.as_ref().is_some_and(std::fs::Metadata::is_dir);
    match &step.to {
        PathState::Dir { mode } if is_dir => dir.set_mode(name, *mode)?,
        PathState::Dir { mode } => {
            if here.is_some() {
                dir.remove(name)?;
            }
            dir.make_dir(name, *mode)?;
        }
        PathState::Link { to } => {
            clear(&dir, name, here.as_ref())?;
            dir.link(name, to.as_path())?;
        }
        PathState::None | PathState::Other | PathState::File { .. } => {}
    }
    opened.close()?;
    Ok(Done::Yes)
}

/// Writes the file of a step beside its place, under the name `beside`; it is not synced.
pub(super) fn stage(step: &RewindStep, beside: &str, contents: &mut Contents) -> io::Result<File> {
    let PathState::File { content, mode, .. } = &step.to else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let bytes = contents.read(step.root.as_path(), content)?;
    let path = step.path.as_path();
    let dir = made_parent(path)?;
    let opened = Opened::new(path)?;
    let file = dir.stage(OsStr::new(beside), &bytes, *mode);
    opened.close()?;
    file
}

/// Puts a staged file in its place.
pub(super) fn publish(step: &RewindStep, beside: &str) -> io::Result<()> {
    let path = step.path.as_path();
    let (dir, name) = (parent(path)?, name_of(path)?);
    let opened = Opened::new(path)?;
    let here = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_dir);
    clear(&dir, name, here.as_ref())?;
    dir.rename(OsStr::new(beside), name)?;
    opened.close()
}

/// Removes what a rewind that was cut short left beside a path.
pub(super) fn tidy(step: &RewindStep, beside: &str) {
    if let Ok(dir) = parent(step.path.as_path()) {
        // Mostly there is nothing.
        dir.remove(OsStr::new(beside)).ok();
    }
}

/// Makes everything that was staged safe from a power cut.
pub(super) fn sync(steps: &[&RewindStep], files: &[File]) -> io::Result<()> {
    if files.len() > MANY_FILES
        && let Some(step) = steps.first()
        && parent(step.path.as_path())?.sync_file_system()?
    {
        return Ok(());
    }
    files.iter().try_for_each(File::sync_all)
}

fn clear(dir: &RealDir, name: &OsStr, here: Option<&std::fs::Metadata>) -> io::Result<()> {
    match here {
        Some(here) if here.is_dir() => dir.remove_dir(name),
        Some(_) => dir.remove(name),
        None => Ok(()),
    }
}

fn made_parent(path: &Path) -> io::Result<RealDir> {
    match parent(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            RealDir::create_all(path.parent().unwrap_or(path), DIR_MODE)
        }
        dir => dir,
    }
}

fn remove(path: &Path, name: &OsStr) -> io::Result<Done> {
    let dir = match parent(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Done::Yes),
        dir => dir?,
    };
    let opened = Opened::new(path)?;
    let is_dir = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata.is_dir(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Done::Yes),
        Err(error) => return Err(error),
    };
    let removed = if is_dir { dir.remove_dir(name) } else { dir.remove(name) };
    opened.close()?;
    match removed {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(Done::StillUsed),
        removed => removed.map(|()| Done::Yes),
    }
}

/// A directory that may be written while this lives, whatever its own mode.
struct Opened<'a> {
    above: Option<(RealDir, &'a OsStr, u32)>,
}

impl<'a> Opened<'a> {
    /// Lets the owner write in the directory of `path`, if its mode does not.
    fn new(path: &'a Path) -> io::Result<Self> {
        let Some(dir) = path.parent() else { return Ok(Self { above: None }) };
        let mode = std::fs::symlink_metadata(dir)?.permissions().mode() & 0o7777;
        if mode & 0o300 == 0o300 {
            return Ok(Self { above: None });
        }
        let (above, name) = (parent(dir)?, name_of(dir)?);
        above.set_mode(name, mode | 0o300)?;
        Ok(Self { above: Some((above, name, mode)) })
    }

    /// Puts the mode back.
    fn close(self) -> io::Result<()> {
        match self.above {
            Some((above, name, mode)) => above.set_mode(name, mode),
            None => Ok(()),
        }
    }
}

fn parent(path: &Path) -> io::Result<RealDir> {
    RealDir::open(path.parent().ok_or(io::ErrorKind::InvalidInput)?)
}

fn name_of(path: &Path) -> io::Result<&OsStr> {
    path.file_name().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
