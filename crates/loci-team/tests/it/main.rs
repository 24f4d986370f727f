//! Two people and a server over loopback, with each database.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail loudly")]

mod access;
mod cuts;
mod data_migration;
mod postgres;
mod support;
mod tls;
