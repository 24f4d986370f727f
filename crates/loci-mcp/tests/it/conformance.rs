//! The official conformance suite drives our client: every scenario of every revision that it knows.
//!
//! The client is the example `conformance_client`. A scenario that is known to fail is in `conformance_failures.yaml`, and
//! must fail: the suite refuses an entry that passes.

use std::path::PathBuf;
use std::process::Command;

use loci_testkit::NodePackages;

use crate::support::script;

const SUITE: &str = "@modelcontextprotocol/conformance@0.2.0-alpha.12";

/// Returns the suite; none if there is no npm.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
fn suite() -> Option<Command> {
    let Some(packages) = NodePackages::new(env!("CARGO_TARGET_TMPDIR"), "mcp-conformance", 22, &[SUITE])
    else {
        eprintln!("skipped: there is no npm on this machine");
        return None;
    };
    Some(packages.program("conformance"))
}

/// Returns the client that the suite starts.
fn client() -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    let client = path.join("examples/conformance_client");
    assert!(
        client.exists(),
        "`{}` is not there; `cargo build --examples -p loci-mcp` makes it",
        client.display()
    );
    client
}

/// Runs all scenarios of a revision.
fn check(revision: &str) {
    let Some(mut suite) = suite() else { return };
    let results = tempfile::tempdir().unwrap();
    suite.args(["client", "--suite", "all", "--spec-version", revision, "--timeout", "60000"]);
    suite.arg("--command").arg(client());
    suite.arg("--expected-failures").arg(script("conformance_failures.yaml"));
    suite.arg("-o").arg(results.path()).current_dir(results.path());
    let output = suite.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{revision}\n{said}\n{complaints}");
    assert!(said.contains("passed"), "the suite ran nothing\n{said}\n{complaints}");
}

#[test]
fn scenarios_of_2025_03_26_pass() {
    check("2025-03-26");
}

#[test]
fn scenarios_of_2025_06_18_pass() {
    check("2025-06-18");
}

#[test]
fn scenarios_of_2025_11_25_pass() {
    check("2025-11-25");
}

#[test]
fn scenarios_of_2026_07_28_pass() {
    check("2026-07-28");
}
