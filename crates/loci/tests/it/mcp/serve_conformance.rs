//! The official conformance suite drives `loci mcp serve`, through a bridge, since it knows addresses only.
//!
//! It brings its own list of tools, resources and prompts that a server is to have; the scenarios here are those that any
//! server can answer. Of `server-stateless`, what wants such a tool or is about HTTP itself is listed in
//! `serve_conformance_failures.yaml`, and must fail.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use loci_testkit::NodePackages;

use crate::support::World;

const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";

/// `loci mcp serve` behind an address; ended with the test.
struct Bridge {
    child: Child,
    port: String,
}

impl Drop for Bridge {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().ok();
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/mcp").join(name)
}

impl Bridge {
    fn start(world: &World) -> Self {
        let mut command = Command::new("python3");
        command.arg(file("http_bridge.py")).args([env!("CARGO_BIN_EXE_loci"), "mcp", "serve"]);
        command
            .env_clear()
            .envs(world.home.env_vars(world.model.base_url()))
            .current_dir(world.home.project());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, port: port.trim().to_owned() }
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test says why")]
async fn check(revision: &str, scenarios: &[&str]) {
    let Some(packages) = NodePackages::new(env!("CARGO_TARGET_TMPDIR"), "mcp-conformance", 22, &[SUITE])
    else {
        eprintln!("skipped: there is no npm on this machine");
        return;
    };
    let world = World::new([]).await;
    let bridge = Bridge::start(&world);
    for scenario in scenarios {
        let results = tempfile::tempdir().unwrap();
        let mut suite = packages.program("conformance");
        suite.args(["server", "--scenario", scenario, "--spec-version", revision]);
        suite.arg("--url").arg(format!("http://127.0.0.1:{}/mcp", bridge.port));
        suite.arg("--expected-failures").arg(file("serve_conformance_failures.yaml"));
        let output = suite.current_dir(results.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{scenario} of {revision}\n{said}\n{complaints}");
        assert!(said.contains("SUCCESS"), "{scenario} of {revision} checked nothing\n{said}");
    }
}

#[tokio::test]
async fn scenarios_with_a_handshake_pass() {
    check("2025-06-18", &["server-initialize", "ping", "tools-list"]).await;
    check("2025-11-25", &["server-initialize", "ping", "tools-list"]).await;
}

#[tokio::test]
async fn scenarios_without_a_handshake_pass() {
    check("2026-07-28", &["tools-list", "server-stateless"]).await;
}
