//! Running a small program for what it prints, within a time and a size.
//!
//! The program is ended with all that it started when the time is over. Blocks, so only threads beside the one that draws
//! call it.

use std::io::{ErrorKind, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use loci_stdx::{Signal, kill_group, own_group};

use crate::helper_command::{HelperEnd, HelperShell};

/// How much a program may take.
#[derive(Debug, Clone, Copy)]
pub struct CommandLimits {
    /// How long it has.
    pub patience: Duration,
    /// More of its output is not read.
    pub output: u64,
}

/// What a program printed.
#[derive(Debug)]
pub struct CommandOutput {
    /// On its standard output.
    pub bytes: Vec<u8>,
    /// How it ended; none where it did not.
    pub status: Option<ExitStatus>,
}

/// Why there is nothing that it printed.
#[derive(Debug)]
pub enum CommandFailure {
    /// There is no such program.
    NotFound,
    /// It could not be started.
    Start(std::io::Error),
    /// What it printed could not be read.
    Read,
    /// It took too long.
    TimedOut,
}

/// Runs a program, with this on its standard input, and returns what it printed on its standard output.
pub fn run(
    mut command: Command,
    input: &[u8],
    limits: CommandLimits,
) -> Result<CommandOutput, CommandFailure> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    own_group(&mut command);
    let mut child = command.spawn().map_err(not_started)?;
    let answer = ask(&mut child, input, limits);
    let status = end(&mut child);
    answer.map(|bytes| CommandOutput { bytes, status })
}

/// The same for a command of a front end, which a sandbox may hold.
pub(crate) fn run_helper(
    mut shell: HelperShell,
    input: &[u8],
    limits: CommandLimits,
) -> Result<CommandOutput, CommandFailure> {
    shell.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut started = shell.start().map_err(not_started)?;
    let answer = ask(&mut started.child, input, limits);
    if answer.is_err() {
        started.stop().stop();
    }
    let HelperEnd { status, why_not_run } = started.end();
    let bytes = answer?;
    match why_not_run {
        Some(why) => Err(CommandFailure::Start(std::io::Error::other(why))),
        None => Ok(CommandOutput { bytes, status }),
    }
}

fn not_started(error: std::io::Error) -> CommandFailure {
    match error.kind() {
        ErrorKind::NotFound => CommandFailure::NotFound,
        _ => CommandFailure::Start(error),
    }
}

/// Gives a program its input and waits for all that it prints.
fn ask(child: &mut Child, input: &[u8], limits: CommandLimits) -> Result<Vec<u8>, CommandFailure> {
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input may still answer.
        stdin.write_all(input).ok();
    }
    let (sender, receiver) = mpsc::channel();
    let output = child.stdout.take();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.map(|output| output.take(limits.output).read_to_end(&mut bytes));
        // Nobody listens any more once the time is over.
        sender.send(read.map(|read| read.map(|_| bytes))).ok();
    });
    match receiver.recv_timeout(limits.patience) {
        Ok(Some(Ok(bytes))) => Ok(bytes),
        Ok(_) => Err(CommandFailure::Read),
        Err(_) => Err(CommandFailure::TimedOut),
    }
}

/// Waits a moment for the end of a program that has said all it had to say, and ends what is left of it.
fn end(child: &mut Child) -> Option<ExitStatus> {
    for _ in 0..50 {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // It may have ended this very moment.
    kill_group(child.id(), Signal::Kill).ok();
    child.wait().ok()
}
