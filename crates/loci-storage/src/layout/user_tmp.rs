//! This user's own directory in the temporary directory, and each session's place in it.
//!
//! The temporary directory is shared with everybody, so the part below it must be ours: somebody else's directory,
//! or a symlink, under our name is refused, and checked anew each time a directory is needed.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The directory of this user, the only one whose name others could take. Nothing exists before it is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserTmp {
    ours: PathBuf,
}

/// A session's own place in the temporary directory, where background commands write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTmp {
    user: UserTmp,
    session: PathBuf,
}

/// Why there is no directory.
#[derive(Debug, thiserror::Error)]
pub enum UserTmpError {
    /// It could not be created or examined.
    #[error("Failed to create directory: `{}`", path.display())]
    Create {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its name is taken by something that is not our own directory.
    #[error(
        "Failed to use directory, it belongs to another user or is a link: `{}`. \
         Remove it, or set CLAUDE_CODE_TMPDIR to a directory of your own.",
        path.display()
    )]
    NotOurs {
        /// The directory.
        path: PathBuf,
    },
}

impl From<UserTmpError> for io::Error {
    fn from(error: UserTmpError) -> Self {
        match error {
            UserTmpError::Create { path, source } => Self::new(
                source.kind(),
                format!("Failed to create directory: `{}`: {source}", path.display()),
            ),
            UserTmpError::NotOurs { .. } => Self::new(io::ErrorKind::PermissionDenied, error.to_string()),
        }
    }
}

impl UserTmp {
    pub(crate) fn new(ours: PathBuf) -> Self {
        Self { ours }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.ours
    }

    /// Creates a directory below ours, for the user alone.
    pub(crate) fn create(&self, dir: PathBuf) -> Result<PathBuf, UserTmpError> {
        if let Some(shared) = self.ours.parent() {
            let failed = |source| UserTmpError::Create { path: shared.to_owned(), source };
            fs::create_dir_all(shared).map_err(failed)?;
        }
        create_private(&self.ours)?;
        make_private(&self.ours)?;
        create_private(&dir)?;
        Ok(dir)
    }

    /// Returns true when what lies in `dir`, directly below ours, can only come from this user.
    pub(crate) fn is_ours(&self, dir: &Path) -> bool {
        make_private(&self.ours).is_ok() && make_private(dir).is_ok()
    }
}

impl SessionTmp {
    /// Names a session's place below this user's own directory.
    pub(crate) fn new(user: UserTmp, session: &Path) -> Self {
        Self { session: user.ours.join(session), user }
    }

    /// Names a place below a directory of the caller's own, for tests.
    pub fn below(dir: PathBuf) -> Self {
        Self::new(UserTmp::new(dir), Path::new("session"))
    }

    /// Returns where background commands write.
    pub fn tasks_dir(&self) -> PathBuf {
        self.session.join("tasks")
    }

    /// Returns what is the temporary directory of sandboxed commands.
    pub fn sandbox_dir(&self) -> PathBuf {
        self.session.join("sandbox")
    }

    /// Returns where long results go of a session that leaves no transcript.
    pub fn tool_results_dir(&self) -> PathBuf {
        self.session.join("tool-results")
    }

    /// Creates a directory of this name, for the user alone; returns the session's place and the directory.
    pub(crate) fn create_dir(&self, name: &str) -> Result<(PathBuf, PathBuf), UserTmpError> {
        Ok((self.session.clone(), self.user.create(self.session.join(name))?))
    }

    /// Creates [`Self::tasks_dir`], for the user alone.
    pub fn create_tasks_dir(&self) -> Result<PathBuf, UserTmpError> {
        self.user.create(self.tasks_dir())
    }

    /// Creates [`Self::tool_results_dir`], for the user alone.
    pub fn create_tool_results_dir(&self) -> Result<PathBuf, UserTmpError> {
        self.user.create(self.tool_results_dir())
    }
}

fn create_private(path: &Path) -> Result<(), UserTmpError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| UserTmpError::Create { path: path.to_owned(), source })
}

/// Checks that `path` is our own directory and takes everybody else's rights away.
fn make_private(path: &Path) -> Result<(), UserTmpError> {
    let failed = |source| UserTmpError::Create { path: path.to_owned(), source };
    let metadata = fs::symlink_metadata(path).map_err(failed)?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(UserTmpError::NotOurs { path: path.to_owned() });
    }
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(tmp: &Path) -> SessionTmp {
        SessionTmp::new(UserTmp::new(tmp.join("claude-1")), Path::new("-p/s"))
    }

    #[test]
    fn directories_are_private_and_ours() {
        let tmp = tempfile::tempdir().unwrap();
        let place = place(&tmp.path().join("not-made-yet"));
        fs::create_dir_all(&place.user.ours).unwrap();
        fs::set_permissions(&place.user.ours, fs::Permissions::from_mode(0o755)).unwrap();
        let tasks = place.create_tasks_dir().unwrap();
        assert!(tasks.ends_with("claude-1/-p/s/tasks"));
        let results = place.create_tool_results_dir().unwrap();
        for dir in [&place.user.ours, &tasks, &results] {
            assert_eq!(fs::metadata(dir).unwrap().mode() & 0o777, 0o700, "{}", dir.display());
        }
    }

    #[test]
    fn symlink_in_place_of_user_tmp_is_refused() {
        let tmp = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let place = place(tmp.path());
        std::os::unix::fs::symlink(elsewhere.path(), &place.user.ours).unwrap();
        for created in [place.create_tasks_dir(), place.create_tool_results_dir()] {
            let error = created.unwrap_err();
            assert!(matches!(error, UserTmpError::NotOurs { .. }), "{error}");
        }
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "nothing was made behind the link");
    }
}
