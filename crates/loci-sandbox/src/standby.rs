//! The helper of the next command, started ahead: it waits for its program, so that a command need not wait for the start of
//! this program.
//!
//! It is a child like every helper, in a session of its own, with the streams of the command that is to come. It knows no
//! path, no directory and no variable before it is handed a program, and ends when the socket does that it waits at: when
//! this process ends, however that happens. What it has prepared meanwhile is the same for every command with such layers
//! ([`Preparation`]), and is made anew where the program that it is handed asks for another. One that has died is replaced
//! when it is needed: what is handed over runs in the sandbox that it asks for, or not at all.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::process::Child;

use crate::control;
use crate::launch::{HelperHandle, HelperOrder, helper_command};
use crate::policy::{Policy, Preparation};
use crate::program_start::ProgramStart;

/// A helper that waits to be handed a program.
#[derive(Debug)]
pub struct WaitingHelper {
    socket: OwnedFd,
    /// Where it is told to go on; nobody but the process that was started waits at it.
    go: OwnedFd,
    /// What the program is written into; the helper has it as well.
    program: File,
}

/// Makes the command that starts a helper which prepares this much and waits. It has the streams that are set on it;
/// directory and environment are those of the program that it is handed.
pub fn waiting_helper(helper: &Path, ahead: &Preparation) -> io::Result<(Command, WaitingHelper)> {
    let (go, theirs) = control::pair()?;
    let (mut command, socket, program) = helper_command(helper, HelperOrder::Wait, Some(theirs))?;
    let ahead = serde_json::to_string(ahead).map_err(io::Error::other)?;
    command.arg(ahead).env_clear().current_dir("/");
    Ok((command, WaitingHelper { socket, go, program }))
}

impl WaitingHelper {
    /// Hands a program over. The error is that nobody waits any more: nothing has been started then.
    pub fn hand_over(self, policy: &Policy, start: &ProgramStart) -> io::Result<HelperHandle> {
        self.send(&start.to_bytes(policy)?)
    }

    fn send(mut self, bytes: &[u8]) -> io::Result<HelperHandle> {
        self.program.write_all(bytes)?;
        // Both processes have one place in it.
        self.program.rewind()?;
        control::send_go(self.go.as_fd())?;
        Ok(HelperHandle::new(self.socket))
    }
}

/// The place of the next command's helper. Copies are the same place.
#[derive(Debug, Clone, Default)]
pub struct Standby {
    /// Held to put one in or to take it out.
    waiting: Arc<Mutex<Option<Started>>>,
}

#[derive(Debug)]
struct Started {
    child: Child,
    helper: WaitingHelper,
}

impl Standby {
    /// Starts a program, by the helper that waits or by another; called within a runtime. Its input is empty and its output
    /// goes to pipes.
    pub(crate) fn start(
        &self,
        helper: &Path,
        policy: &Policy,
        start: &ProgramStart,
    ) -> io::Result<(Child, HelperHandle)> {
        let bytes = start.to_bytes(policy)?;
        // What one that was killed has started may keep its socket for a moment.
        let is_alive = |it: &mut Started| matches!(it.child.try_wait(), Ok(None));
        let waiting = self.lock().take().and_then(|mut it| is_alive(&mut it).then_some(it));
        if let Some(Started { child, helper }) = waiting {
            match helper.send(&bytes) {
                Ok(helper_handle) => return Ok((child, helper_handle)),
                Err(error) => {
                    tracing::debug!(target: "loci::sandbox", %error, "the helper that waited is gone");
                }
            }
        }
        let Started { child, helper } = spawn(helper, &Preparation::of(policy))?;
        Ok((child, helper.send(&bytes)?))
    }

    /// Has a helper prepare this much and wait for the next command, where none does; called within a runtime.
    pub(crate) fn prepare(&self, helper: &Path, ahead: &Preparation) {
        if self.lock().is_some() {
            return;
        }
        match spawn(helper, ahead) {
            Ok(started) => *self.lock() = Some(started),
            // The next command tries again, and says why.
            Err(error) => tracing::debug!(target: "loci::sandbox", %error, "no helper waits"),
        }
    }

    /// Returns the process that waits, where one does.
    pub fn process(&self) -> Option<u32> {
        self.lock().as_ref().and_then(|started| started.child.id())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Started>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn spawn(helper: &Path, ahead: &Preparation) -> io::Result<Started> {
    let (mut command, helper) = waiting_helper(helper, ahead)?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = tokio::process::Command::from(command).spawn()?;
    Ok(Started { child, helper })
}
