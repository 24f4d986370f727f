//! Signals, as bytes in a pipe that the reader thread waits on beside the terminal.
//!
//! A handler does one of three things: it writes the signal's number into the pipe, so that the thread that draws can
//! end in good order; for a signal that will end the process whatever we do, or one that is told a second time, it gives
//! the terminal back and lets the signal have its usual effect; while a child has the terminal it leaves the signal to
//! the child. All of that is async-signal-safe.
//!
//! Signals that were ignored when loci was started (`nohup`) stay ignored. What was found is put back on uninstalling,
//! where nobody else has changed it meanwhile.
//!
//! By hand, although `signal-hook` exists: it never puts back what it found.
#![expect(
    unsafe_code,
    reason = "sigaction has no safe form, and a handler finds its state only through a global"
)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use libc::c_int;
use rustix::process::Signal;

use super::restore::Restorer;

/// What is told to the reader thread, for the thread that draws.
const TOLD: &[c_int] =
    &[libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGTSTP, libc::SIGCONT, libc::SIGWINCH];

/// What ends the process whatever we do.
const DEADLY: &[c_int] = &[libc::SIGQUIT, libc::SIGABRT];

/// What a handler acts on. It is never freed: a handler may hold it at any time, and there is one a process.
static TARGET: AtomicPtr<Target> = AtomicPtr::new(ptr::null_mut());

#[derive(Debug)]
struct Target {
    restorer: Arc<Restorer>,
    /// The end of the pipe that is written; it never blocks.
    pipe: OwnedFd,
    /// How often the process was told to end.
    n_endings: AtomicU32,
    /// A child has the terminal.
    is_lent: AtomicBool,
    /// The process is stopping itself.
    is_suspending: AtomicBool,
    /// It went on since.
    has_continued: AtomicBool,
}

/// The handlers of a terminal, until they are uninstalled.
#[derive(Debug)]
pub(super) struct Signals {
    target: &'static Target,
    found: Vec<(c_int, libc::sigaction)>,
}

impl Signals {
    /// Installs handlers that write into `pipe`.
    pub(super) fn install(restorer: Arc<Restorer>, pipe: OwnedFd) -> io::Result<Self> {
        let target: &'static Target = Box::leak(Box::new(Target {
            restorer,
            pipe,
            n_endings: AtomicU32::new(0),
            is_lent: AtomicBool::new(false),
            is_suspending: AtomicBool::new(false),
            has_continued: AtomicBool::new(false),
        }));
        TARGET.store(ptr::from_ref(target).cast_mut(), Ordering::Release);
        let mut signals = Self { target, found: Vec::new() };
        for signal in TOLD.iter().chain(DEADLY) {
            let found = action_of(*signal)?;
            if found.sa_sigaction != libc::SIG_IGN {
                set_action(*signal, &our_action())?;
                signals.found.push((*signal, found));
            }
        }
        Ok(signals)
    }

    /// Leaves signals of the keyboard to a child that has the terminal, or takes them back.
    pub(super) fn set_lent(&self, is_lent: bool) {
        self.target.is_lent.store(is_lent, Ordering::Release);
    }

    /// Tells whether the process was told to end.
    pub(super) fn is_ending(&self) -> bool {
        self.target.n_endings.load(Ordering::Acquire) > 0
    }

    /// Stops this process and its group, as Ctrl+Z at a shell does (or as wanting the terminal in the background does), and
    /// returns when it goes on.
    ///
    /// Nothing happens, and false is returned, in a group that no shell could wake again.
    pub(super) fn stop_process(&self, signal: Signal) -> io::Result<bool> {
        self.target.has_continued.store(false, Ordering::Release);
        self.target.is_suspending.store(true, Ordering::Release);
        let ours = action_of(libc::SIGTSTP)?;
        set_action(libc::SIGTSTP, &default_action())?;
        let sent = rustix::process::kill_current_process_group(signal);
        // The signal may reach another thread a moment later; this one must not set up the terminal before.
        for _ in 0..200 {
            if self.target.has_continued.load(Ordering::Acquire) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        set_action(libc::SIGTSTP, &ours)?;
        self.target.is_suspending.store(false, Ordering::Release);
        sent?;
        Ok(self.target.has_continued.load(Ordering::Acquire))
    }

    /// Puts back what was found.
    pub(super) fn uninstall(&mut self) {
        let handler = our_action().sa_sigaction;
        for (signal, found) in self.found.drain(..) {
            let is_ours = action_of(signal).is_ok_and(|now| now.sa_sigaction == handler);
            if is_ours {
                // It was set by the same call before, so it can be.
                set_action(signal, &found).ok();
            }
        }
        TARGET.store(ptr::null_mut(), Ordering::Release);
    }
}

/// Gives the terminal back and ends the process by this signal's usual effect.
pub(super) fn end_process(restorer: &Restorer, signal: c_int) {
    restorer.give_back();
    set_action(signal, &default_action()).ok();
    // SAFETY: raise has no preconditions.
    unsafe { libc::raise(signal) };
}

/// The handler. Async-signal-safe: atomics, `write`, `tcsetattr`, `sigaction` and `raise`; `errno` is kept.
extern "C" fn handle(signal: c_int) {
    // SAFETY: the pointer is null or comes from `Box::leak`, so what it points to lives for ever and is only shared.
    let Some(target) = (unsafe { TARGET.load(Ordering::Acquire).as_ref() }) else { return };
    let errno = keep_errno();
    if DEADLY.contains(&signal) {
        end_process(&target.restorer, signal);
    } else if target.is_lent.load(Ordering::Acquire) {
        match signal {
            libc::SIGINT | libc::SIGCONT | libc::SIGWINCH => {}
            // The child stops too; the shell wakes both.
            libc::SIGTSTP => {
                // SAFETY: raise has no preconditions.
                unsafe { libc::raise(libc::SIGSTOP) };
            }
            _ => tell(target, signal),
        }
    } else {
        tell(target, signal);
    }
    restore_errno(errno);
}

fn tell(target: &Target, signal: c_int) {
    if signal == libc::SIGCONT {
        target.has_continued.store(true, Ordering::Release);
        if target.is_suspending.load(Ordering::Acquire) {
            return;
        }
    }
    let is_ending = matches!(signal, libc::SIGTERM | libc::SIGHUP | libc::SIGINT);
    if is_ending && target.n_endings.fetch_add(1, Ordering::AcqRel) > 0 {
        end_process(&target.restorer, signal);
        return;
    }
    // A full pipe has thousands of signals in it already.
    rustix::io::write(&target.pipe, &[u8::try_from(signal).unwrap_or(0)]).ok();
}

#[cfg(target_os = "linux")]
fn errno_location() -> *mut c_int {
    // SAFETY: returns the address of this thread's errno.
    unsafe { libc::__errno_location() }
}

#[cfg(not(target_os = "linux"))]
fn errno_location() -> *mut c_int {
    // SAFETY: returns the address of this thread's errno.
    unsafe { libc::__error() }
}

fn keep_errno() -> c_int {
    // SAFETY: the address of this thread's errno is valid.
    unsafe { *errno_location() }
}

fn restore_errno(errno: c_int) {
    // SAFETY: the address of this thread's errno is valid.
    unsafe { *errno_location() = errno };
}

fn our_action() -> libc::sigaction {
    let mut action = default_action();
    action.sa_sigaction = handle as extern "C" fn(c_int) as libc::sighandler_t;
    // On the stack for signals, so that it runs after a stack overflow too.
    action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
    action
}

fn default_action() -> libc::sigaction {
    // SAFETY: all zeroes is a valid sigaction: SIG_DFL, no flags, an empty mask.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

fn action_of(signal: c_int) -> io::Result<libc::sigaction> {
    let mut found = default_action();
    // SAFETY: a null action changes nothing; `found` is a valid place to write to.
    let done = unsafe { libc::sigaction(signal, ptr::null(), &raw mut found) };
    if done == 0 { Ok(found) } else { Err(io::Error::last_os_error()) }
}

fn set_action(signal: c_int, action: &libc::sigaction) -> io::Result<()> {
    // SAFETY: `action` is default, found before, or ours, whose handler is async-signal-safe.
    let done = unsafe { libc::sigaction(signal, action, ptr::null_mut()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
