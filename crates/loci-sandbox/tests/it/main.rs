//! The sandbox on this machine's real kernel.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail loudly, and say what they skip"
)]

mod egress;
mod faults;
mod git_links;
mod kit;
mod new_repository;
mod probe_table;
mod probes;
mod programs;
mod proxied;
mod regressions;
mod standby;
mod submodules;
