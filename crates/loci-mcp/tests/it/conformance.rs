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

/// Scenarios that measure time: a busy machine is late where all run side by side, so they have another try alone.
const TIMED: [&str; 1] = ["sse-retry"];

/// Runs all scenarios of a revision.
fn check(revision: &str) {
    let Err(complaint) = run(&["--suite", "all", "--spec-version", revision]) else { return };
    let failed: Vec<&str> = complaint.lines().filter_map(failed_scenario).collect();
    let is_late = !failed.is_empty() && failed.iter().all(|name| TIMED.contains(name));
    assert!(is_late, "{revision}\n{complaint}");
    for name in TIMED.iter().filter(|name| failed.contains(name)) {
        let alone = run(&["--scenario", name, "--spec-version", revision]);
        assert!(alone.is_ok(), "{revision}, {name} alone\n{alone:?}");
    }
}

/// Runs the suite; the error is what it said.
fn run(args: &[&str]) -> Result<(), String> {
    let Some(mut suite) = suite() else { return Ok(()) };
    let results = tempfile::tempdir().unwrap();
    suite.arg("client").args(args).args(["--timeout", "240000"]).arg("--command").arg(client());
    suite.arg("--expected-failures").arg(script("conformance_failures.yaml"));
    suite.arg("-o").arg(results.path()).current_dir(results.path());
    let output = suite.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    // One that ran nothing has not passed.
    let is_good = output.status.success() && said.to_lowercase().contains("passed");
    if is_good { Ok(()) } else { Err(format!("{said}\n{complaints}")) }
}

/// Reads the name in a line of the summary about a scenario that failed.
fn failed_scenario(line: &str) -> Option<&str> {
    line.strip_prefix("✗ ")?.split_once(": ").map(|(name, _)| name)
}

#[test]
fn failed_scenarios_are_read_from_the_summary() {
    assert_eq!(failed_scenario("✗ sse-retry: 1 passed, 1 failed, 1 warnings"), Some("sse-retry"));
    assert_eq!(failed_scenario("✓ tools_call: 2 passed, 0 failed"), None);
    assert_eq!(failed_scenario("  ✗ sse-retry"), None);
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
