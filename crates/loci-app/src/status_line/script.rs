//! Running the command of the status line: beside everything else, one at a time, and never for long.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loci_stdx::{Signal, kill_group, own_group, prefixed_command};

/// What people call the command of the status line.
pub const STATUS_LINE: &str = "`statusLine`";
/// What people call the command of the rows of agents.
pub const SUBAGENT_STATUS_LINE: &str = "`subagentStatusLine`";
/// How long it has.
const PATIENCE: Duration = Duration::from_secs(10);
/// More of its output is not read.
const MOST_OUTPUT: u64 = 64 * 1024;

/// One run of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptRun {
    /// What people call it, at the beginning of a sentence.
    pub label: &'static str,
    /// The command, for the shell.
    pub command: String,
    /// Where it runs.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub vars: Vec<(String, String)>,
}

/// The command of the status line: the run at hand ends when another begins, or when this is dropped.
#[derive(Debug, Default)]
pub struct StatusScript {
    running: Option<Arc<Running>>,
}

/// A run, until it has ended or was cancelled.
#[derive(Debug, Default)]
struct Running {
    /// The process group; held to end it, so that its number is not another's by then.
    group: Mutex<GroupState>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum GroupState {
    #[default]
    NotStarted,
    Started(u32),
    Cancelled,
    Over,
}

impl StatusScript {
    /// Begins a run in the place of the one at hand, with what `input` makes on its standard input; `done` hears what it
    /// printed, unless it is cancelled before. What it prints counts also where it failed.
    pub fn start(
        &mut self,
        run: ScriptRun,
        input: impl FnOnce() -> String + Send + 'static,
        done: impl FnOnce(Result<String, String>) + Send + 'static,
    ) {
        self.cancel();
        let running = Arc::new(Running::default());
        self.running = Some(Arc::clone(&running));
        std::thread::spawn(move || {
            if let Some(said) = running.run(&run, input()) {
                done(said);
            }
        });
    }

    /// Ends the run at hand.
    pub fn cancel(&mut self) {
        if let Some(running) = self.running.take() {
            running.cancel();
        }
    }
}

impl Drop for StatusScript {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Running {
    /// Runs the command; none when it was cancelled.
    fn run(&self, run: &ScriptRun, text: String) -> Option<Result<String, String>> {
        let mut child = match self.spawn(run)? {
            Ok(child) => child,
            Err(error) => return Some(Err(format!("{} could not be run: {error}", run.label))),
        };
        let input = child.stdin.take();
        let output = child.stdout.take();
        // One that prints before it reads must not wait for us.
        std::thread::spawn(move || input.map(|mut input| input.write_all(text.as_bytes())));
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = output.map(|output| output.take(MOST_OUTPUT).read_to_end(&mut bytes));
            drop(sender.send(read.map(|_| bytes).unwrap_or_default()));
        });
        let said = receiver.recv_timeout(PATIENCE);
        let was_cancelled = self.end(&mut child);
        match (was_cancelled, said) {
            (true, _) => None,
            (false, Ok(bytes)) => Some(Ok(String::from_utf8_lossy(&bytes).into_owned())),
            (false, Err(_)) => {
                Some(Err(format!("{} took longer than {} seconds", run.label, PATIENCE.as_secs())))
            }
        }
    }

    fn spawn(&self, run: &ScriptRun) -> Option<std::io::Result<Child>> {
        let mut group = self.group.lock().unwrap_or_else(PoisonError::into_inner);
        if *group == GroupState::Cancelled {
            return None;
        }
        let mut command = Command::new("sh");
        let line = prefixed_command(&run.vars, &run.command);
        command
            .args(["-c", line.as_ref().unwrap_or(&run.command)])
            .current_dir(&run.cwd)
            .env_clear()
            .envs(run.vars.iter().cloned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        own_group(&mut command);
        let child = command.spawn();
        if let Ok(child) = &child {
            *group = GroupState::Started(child.id());
        }
        Some(child)
    }

    /// Ends whatever is left of it; true when it was cancelled.
    fn end(&self, child: &mut Child) -> bool {
        let mut group = self.group.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have ended already; what it started may not.
        drop(kill_group(child.id(), Signal::Kill));
        drop(child.wait());
        std::mem::replace(&mut *group, GroupState::Over) == GroupState::Cancelled
    }

    fn cancel(&self) {
        let mut group = self.group.lock().unwrap_or_else(PoisonError::into_inner);
        if let GroupState::Started(id) = *group {
            // One that has ended by itself this very moment is no loss.
            drop(kill_group(id, Signal::Kill));
        }
        if *group != GroupState::Over {
            *group = GroupState::Cancelled;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn run(command: &str) -> ScriptRun {
        let vars =
            vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned()), ("COLUMNS".to_owned(), "80".to_owned())];
        ScriptRun { label: STATUS_LINE, command: command.to_owned(), cwd: "/".into(), vars }
    }

    fn said(command: &str) -> Result<String, String> {
        let (sender, receiver) = mpsc::channel();
        let mut script = StatusScript::default();
        script.start(run(command), || "{\"a\":1}".to_owned(), move |said| sender.send(said).unwrap());
        receiver.recv().unwrap()
    }

    #[test]
    fn command_reads_its_input_and_environment() {
        assert_eq!(said("cat; echo; echo $COLUMNS").as_deref(), Ok("{\"a\":1}\n80\n"));
        assert_eq!(said("echo half; exit 3").as_deref(), Ok("half\n"), "what it printed counts");
        assert_eq!(said("exec 0<&-; echo deaf").as_deref(), Ok("deaf\n"));
    }

    #[test]
    fn command_that_cannot_be_run_is_named() {
        let (sender, receiver) = mpsc::channel();
        let mut script = StatusScript::default();
        let lost = ScriptRun { label: SUBAGENT_STATUS_LINE, cwd: "/nowhere/at/all".into(), ..run("true") };
        script.start(lost, String::new, move |said| sender.send(said).unwrap());
        let why = receiver.recv().unwrap().unwrap_err();
        assert!(why.starts_with("`subagentStatusLine` could not be run: "), "{why}");
    }

    #[test]
    fn new_run_ends_the_old_one_and_nobody_hears_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let begun = dir.path().join("begun");
        let (sender, receiver) = mpsc::channel();
        let first = sender.clone();
        let mut script = StatusScript::default();
        let wait = format!("echo > {}; while :; do sleep 1; done", begun.display());
        script.start(run(&wait), String::new, move |said| first.send(said).unwrap());
        while !begun.exists() {
            std::thread::yield_now();
        }
        script.start(run("echo second"), String::new, move |said| sender.send(said).unwrap());
        assert_eq!(receiver.recv().unwrap().as_deref(), Ok("second\n"));
        assert!(receiver.recv().is_err(), "both are over, and only one spoke");
    }
}
