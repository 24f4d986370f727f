//! Programs at a real terminal: a pty, looked at from both sides.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail loudly")]

#[cfg(unix)]
mod pty;
#[cfg(unix)]
mod terminal;
