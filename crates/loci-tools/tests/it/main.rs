//! Permission decisions on real tools over a real directory tree, and what the shell really runs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail loudly")]

mod differential;
mod permission_cases;
mod permission_properties;
mod permission_table;
mod tree;
