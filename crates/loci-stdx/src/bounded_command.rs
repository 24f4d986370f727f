//! Running a small program for what it prints or for how it ends, within a time and a size.
//!
//! The program leads a process group, and is ended with all that it started when its time is over. Its input is written and
//! its output read on threads of their own, so that neither a program that does not read nor one that does not stop holds
//! anybody up for longer than that. Blocks, so only threads that may wait call it. Environment and directory are the
//! command's, as the caller set them.

use std::io::{self, ErrorKind, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::{Signal, kill_group, own_group};

/// How long, and how often, somebody looks whether a program that has said everything has ended.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
const LAST_MOMENT: Duration = Duration::from_millis(100);

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
#[derive(Debug, thiserror::Error)]
pub enum CommandFailure {
    /// There is no such program.
    #[error("there is no such program")]
    NotFound,
    /// It could not be started.
    #[error("it could not be started")]
    Start(#[source] io::Error),
    /// What it printed could not be read.
    #[error("what it printed could not be read")]
    Read,
    /// It took too long.
    #[error("it took too long")]
    TimedOut,
}

impl CommandFailure {
    /// Sorts what the system says to a start.
    pub fn from_start(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => Self::NotFound,
            _ => Self::Start(error),
        }
    }
}

/// Runs a program, with this on its standard input, and returns what it printed on its standard output.
pub fn run_bounded(
    mut command: Command,
    input: &[u8],
    limits: CommandLimits,
) -> Result<CommandOutput, CommandFailure> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    own_group(&mut command);
    let mut child = command.spawn().map_err(CommandFailure::from_start)?;
    let answer = exchange(&mut child, input.to_vec(), limits);
    if answer.is_err() {
        // It may have ended this very moment.
        kill_group(child.id(), Signal::Kill).ok();
    }
    let status = status_within(&mut child, LAST_MOMENT).unwrap_or_else(|| end(&mut child));
    answer.map(|bytes| CommandOutput { bytes, status })
}

/// Runs a program for how it ends; what it prints is thrown away. What it leaves in the background may stay, as long as it
/// ends itself in time.
pub fn run_for_status(
    mut command: Command,
    input: &[u8],
    patience: Duration,
) -> Result<ExitStatus, CommandFailure> {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    own_group(&mut command);
    let mut child = command.spawn().map_err(CommandFailure::from_start)?;
    let fed = feed(&mut child, input.to_vec());
    match fed.map(|()| status_within(&mut child, patience)) {
        Ok(Some(Some(status))) => Ok(status),
        Ok(Some(None)) => Err(CommandFailure::Read),
        Ok(None) => {
            end(&mut child);
            Err(CommandFailure::TimedOut)
        }
        Err(failure) => {
            end(&mut child);
            Err(failure)
        }
    }
}

/// Gives a program that was started its input and waits for all that it prints; both streams must be pipes. When it has taken
/// too long it still runs, and is the caller's to end.
pub fn exchange(child: &mut Child, input: Vec<u8>, limits: CommandLimits) -> Result<Vec<u8>, CommandFailure> {
    let (sender, receiver) = mpsc::channel();
    let output = child.stdout.take();
    let read = move || {
        let mut bytes = Vec::new();
        let read = output.map(|output| output.take(limits.output).read_to_end(&mut bytes));
        // Nobody listens any more once the time is over.
        sender.send(read.map(|read| read.map(|_| bytes))).ok();
    };
    thread::Builder::new().spawn(read).map_err(CommandFailure::Start)?;
    feed(child, input)?;
    match receiver.recv_timeout(limits.patience) {
        Ok(Some(Ok(bytes))) => Ok(bytes),
        Ok(_) => Err(CommandFailure::Read),
        Err(_) => Err(CommandFailure::TimedOut),
    }
}

/// Writes the input beside everything else: a program that does not read it may still answer.
fn feed(child: &mut Child, input: Vec<u8>) -> Result<(), CommandFailure> {
    let Some(mut stdin) = child.stdin.take().filter(|_| !input.is_empty()) else { return Ok(()) };
    let write = move || drop(stdin.write_all(&input));
    thread::Builder::new().spawn(write).map(drop).map_err(CommandFailure::Start)
}

/// Waits a while for the end of a program; the inner value is none where the system does not tell.
fn status_within(child: &mut Child, patience: Duration) -> Option<Option<ExitStatus>> {
    let end = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(Some(status)),
            Ok(None) if Instant::now() < end => thread::sleep(BETWEEN_LOOKS),
            Ok(None) => return None,
            Err(_) => return Some(None),
        }
    }
}

/// Ends a program with all that it started.
fn end(child: &mut Child) -> Option<ExitStatus> {
    // It may have ended this very moment.
    kill_group(child.id(), Signal::Kill).ok();
    child.wait().ok()
}

/// The processes of a command, which do not outlive somebody's interest in it: they are ended when this is dropped.
#[derive(Debug)]
pub struct GroupGuard(Option<u32>);

impl GroupGuard {
    /// Guards the group that a process leads; there may be none.
    pub fn new(leader: Option<u32>) -> Self {
        Self(leader)
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // A group that has ended is what we wanted.
            kill_group(leader, Signal::Kill).ok();
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(line: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).env_clear().env("PATH", "/usr/bin:/bin");
        command
    }

    fn printed(line: &str, input: &[u8], patience: Duration, output: u64) -> Result<String, String> {
        run_bounded(shell(line), input, CommandLimits { patience, output })
            .map(|output| String::from_utf8_lossy(&output.bytes).into_owned())
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn program_is_run_for_what_it_prints() {
        assert_eq!(printed("cat; echo; exit 3", b"in", LONG, 100), Ok("in\n".to_owned()));
        assert_eq!(printed("echo 12345678", b"", LONG, 4), Ok("1234".to_owned()), "no more than the limit");
        let output = run_bounded(shell("exit 3"), b"", CommandLimits { patience: LONG, output: 1 }).unwrap();
        assert_eq!(output.status.unwrap().code(), Some(3));
        let missing =
            run_bounded(Command::new("/no/such/program"), b"", CommandLimits { patience: LONG, output: 1 });
        assert!(matches!(missing, Err(CommandFailure::NotFound)), "{missing:?}");
    }

    #[test]
    fn input_that_nobody_reads_holds_nobody_up() {
        let input = vec![b'x'; 1 << 20];
        assert_eq!(printed("exec 0<&-; echo deaf", &input, LONG, 100), Ok("deaf\n".to_owned()));
        let late = printed("sleep 1000", &input, Duration::from_millis(50), 100);
        assert_eq!(late, Err("it took too long".to_owned()));
    }

    #[test]
    fn program_that_takes_too_long_is_ended_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let line = format!("sleep 1000 & echo $! > {}; wait", file.display());
        // The pid is in the file before the time is over, however slow the machine: it is asked until it is.
        let mut patience = Duration::from_millis(100);
        let pid = loop {
            assert_eq!(printed(&line, b"", patience, 100), Err("it took too long".to_owned()));
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            match text.trim().parse::<u32>() {
                Ok(pid) => break pid,
                Err(_) => patience *= 2,
            }
        };
        // Whoever inherits it may not have looked yet that it has ended.
        while crate::process::start_ticks(pid).is_some() && crate::process::is_alive(pid) {
            thread::yield_now();
        }
    }

    #[test]
    fn program_that_is_run_for_its_end_may_leave_something_in_the_background() {
        let status = run_for_status(shell("cat > /dev/null; sleep 1 & exit 4"), b"in", LONG).unwrap();
        assert_eq!(status.code(), Some(4));
        let late = run_for_status(shell("sleep 1000"), b"", Duration::from_millis(50));
        assert!(matches!(late, Err(CommandFailure::TimedOut)), "{late:?}");
    }
}
