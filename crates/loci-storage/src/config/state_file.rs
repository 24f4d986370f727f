//! The global state file, `.claude.json`, which other programs write too.
//!
//! One JSON object, pretty-printed with two spaces. It is changed key by key: read again under a lock, the
//! version before copied to `backups/.claude.json.backup.<milliseconds>` in the config home (the last five are
//! kept), one value set, written beside and renamed. All other values keep their bytes. A file that is not a
//! JSON object is copied to `backups/.claude.json.corrupted.<milliseconds>` and left alone.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_core::raw::RawObject;
use loci_core::skill::{SkillUsage, SkillUsageTable};
use loci_settings::edit::{self, EditError};
use loci_stdx::{
    FileLock, LockError, Random, WriteError, WriteOptions, read_regular_to_string, write_atomic,
};
use serde_json::Value;

use crate::layout::ConfigHome;

/// How long to wait for other processes that are changing the file; there may be many, on a busy machine.
const LOCK_TIMEOUT: Duration = Duration::from_secs(120);
/// The key of the id that requests carry.
const USER_ID: &str = "userID";
/// The key that says a folder is trusted.
const TRUSTED: &str = "hasTrustDialogAccepted";
/// The key that says instructions may come from outside a project.
const IMPORTS: &str = "hasClaudeMdExternalIncludesApproved";
/// The key that says the user was asked about that.
const IMPORTS_ASKED: &str = "hasClaudeMdExternalIncludesWarningShown";
/// The key that says after how many milliseconds a user who is waited for is notified.
const IDLE_NOTICE: &str = "messageIdleNotifThresholdMs";
/// The key of how often skills were used.
const SKILL_USAGE: &str = "skillUsage";
/// How many earlier versions are kept.
const BACKUPS: usize = 5;

/// Why the state file could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum StateFileError {
    /// It could not be read.
    #[error("Failed to read state: `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not a JSON object, so it is not written over.
    #[error("Failed to parse state: `{}`", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: EditError,
    },
    /// Another process held the lock.
    #[error("Failed to lock state")]
    Lock(#[from] LockError),
    /// It could not be replaced, or the version before could not be kept.
    #[error("Failed to save state")]
    Write(#[from] WriteError),
}

/// Returns the user's id if one is kept; nothing is written, and a broken file is no obstacle.
pub fn known_user_id(home: &ConfigHome) -> Option<String> {
    stored_id(&read(home.state_file()).ok()?)
}

/// Returns how long a session may wait for its user before they are notified, where that is said.
pub fn idle_notice(home: &ConfigHome) -> Option<Duration> {
    let text = read(home.state_file()).ok()?;
    let object = RawObject::parse(text.trim_start_matches('\u{feff}')).ok()?;
    object.read::<u64>(IDLE_NOTICE).map(Duration::from_millis)
}

/// Returns the user's id, 64 hexadecimal digits, making and keeping one when there is none.
pub fn user_id(home: &ConfigHome, random: &dyn Random) -> Result<String, StateFileError> {
    if let Some(id) = stored_id(&read(home.state_file())?) {
        return Ok(id);
    }
    let id = random.hex(64);
    edit_state(home, |text| match stored_id(text) {
        // Somebody else was faster.
        Some(_) => Ok(text.to_owned()),
        None => edit::set(text, &[USER_ID], &Value::from(id.as_str())),
    })?;
    Ok(stored_id(&read(home.state_file())?).unwrap_or(id))
}

/// Keeps whether the user trusts a folder.
pub fn set_trust(home: &ConfigHome, root: &Path, is_trusted: bool) -> Result<bool, StateFileError> {
    let root = root.to_string_lossy();
    edit_state(home, |text| edit::set(text, &["projects", &root, TRUSTED], &Value::from(is_trusted)))
}

/// Returns whether the user lets a project's instructions import files from outside; `None` when never asked.
pub fn external_imports(home: &ConfigHome, root: &Path) -> Option<bool> {
    let text = read(home.state_file()).ok()?;
    let state: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    state.get("projects")?.get(root.to_str()?)?.get(IMPORTS)?.as_bool()
}

/// Keeps whether a project's instructions may import files from outside it; the user was asked either way.
pub fn set_external_imports(home: &ConfigHome, root: &Path, may: bool) -> Result<bool, StateFileError> {
    let root = root.to_string_lossy();
    edit_state(home, |text| {
        let text = edit::set(text, &["projects", &root, IMPORTS_ASKED], &Value::from(true))?;
        edit::set(&text, &["projects", &root, IMPORTS], &Value::from(may))
    })
}

/// Adds uses of skills to those that are kept. Whoever waits for that waits no longer than `patience` for other processes.
/// Where something else stands in their place, it stays.
pub fn add_skill_usage(
    home: &ConfigHome,
    uses: &SkillUsageTable,
    patience: Duration,
) -> Result<bool, StateFileError> {
    edit_state_within(home, patience, |text| {
        let state: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap_or_default();
        let kept = state.get(SKILL_USAGE).unwrap_or(&Value::Null);
        let mut text = text.to_owned();
        for (name, uses) in uses.iter() {
            let entry = kept.get(name).unwrap_or(&Value::Null);
            let is_other = |value: &Value| !value.is_object() && !value.is_null();
            if is_other(kept) || is_other(entry) {
                continue;
            }
            let mut usage = SkillUsage::from_value(entry);
            usage.add(uses);
            // What else its entry says stays.
            let mut entry = entry.as_object().cloned().unwrap_or_default();
            entry.insert("usageCount".to_owned(), usage.count.into());
            entry.insert("lastUsedAt".to_owned(), usage.last_used_ms.into());
            text = edit::set(&text, &[SKILL_USAGE, name], &Value::Object(entry))?;
        }
        Ok(text)
    })
}

/// Changes the text of the state file by `change`; returns whether it changed.
pub fn edit_state(
    home: &ConfigHome,
    change: impl FnOnce(&str) -> Result<String, EditError>,
) -> Result<bool, StateFileError> {
    edit_state_within(home, LOCK_TIMEOUT, change)
}

fn edit_state_within(
    home: &ConfigHome,
    patience: Duration,
    change: impl FnOnce(&str) -> Result<String, EditError>,
) -> Result<bool, StateFileError> {
    let path = home.state_file();
    let _lock = FileLock::acquire(&home.loci_dir().join("state.lock"), patience)?;
    let before = read(path)?;
    // A new file ends without a newline, as the programs that share it write it.
    let text = if before.trim().is_empty() { "{}" } else { before.as_str() };
    let after = match change(text) {
        Ok(after) if after == text => return Ok(false),
        Ok(after) => after,
        Err(source) => {
            keep(home, &before, "corrupted")?;
            return Err(StateFileError::Parse { path: path.to_owned(), source });
        }
    };
    if !before.is_empty() {
        keep(home, &before, "backup")?;
        forget_old_backups(home);
    }
    write_atomic(path, after.as_bytes(), &WriteOptions::private().creating_parents())?;
    Ok(true)
}

/// Copies a version of the file, named after the time it was written.
fn keep(home: &ConfigHome, text: &str, kind: &str) -> Result<(), WriteError> {
    let written = fs::metadata(home.state_file()).map(|metadata| {
        metadata.mtime().saturating_mul(1000).saturating_add(metadata.mtime_nsec() / 1_000_000)
    });
    let name = format!(".claude.json.{kind}.{}", written.unwrap_or_default());
    write_atomic(&backups(home).join(name), text.as_bytes(), &WriteOptions::private().creating_parents())
}

fn backups(home: &ConfigHome) -> PathBuf {
    home.root().join("backups")
}

/// Removes all but the newest versions; one that cannot be removed does no harm.
fn forget_old_backups(home: &ConfigHome) {
    let Ok(entries) = fs::read_dir(backups(home)) else { return };
    let time = |path: &PathBuf| -> Option<u64> {
        path.file_name()?.to_str()?.strip_prefix(".claude.json.backup.")?.parse().ok()
    };
    let mut old: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    old.retain(|path| time(path).is_some());
    old.sort_by_key(time);
    let n_old = old.len().saturating_sub(BACKUPS);
    for path in &old[..n_old] {
        fs::remove_file(path).unwrap_or_default();
    }
}

/// Reads the file; one that does not exist is empty.
fn read(path: &Path) -> Result<String, StateFileError> {
    match read_regular_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(StateFileError::Read { path: path.to_owned(), source }),
    }
}

fn stored_id(text: &str) -> Option<String> {
    let object = RawObject::parse(text.trim_start_matches('\u{feff}')).ok()?;
    object.read::<String>(USER_ID).filter(|id| !id.is_empty())
}
