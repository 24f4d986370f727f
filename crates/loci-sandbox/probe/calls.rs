//! System calls that no command needs, made with arguments that could do no harm if they were let through.

use std::io;

/// Makes a call by its name; none where there is no such call here.
pub(crate) fn call(name: &str) -> Option<io::Result<()>> {
    let (_, number, arguments) = CALLS.iter().find(|(it, ..)| *it == name)?;
    let [a, b, c, d, e] = *arguments;
    let result = unsafe { libc::syscall(*number, a, b, c, d, e) };
    Some(if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) })
}

/// An address that is none.
const NOWHERE: i64 = 8;
const NONE: i64 = -1;

const CALLS: &[(&str, i64, [i64; 5])] = &[
    ("acct", libc::SYS_acct, [NOWHERE, 0, 0, 0, 0]),
    ("add_key", libc::SYS_add_key, [NOWHERE, NOWHERE, 0, 0, 0]),
    ("adjtimex", libc::SYS_adjtimex, [NOWHERE, 0, 0, 0, 0]),
    ("clock_adjtime", libc::SYS_clock_adjtime, [0, NOWHERE, 0, 0, 0]),
    ("clock_settime", libc::SYS_clock_settime, [0, NOWHERE, 0, 0, 0]),
    ("delete_module", libc::SYS_delete_module, [NOWHERE, 0, 0, 0, 0]),
    ("fanotify_init", libc::SYS_fanotify_init, [0, 0, 0, 0, 0]),
    ("finit_module", libc::SYS_finit_module, [NONE, NOWHERE, 0, 0, 0]),
    ("fsconfig", libc::SYS_fsconfig, [NONE, 6, 0, 0, 0]),
    ("fsmount", libc::SYS_fsmount, [NONE, 0, 0, 0, 0]),
    ("fsopen", libc::SYS_fsopen, [NOWHERE, 0, 0, 0, 0]),
    ("fspick", libc::SYS_fspick, [NONE, NOWHERE, 0, 0, 0]),
    ("init_module", libc::SYS_init_module, [NOWHERE, 0, NOWHERE, 0, 0]),
    #[cfg(target_arch = "x86_64")]
    ("ioperm", libc::SYS_ioperm, [0, 1, 1, 0, 0]),
    #[cfg(target_arch = "x86_64")]
    ("iopl", libc::SYS_iopl, [3, 0, 0, 0, 0]),
    ("io_uring_enter", libc::SYS_io_uring_enter, [NONE, 0, 0, 0, 0]),
    ("io_uring_register", libc::SYS_io_uring_register, [NONE, 0, 0, 0, 0]),
    ("kexec_load", libc::SYS_kexec_load, [0, 17, NOWHERE, NONE, 0]),
    ("mount_setattr", libc::SYS_mount_setattr, [NONE, NOWHERE, 0, NOWHERE, 32]),
    ("move_mount", libc::SYS_move_mount, [NONE, NOWHERE, NONE, NOWHERE, 0]),
    ("open_tree", libc::SYS_open_tree, [NONE, NOWHERE, 1, 0, 0]),
    ("pidfd_getfd", libc::SYS_pidfd_getfd, [NONE, 0, 0, 0, 0]),
    ("pivot_root", libc::SYS_pivot_root, [NOWHERE, NOWHERE, 0, 0, 0]),
    ("process_madvise", libc::SYS_process_madvise, [NONE, 0, 0, 0, 0]),
    ("process_vm_writev", libc::SYS_process_vm_writev, [NONE, 0, 0, 0, 0]),
    ("quotactl", libc::SYS_quotactl, [NONE, 0, 0, 0, 0]),
    ("reboot", libc::SYS_reboot, [0, 0, 0, 0, 0]),
    ("request_key", libc::SYS_request_key, [NOWHERE, NOWHERE, 0, 0, 0]),
    ("setdomainname", libc::SYS_setdomainname, [NOWHERE, NONE, 0, 0, 0]),
    ("sethostname", libc::SYS_sethostname, [NOWHERE, NONE, 0, 0, 0]),
    ("settimeofday", libc::SYS_settimeofday, [NOWHERE, 0, 0, 0, 0]),
    ("swapoff", libc::SYS_swapoff, [NOWHERE, 0, 0, 0, 0]),
    ("swapon", libc::SYS_swapon, [NOWHERE, 0, 0, 0, 0]),
    ("syslog", libc::SYS_syslog, [10, 0, 0, 0, 0]),
    ("umount2", libc::SYS_umount2, [NOWHERE, 0, 0, 0, 0]),
    ("vhangup", libc::SYS_vhangup, [0, 0, 0, 0, 0]),
];
