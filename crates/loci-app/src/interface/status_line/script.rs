//! Running the command of the status line: beside everything else, one at a time, and never for long.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loci_stdx::{CommandFailure, CommandLimits, exchange, prefixed_command};

use crate::interface::helper_command::{
    HelperCommand, HelperEnd, HelperSandboxes, HelperStop, StartedHelper,
};

/// What people call the command of the status line.
pub const STATUS_LINE: &str = "`statusLine`";
/// What people call the command of the rows of agents.
pub const SUBAGENT_STATUS_LINE: &str = "`subagentStatusLine`";
/// How long it has.
const PATIENCE: Duration = Duration::from_secs(10);
/// More of its output is not read.
const MOST_OUTPUT: u64 = 64 * 1024;

/// One run of a command.
#[derive(Debug, Clone)]
pub struct ScriptRun {
    /// What people call it, at the beginning of a sentence.
    pub label: &'static str,
    /// The command.
    pub command: HelperCommand,
    /// Makes the sandbox that it asks for.
    pub sandboxes: HelperSandboxes,
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
    /// How far it is; held to end it, so that the number of its process group is not another's by then.
    state: Mutex<RunState>,
}

#[derive(Debug, Default)]
enum RunState {
    #[default]
    NotStarted,
    Started(HelperStop),
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
        let not_run = |why: String| Some(Err(format!("{} could not be run: {why}", run.label)));
        let mut started = match self.start(run)? {
            Ok(started) => started,
            Err(why) => return not_run(why),
        };
        let limits = CommandLimits { patience: PATIENCE, output: MOST_OUTPUT };
        let said = match exchange(&mut started.child, text.into_bytes(), limits) {
            // What cannot be read is nothing.
            Err(CommandFailure::Read) => Ok(Vec::new()),
            said => said,
        };
        if said.is_err() {
            started.stop().stop();
        }
        let (was_cancelled, end) = self.end(started);
        match (was_cancelled, said, end.why_not_run) {
            (true, ..) => None,
            (false, Ok(_), Some(why)) => not_run(why),
            (false, Ok(bytes), None) if bytes.is_empty() && end.status.is_some_and(is_not_found) => {
                not_run("its shell finds no such command, or may not execute it".to_owned())
            }
            (false, Ok(bytes), None) => Some(Ok(String::from_utf8_lossy(&bytes).into_owned())),
            (false, Err(CommandFailure::Start(error)), _) => not_run(error.to_string()),
            (false, Err(_), _) => {
                Some(Err(format!("{} took longer than {} seconds", run.label, PATIENCE.as_secs())))
            }
        }
    }

    fn start(&self, run: &ScriptRun) -> Option<Result<StartedHelper, String>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, RunState::Cancelled) {
            return None;
        }
        let line = prefixed_command(&run.vars, &run.command.line);
        let line = line.as_ref().unwrap_or(&run.command.line);
        let started = run.sandboxes.shell(&run.command, line, &run.cwd, &run.vars).and_then(|mut shell| {
            shell.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            shell.start().map_err(|error| error.to_string())
        });
        if let Ok(started) = &started {
            *state = RunState::Started(started.stop());
        }
        Some(started)
    }

    /// Ends whatever is left of it; tells whether it was cancelled, and how it ended.
    fn end(&self, started: StartedHelper) -> (bool, HelperEnd) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let end = started.end();
        (matches!(std::mem::replace(&mut *state, RunState::Over), RunState::Cancelled), end)
    }

    fn cancel(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let RunState::Started(stop) = &*state {
            stop.stop();
        }
        if !matches!(*state, RunState::Over) {
            *state = RunState::Cancelled;
        }
    }
}

/// Tells whether a shell says that a command is not there, or cannot be executed. Any other failure may be meant.
fn is_not_found(status: ExitStatus) -> bool {
    matches!(status.code(), Some(126 | 127))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn run(command: &str) -> ScriptRun {
        let vars =
            vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned()), ("COLUMNS".to_owned(), "80".to_owned())];
        let sandboxes = HelperSandboxes::default();
        ScriptRun { label: STATUS_LINE, command: command.into(), sandboxes, cwd: "/".into(), vars }
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
        let missing = said("no-such-script.sh").unwrap_err();
        assert!(missing.contains("could not be run: its shell finds no such command"), "{missing}");
        for meant in ["exit 1", "echo part; exit 127"] {
            assert!(said(meant).is_ok(), "{meant}");
        }
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
