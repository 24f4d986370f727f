//! A session that moves to another directory: its transcript, and what belongs to it, go where that directory's sessions lie.
//!
//! 1. The log is written before anything moves.
//! 2. A session that a living process works on is refused, and no file is ever written over.
//! 3. What belongs to the session moves first and back again where the transcript cannot follow.

use std::io;
use std::path::{Path, PathBuf};

use loci_core::ids::SessionId;
use loci_stdx::{Timestamp, create_private_dir_all, rfc3339_millis};

use super::remove::{RemoveError, audit_record, move_path, process_on};
use crate::layout::{ConfigHome, SessionPlace};

/// Why a session did not move.
#[derive(Debug, thiserror::Error)]
pub enum RelocateError {
    /// A living process works on it.
    #[error("Session {id} is in use by process {pid}")]
    InUse {
        /// The session.
        id: SessionId,
        /// The process.
        pid: i32,
    },
    /// Something lies where the session would go.
    #[error("Cannot move the session, the file exists: `{}`", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file could not be moved.
    #[error("Failed to move: `{}`", path.display())]
    Disk {
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The move could not be written down.
    #[error(transparent)]
    Audit(RemoveError),
}

/// Moves a session to the sessions of a directory, whose path has no symlinks; returns its new place. One that lies there
/// already stays.
pub fn relocate_session(
    home: &ConfigHome,
    place: &SessionPlace,
    real_cwd: &Path,
    now: Timestamp,
) -> Result<SessionPlace, RelocateError> {
    let id = place.id();
    let to = home.session(real_cwd, id);
    if to.file() == place.file() {
        return Ok(to);
    }
    if let Some(pid) = process_on(home, id) {
        return Err(RelocateError::InUse { id: id.clone(), pid });
    }
    for path in [to.file().to_owned(), to.dir()] {
        if path.symlink_metadata().is_ok() {
            return Err(RelocateError::Exists { path });
        }
    }
    let disk = |path: &Path| {
        let path = path.to_owned();
        move |source| RelocateError::Disk { path, source }
    };
    if let Some(parent) = to.file().parent() {
        create_private_dir_all(parent).map_err(disk(parent))?;
    }
    audit_record(home, &rfc3339_millis(now), "move", id.as_str(), place.file(), to.file())
        .map_err(RelocateError::Audit)?;
    let has_companions = place.dir().exists();
    if has_companions {
        move_path(&place.dir(), &to.dir()).map_err(disk(&place.dir()))?;
    }
    if let Err(error) = move_path(place.file(), to.file()) {
        if has_companions {
            move_path(&to.dir(), &place.dir()).map_err(disk(&to.dir()))?;
        }
        return Err(disk(place.file())(error));
    }
    Ok(to)
}

#[cfg(test)]
mod tests {
    use loci_stdx::Env;

    use super::*;

    #[test]
    fn session_moves_with_what_belongs_to_it_and_over_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let env = Env::for_test(dir.path(), dir.path().join("old"));
        let home = ConfigHome::from_env(&env);
        let id = SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap();
        let place = home.session(Path::new("/old"), &id);
        std::fs::create_dir_all(place.dir().join("subagents")).unwrap();
        std::fs::write(place.file(), "{}\n").unwrap();
        std::fs::write(place.dir().join("subagents/a.jsonl"), "a").unwrap();
        let to = relocate_session(&home, &place, Path::new("/new"), env.clock.now()).unwrap();
        assert_eq!(to.file(), home.session(Path::new("/new"), &id).file());
        assert_eq!(std::fs::read_to_string(to.file()).unwrap(), "{}\n");
        assert!(to.dir().join("subagents/a.jsonl").exists());
        assert!(!place.file().exists() && !place.dir().exists());
        let same = relocate_session(&home, &to, Path::new("/new"), env.clock.now()).unwrap();
        assert_eq!(same.file(), to.file(), "it is there already");
        std::fs::write(place.file(), "other").unwrap();
        let refused = relocate_session(&home, &to, Path::new("/old"), env.clock.now()).unwrap_err();
        assert!(matches!(refused, RelocateError::Exists { .. }), "{refused}");
        assert_eq!(std::fs::read_to_string(place.file()).unwrap(), "other");
        let log = std::fs::read_to_string(home.loci_dir().join("audit.log")).unwrap();
        assert_eq!(log.matches("\"move\"").count(), 1, "{log}");
    }
}
