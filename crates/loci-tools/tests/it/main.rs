//! Permission decisions on real tools over a real directory tree.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail loudly")]

mod permission_cases;
mod permission_table;
mod tree;
