//! The crate against a real disk, in directories of its own.
#![allow(clippy::disallowed_methods, reason = "tests know what lies where")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod archive;
mod credentials;
mod file_history;
mod find;
mod fork;
mod git;
mod inbox;
mod index;
mod input_history;
mod instructions;
mod labels;
mod listing;
mod listing_cache;
mod loading;
mod mcp_logins;
mod recall;
mod remove;
mod rewind;
mod rollout;
mod sent;
mod session_file;
mod session_log;
mod settings;
mod state_file;
mod statistics;
mod support;
mod unsaved;
mod writers;
