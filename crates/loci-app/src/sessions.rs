//! Sessions as a whole: which one goes on, how one is found, shown, exported and put away, and the working copy it is in.

pub mod command;
pub mod export;
pub(crate) mod mention;
pub mod picker;
pub mod resume;
pub mod retention;
pub mod transcript;
pub mod worktree;
