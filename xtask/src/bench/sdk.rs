//! `cargo xtask bench sdk`: what a client that drives the program adds to the first request and to the gap.
//!
//! A script (`sdk.py`) has the same work done by `-p`, by lines of the stream protocol, and by the official Python SDK.

use super::page;
use super::script_bench::{Measure, ScriptBench, measure};

const USAGE: &str = "\
Usage: cargo xtask bench sdk [options]

  --loci BIN     a loci that is built already; without it, one is built
  --claude BIN   Claude Code, if it is to be measured beside it
  --sdk PYTHON   a Python that has claude-agent-sdk; without it the SDK is left out
  --runs N       runs of each, of which the median counts; default 5
  --write        put the table into docs/benchmarks.md";

/// The measurement.
pub(crate) const MEASUREMENT: ScriptBench = ScriptBench {
    verb: "sdk",
    script: "xtask/src/bench/sdk.py",
    usage: USAGE,
    passed: &["--runs", "--sdk"],
    measures: MEASURES,
    page: page::SDK,
};

/// What is measured, in the order of the table.
const MEASURES: &[Measure] = &[
    measure("exec to first request, `-p`", "ms", None, None, None),
    measure("exec to first request, a client's lines", "ms", None, None, None),
    measure("exec to first request, the official SDK", "ms", None, None, None),
    measure("gap, `-p`", "ms", None, None, None),
    measure("gap, a client's lines", "ms", None, None, None),
    measure("gap, the official SDK", "ms", None, None, None),
];
