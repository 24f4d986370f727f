//! Real servers, and servers that do one thing wrong.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail loudly")]

mod support;

mod conformance;
mod faulty_servers;
mod logins;
mod npm_servers;
mod official_server;
mod remote_servers;
mod stateless_servers;
