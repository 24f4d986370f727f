//! Everything on disk: sessions, search, file history, configuration and memories.
//!
//! | module | what is in it |
//! |---|---|
//! | [`layout`] | where everything lies in the config home |
//! | [`project`] | the directory at hand, its repository and the state of git |
//! | [`sessions`] | session log, loading, finding, listing, forking, removing, archiving |
//! | [`search`] | the index over all sessions, and recall within one |
//! | [`history`] | backups of files, changes of the project tree, rewind, blame, scratch copies |
//! | [`config`] | settings, global state, logins, instruction files, input history |
//! | [`memory`] | the memory directory and the journal of its changes |
//! | [`doctor`] | finding and mending what is wrong with the store |
//! | [`worktree`] | working copies of a repository: made, and removed when nothing is lost |
//! | [`file_print`] | what tells one state of a file from another |
//! | [`foreign`] | sessions of Codex: reading and importing |
//!
//! The crate is blocking and knows no runtime; whoever waits for the network calls it from the side. It reads
//! no environment by itself: paths come from a [`ConfigHome`](layout::ConfigHome), made once from the `Env` of the program.
//!
//! What must stay true of a session file:
//! 1. It is only ever appended to, one `write` of whole lines at a time; no byte of it is changed or cut.
//! 2. A line that cannot be read costs that line, and is reported with its place.
//! 3. What could not be written is kept and written first at the next chance; the order of lines never changes.
//! 4. Files are readable by their owner alone.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests know what lies where"))]

pub mod config;
pub mod doctor;
pub mod file_print;
pub mod foreign;
pub mod history;
pub mod layout;
pub mod memory;
pub mod project;
pub mod search;
pub mod sessions;
pub mod worktree;
