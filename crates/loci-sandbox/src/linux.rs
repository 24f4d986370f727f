//! The sandbox on Linux: namespaces and mounts, Landlock, a filter of system calls.

mod aside;
mod git_links;
mod handover;
mod helper;
mod init;
mod landlock;
mod mounts;
mod network;
mod outside;
pub(crate) mod placeholders;
mod restrict;
mod seccomp;
mod staging;
mod submodules;
pub(crate) mod sys;

use std::ffi::OsString;

/// Runs the helper with its arguments, the name left out; returns the exit code.
pub(crate) fn run_helper(args: impl Iterator<Item = OsString>) -> u8 {
    helper::run(args)
}
