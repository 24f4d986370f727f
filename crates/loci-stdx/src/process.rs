//! Processes and their groups: a child in a group of its own can be stopped with all it started.
//!
//! A process is named by its id, as the system does. Ids are used again, so whoever keeps one should
//! keep [`start_ticks`] beside it: the two together name one process until the machine is restarted.
//! Ids that would mean "everybody" or "ourselves" to the system (0, 1, negative ones) are refused.

#[cfg(unix)]
mod file_size_limit;
#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod proc_stat;
#[cfg(unix)]
mod unix;

#[cfg(unix)]
pub use file_size_limit::survive_file_size_limit;
#[cfg(not(unix))]
pub use other::{
    ignores_hang_up, is_alive, kill_group, own_group, start_ticks, survive_file_size_limit,
    terminate_then_kill,
};
#[cfg(unix)]
pub use unix::{ignores_hang_up, is_alive, kill_group, own_group, start_ticks, terminate_then_kill};

/// What to tell a process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// What Ctrl-C sends: stop what you are doing (`SIGINT`).
    Interrupt,
    /// Please end (`SIGTERM`).
    Terminate,
    /// End now; it cannot be caught (`SIGKILL`).
    Kill,
}
