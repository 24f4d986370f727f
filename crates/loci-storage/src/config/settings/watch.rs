//! Noticing that settings files changed.
//!
//! Files are compared by their place on disk, size and time before each use rather than watched: that holds on
//! every file system, through links and renames, costs a few microseconds, and can never miss a change or lag
//! behind one. A change is taken up by whoever asks next, so it counts from the next tool call on.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{GivenSettings, LoadedSettings, SettingsPlaces, load_settings};

/// Settings that follow their files.
#[derive(Debug)]
pub struct SettingsWatch {
    places: SettingsPlaces,
    given: Option<GivenSettings>,
    seen: Vec<Option<Print>>,
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Print {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl SettingsWatch {
    /// Reads the settings and begins to follow their files.
    pub fn start(places: SettingsPlaces, given: Option<GivenSettings>) -> (Self, LoadedSettings) {
        // Looked at before reading: a change in between shows up as one later.
        let seen = prints(&places);
        let loaded = load_settings(&places, given.as_ref());
        (Self { places, given, seen }, loaded)
    }

    /// Returns the settings anew when a file changed since the last time.
    pub fn poll(&mut self) -> Option<LoadedSettings> {
        let now = prints(&self.places);
        if now == self.seen {
            return None;
        }
        self.seen = now;
        Some(load_settings(&self.places, self.given.as_ref()))
    }
}

fn prints(places: &SettingsPlaces) -> Vec<Option<Print>> {
    let fixed = [&places.user, &places.project, &places.local, &places.state_file];
    let mut prints: Vec<Option<Print>> = fixed.into_iter().map(|path| print(path)).collect();
    prints.push(places.left_local.as_deref().and_then(print));
    prints.push(print(&places.drop_in_dir()));
    prints.extend(places.managed_files().iter().map(|path| print(path)));
    prints
}

fn print(path: &Path) -> Option<Print> {
    let metadata = fs::metadata(path).ok()?;
    Some(Print {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.size(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}
