//! `cargo xtask bench side-cost`: what the requests beside a conversation cost, as a share of the session's cost.
//!
//! A script (`side_cost.py`) plays a long session against a scripted model that charges as the real one does, cache
//! included, and holds its own account against what loci tells.

use super::page;
use super::script_bench::{Measure, ScriptBench, measure};

const USAGE: &str = "\
Usage: cargo xtask bench side-cost [options]

  --loci BIN     a loci that is built already; without it, one is built
  --prompts N    prompts of the session; default 60
  --write        put the table into docs/benchmarks.md";

/// The measurement.
pub(crate) const MEASUREMENT: ScriptBench = ScriptBench {
    verb: "side-cost",
    script: "xtask/src/bench/side_cost.py",
    usage: USAGE,
    passed: &["--prompts"],
    measures: MEASURES,
    page: page::SIDE_COST,
};

const MEASURES: &[Measure] = &[
    measure("requests of the conversation", "", None, None, None),
    measure("requests beside it", "", None, None, None),
    measure("charged by the model", "cents", None, None, None),
    measure("told by the last result", "cents", None, None, None),
    measure("told by `loci stats`", "cents", None, None, None),
    measure("share of the requests beside it", "%", None, None, Some(5.0)),
];
