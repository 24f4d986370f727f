//! Sessions from outside: commands in, events out, with a scripted model.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail loudly")]

mod after_compaction;
mod auto_mode;
mod cold_clearing;
mod compaction_hooks;
mod date;
mod denials;
mod notifications;
mod prompt_queue;
mod replay;
mod resumed;
mod schedule;
mod tool_changes;
mod turn_hooks;
