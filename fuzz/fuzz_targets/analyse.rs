//! Any text, as a line of shell: the same function that the tests of `loci-shell` run from a fixed seed.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/loci-shell/tests/it/hold.rs"]
mod hold;

fuzz_target!(|line: &str| hold::hold(line));
