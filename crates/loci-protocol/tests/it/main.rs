//! The session protocol as JSON: what is written is read back as it was.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail loudly")]

mod round_trip;
