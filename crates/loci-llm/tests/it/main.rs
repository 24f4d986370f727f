//! The client over real connections on loopback, against a scripted model.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail loudly")]

mod answers;
mod cancel;
mod client_certificates;
mod connections;
mod credentials;
mod faults;
mod requests;
mod support;
