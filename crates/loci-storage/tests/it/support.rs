//! A temporary home and project, and entries to put in them.

use std::fs;
use std::path::{Path, PathBuf};

use loci_core::entry::Entry;
use loci_core::ids::SessionId;
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use tempfile::TempDir;

/// A home directory with a project in it; nothing outside is touched.
pub(crate) struct World {
    _dir: TempDir,
    pub(crate) env: Env,
    pub(crate) home: ConfigHome,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let cwd = root.join("home/project");
        fs::create_dir_all(&cwd).unwrap();
        let mut env = Env::for_test(root.join("home"), cwd);
        if let Ok(path) = std::env::var("PATH") {
            env.vars = env.vars.with("PATH", path);
        }
        Self { _dir: dir, home: ConfigHome::from_env(&env), env }
    }

    pub(crate) fn cwd(&self) -> &Path {
        &self.env.cwd
    }

    /// Writes a file below the home directory.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.env.home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

/// Returns the session id that ends with `n`.
pub(crate) fn session_id(n: u32) -> SessionId {
    SessionId::parse(&format!("0a0a0a0a-0001-4000-8000-{n:012}")).unwrap()
}

/// Returns a user entry with this uuid.
pub(crate) fn user(uuid: &str, cwd: &Path) -> Entry {
    let line = serde_json::json!({
        "parentUuid": null,
        "isSidechain": false,
        "type": "user",
        "message": {"role": "user", "content": format!("prompt {uuid}")},
        "uuid": uuid,
        "cwd": cwd,
        "sessionId": "s",
    });
    Entry::parse(line.to_string()).unwrap()
}

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions")
}
