//! The client over real connections on loopback, against a scripted model.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail loudly")]

mod answers;
mod cancel;
mod client_certificates;
mod connections;
mod credentials;
mod faults;
#[cfg(target_os = "linux")] // where connections to it are kept
mod local;
mod requests;
mod support;
