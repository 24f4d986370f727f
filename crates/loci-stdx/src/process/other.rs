//! Where there are no process groups: nothing can be signalled, and everything says so.

use std::io;
use std::process::Command;
use std::time::Duration;

use super::Signal;

/// Leaves the command as it is.
pub fn own_group(command: &mut Command) -> &mut Command {
    command
}

/// Fails: there are no process groups here.
pub fn kill_group(_pid: u32, _signal: Signal) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails: there are no process groups here.
pub fn terminate_then_kill(_pid: u32, _grace: Duration) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Returns true: a process we know nothing of may be alive.
#[must_use]
pub fn is_alive(_pid: u32) -> bool {
    true
}

/// Returns nothing: the system does not say.
#[must_use]
pub fn start_ticks(_pid: u32) -> Option<u64> {
    None
}

/// Returns false: there are no such signals here.
#[must_use]
pub fn ignores_hang_up() -> bool {
    false
}

/// There is no such limit.
pub fn survive_file_size_limit() -> io::Result<()> {
    Ok(())
}
