//! The helper: this program again under another name, which puts itself into the sandbox and starts the command there.
//!
//! Three processes: the one that was started waits outside the mounts, to clean up after the command; its child is the
//! first process of the namespaces ([`super::init`]); that one's child becomes the program. Each step that fails ends all
//! of them before the program has started: nothing ever runs with less than what the policy asks for.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::process::{WaitOptions, WaitStatus, waitpid};
use rustix::thread::UnshareFlags;

use super::restrict::restrict;
use super::sys::{self, Forked};
use super::{init, placeholders};
use crate::control::{self, Message};
use crate::plan::{Plan, RealDisk};
use crate::policy::{FaultKind, HelperStep, Policy};

/// The exit code of a sandbox that could not be made.
pub(super) const FAILED: u8 = 125;

/// What the helper is started with: `<policy descriptor> <control descriptor> <program> <arguments>…`.
pub(super) struct HelperLaunch {
    program: OsString,
    args: Vec<OsString>,
}

/// Runs the helper; returns the exit code.
pub(super) fn run(mut args: impl Iterator<Item = OsString>) -> u8 {
    let mut descriptor = || -> io::Result<OwnedFd> {
        let number = args.next().and_then(|text| text.to_str()?.parse().ok());
        sys::inherited(number.ok_or(io::ErrorKind::InvalidInput)?)
    };
    let (Ok(policy), Ok(control)) = (descriptor(), descriptor()) else { return FAILED };
    let Some(program) = args.next() else { return FAILED };
    let launch = HelperLaunch { program, args: args.collect() };
    let done = read_policy(policy).and_then(|policy| match policy.layers.has_mounts() {
        true => run_apart(&policy, &launch, &control),
        false => run_here(&policy, &launch, &control),
    });
    done.unwrap_or_else(|error| say_failure(&error, &control))
}

/// Says why nothing runs, to whoever started the sandbox and to whoever reads the program's errors; returns the code.
pub(super) fn say_failure(error: &io::Error, control: &OwnedFd) -> u8 {
    // Nobody is left to tell when the other ends are gone.
    drop(control::send(control.as_fd(), &Message::Failed(error.to_string())));
    drop(writeln!(io::stderr(), "loci-sandbox: {error}"));
    FAILED
}

fn read_policy(fd: OwnedFd) -> io::Result<Policy> {
    let text = io::read_to_string(File::from(fd))?;
    serde_json::from_str(&text)
        .map_err(|error| io::Error::other(format!("the policy cannot be read: {error}")))
}

/// Without namespaces: this process becomes the program.
fn run_here(policy: &Policy, launch: &HelperLaunch, control: &OwnedFd) -> io::Result<u8> {
    restrict(policy)?;
    Err(launch.exec(policy, control))
}

/// With namespaces: waits for them, and cleans up.
fn run_apart(policy: &Policy, launch: &HelperLaunch, control: &OwnedFd) -> io::Result<u8> {
    let cwd = std::env::current_dir()?;
    if let Some(files) =
        policy.files.as_ref().filter(|files| files.roots.iter().any(|root| root == Path::new("/")))
    {
        return Err(io::Error::other(format!(
            "`/` cannot be writable in a sandbox ({} roots)",
            files.roots.len()
        )));
    }
    let mut plan = policy.files.as_ref().map(|files| Plan::new(files, &RealDisk)).unwrap_or_default();
    let code = run_with_placeholders(policy, &mut plan, launch, &cwd, control);
    if let Some(files) = &policy.files {
        placeholders::sweep(files, &plan);
    }
    remove_absent(&plan.absent, control);
    code
}

fn run_with_placeholders(
    policy: &Policy,
    plan: &mut Plan,
    launch: &HelperLaunch,
    cwd: &Path,
    control: &OwnedFd,
) -> io::Result<u8> {
    // Held until the first process has ended.
    let _held = checked(policy, HelperStep::Placeholders, || placeholders::make(plan))?;
    checked(policy, HelperStep::Namespaces, || {
        let all = UnshareFlags::NEWUSER
            | UnshareFlags::NEWPID
            | UnshareFlags::NEWNET
            | UnshareFlags::NEWIPC
            | UnshareFlags::NEWUTS;
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        sys::unshare(all)?;
        Ok((user, group))
    })
    .and_then(|(user, group)| {
        checked(policy, HelperStep::UserMap, || {
            std::fs::write("/proc/self/setgroups", "deny")?;
            std::fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
            std::fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))
        })
    })?;
    // What needs it sees cgroups as its own; without that they are read-only all the same.
    sys::unshare(UnshareFlags::NEWCGROUP).ok();
    sys::block_signals()?;
    match checked(policy, HelperStep::Init, sys::fork)? {
        Forked::Child => std::process::exit(i32::from(init::run(policy, plan, launch, cwd, control))),
        Forked::Parent(child) => {
            leave_streams()?;
            loop {
                match waitpid(Some(child), WaitOptions::empty()) {
                    Ok(Some((_, status))) => return Ok(code_of(status)),
                    Ok(None) | Err(rustix::io::Errno::INTR) => {}
                    Err(other) => return Err(other.into()),
                }
            }
        }
    }
}

/// Removes what a command made although it must not be there, and says so.
fn remove_absent(paths: &[PathBuf], control: &OwnedFd) {
    for path in paths.iter().filter(|path| path.symlink_metadata().is_ok()) {
        let text = match placeholders::remove_made(path) {
            Ok(()) => format!("`{}` was removed: it would lead git to another configuration", path.display()),
            Err(error) => format!("`{}` must not be there and could not be removed: {error}", path.display()),
        };
        // Nobody is left to tell when the other end is gone.
        drop(control::send(control.as_fd(), &Message::Removed(text)));
    }
}

impl HelperLaunch {
    /// Becomes the program; returns why not.
    pub(super) fn exec(&self, policy: &Policy, control: &OwnedFd) -> io::Error {
        let ready = checked(policy, HelperStep::Exec, || {
            sys::unblock_signals()?;
            sys::close_at_exec()?;
            control::send(control.as_fd(), &Message::Ready)
        });
        match ready {
            Ok(()) => {
                let error = Command::new(&self.program).args(&self.args).exec();
                io::Error::new(
                    error.kind(),
                    format!("`{}` could not be started: {error}", self.program.display()),
                )
            }
            Err(error) => error,
        }
    }
}

/// Carries out a step, names it in its error, and fails where a test asks for it.
pub(super) fn checked<T>(
    policy: &Policy,
    step: HelperStep,
    act: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let fault = policy.fault.filter(|fault| fault.at == step).map(|fault| fault.kind);
    let done = match fault {
        None => act(),
        Some(FaultKind::Refused) => Err(io::Error::from_raw_os_error(libc::EPERM)),
        Some(FaultKind::Killed) => {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
            Err(io::ErrorKind::Interrupted.into())
        }
    };
    done.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", step.describe())))
}

/// Lets go of the standard streams, whose end somebody waits for.
pub(super) fn leave_streams() -> io::Result<()> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Returns the exit code as a shell would report it: 128 and the signal's number for a signal.
pub(super) fn code_of(status: WaitStatus) -> u8 {
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED)
}
