//! A limit on the size of files (`ulimit -f`) is an error of the write, as a full disk is, and not the end of the process.
//!
//! The system sends `SIGXFSZ`, which ends a process that has said nothing about it. A handler that does nothing leaves the
//! write to fail with `EFBIG`. It is a handler and not `SIG_IGN`, because what is ignored stays ignored in the programs that
//! are started, which must meet the limit as ever.

#![expect(unsafe_code, reason = "sigaction has no safe form")]

use std::io;

use libc::{SA_RESTART, SIG_IGN, SIGXFSZ, c_int, sigaction, sighandler_t};

extern "C" fn do_nothing(_: c_int) {}

/// Lets writes beyond the limit fail; whoever has the signal ignored already keeps it so.
pub fn survive_file_size_limit() -> io::Result<()> {
    // SAFETY: all zeroes is a valid sigaction: the default, no flags, an empty mask. Both pointers are to live values of that
    // type, and the handler may be called at any time: it touches nothing.
    unsafe {
        let mut found: sigaction = std::mem::zeroed();
        if sigaction(SIGXFSZ, std::ptr::null(), &mut found) != 0 {
            return Err(io::Error::last_os_error());
        }
        if found.sa_sigaction == SIG_IGN {
            return Ok(());
        }
        let mut action: sigaction = std::mem::zeroed();
        action.sa_sigaction = do_nothing as extern "C" fn(c_int) as sighandler_t;
        action.sa_flags = SA_RESTART;
        match sigaction(SIGXFSZ, &action, std::ptr::null_mut()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
