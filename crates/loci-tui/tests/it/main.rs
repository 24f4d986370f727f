//! What a terminal shows and gets: programs at a real one (a pty, looked at from both sides), and frames on virtual ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail loudly")]

mod conversation;
#[cfg(unix)]
mod pty;
#[cfg(unix)]
mod terminal;
mod virtual_terminal;
mod writer;
