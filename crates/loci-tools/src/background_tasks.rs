//! Background tasks of a session: commands that run on while the conversation goes on, and the tools that show and
//! stop them.
//!
//! Each task has one follower, a tokio task that writes its output to a file and notes how it ended. What must
//! stay true: a task ends with the session. [`ShellTasks::shutdown`] ends them all and waits; dropping [`ShellTasks`]
//! drops the followers, and with each follower goes its process tree.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loci_core::ids::ToolUseId;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::bash::capture::Capture;
use crate::bash::death_watch::DeathWatch;
use crate::bash::run::Running;

mod follower;
pub(crate) mod task_output;
pub(crate) mod task_stop;

#[cfg(test)]
mod tests;

/// How long a stopped task is waited for; killing takes about a second at most.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// The tasks of one session.
#[derive(Debug, Default)]
pub struct ShellTasks {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Guards the list of tasks and the queue of news; held for a few lines.
    state: Mutex<State>,
    /// Counts the tasks that have ended.
    n_finished: watch::Sender<u64>,
    /// Fires at shutdown.
    shutdown: CancellationToken,
    /// Ends commands should the session be killed.
    death_watch: DeathWatch,
}

#[derive(Debug, Default)]
struct State {
    tasks: Vec<Task>,
    /// Ended tasks nobody has been told of.
    finished: Vec<String>,
    followers: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Task {
    about: NewTask,
    status: watch::Receiver<ShellTaskStatus>,
    stop: CancellationToken,
    /// How much of the output has been shown to the model.
    n_shown: u64,
}

/// A task to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewTask {
    pub(crate) id: String,
    pub(crate) tool_use_id: ToolUseId,
    pub(crate) command: String,
    pub(crate) description: String,
    pub(crate) output: PathBuf,
}

/// How a task is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellTaskStatus {
    /// It has not ended.
    Running,
    /// Its command ended with exit code 0.
    Completed,
    /// Its command ended with another exit code.
    Failed(i32),
    /// It was stopped, by request or for a reason given here.
    Killed(String),
}

impl ShellTaskStatus {
    /// Returns the word of the protocol for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed(_) => "failed",
            Self::Killed(_) => "killed",
        }
    }

    /// Returns the exit code, if the command ended by itself.
    pub fn exit_code(&self) -> Option<i32> {
        match self {
            Self::Completed => Some(0),
            Self::Failed(code) => Some(*code),
            Self::Running | Self::Killed(_) => None,
        }
    }
}

/// A task as others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellTaskView {
    /// Its id, nine letters and digits.
    pub id: String,
    /// The call that started it.
    pub tool_use_id: ToolUseId,
    /// The command line.
    pub command: String,
    /// What the model said it does; may be empty.
    pub description: String,
    /// The file that collects its output.
    pub output: PathBuf,
    /// How it is doing.
    pub status: ShellTaskStatus,
}

impl ShellTasks {
    /// Returns all tasks of the session, oldest first.
    pub fn list(&self) -> Vec<ShellTaskView> {
        self.shared.state().tasks.iter().map(Task::view).collect()
    }

    /// Returns one task.
    pub fn find(&self, id: &str) -> Option<ShellTaskView> {
        self.shared.state().find(id).map(|task| task.view())
    }

    /// Returns the tasks that have ended since the last time, each once.
    pub fn drain_finished(&self) -> Vec<ShellTaskView> {
        let mut state = self.shared.state();
        let finished = std::mem::take(&mut state.finished);
        finished.iter().filter_map(|id| state.find(id).map(|task| task.view())).collect()
    }

    /// Returns a counter that changes whenever a task ends.
    pub fn finished(&self) -> watch::Receiver<u64> {
        self.shared.n_finished.subscribe()
    }

    /// Waits until a task has ended, at most for `timeout`; returns how it is doing then.
    pub async fn wait(&self, id: &str, timeout: Duration) -> Option<ShellTaskView> {
        let mut status = self.shared.state().find(id)?.status.clone();
        let ended = status.wait_for(|status| *status != ShellTaskStatus::Running);
        // Out of time or ended: the view tells.
        tokio::time::timeout(timeout, ended).await.ok();
        self.find(id)
    }

    /// Ends a task and everything it started; returns how it is doing then.
    pub async fn stop(&self, id: &str) -> Option<ShellTaskView> {
        self.shared.state().find(id)?.stop.cancel();
        self.wait(id, STOP_WAIT).await
    }

    /// Ends all tasks and waits until nothing of them is left.
    pub async fn shutdown(&self) {
        self.shared.shutdown.cancel();
        let followers = std::mem::take(&mut self.shared.state().followers);
        for follower in followers {
            // A follower that panicked has dropped its process tree, which kills it.
            follower.await.ok();
        }
    }

    /// Returns what ends commands should the session be killed.
    pub(crate) fn death_watch(&self) -> &DeathWatch {
        &self.shared.death_watch
    }

    /// Makes a running command a task; what it has written so far goes to the task's file first.
    pub(crate) async fn start(
        &self,
        about: NewTask,
        running: Running,
        mut capture: Capture,
    ) -> io::Result<PathBuf> {
        capture.move_to(&about.output).await?;
        let (status, receiver) = watch::channel(ShellTaskStatus::Running);
        let stop = self.shared.shutdown.child_token();
        let output = about.output.clone();
        let end = follower::TaskEnd { id: about.id.clone(), status, shared: Arc::clone(&self.shared) };
        let follower = tokio::spawn(follower::follow(running, capture, stop.clone(), end));
        let mut state = self.shared.state();
        state.tasks.push(Task { about, status: receiver, stop, n_shown: 0 });
        state.keep(follower);
        Ok(output)
    }

    /// Takes over processes that a finished command left behind with its pipes open: they are read, so that they
    /// do not block, and end with the session.
    pub(crate) fn adopt(&self, running: Running) {
        let stop = self.shared.shutdown.clone();
        let follower = tokio::spawn(async move { running.outlive(None, &stop).await });
        self.shared.state().keep(follower);
    }

    /// Returns how many bytes of a task's output the model has been shown.
    pub(crate) fn n_shown(&self, id: &str) -> u64 {
        self.shared.state().find(id).map_or(0, |task| task.n_shown)
    }

    /// Notes that it has been shown up to `n_shown`.
    pub(crate) fn mark_shown(&self, id: &str, n_shown: u64) {
        if let Some(task) = self.shared.state().find_mut(id) {
            task.n_shown = n_shown.max(task.n_shown);
        }
    }

    /// Notes that the model knows of a task's end, so that it is not told again.
    pub(crate) fn mark_known(&self, id: &str) {
        self.shared.state().finished.retain(|finished| finished != id);
    }
}

impl Drop for ShellTasks {
    fn drop(&mut self) {
        for follower in self.shared.state().followers.drain(..) {
            follower.abort();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn find(&self, id: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.about.id == id)
    }

    fn find_mut(&mut self, id: &str) -> Option<&mut Task> {
        self.tasks.iter_mut().find(|task| task.about.id == id)
    }

    fn keep(&mut self, follower: JoinHandle<()>) {
        self.followers.retain(|follower| !follower.is_finished());
        self.followers.push(follower);
    }
}

impl Task {
    fn view(&self) -> ShellTaskView {
        let NewTask { id, tool_use_id, command, description, output } = self.about.clone();
        ShellTaskView { id, tool_use_id, command, description, output, status: self.status.borrow().clone() }
    }
}
