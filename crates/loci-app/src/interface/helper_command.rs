//! Commands that front ends run by themselves (`statusLine`, `subagentStatusLine`, `fileSuggestion`), and the sandbox that one
//! may ask for beside its command, as hooks and MCP servers do.
//!
//! Whoever asks for a sandbox is never run without one. What runs in a sandbox is ended by letting go of it, not by a signal to
//! the helper, which has to clean up behind it.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use loci_core::sandbox_profile::SandboxProfile;
use loci_mcp::SandboxMaker;
use loci_sandbox::{HelperHandle, Sandbox, SandboxReport};
use loci_stdx::{CommandFailure, CommandLimits, CommandOutput, Signal, exchange, kill_group, own_group};
use serde_json::Value;
use tokio::sync::Notify;

/// A command that a front end runs by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelperCommand {
    /// The command, for the shell.
    pub line: String,
    /// The sandbox that it asks for.
    pub sandbox: Option<SandboxProfile>,
}

impl HelperCommand {
    /// Reads a setting; none where it names no command, or one whose sandbox cannot be understood.
    pub fn from_setting(said: &Value) -> Option<Self> {
        let line = said["command"].as_str().filter(|text| !text.trim().is_empty())?;
        let sandbox = SandboxProfile::parse(said.get("sandbox")).ok()?;
        (said["type"] == "command").then(|| Self { line: line.to_owned(), sandbox })
    }
}

impl From<&str> for HelperCommand {
    fn from(line: &str) -> Self {
        Self { line: line.to_owned(), sandbox: None }
    }
}

/// Makes the sandboxes that such commands ask for. Copies have them in common: a command that runs every second has one.
#[derive(Clone, Default)]
pub struct HelperSandboxes {
    make: Option<SandboxMaker>,
    /// Those that were made; held to look for one or to add it.
    made: Arc<Mutex<Vec<MadeSandbox>>>,
}

struct MadeSandbox {
    profile: SandboxProfile,
    cwd: PathBuf,
    sandbox: Arc<Sandbox>,
}

impl fmt::Debug for HelperSandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HelperSandboxes").finish_non_exhaustive()
    }
}

impl HelperSandboxes {
    /// Takes what makes sandboxes of single programs.
    pub fn new(make: SandboxMaker) -> Self {
        Self { make: Some(make), made: Arc::default() }
    }

    /// Makes the shell that runs a line for a command, in its sandbox where it asks for one.
    pub(crate) fn shell(
        &self,
        helper: &HelperCommand,
        line: &str,
        cwd: &Path,
        vars: &[(String, String)],
    ) -> Result<HelperShell, String> {
        let args = ["-c", line];
        let (mut command, vars, supervised) = match &helper.sandbox {
            None => {
                let mut command = Command::new("sh");
                command.args(args);
                (command, vars.to_vec(), None)
            }
            Some(profile) => {
                let sandbox = self.sandbox(profile, cwd)?;
                // Its profile says what it may write; no directory is writable for being the session's.
                let made = sandbox.command(&[], OsStr::new("sh"), args);
                let (command, helper_handle) =
                    made.map_err(|error| format!("its sandbox could not be made: {error}"))?;
                (command, sandbox.child_env(vars.to_vec()), Some((sandbox, helper_handle)))
            }
        };
        command.current_dir(cwd).env_clear().envs(vars);
        Ok(HelperShell { command, supervised })
    }

    fn sandbox(&self, profile: &SandboxProfile, cwd: &Path) -> Result<Arc<Sandbox>, String> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = made.iter().find(|it| it.profile == *profile && it.cwd == cwd) {
            return Ok(Arc::clone(&found.sandbox));
        }
        let make = self.make.as_ref().ok_or("it asks for a sandbox, which cannot be had here")?;
        let sandbox = make(profile, cwd)?;
        made.push(MadeSandbox {
            profile: profile.clone(),
            cwd: cwd.to_owned(),
            sandbox: Arc::clone(&sandbox),
        });
        Ok(sandbox)
    }
}

/// A shell about to run a command; its streams are the caller's to set.
pub(crate) struct HelperShell {
    pub(crate) command: Command,
    supervised: Option<(Arc<Sandbox>, HelperHandle)>,
}

impl HelperShell {
    /// Runs it within limits, as [`loci_stdx::run_bounded`] runs programs.
    pub(crate) fn run(
        mut self,
        input: &[u8],
        limits: CommandLimits,
    ) -> Result<CommandOutput, CommandFailure> {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut started = self.start().map_err(CommandFailure::from_start)?;
        let answer = exchange(&mut started.child, input.to_vec(), limits);
        if answer.is_err() {
            started.stop().stop();
        }
        let HelperEnd { status, why_not_run } = started.end();
        let bytes = answer?;
        match why_not_run {
            Some(why) => Err(CommandFailure::Start(io::Error::other(why))),
            None => Ok(CommandOutput { bytes, status }),
        }
    }

    /// Starts it, in a process group of its own.
    pub(crate) fn start(self) -> io::Result<StartedHelper> {
        let Self { mut command, supervised } = self;
        own_group(&mut command);
        let child = command.spawn()?;
        // It holds the helper's end of the sandbox's socket.
        drop(command);
        let Some((sandbox, helper_handle)) = supervised else {
            return Ok(StartedHelper { stop: HelperStop::Group(child.id()), child, watch: None });
        };
        let is_over = Arc::new(Notify::new());
        let stop = HelperStop::Sandbox(Arc::clone(&is_over));
        // Where there is no thread the socket is closed with it, and everything inside ends.
        let watch = std::thread::Builder::new()
            .name("helper's sandbox".to_owned())
            .spawn(move || follow(&sandbox, helper_handle, &is_over))?;
        Ok(StartedHelper { stop, child, watch: Some(watch) })
    }
}

/// Carries its connections until it has ended, or somebody has had enough of it; returns what its sandbox told.
fn follow(sandbox: &Sandbox, helper_handle: HelperHandle, is_over: &Notify) -> io::Result<SandboxReport> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let running = sandbox.watch(helper_handle)?;
        tokio::select! {
            report = running.report() => Ok(report),
            () = is_over.notified() => Ok(SandboxReport { is_ready: true, ..SandboxReport::default() }),
        }
    })
}

/// A command that runs.
pub(crate) struct StartedHelper {
    pub(crate) child: Child,
    stop: HelperStop,
    watch: Option<JoinHandle<io::Result<SandboxReport>>>,
}

impl StartedHelper {
    /// Returns what ends it, with all that it has started.
    pub(crate) fn stop(&self) -> HelperStop {
        self.stop.clone()
    }

    /// Waits a moment for the end of a command that has said all it had to say, and ends what is left of it.
    pub(crate) fn end(mut self) -> HelperEnd {
        let has_ended = |child: &mut Child| matches!(child.try_wait(), Ok(Some(_)));
        // A sandbox cleans up behind its command; what a shell has left is not waited for.
        let n_looks = if self.watch.is_some() { LOOKS_AT_SANDBOX } else { LOOKS };
        for _ in 0..n_looks {
            if has_ended(&mut self.child) {
                break;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        self.stop.stop();
        let status = self.child.wait().ok();
        let watched = self.watch.map(|watch| watch.join().unwrap_or_else(|_| Ok(SandboxReport::default())));
        let why_not_run = match watched {
            None => None,
            Some(Ok(report)) => report.why_not_run(),
            Some(Err(error)) => Some(format!("its sandbox could not be followed: {error}")),
        };
        HelperEnd { status, why_not_run }
    }
}

/// How often, and after how long, somebody looks whether a command that has said everything has ended.
const LOOKS: usize = 50;
const LOOKS_AT_SANDBOX: usize = 1_000;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// How a command ended.
pub(crate) struct HelperEnd {
    /// How its shell did.
    pub(crate) status: Option<ExitStatus>,
    /// Why it was never run, where its sandbox says so.
    pub(crate) why_not_run: Option<String>,
}

/// Ends a command, from any thread.
#[derive(Debug, Clone)]
pub(crate) enum HelperStop {
    /// Its process group.
    Group(u32),
    /// The sandbox that holds it.
    Sandbox(Arc<Notify>),
}

impl HelperStop {
    /// Ends it. One that has ended by itself this very moment is no loss.
    pub(crate) fn stop(&self) {
        match self {
            Self::Group(id) => drop(kill_group(*id, Signal::Kill)),
            Self::Sandbox(is_over) => is_over.notify_one(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn setting_names_a_command_and_its_sandbox_or_nothing() {
        let read = |value: Value| HelperCommand::from_setting(&value);
        for none in [
            json!(null),
            json!("x"),
            json!({"command": "x"}),
            json!({"type": "command", "command": " "}),
            json!({"type": "command", "command": "x", "sandbox": "yes"}),
            json!({"type": "command", "command": "x", "sandbox": {"network": "a.com"}}),
        ] {
            assert_eq!(read(none.clone()), None, "{none}");
        }
        assert_eq!(read(json!({"type": "command", "command": "x"})), Some("x".into()));
        let off = json!({"type": "command", "command": "x", "sandbox": {"enabled": false}});
        assert_eq!(read(off), Some("x".into()));
        let sandboxed = read(json!({"type": "command", "command": "x", "sandbox": {"allowWrite": ["."]}}));
        assert_eq!(sandboxed.unwrap().sandbox.unwrap().allow_write, ["."]);
    }

    #[test]
    fn command_that_asks_for_a_sandbox_is_not_run_without_one() {
        let asks = HelperCommand { sandbox: Some(SandboxProfile::default()), .."true".into() };
        for sandboxes in [
            HelperSandboxes::default(),
            HelperSandboxes::new(Arc::new(|_, _| {
                Err("the sandbox that it asks for cannot be had".to_owned())
            })),
        ] {
            let why = sandboxes.shell(&asks, "true", Path::new("/"), &[]).err().unwrap();
            assert!(why.contains("cannot be had"), "{why}");
            assert!(sandboxes.shell(&"true".into(), "true", Path::new("/"), &[]).is_ok());
        }
    }
}
