//! `cargo xtask bench terminal`: what the interface costs the person in front of it, beside its peers.
//!
//! A script (`terminal.py`) gives each program a pseudo terminal and a scripted model, presses keys and watches what is
//! written.

use super::page;
use super::script_bench::{Measure, ScriptBench, measure};

const USAGE: &str = "\
Usage: cargo xtask bench terminal [options]

  --loci BIN     a loci that is built already; without it, one is built
  --claude BIN   Claude Code, if it is to be measured beside it
  --codex BIN    Codex, likewise
  --runs N       starts and resumes of each, of which the median counts; default 3
  --load N       beside so many processes that do nothing but compute
  --only KINDS   of start, session, long, resume, panels, floor, with commas between
  --write        put the table into docs/benchmarks.md";

/// The measurement.
pub(crate) const MEASUREMENT: ScriptBench = ScriptBench {
    verb: "terminal",
    script: "xtask/src/bench/terminal.py",
    usage: USAGE,
    passed: &["--runs", "--load", "--only"],
    measures: MEASURES,
    page: page::TERMINAL,
};

/// What is measured, in the order of the table: its unit, and how many times less than each peer is aimed at.
const MEASURES: &[Measure] = &[
    measure("prompt painted", "ms", Some(50.0), Some(3.0), None),
    measure("first key echoed", "ms", Some(50.0), Some(4.0), None),
    measure("key echo idle, median", "ms", None, None, None),
    measure("key echo idle, p95", "ms", Some(4.0), Some(10.0), None),
    measure("key echo streaming, median", "ms", None, None, None),
    measure("key echo streaming, p95", "ms", Some(15.0), Some(7.0), None),
    measure("key echo streaming, slowest", "ms", None, None, Some(20.0)),
    measure("key echo after 300 turns, p95", "ms", Some(8.0), Some(8.0), None),
    measure("bytes a streamed character", "", None, None, Some(2.0)),
    measure("full clears", "", None, None, Some(0.0)),
    measure("CPU streaming", "ms", Some(30.0), Some(15.0), None),
    measure("CPU idle 10 s", "ms", None, None, Some(5.0)),
    measure("bytes idle 10 s", "", None, None, Some(0.0)),
    measure("CPU a key", "ms", None, Some(5.0), None),
    measure("memory after start", "MB", Some(15.0), Some(8.0), None),
    measure("memory after 120 keys", "MB", Some(15.0), Some(8.0), None),
    measure("memory after 300 turns", "MB", Some(15.0), Some(7.0), None),
    measure("resume of 2,000 messages", "ms", Some(30.0), None, None),
    measure("paste of 1 MB to the next key", "ms", Some(6.0), Some(2.0), None),
    measure("1 MB to a program that only reads", "ms", None, None, None),
    measure("panel there, 10,000 sessions, first time", "ms", None, None, Some(33.0)),
    measure("panel filled, 10,000 sessions, first time", "ms", None, None, None),
    measure("panel there, 10,000 sessions, again", "ms", None, None, Some(33.0)),
    measure("panel filled, 10,000 sessions, again", "ms", None, None, Some(100.0)),
    measure("panel there, 500 skills", "ms", None, None, Some(33.0)),
    measure("panel filled, 500 skills", "ms", None, None, Some(33.0)),
    measure("panel there, 50 servers", "ms", None, None, Some(33.0)),
    measure("panel filled, 50 servers", "ms", None, None, Some(33.0)),
    measure("panel there, slowest of the others", "ms", None, None, Some(33.0)),
];
