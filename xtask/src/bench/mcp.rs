//! `cargo xtask bench mcp`: what MCP servers cost a run, beside Claude Code.
//!
//! A script (`mcp.py`) gives each program twenty servers that are small programs, and a scripted model that notes when it is
//! asked.

use super::page;
use super::script_bench::{Measure, ScriptBench, measure};

const USAGE: &str = "\
Usage: cargo xtask bench mcp [options]

  --loci BIN     a loci that is built already; without it, one is built
  --claude BIN   Claude Code, if it is to be measured beside it
  --runs N       runs of each, of which the median counts; default 3
  --write        put the table into docs/benchmarks.md";

/// The measurement.
pub(crate) const MEASUREMENT: ScriptBench = ScriptBench {
    verb: "mcp",
    script: "xtask/src/bench/mcp.py",
    usage: USAGE,
    passed: &["--runs"],
    measures: MEASURES,
    page: page::MCP,
};

/// What is measured, in the order of the table: its unit, how many times less than Claude Code is aimed at, and the most it
/// should be.
const MEASURES: &[Measure] = &[
    measure("servers in the first request", "", None, None, None),
    measure("first request after the last answer", "ms", None, None, Some(10.0)),
    measure("own CPU until the first request", "ms", Some(20.0), None, None),
    measure("own CPU of 19 more servers", "ms", Some(20.0), None, None),
    measure("a call beyond the server's time", "ms", None, None, Some(1.0)),
    measure("memory a connection", "kB", None, None, Some(300.0)),
];
