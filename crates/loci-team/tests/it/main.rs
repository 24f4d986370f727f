//! Two people and a server over loopback, with each database.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests fail loudly, and say what they leave out"
)]

mod access;
mod cuts;
mod postgres;
mod support;
