//! Where things lie in the config home, and who may read them.
//!
//! ```text
//! <home>/.claude/                                  or $CLAUDE_CONFIG_DIR
//!   CLAUDE.md
//!   projects/<slug>/<session>.jsonl                the transcript, 0600
//!   projects/<slug>/<session>/subagents/agent-<id>.jsonl
//!   projects/<slug>/<session>/tool-results/<id>.txt
//!   file-history/<session>/
//!   loci/                                          what only loci needs
//! <home>/.claude.json                              or $CLAUDE_CONFIG_DIR/.claude.json
//! <tmp>/claude-<uid>/<slug>/<session>/tasks/       output of background commands, 0700
//! <tmp>/claude-<uid>/unsaved/<session>.jsonl       what a run could not save by its end
//! ```
//!
//! `<slug>` is made from the real path of the working directory by [`project_slug`]. Two directories may share
//! a slug; the `cwd` recorded in the entries tells them apart.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use loci_core::ids::SessionId;
use loci_core::path::project_slug;
use loci_stdx::Env;

/// The places of everything loci keeps for a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigHome {
    root: PathBuf,
    state_file: PathBuf,
    tmp: PathBuf,
    /// A fixed name for the project directory, in place of the slug.
    project_name: Option<String>,
}

impl ConfigHome {
    /// Finds the config home of the environment: `CLAUDE_CONFIG_DIR`, or `.claude` in the home directory.
    pub fn from_env(env: &Env) -> Self {
        let tmp = env.vars.non_empty("CLAUDE_CODE_TMPDIR").or_else(|| env.vars.non_empty("TMPDIR"));
        let tmp = env.cwd.join(tmp.unwrap_or("/tmp"));
        match env.vars.non_empty("CLAUDE_CONFIG_DIR") {
            Some(dir) => {
                let root = env.cwd.join(dir);
                let name = env.vars.get("CLAUDE_CODE_PROJECT_DIR_NAME").filter(|name| is_project_name(name));
                Self {
                    state_file: root.join(".claude.json"),
                    root,
                    tmp,
                    project_name: name.map(str::to_owned),
                }
            }
            None => Self {
                root: env.home.join(".claude"),
                state_file: env.home.join(".claude.json"),
                tmp,
                project_name: None,
            },
        }
    }

    /// Returns the config home itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of all projects.
    pub fn projects_dir(&self) -> PathBuf {
        self.root.join("projects")
    }

    /// Returns the directory of one project's sessions; `real_cwd` has its symlinks resolved.
    pub fn project_dir(&self, real_cwd: &Path) -> PathBuf {
        self.projects_dir().join(self.project_dir_name(real_cwd))
    }

    fn project_dir_name(&self, real_cwd: &Path) -> String {
        self.project_name.clone().unwrap_or_else(|| project_slug(&real_cwd.to_string_lossy()))
    }

    /// Returns the place of a session that belongs to `real_cwd`.
    pub fn session(&self, real_cwd: &Path, id: &SessionId) -> SessionPlace {
        SessionPlace { file: self.project_dir(real_cwd).join(format!("{id}.jsonl")), id: id.clone() }
    }

    /// Returns the directory of a session's file checkpoints.
    pub fn file_history_dir(&self, id: &SessionId) -> PathBuf {
        self.root.join("file-history").join(id.as_str())
    }

    /// Returns the user's own instruction file.
    pub fn user_instructions(&self) -> PathBuf {
        self.root.join("CLAUDE.md")
    }

    /// Returns the file of global state, `.claude.json`.
    pub fn state_file(&self) -> &Path {
        &self.state_file
    }

    /// Returns the directory for what only loci needs.
    pub fn loci_dir(&self) -> PathBuf {
        self.root.join("loci")
    }

    /// Returns where a session's background commands write, which may not exist yet.
    pub fn tasks_dir(&self, real_cwd: &Path, id: &SessionId) -> PathBuf {
        let project = self.project_dir_name(real_cwd);
        self.user_tmp_dir().join(project).join(id.as_str()).join("tasks")
    }

    fn user_tmp_dir(&self) -> PathBuf {
        self.tmp.join(format!("claude-{}", rustix::process::geteuid().as_raw()))
    }

    /// Creates [`Self::tasks_dir`], readable by the user alone.
    ///
    /// The temporary directory is shared with everybody, so the part below it must be ours: somebody else's
    /// directory, or a symlink, under our name is refused.
    pub fn create_tasks_dir(&self, real_cwd: &Path, id: &SessionId) -> Result<PathBuf, TasksDirError> {
        self.create_in_user_tmp(self.tasks_dir(real_cwd, id))
    }

    /// Returns where lines wait that a run could not save by its end; it may not exist.
    pub(crate) fn unsaved_dir(&self) -> PathBuf {
        self.user_tmp_dir().join("unsaved")
    }

    /// Creates [`Self::unsaved_dir`], readable by the user alone.
    pub(crate) fn create_unsaved_dir(&self) -> Result<PathBuf, TasksDirError> {
        self.create_in_user_tmp(self.unsaved_dir())
    }

    /// Returns true when what lies in [`Self::unsaved_dir`] can only come from this user.
    pub(crate) fn is_unsaved_dir_ours(&self) -> bool {
        make_private(&self.user_tmp_dir()).is_ok() && make_private(&self.unsaved_dir()).is_ok()
    }

    fn create_in_user_tmp(&self, dir: PathBuf) -> Result<PathBuf, TasksDirError> {
        let ours = self.user_tmp_dir();
        let create = |path: &Path| {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(|source| TasksDirError::Create { path: path.to_owned(), source })
        };
        fs::create_dir_all(&self.tmp)
            .map_err(|source| TasksDirError::Create { path: self.tmp.clone(), source })?;
        create(&ours)?;
        make_private(&ours)?;
        create(&dir)?;
        Ok(dir)
    }
}

/// Why there is no directory for background commands.
#[derive(Debug, thiserror::Error)]
pub enum TasksDirError {
    /// It could not be created or examined.
    #[error("Failed to create directory: `{}`", path.display())]
    Create {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its name is taken by something that is not our own directory.
    #[error("Failed to use directory, it belongs to another user or is a link: `{}`", path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
    },
}

/// Checks that `path` is our own directory and takes everybody else's rights away.
fn make_private(path: &Path) -> Result<(), TasksDirError> {
    let failed = |source| TasksDirError::Create { path: path.to_owned(), source };
    let metadata = fs::symlink_metadata(path).map_err(failed)?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(TasksDirError::NotOurs { path: path.to_owned() });
    }
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

fn is_project_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// A session's id and the place of its files, which change only together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPlace {
    file: PathBuf,
    id: SessionId,
}

impl SessionPlace {
    /// Names the session that a transcript file holds.
    pub fn new(file: PathBuf, id: SessionId) -> Self {
        Self { file, id }
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the transcript.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns the directory beside the transcript that holds what belongs to it.
    pub fn dir(&self) -> PathBuf {
        self.file.with_extension("")
    }

    /// Returns where outputs too long for the transcript go.
    pub fn tool_results_dir(&self) -> PathBuf {
        self.dir().join("tool-results")
    }

    /// Returns the directory of subagents' transcripts.
    pub fn subagents_dir(&self) -> PathBuf {
        self.dir().join("subagents")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(vars: &[(&str, &str)]) -> Env {
        let mut env = Env::for_test("/home/dev", "/home/dev/p");
        env.vars = vars.iter().copied().collect();
        env
    }

    fn id() -> SessionId {
        SessionId::parse("0a0a0a0a-0001-4000-8000-000000000001").unwrap()
    }

    #[test]
    fn the_config_home_moves_with_its_variable() {
        let home = ConfigHome::from_env(&env(&[]));
        assert_eq!(home.state_file(), Path::new("/home/dev/.claude.json"));
        let session = home.session(Path::new("/home/dev/p.x"), &id());
        let file = "/home/dev/.claude/projects/-home-dev-p-x/0a0a0a0a-0001-4000-8000-000000000001";
        assert_eq!(session.file(), Path::new(&format!("{file}.jsonl")));
        assert_eq!(session.tool_results_dir(), Path::new(&format!("{file}/tool-results")));
        assert_eq!(session.subagents_dir(), Path::new(&format!("{file}/subagents")));

        let vars = [("CLAUDE_CONFIG_DIR", "/c"), ("CLAUDE_CODE_PROJECT_DIR_NAME", "one")];
        let moved = ConfigHome::from_env(&env(&vars));
        assert_eq!(moved.state_file(), Path::new("/c/.claude.json"));
        assert_eq!(moved.project_dir(Path::new("/x")), Path::new("/c/projects/one"));
        let lone = ConfigHome::from_env(&env(&vars[1..]));
        assert_eq!(lone.project_dir(Path::new("/x")), Path::new("/home/dev/.claude/projects/-x"));
    }

    #[test]
    fn the_fixed_project_name_is_a_plain_name() {
        for (name, ok) in [("a-b_C9", true), ("", false), ("../x", false), ("a b", false)] {
            assert_eq!(is_project_name(name), ok, "{name}");
        }
        assert!(!is_project_name(&"a".repeat(65)));
    }

    #[test]
    fn the_tasks_directory_is_private_and_ours() {
        let tmp = tempfile::tempdir().unwrap();
        let home = ConfigHome::from_env(&env(&[("TMPDIR", tmp.path().to_str().unwrap())]));
        let ours = home.user_tmp_dir();
        fs::create_dir(&ours).unwrap();
        fs::set_permissions(&ours, fs::Permissions::from_mode(0o755)).unwrap();
        let tasks = home.create_tasks_dir(Path::new("/p"), &id()).unwrap();
        assert!(tasks.ends_with("-p/0a0a0a0a-0001-4000-8000-000000000001/tasks"));
        for dir in [&ours, &tasks] {
            assert_eq!(fs::metadata(dir).unwrap().mode() & 0o777, 0o700, "{}", dir.display());
        }
    }

    #[test]
    fn a_link_in_the_tasks_directorys_place_is_refused() {
        let tmp = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let home = ConfigHome::from_env(&env(&[("TMPDIR", tmp.path().to_str().unwrap())]));
        std::os::unix::fs::symlink(elsewhere.path(), home.user_tmp_dir()).unwrap();
        let error = home.create_tasks_dir(Path::new("/p"), &id()).unwrap_err();
        assert!(matches!(error, TasksDirError::NotOurs { .. }), "{error}");
    }
}
