//! The test kit tested: from the client's side of the socket, and by the official client.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail loudly")]

mod client;
mod faults;
mod home;
mod official_client;
mod rules;
mod run;
mod script;
mod server;
mod tls;
