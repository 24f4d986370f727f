//! Where things lie in the config home, and who may read them.
//!
//! ```text
//! <home>/.claude/                                  or $CLAUDE_CONFIG_DIR
//!   CLAUDE.md
//!   projects/<slug>/<session>.jsonl                the transcript, 0600
//!   projects/<slug>/<session>/subagents/agent-<id>.jsonl
//!   projects/<slug>/<session>/tool-results/<id>.txt
//!   file-history/<session>/
//!   tasks/<session>/<n>.json                       the task list
//!   loci/                                          what only loci needs
//! <home>/.claude.json                              or $CLAUDE_CONFIG_DIR/.claude.json
//! <tmp>/claude-<uid>/<slug>/<session>/tasks/       output of background commands, 0700
//! <tmp>/claude-<uid>/unsaved/<session>.jsonl       what a run could not save by its end
//! <home>/.codex/                                   or $CODEX_HOME: sessions of Codex, only ever read
//! ```
//!
//! `<slug>` is made from the real path of the working directory by [`project_slug`]. Two directories may share
//! a slug; the `cwd` recorded in the entries tells them apart.

mod user_tmp;

use std::path::{Path, PathBuf};

use loci_core::ids::SessionId;
use loci_core::path::project_slug;
use loci_stdx::Env;

use user_tmp::UserTmp;
pub use user_tmp::{SessionTmp, UserTmpError};

/// The places of everything loci keeps for a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigHome {
    root: PathBuf,
    state_file: PathBuf,
    tmp: PathBuf,
    codex: PathBuf,
    /// A fixed name for the project directory, in place of the slug.
    project_name: Option<String>,
}

impl ConfigHome {
    /// Finds the config home of the environment: `CLAUDE_CONFIG_DIR`, or `.claude` in the home directory.
    pub fn from_env(env: &Env) -> Self {
        let tmp = env.vars.non_empty("CLAUDE_CODE_TMPDIR").or_else(|| env.vars.non_empty("TMPDIR"));
        let tmp = env.cwd.join(tmp.unwrap_or("/tmp"));
        let codex = env.vars.non_empty("CODEX_HOME");
        let codex = codex.map_or_else(|| env.home.join(".codex"), |dir| env.cwd.join(dir));
        match env.vars.non_empty("CLAUDE_CONFIG_DIR") {
            Some(dir) => {
                let root = env.cwd.join(dir);
                let name = env.vars.get("CLAUDE_CODE_PROJECT_DIR_NAME").filter(|name| is_project_name(name));
                Self {
                    state_file: root.join(".claude.json"),
                    root,
                    tmp,
                    codex,
                    project_name: name.map(str::to_owned),
                }
            }
            None => Self {
                root: env.home.join(".claude"),
                state_file: env.home.join(".claude.json"),
                tmp,
                codex,
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
        SessionPlace::new(self.project_dir(real_cwd).join(format!("{id}.jsonl")), id.clone())
    }

    /// Returns the directory of a session's file checkpoints.
    pub fn file_history_dir(&self, id: &SessionId) -> PathBuf {
        self.root.join("file-history").join(id.as_str())
    }

    /// Returns the directory of a task list.
    pub fn tasks_dir(&self, list: &str) -> PathBuf {
        self.root.join("tasks").join(list)
    }

    /// Returns the user's own instruction file.
    pub fn user_instructions(&self) -> PathBuf {
        self.root.join("CLAUDE.md")
    }

    /// Returns the user's own settings.
    pub fn user_settings(&self) -> PathBuf {
        self.root.join("settings.json")
    }

    /// Returns the file in which a login may be kept.
    pub fn credentials_file(&self) -> PathBuf {
        self.root.join(".credentials.json")
    }

    /// Returns the file of global state, `.claude.json`.
    pub fn state_file(&self) -> &Path {
        &self.state_file
    }

    /// Returns the directory for what only loci needs.
    pub fn loci_dir(&self) -> PathBuf {
        self.root.join("loci")
    }

    /// Returns where Codex keeps its sessions; nothing there is ours to write.
    pub fn codex_home(&self) -> &Path {
        &self.codex
    }

    /// Returns a session's own place in the temporary directory.
    pub fn session_tmp(&self, real_cwd: &Path, id: &SessionId) -> SessionTmp {
        let session = Path::new(&self.project_dir_name(real_cwd)).join(id.as_str());
        SessionTmp::new(self.user_tmp(), &session)
    }

    /// Returns where lines wait that a run could not save by its end; it may not exist.
    pub(crate) fn unsaved_dir(&self) -> PathBuf {
        self.user_tmp().path().join("unsaved")
    }

    /// Creates [`Self::unsaved_dir`], readable by the user alone.
    pub(crate) fn create_unsaved_dir(&self) -> Result<PathBuf, UserTmpError> {
        self.user_tmp().create(self.unsaved_dir())
    }

    /// Returns true when what lies in [`Self::unsaved_dir`] can only come from this user.
    pub(crate) fn is_unsaved_dir_ours(&self) -> bool {
        self.user_tmp().is_ours(&self.unsaved_dir())
    }

    fn user_tmp(&self) -> UserTmp {
        UserTmp::new(self.tmp.join(format!("claude-{}", rustix::process::geteuid().as_raw())))
    }
}

fn is_project_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// In which form a session is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The form of Claude Code, which is ours.
    Own,
    /// A rollout of Codex.
    Codex,
}

/// A session's id and the place of its files, which change only together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPlace {
    file: PathBuf,
    id: SessionId,
    dialect: Dialect,
}

impl SessionPlace {
    /// Names the session that a transcript file holds.
    pub fn new(file: PathBuf, id: SessionId) -> Self {
        Self { file, id, dialect: Dialect::Own }
    }

    /// Names the session that a rollout of Codex holds.
    pub(crate) fn rollout(file: PathBuf, id: SessionId) -> Self {
        Self { file, id, dialect: Dialect::Codex }
    }

    /// Returns the form in which the session is written.
    pub fn dialect(&self) -> Dialect {
        self.dialect
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
    fn config_home_follows_its_variable() {
        let home = ConfigHome::from_env(&env(&[]));
        assert_eq!(home.state_file(), Path::new("/home/dev/.claude.json"));
        let session = home.session(Path::new("/home/dev/p.x"), &id());
        let file = "/home/dev/.claude/projects/-home-dev-p-x/0a0a0a0a-0001-4000-8000-000000000001";
        assert_eq!(session.file(), Path::new(&format!("{file}.jsonl")));
        assert_eq!(session.tool_results_dir(), Path::new(&format!("{file}/tool-results")));
        assert_eq!(session.subagents_dir(), Path::new(&format!("{file}/subagents")));

        assert_eq!(home.codex_home(), Path::new("/home/dev/.codex"));
        let codex = ConfigHome::from_env(&env(&[("CODEX_HOME", "elsewhere")]));
        assert_eq!(codex.codex_home(), Path::new("/home/dev/p/elsewhere"));
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
}
