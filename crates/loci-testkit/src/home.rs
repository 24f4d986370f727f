//! A temporary home and project, so that no test reads or writes the real ones.
//!
//! ```text
//! <temporary directory>/
//!   home/            HOME; the config home is home/.claude
//!   project/         the working directory, a git repository if asked
//! ```
//!
//! Paths are resolved (no symbolic links), because programs print and encode them resolved.

use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The moment of every commit in a test repository.
const COMMIT_DATE: &str = "2026-01-02T03:04:05Z";

/// A temporary home and project; both are deleted when it is dropped.
#[derive(Debug)]
pub struct TestHome {
    /// Deletes the directory when dropped.
    _directory: TempDir,
    root: PathBuf,
}

impl Default for TestHome {
    fn default() -> Self {
        Self::new()
    }
}

impl TestHome {
    /// Makes an empty home and an empty project that is not a repository.
    pub fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("loci-test-").tempdir().expect("make a directory");
        let root = directory.path().canonicalize().expect("resolve the directory");
        for name in ["home/.claude", "project"] {
            fs::create_dir_all(root.join(name)).expect("make a directory");
        }
        Self { _directory: directory, root }
    }

    /// Makes an empty home and a project that is a git repository with one commit, the same in every run.
    pub fn with_git() -> Self {
        let home = Self::new();
        home.git(&["init", "--quiet", "--initial-branch=main"]);
        home.write("README.md", "# project\n");
        home.commit("first commit");
        home
    }

    /// Returns the directory that `HOME` names.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Returns the working directory.
    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// Returns the config home, `~/.claude`.
    pub fn config_home(&self) -> PathBuf {
        self.home().join(".claude")
    }

    /// Writes a file of the project, with the directories it needs, and returns its path.
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        write(&self.project().join(path), content.as_ref())
    }

    /// Writes a file under the config home, such as `settings.json`, and returns its path.
    pub fn write_config(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        write(&self.config_home().join(path), content.as_ref())
    }

    /// Writes a file under the home directory, such as `.claude.json`, and returns its path.
    pub fn write_home(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        write(&self.home().join(path), content.as_ref())
    }

    /// Returns the text of a file of the project.
    pub fn read(&self, path: impl AsRef<Path>) -> String {
        let path = self.project().join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("read `{}`: {error}", path.display()))
    }

    /// Returns the session files under the config home, in the order of their paths.
    ///
    /// Subagent transcripts, which lie deeper, are among them.
    pub fn sessions(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect_sessions(&self.config_home().join("projects"), &mut found);
        found.sort();
        found
    }

    /// Returns the lines of a session file, each parsed.
    ///
    /// # Panics
    ///
    /// If a line is not JSON, with its number.
    pub fn read_session(&self, path: impl AsRef<Path>) -> Vec<Value> {
        read_jsonl(path.as_ref())
    }

    /// Returns the lines of the only session there is.
    ///
    /// # Panics
    ///
    /// If there is none, or more than one.
    pub fn only_session(&self) -> Vec<Value> {
        match self.sessions().as_slice() {
            [path] => self.read_session(path),
            paths => panic!("expected one session, found {paths:?}"),
        }
    }

    /// Runs git in the project and returns what it printed.
    ///
    /// # Panics
    ///
    /// If git fails, with what it said.
    pub fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(args).current_dir(self.project()).env_clear().envs(self.git_vars());
        let output = command.output().expect("run git");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Commits everything in the project.
    pub fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
    }

    /// Returns the variables to run the binary with, after `env_clear`, against a scripted model.
    pub fn env_vars(&self, base_url: &str) -> BTreeMap<String, String> {
        let mut vars = self.git_vars();
        vars.insert("ANTHROPIC_BASE_URL".into(), base_url.into());
        vars.insert("ANTHROPIC_API_KEY".into(), "sk-ant-test".into());
        // Requests made beside the conversation would take the steps of a script that does not know of them.
        vars.insert("LOCI_SESSION_MEMORY".into(), "0".into());
        vars.insert("LOCI_MEMORY_EXTRACTION".into(), "0".into());
        vars.insert("LOCI_PREPARE_SUMMARY".into(), "0".into());
        // Tests that want such work see its end.
        vars.insert("LOCI_DRAIN_MS".into(), "10000".into());
        vars
    }

    /// Returns the variables that cut git off from the user's and the system's configuration.
    fn git_vars(&self) -> BTreeMap<String, String> {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
        let home = self.home().display().to_string();
        let mut vars = BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), home)]);
        let fixed = [
            ("LANG", "C.UTF-8"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_AUTHOR_NAME", "Test"),
            ("GIT_AUTHOR_EMAIL", "test@example.com"),
            ("GIT_AUTHOR_DATE", COMMIT_DATE),
            ("GIT_COMMITTER_NAME", "Test"),
            ("GIT_COMMITTER_EMAIL", "test@example.com"),
            ("GIT_COMMITTER_DATE", COMMIT_DATE),
        ];
        vars.extend(fixed.map(|(key, value)| (key.to_owned(), value.to_owned())));
        vars
    }
}

fn write(path: &Path, content: &[u8]) -> PathBuf {
    let parent = path.parent().expect("a file has a parent");
    fs::create_dir_all(parent).expect("make a directory");
    fs::write(path, content).unwrap_or_else(|error| panic!("write `{}`: {error}", path.display()));
    path.to_owned()
}

fn collect_sessions(directory: &Path, found: &mut Vec<PathBuf>) {
    // No directory means no sessions yet.
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries {
        let path = entry.expect("list a directory").path();
        if path.is_dir() {
            collect_sessions(&path, found);
        } else if path.extension() == Some(OsStr::new("jsonl")) {
            found.push(path);
        }
    }
}

fn read_jsonl(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("read `{}`: {error}", path.display()));
    let parse = |(n, line): (usize, &str)| {
        serde_json::from_str(line)
            .unwrap_or_else(|error| panic!("`{}` line {}: {error}: {line}", path.display(), n + 1))
    };
    text.lines().enumerate().map(parse).collect()
}
