//! Who the process runs as.

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
