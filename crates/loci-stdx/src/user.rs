//! Who the process runs as, and whether somebody sits before it.

/// Returns the id of the user that this process acts as.
#[cfg(unix)]
pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Returns true when the process has the rights of the superuser.
#[cfg(unix)]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns true when the process has the rights of the superuser; never, where there is no such user.
#[cfg(not(unix))]
pub fn is_root() -> bool {
    false
}

/// Returns true when the process may read from the terminal on its standard input; one in the background would be
/// stopped by trying.
#[cfg(unix)]
pub fn is_in_foreground() -> bool {
    let group = rustix::termios::tcgetpgrp(rustix::stdio::stdin());
    group.is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Returns true: there is no background here.
#[cfg(not(unix))]
pub fn is_in_foreground() -> bool {
    true
}
