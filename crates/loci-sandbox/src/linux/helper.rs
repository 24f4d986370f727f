//! The helper: this program again under another name, which puts itself into the sandbox and starts the command there.
//!
//! Three processes: the one that was started stays outside everything, makes placeholders, waits, and removes them after
//! the command; its child is the first process of the namespaces ([`super::init`]); that one's child becomes the program.
//! The first two work side by side: while the child enters namespaces and mounts what is always there, the one outside looks
//! at the disk, makes the plan and the placeholders, and adds to the rules of Landlock what it gives of the machine's files.
//! Placeholders are removed when the namespaces are gone: to remove what something is mounted on, the kernel waits each
//! time. Each step that fails ends all of them before the program has started: nothing ever runs with less than what the
//! policy asks for.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};

use super::handover::{self, OutsideReady, Sender};
use super::init::{self, FirstProcess};
use super::landlock::{self, Grant, Rules};
use super::placeholders::{self, Made};
use super::restrict::restrict;
use super::sys::{self, Forked, Program};
use crate::control::{self, Message};
use crate::plan::{Plan, RealDisk};
use crate::policy::{FaultKind, FileRules, HelperStep, Policy};
use crate::program_start::ProgramStart;

/// The exit code of a sandbox that could not be made.
pub(super) const FAILED: u8 = 125;

/// What the helper is started with: `<policy descriptor> <control descriptor> <program> <arguments>…`. Without a program it
/// waits until it is handed one.
pub(super) struct HelperLaunch {
    words: Vec<OsString>,
}

/// Runs the helper; returns the exit code.
pub(super) fn run(mut args: impl Iterator<Item = OsString>) -> u8 {
    let mut descriptor = || -> io::Result<OwnedFd> {
        let number = args.next().and_then(|text| text.to_str()?.parse().ok());
        sys::inherited(number.ok_or(io::ErrorKind::InvalidInput)?)
    };
    let (Ok(policy), Ok(control)) = (descriptor(), descriptor()) else { return FAILED };
    let words: Vec<OsString> = args.collect();
    let launch = match words.is_empty() {
        false => read_policy(policy).map(|policy| Some((policy, words))),
        true => wait_for_program(policy, &control),
    };
    let done = launch.and_then(|launch| match launch {
        Some((policy, words)) => run_program(&policy, &HelperLaunch { words }, &control),
        // Whoever this process waited for is gone.
        None => Ok(FAILED),
    });
    done.unwrap_or_else(|error| say_failure(&error, &control))
}

fn run_program(policy: &Policy, launch: &HelperLaunch, control: &OwnedFd) -> io::Result<u8> {
    match policy.layers.has_mounts() {
        true => run_apart(policy, launch, control),
        false => run_here(policy, launch, control),
    }
}

/// Waits to be handed a program, without a terminal, and takes its directory and its environment; none when nobody will.
fn wait_for_program(file: OwnedFd, control: &OwnedFd) -> io::Result<Option<(Policy, Vec<OsString>)>> {
    rustix::process::setsid()?;
    if !control::wait_for_go(control.as_fd())? {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    File::from(file).read_to_end(&mut bytes)?;
    let (policy, ProgramStart { words, cwd, env }) = ProgramStart::from_bytes(&bytes)?;
    std::env::set_current_dir(&cwd)
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", cwd.display())))?;
    sys::set_environment(env);
    Ok(Some((policy, words)))
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
    restrict(policy, || {
        let rules = Rules::new(policy.files.is_some(), false)?;
        rules.grant(
            policy
                .files
                .as_ref()
                .map(|files| landlock::grants(files, false, &RealDisk::default()))
                .unwrap_or_default(),
        )
    })?;
    let program = launch.program(policy, control)?;
    Err(launch.not_started(&program.exec()))
}

/// With namespaces: makes what lies outside them, waits for the program, and cleans up.
fn run_apart(policy: &Policy, launch: &HelperLaunch, control: &OwnedFd) -> io::Result<u8> {
    let cwd = std::env::current_dir()?;
    policy.files.as_ref().map_or(Ok(()), refuse_everything_writable)?;
    // Both processes have these rules: one adds to them while the other makes what is mounted.
    let rules = checked(policy, HelperStep::Ruleset, || match policy.layers.landlock {
        true => Rules::new(policy.files.is_some(), true).map(Some),
        false => Ok(None),
    })?;
    let (outside, inside) = handover::pair()?;
    let user = (rustix::process::geteuid(), rustix::process::getegid());
    sys::block_signals()?;
    match checked(policy, HelperStep::Init, sys::fork_apart)? {
        Forked::Child => {
            drop(outside);
            let first = FirstProcess { policy, launch, cwd: &cwd, control, user };
            std::process::exit(i32::from(init::run(&first, rules, inside)));
        }
        Forked::Parent(child) => {
            drop(inside);
            let disk = RealDisk::default();
            let plan = policy.files.as_ref().map(|files| Plan::new(files, &disk)).unwrap_or_default();
            let ready = make_outside(policy, &plan, rules, &disk, outside);
            let code = match ready {
                // Placeholders are held until the program has ended.
                Ok(_made) => leave_streams().inspect_err(|_| end(child)).and_then(|()| wait_for(child)),
                Err(error) => {
                    end(child);
                    Err(error)
                }
            };
            if let Some(files) = &policy.files {
                placeholders::sweep(files, &plan);
            }
            remove_absent(&plan.absent, control);
            code
        }
    }
}

/// Makes what lies outside the namespaces, beside the first process in them, and says so.
fn make_outside(
    policy: &Policy,
    plan: &Plan,
    rules: Option<Rules>,
    disk: &RealDisk,
    mut inside: Sender,
) -> io::Result<Made> {
    inside.send_mounts(&plan.mounts);
    let made = checked(policy, HelperStep::Placeholders, || placeholders::make(&plan.placeholders))?;
    let grants = checked(policy, HelperStep::Grants, || grant_outside(policy, rules, disk))?;
    inside.send_ready(&OutsideReady { left_out: made.left_out.clone(), grants });
    Ok(made)
}

/// Adds to the rules of Landlock what they give of the machine's files; returns what can be added only inside.
fn grant_outside(
    policy: &Policy,
    rules: Option<Rules>,
    disk: &RealDisk,
) -> io::Result<Vec<(PathBuf, Grant)>> {
    let (Some(rules), Some(files)) = (rules, &policy.files) else { return Ok(Vec::new()) };
    let (inside, outside) =
        landlock::grants(files, true, disk).into_iter().partition(|(path, _)| landlock::is_made_inside(path));
    rules.grant(outside)?;
    Ok(inside)
}

/// Ends the first process and, with it, everything in its namespaces.
fn end(child: Pid) {
    // It may have ended by itself.
    kill_process(child, Signal::KILL).ok();
    drop(wait_for(child));
}

fn refuse_everything_writable(files: &FileRules) -> io::Result<()> {
    match files.roots.iter().any(|root| root == Path::new("/")) {
        true => Err(io::Error::other(format!(
            "`/` cannot be writable in a sandbox ({} roots)",
            files.roots.len()
        ))),
        false => Ok(()),
    }
}

/// Waits for a process; returns its code.
fn wait_for(child: Pid) -> io::Result<u8> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(code_of(status)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(other) => return Err(other.into()),
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
    /// Makes the program ready to be started.
    pub(super) fn program(&self, policy: &Policy, control: &OwnedFd) -> io::Result<Program> {
        checked(policy, HelperStep::Exec, || {
            Program::new(self.words.iter().cloned(), control.as_fd(), control::READY)
        })
    }

    /// Says that the program could not be started.
    pub(super) fn not_started(&self, error: &io::Error) -> io::Error {
        let program = self.words.first().map(|it| it.display().to_string()).unwrap_or_default();
        io::Error::new(error.kind(), format!("`{program}` could not be started: {error}"))
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
