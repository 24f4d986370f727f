//! Sessions as front ends reach them: through the service, in this process and over a socket.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail loudly")]

mod session_service;
