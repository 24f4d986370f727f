//! The system calls that no safe wrapper has; the only unsafe code of the sandbox on Linux.
//!
//! Everything here is called by the helper, but for [`keep_open`], which runs between fork and exec. The helper has one thread
//! whenever it starts a process.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::Pid;
use rustix::thread::UnshareFlags;

/// Which process goes on.
pub(super) enum Forked {
    Parent(Pid),
    Child,
}

/// Makes a copy of this process, the first of a user and a process namespace of its own.
pub(super) fn fork_apart() -> io::Result<Forked> {
    let flags = i64::from(libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::SIGCHLD);
    // SAFETY: without a stack and without shared memory this is fork(2); the helper has one thread, so that nothing is held
    // by another when the copy goes on.
    let id = unsafe { libc::syscall(libc::SYS_clone, flags, 0_i64, 0_i64, 0_i64, 0_i64) };
    match i32::try_from(id).unwrap_or(-1) {
        ..0 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        id => Pid::from_raw(id).map(Forked::Parent).ok_or_else(|| io::ErrorKind::InvalidData.into()),
    }
}

/// A program about to start, as exec wants it.
pub(super) struct Program {
    /// The program and its arguments.
    words: Vec<CString>,
    /// What is told that it starts, and the letter that says so.
    told: (RawFd, u8),
}

/// Asks for the network namespace of a socket (`linux/sockios.h`).
const SIOCGSKNS: libc::Ioctl = 0x894c;

/// Room for what runs between the start of a child and its exec.
const STACK: usize = 256 << 10;

impl Program {
    /// Takes a program, which is looked for on `PATH`, and where its start is told.
    pub(super) fn new(
        words: impl Iterator<Item = OsString>,
        socket: BorrowedFd<'_>,
        letter: u8,
    ) -> io::Result<Self> {
        let words = words.map(|word| CString::new(word.into_vec())).collect::<Result<_, _>>()?;
        Ok(Self { words, told: (socket.as_raw_fd(), letter) })
    }

    /// Becomes the program; returns why not.
    pub(super) fn exec(&self) -> io::Error {
        let words = self.pointers();
        // SAFETY: the words live as long as `self`, and the list ends with a null pointer.
        io::Error::from_raw_os_error(unsafe { self.become_program(&words) })
    }

    /// Starts the program in a child, whose memory is that of this process until it has become the program: nothing of
    /// it is copied.
    pub(super) fn spawn(&self) -> io::Result<Pid> {
        struct Started<'a> {
            program: &'a Program,
            words: Vec<*const libc::c_char>,
            error: i32,
        }
        extern "C" fn run(started: *mut libc::c_void) -> i32 {
            // SAFETY: it is the structure below, which the parent, who waits, does not touch meanwhile.
            let started = unsafe { &mut *started.cast::<Started<'_>>() };
            // SAFETY: the words live as long as the program, which the parent holds.
            started.error = unsafe { started.program.become_program(&started.words) };
            i32::from(super::helper::FAILED)
        }
        let mut started = Started { program: self, words: self.pointers(), error: 0 };
        let mut stack = vec![0_u128; STACK / size_of::<u128>()];
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: this process has one thread and waits until the child has become the program or ended, so that the two
        // never use their memory at the same time; the child has a stack of its own, aligned as calls want it.
        let id = unsafe {
            let top = stack.as_mut_ptr().add(stack.len()).cast();
            libc::clone(run, top, flags, (&raw mut started).cast())
        };
        // Written by the child in what both see.
        // SAFETY: the structure lives until here.
        let error = unsafe { (&raw const started.error).read_volatile() };
        match (id, error) {
            (..0, _) => Err(io::Error::last_os_error()),
            (_, 0) => Pid::from_raw(id).ok_or_else(|| io::ErrorKind::InvalidData.into()),
            (_, error) => Err(io::Error::from_raw_os_error(error)),
        }
    }

    fn pointers(&self) -> Vec<*const libc::c_char> {
        self.words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
    }

    /// Gives up what the helper has, says that the program starts, and becomes it; returns why not. Allocates nothing.
    ///
    /// # Safety
    ///
    /// The words must end with a null pointer and live until this returns.
    unsafe fn become_program(&self, words: &[*const libc::c_char]) -> i32 {
        let error = || io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO);
        let (socket, letter) = self.told;
        // SAFETY: no memory but that of `self` and the words is involved.
        unsafe {
            if unblock_signals().is_err() || close_at_exec().is_err() {
                return error();
            }
            if libc::write(socket, (&raw const letter).cast(), 1) != 1 {
                return error();
            }
            // Ignored until here, as in every program of this language.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::execvp(words.first().copied().unwrap_or(std::ptr::null()), words.as_ptr());
        }
        error()
    }
}

/// Enters new namespaces.
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: flags of namespaces alone; no descriptor table is unshared.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(io::Error::from)
}

/// Changes attributes of a mount, or of all below it.
pub(super) fn set_mount(fd: BorrowedFd<'_>, set: u64, clear: u64, is_recursive: bool) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH | if is_recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is an empty text, the attributes live until the call returns, and their size is told.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Brings up the loopback of a network namespace.
pub(super) fn bring_loopback_up(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: all bytes zero is a value of this C structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = libc::c_char::try_from(*from).unwrap_or_default();
    }
    request.ifr_ifru.ifru_flags =
        libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or_default();
    // SAFETY: the request lives until the call returns and is what SIOCSIFFLAGS reads.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns the network namespace of a socket.
pub(super) fn network_of(socket: BorrowedFd<'_>) -> io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: SIOCGSKNS takes no argument; what it returns is a new descriptor and nobody else's.
    unsafe {
        let fd = libc::ioctl(socket.as_raw_fd(), SIOCGSKNS, 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(std::os::fd::OwnedFd::from_raw_fd(fd)) }
    }
}

/// Has every descriptor from 3 on closed by exec.
pub(super) fn close_at_exec() -> io::Result<()> {
    // SAFETY: no memory is involved; descriptors stay open until exec.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Keeps signals from this process, which waits for another that gets them too.
pub(super) fn block_signals() -> io::Result<()> {
    // SAFETY: the set lives on the stack and is filled before it is used.
    let result = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets every signal through again.
pub(super) fn unblock_signals() -> io::Result<()> {
    // SAFETY: the set lives on the stack and is emptied before it is used.
    let result = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes this process one that others cannot look into.
pub(super) fn make_undumpable() -> io::Result<()> {
    // SAFETY: no memory is involved.
    let result = unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Opens a descriptor that can be read when children have ended.
pub(super) fn child_signals() -> io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: the set lives on the stack; the descriptor is new and nobody else's.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(std::os::fd::OwnedFd::from_raw_fd(fd)) }
    }
}

/// Makes a descriptor that was inherited ours.
pub(super) fn inherited(fd: RawFd) -> io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: only asks whether the descriptor is open.
    if fd < 3 || unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: it is open, was handed to this process for this use, and nothing else here has taken it.
    Ok(unsafe { std::os::fd::OwnedFd::from_raw_fd(fd) })
}

/// Takes an environment in the place of the one that this process was started with. No name is empty or has `=` in it, and
/// nothing has a NUL.
pub(super) fn set_environment(env: Vec<(OsString, OsString)>) {
    // SAFETY: the helper has one thread, so that nobody reads the environment meanwhile.
    unsafe {
        for (name, _) in std::env::vars_os() {
            std::env::remove_var(name);
        }
        for (name, value) in env {
            std::env::set_var(name, value);
        }
    }
}

/// Lets a program inherit descriptors, which live as long as the command.
pub(crate) fn keep_open(command: &mut Command, fds: Vec<std::os::fd::OwnedFd>) {
    let inherit = move || {
        fds.iter().try_for_each(|fd| {
            // SAFETY: fcntl(2) is async-signal-safe and allocates nothing.
            let result = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0) };
            if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        })
    };
    // SAFETY: between fork and exec only fcntl(2) is called, which POSIX allows there.
    unsafe { command.pre_exec(inherit) };
}

/// Takes every capability out of the bounding set; a process that has none may not, and needs not.
pub(super) fn empty_bounding_set() -> io::Result<()> {
    for capability in 0..64_u64 {
        // SAFETY: no memory is involved.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        if result < 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                // The kernel has no more of them, or there is nothing to give up.
                Some(libc::EINVAL) => break,
                Some(libc::EPERM) if has_no_capabilities() => break,
                _ => return Err(error),
            }
        }
    }
    Ok(())
}

fn has_no_capabilities() -> bool {
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.permitted.is_empty())
}
