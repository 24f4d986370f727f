//! The crate against a real disk, in directories of its own.

mod find;
mod git;
mod instructions;
mod session_file;
mod session_log;
mod state_file;
mod support;
