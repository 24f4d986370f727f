//! Where originals go: `<config home>/loci/aside/<time>-<session>/<where it was below the config home>`.
//!
//! What is kept is the file itself, by a second name for it where the file system has those. What is not a session's
//! goes to `<time>-store`. Nothing here is ever removed by loci.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use loci_core::ids::SessionId;
use loci_stdx::{copy_regular, create_private_dir_all};

use super::fs_ops::FsOps;
use super::store::files_in;
use crate::layout::ConfigHome;
use crate::sessions::remove::move_path;

/// What temporary files of a repair begin with.
pub(super) const OWN_TEMPORARY: &str = ".tmp-doctor-";

/// The place for the originals of one repair.
pub(super) struct RepairBackup<'a> {
    home: &'a ConfigHome,
    fs: &'a FsOps,
    time: String,
}

impl<'a> RepairBackup<'a> {
    pub(super) fn new(home: &'a ConfigHome, fs: &'a FsOps, time: &str) -> Self {
        Self { home, fs, time: time.replace([':', '.'], "") }
    }

    /// Keeps a file that is about to be written anew; returns where. One that a repair before this one kept, and did
    /// not come to write anew, is not kept twice.
    pub(super) fn copy(&self, session: Option<&SessionId>, path: &Path) -> io::Result<PathBuf> {
        if let Some(kept) = self.existing_copy(session, path)? {
            return Ok(kept);
        }
        let to = self.free_place(session, path)?;
        self.fs.run(|| match fs::hard_link(path, &to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => copy_regular(path, &to)?.sync_all(),
            result => result,
        })?;
        Ok(to)
    }

    /// Moves something aside; returns where to.
    pub(super) fn move_aside(&self, session: Option<&SessionId>, path: &Path) -> io::Result<PathBuf> {
        let to = self.free_place(session, path)?;
        self.fs.run(|| move_path(path, &to))?;
        Ok(to)
    }

    fn root(&self) -> PathBuf {
        self.home.loci_dir().join("aside")
    }

    fn free_place(&self, session: Option<&SessionId>, path: &Path) -> io::Result<PathBuf> {
        let dir = self.root().join(format!("{}-{}", self.time, name_of(session)));
        let place = dir.join(self.below_home(path));
        let parent = place.parent().unwrap_or(&dir).to_owned();
        self.fs.run(|| create_private_dir_all(&parent))?;
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut free = place;
        let mut n = 2;
        while fs::symlink_metadata(&free).is_ok() {
            free = parent.join(format!("{name}.{n}"));
            n += 1;
        }
        Ok(free)
    }

    fn below_home(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix(self.home.root()).ok().map(Path::to_owned);
        below.unwrap_or_else(|| PathBuf::from(path.file_name().unwrap_or_default()))
    }

    fn existing_copy(&self, session: Option<&SessionId>, path: &Path) -> io::Result<Option<PathBuf>> {
        let now = fs::symlink_metadata(path)?;
        let ending = format!("-{}", name_of(session));
        let dirs = files_in(&self.root()).into_iter().filter(|dir| dir.to_string_lossy().ends_with(&ending));
        let places = dirs.map(|dir| dir.join(self.below_home(path)));
        let is_same = |place: &PathBuf| {
            fs::symlink_metadata(place).is_ok_and(|it| (it.dev(), it.ino()) == (now.dev(), now.ino()))
        };
        Ok(places.into_iter().find(is_same))
    }
}

fn name_of(session: Option<&SessionId>) -> String {
    session.map_or_else(|| "store".to_owned(), ToString::to_string)
}
