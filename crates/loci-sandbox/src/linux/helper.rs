//! The helper: this program again under another name, which puts itself into the sandbox and starts the command there.
//!
//! Three processes: the one that was started stays outside everything ([`super::outside`]); its child is the first process
//! of the namespaces ([`super::init`]); that one's child becomes the program. Each step that fails ends all of them before
//! the program has started: nothing ever runs with less than what the policy asks for.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{Mode, OFlags};
use rustix::process::WaitStatus;

use super::landlock::{self, Rules};
use super::outside::{PreparedSandbox, WaitingSandbox};
use super::restrict::restrict;
use super::seccomp::Filter;
use super::sys::{self, Program};
use crate::control::{self, Message};
use crate::launch::HelperOrder;
use crate::plan::RealDisk;
use crate::policy::{Fault, FaultKind, HelperStep, Policy, Preparation};
use crate::program_start::ProgramStart;

/// The exit code of a sandbox that could not be made.
pub(super) const FAILED: u8 = 125;

/// Where a process of the helper has its program from.
#[derive(Clone, Copy)]
pub(super) enum ProgramSource<'a> {
    /// It was known before the process was made.
    Known(&'a ProgramStart),
    /// It is written into this file, once somebody says so.
    Handed(&'a File),
}

impl ProgramSource<'_> {
    /// Returns the program, which must be known by now.
    pub(super) fn program(self) -> io::Result<ProgramStart> {
        match self {
            Self::Known(start) => Ok(start.clone()),
            Self::Handed(file) => ProgramStart::without_policy(&whole(file)?),
        }
    }
}

/// Runs the helper; returns the exit code. It is started with `run <policy descriptor> <control descriptor> <program>
/// <arguments>…`, or with `wait <program descriptor> <control descriptor> <go descriptor> <preparation>` where it is handed its
/// program later.
pub(super) fn run(mut args: impl Iterator<Item = OsString>) -> u8 {
    let order = args.next().unwrap_or_default();
    let descriptor = |args: &mut dyn Iterator<Item = OsString>| -> io::Result<OwnedFd> {
        let number = args.next().and_then(|text| text.to_str()?.parse().ok());
        sys::inherited(number.ok_or(io::ErrorKind::InvalidInput)?)
    };
    let (Ok(file), Ok(control)) = (descriptor(&mut args), descriptor(&mut args)) else { return FAILED };
    let file = File::from(file);
    let done = if order == HelperOrder::Run.word() {
        run_words(args.collect(), &file, &control)
    } else if order == HelperOrder::Wait.word() {
        match descriptor(&mut args) {
            Ok(go) => run_handed(&args.next().unwrap_or_default(), &file, &control, go),
            Err(error) => Err(error),
        }
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{}` is no order", order.display())))
    };
    done.unwrap_or_else(|error| say_failure(&error, &control))
}

/// Runs words, in the directory and with the variables of this process.
fn run_words(words: Vec<OsString>, file: &File, control: &OwnedFd) -> io::Result<u8> {
    let policy = serde_json::from_slice::<Policy>(&whole(file)?)
        .map_err(|error| io::Error::other(format!("the policy cannot be read: {error}")))?;
    if !policy.layers.has_mounts() {
        return run_here(&policy, words, control);
    }
    let start = ProgramStart { words, cwd: std::env::current_dir()?, env: std::env::vars_os().collect() };
    let asked = Preparation::of(&policy);
    PreparedSandbox::begin(asked, ProgramSource::Known(&start), control, &mut None)?.run(&policy, control)
}

/// Prepares what can be, waits to be handed a program, without a terminal, and runs it.
fn run_handed(ahead: &OsStr, file: &File, control: &OwnedFd, go: OwnedFd) -> io::Result<u8> {
    rustix::process::setsid()?;
    let ahead: Preparation = serde_json::from_slice(ahead.as_encoded_bytes())?;
    let mut waiting = WaitingSandbox::new(ahead, file, control, go);
    if !waiting.wait_for_program()? {
        // Whoever this process waited for is gone.
        return Ok(FAILED);
    }
    let (policy, start) = ProgramStart::from_bytes(&whole(file)?)?;
    if !policy.layers.has_mounts() {
        enter(&start)?;
        sys::set_environment(start.env);
        return run_here(&policy, start.words, control);
    }
    let asked = Preparation::of(&policy);
    match waiting.into_prepared(asked) {
        Some(prepared) => prepared.run(&policy, control),
        None => {
            let begun = PreparedSandbox::begin(asked, ProgramSource::Known(&start), control, &mut None);
            begun?.run(&policy, control)
        }
    }
}

/// Reads a file from its beginning; the place that others have in it stays.
fn whole(file: &File) -> io::Result<Vec<u8>> {
    let n_bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut bytes = vec![0; n_bytes];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Goes to the directory of a program.
pub(super) fn enter(start: &ProgramStart) -> io::Result<()> {
    std::env::set_current_dir(&start.cwd)
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", start.cwd.display())))
}

/// Says why nothing runs, to whoever started the sandbox and to whoever reads the program's errors; returns the code.
pub(super) fn say_failure(error: &io::Error, control: &OwnedFd) -> u8 {
    // Nobody is left to tell when the other ends are gone.
    drop(control::send(control.as_fd(), &Message::Failed(error.to_string())));
    drop(writeln!(io::stderr(), "loci-sandbox: {error}"));
    FAILED
}

/// Without namespaces: this process becomes the program.
fn run_here(policy: &Policy, words: Vec<OsString>, control: &OwnedFd) -> io::Result<u8> {
    let asked = Preparation::of(policy);
    let filter = Filter::for_sandbox(&asked)?;
    checked(asked.fault, HelperStep::Capabilities, sys::empty_bounding_set)?;
    restrict(&asked, filter.as_ref(), || {
        let rules = Rules::new(asked.has_files, false)?;
        rules
            .grant(
                policy
                    .files
                    .as_ref()
                    .map(|files| landlock::grants(files, &RealDisk::default()))
                    .unwrap_or_default(),
            )?
            .grant(landlock::own_grants(asked.has_files, false))
    })?;
    let program = program(&asked, &words, control)?;
    Err(not_started(&words, &program.exec()))
}

/// Makes a program ready to be started.
pub(super) fn program(asked: &Preparation, words: &[OsString], control: &OwnedFd) -> io::Result<Program> {
    checked(asked.fault, HelperStep::Exec, || {
        Program::new(words.iter().cloned(), control.as_fd(), control::READY)
    })
}

/// Says that a program could not be started.
pub(super) fn not_started(words: &[OsString], error: &io::Error) -> io::Error {
    let program = words.first().map(|it| it.display().to_string()).unwrap_or_default();
    io::Error::new(error.kind(), format!("`{program}` could not be started: {error}"))
}

/// Carries out a step, names it in its error, and fails where a test asks for it.
pub(super) fn checked<T>(
    fault: Option<Fault>,
    step: HelperStep,
    act: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let fault = fault.filter(|fault| fault.at == step).map(|fault| fault.kind);
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
