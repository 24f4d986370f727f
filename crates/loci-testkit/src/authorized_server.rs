//! An MCP server that wants a login, with the authorization server that gives one, on one port of loopback.
//!
//! It is strict: a client that is unknown, a proof that does not fit, a resource that is not the published one, and a
//! refresh token that was used before are refused. What it does wrong is chosen by options, which a test may change as it
//! goes; `servers/authorized_mcp_server.py` names them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// A running server; it ends with the test.
#[derive(Debug)]
pub struct AuthorizedServer {
    child: Child,
    port: u16,
    dir: tempfile::TempDir,
}

impl AuthorizedServer {
    /// Starts it with options, a JSON object.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start(options: &Value) -> Self {
        let dir = tempfile::tempdir().expect("make a directory");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("servers/authorized_mcp_server.py");
        write_options(dir.path(), options);
        let mut command = Command::new("python3");
        command.arg(script).arg(options_file(dir.path())).arg(dir.path().join("log"));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("start the server");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it has an output");
        BufReader::new(stdout).read_line(&mut line).expect("it says its port");
        let port = line.trim().parse().expect("its port is a number");
        Self { child, port, dir }
    }

    /// Changes its options.
    pub fn set(&self, options: &Value) {
        write_options(self.dir.path(), options);
    }

    /// Returns where it is.
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the address of the MCP server.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.base_url())
    }

    /// Returns every request that came, in order: `method`, `path`, `authorization`, and `rpc` or `sent`.
    ///
    /// # Panics
    ///
    /// If the log cannot be read.
    pub fn requests(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a line of the log is JSON")).collect()
    }

    /// Returns the requests for a path.
    pub fn requests_to(&self, path: &str) -> Vec<Value> {
        self.requests().into_iter().filter(|request| request["path"] == path).collect()
    }
}

impl Drop for AuthorizedServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn options_file(dir: &Path) -> PathBuf {
    dir.join("options.json")
}

/// Replaces the options as a whole: the server may read them at any moment.
fn write_options(dir: &Path, options: &Value) {
    let beside = dir.join("options.new");
    std::fs::write(&beside, options.to_string()).expect("write options");
    std::fs::rename(beside, options_file(dir)).expect("replace options");
}
