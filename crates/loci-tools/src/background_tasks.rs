//! The one table of work that goes on beside a conversation: commands in the background, agents, and whatever else has
//! a beginning, an output file and an end.
//!
//! A task is started, may move from the foreground to the background, and ends once, in one of the ways of
//! [`BackgroundStatus`]; whoever looks at the session is told of each step by the observer. The conversation that a task
//! belongs to hears of its end once: by a tool that shows or stops it, or by [`BackgroundTasks::drain_finished`].
//!
//! What must stay true: a task ends with the session. [`BackgroundTasks::shutdown`] ends all tasks of a conversation and
//! waits; dropping its handle drops their followers, and with each follower goes its process tree.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use loci_core::ids::{AgentId, ToolUseId};
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

pub use loci_core::background_task::{
    BackgroundStatus, BackgroundTask, TaskDescription as NewTask, TaskKind, TaskNews, TaskReport, TaskUsage,
};

/// How long a stopped task is waited for; killing takes about a second at most.
const STOP_WAIT: Duration = Duration::from_secs(10);

/// The tasks of one conversation, in the table of its session.
#[derive(Debug, Default)]
pub struct BackgroundTasks {
    shared: Arc<Shared>,
    /// The agent whose conversation it is; none for the main line.
    owner: Option<AgentId>,
    /// Fires at the end of the agent, for what its commands have left behind.
    agent_end: CancellationToken,
}

#[derive(Default)]
struct Shared {
    /// Guards the list of tasks and the queue of news; held for a few lines.
    state: Mutex<State>,
    /// Counts the tasks that have ended.
    n_finished: watch::Sender<u64>,
    /// Fires at the end of the session.
    shutdown: CancellationToken,
    /// Ends commands should the session be killed.
    death_watch: DeathWatch,
    /// Told of every step of every task.
    observer: OnceLock<Observer>,
}

type Observer = Box<dyn Fn(TaskNews) + Send + Sync>;

#[derive(Debug, Default)]
struct State {
    tasks: Vec<Task>,
    /// Ended tasks in the background that their conversation has not been told of.
    finished: Vec<String>,
    /// Lines of monitors that their conversation has not been told of, by task.
    lines: Vec<(String, Vec<String>)>,
    /// What agents have said to the main conversation and it has not heard yet: who, and what.
    messages: Vec<(String, String)>,
    followers: Vec<Follower>,
}

/// What follows a task, for whoever waits until nothing of it is left.
#[derive(Debug)]
struct Follower {
    owner: Option<AgentId>,
    /// The task, where it is one that can be handed over.
    task: Option<String>,
    handle: JoinHandle<()>,
}

#[derive(Debug)]
struct Task {
    about: NewTask,
    owner: Option<AgentId>,
    status: watch::Sender<BackgroundStatus>,
    report: Option<TaskReport>,
    stop: CancellationToken,
    /// Why it is stopped, where nobody asked for that.
    stop_reason: Option<String>,
    is_background: bool,
    /// How much of the output has been shown to the model.
    n_shown: u64,
}

/// The hold that whoever tells the lines of a monitor has on it.
#[derive(Debug, Clone)]
pub(crate) struct TaskLines {
    id: String,
    shared: Arc<Shared>,
}

impl TaskLines {
    /// Returns how the task is doing; none when it is forgotten.
    pub(crate) fn status(&self) -> Option<BackgroundStatus> {
        self.shared.state().find(&self.id).map(|task| task.status.borrow().clone())
    }

    /// Tells lines to the conversation of the task.
    pub(crate) fn tell(&self, lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        {
            let mut state = self.shared.state();
            match state.lines.iter_mut().find(|(id, _)| *id == self.id) {
                Some((_, told)) => told.extend(lines),
                None => state.lines.push((self.id.clone(), lines)),
            }
        }
        self.shared.n_finished.send_modify(|n_finished| *n_finished += 1);
    }

    /// Has it stop.
    pub(crate) fn stop(&self) {
        if let Some(task) = self.shared.state().find(&self.id) {
            task.stop.cancel();
        }
    }
}

/// The hold that whoever does a task's work has on it.
#[derive(Debug, Clone)]
pub struct TaskHandle {
    /// Its id.
    pub id: String,
    /// Fires when it is to stop.
    pub stop: CancellationToken,
    shared: Arc<Shared>,
}

impl BackgroundTasks {
    /// Returns the tasks of an agent's conversation in the same table.
    pub fn of_agent(&self, agent: &AgentId) -> Self {
        let agent_end = self.shared.shutdown.child_token();
        Self { shared: Arc::clone(&self.shared), owner: Some(agent.clone()), agent_end }
    }

    /// Has somebody told of every step of every task of the session; only the first can.
    pub fn observe(&self, observer: impl Fn(TaskNews) + Send + Sync + 'static) {
        // A second observer would be a mistake of ours; the first stays.
        drop(self.shared.observer.set(Box::new(observer)));
    }

    /// Tells whether they are the main conversation's.
    pub fn is_main(&self) -> bool {
        self.owner.is_none()
    }

    /// Returns all tasks of the conversation, oldest first; the main one has all of the session.
    pub fn list(&self) -> Vec<BackgroundTask> {
        let state = self.shared.state();
        let own = state.tasks.iter().filter(|task| self.owner.is_none() || task.owner == self.owner);
        own.map(Task::view).collect()
    }

    /// Returns the tasks that the conversation itself started and that go on beside it.
    pub fn running(&self) -> Vec<BackgroundTask> {
        let is_running = |task: &&Task| task.owner == self.owner && task.is_background && task.is_running();
        self.shared.state().tasks.iter().filter(is_running).map(Task::view).collect()
    }

    /// Tells whether something runs in the background of the session that is no agent, whoever started it. Agents say
    /// themselves what they change.
    pub fn has_commands(&self) -> bool {
        let is_command = |task: &Task| !matches!(task.about.kind, TaskKind::Agent(_));
        let state = self.shared.state();
        state.tasks.iter().any(|task| is_command(task) && task.is_background && task.is_running())
    }

    /// Tells whether a command that the conversation started goes on beside it, and is not being stopped.
    pub fn has_own_commands(&self) -> bool {
        self.shared.state().tasks.iter().any(|task| self.is_own_command(task))
    }

    /// Has the commands stop that the conversation started and that go on beside it, for a reason that each of them is
    /// told to have ended for; returns them.
    pub fn stop_commands(&self, reason: &str) -> Vec<BackgroundTask> {
        let stop = |task: &mut Task| {
            task.stop_reason = Some(reason.to_owned());
            task.stop.cancel();
            task.view()
        };
        let mut state = self.shared.state();
        state.tasks.iter_mut().filter(|task| self.is_own_command(task)).map(stop).collect()
    }

    fn is_own_command(&self, task: &Task) -> bool {
        let is_command = matches!(task.about.kind, TaskKind::Shell | TaskKind::Monitor);
        let goes_on = task.is_background && task.is_running() && !task.stop.is_cancelled();
        is_command && goes_on && task.owner == self.owner
    }

    /// Returns one task of the session.
    pub fn find(&self, id: &str) -> Option<BackgroundTask> {
        self.shared.state().find(id).map(|task| task.view())
    }

    /// Returns the task that a call of the conversation started and still waits for.
    pub fn find_by_call(&self, call: &ToolUseId) -> Option<BackgroundTask> {
        let state = self.shared.state();
        let task =
            state.tasks.iter().find(|task| task.about.tool_use_id == *call && task.owner == self.owner);
        task.map(Task::view)
    }

    /// Returns the conversation's tasks that have ended in the background since the last time, each once.
    pub fn drain_finished(&self) -> Vec<BackgroundTask> {
        let mut state = self.shared.state();
        let (own, others): (Vec<String>, Vec<String>) = std::mem::take(&mut state.finished)
            .into_iter()
            .partition(|id| state.find(id).is_some_and(|task| task.owner == self.owner));
        state.finished = others;
        own.iter().filter_map(|id| state.find(id).map(|task| task.view())).collect()
    }

    /// Tells whether there is something to drain that the conversation should hear of at once: what a person stopped can
    /// wait for the next request.
    pub fn has_news(&self) -> bool {
        let state = self.shared.state();
        let is_news = |task: &Task| {
            task.owner == self.owner && !matches!(*task.status.borrow(), BackgroundStatus::Killed(_))
        };
        let has_lines = |(id, _): &(String, _)| state.find(id).is_some_and(|task| task.owner == self.owner);
        state.finished.iter().any(|id| state.find(id).is_some_and(is_news))
            || state.lines.iter().any(has_lines)
            || (self.is_main() && !state.messages.is_empty())
    }

    /// Returns what monitors of the conversation have told since the last time.
    pub fn drain_lines(&self) -> Vec<(BackgroundTask, Vec<String>)> {
        let mut state = self.shared.state();
        let (own, others): (Vec<_>, Vec<_>) = std::mem::take(&mut state.lines)
            .into_iter()
            .partition(|(id, _)| state.find(id).is_some_and(|task| task.owner == self.owner));
        state.lines = others;
        own.into_iter().filter_map(|(id, lines)| Some((state.find(&id)?.view(), lines))).collect()
    }

    /// Has the main conversation hear what an agent says to it.
    pub fn tell_main(&self, from: String, message: String) {
        self.shared.state().messages.push((from, message));
        self.shared.n_finished.send_modify(|n_finished| *n_finished += 1);
    }

    /// Returns what agents have said to the main conversation since the last time; agents get nothing of it.
    pub fn drain_messages(&self) -> Vec<(String, String)> {
        match self.is_main() {
            true => std::mem::take(&mut self.shared.state().messages),
            false => Vec::new(),
        }
    }

    /// Returns a counter that changes whenever a task of the session ends, or has something to tell.
    pub fn finished(&self) -> watch::Receiver<u64> {
        self.shared.n_finished.subscribe()
    }

    /// Waits until a task has ended, at most for `timeout`; returns how it is doing then.
    pub async fn wait(&self, id: &str, timeout: Duration) -> Option<BackgroundTask> {
        let mut status = self.shared.state().find(id)?.status.subscribe();
        let ended = status.wait_for(|status| *status != BackgroundStatus::Running);
        // Out of time or ended: the view tells.
        tokio::time::timeout(timeout, ended).await.ok();
        self.find(id)
    }

    /// Ends a task and everything it started; returns how it is doing then.
    pub async fn stop(&self, id: &str) -> Option<BackgroundTask> {
        self.shared.state().find(id)?.stop.cancel();
        self.wait(id, STOP_WAIT).await
    }

    /// Gives the commands that an agent has left in the background to the main conversation, which hears of their end;
    /// returns them. What the agent watched, and agents of its own, stay its own.
    pub fn hand_over_commands(&self) -> Vec<BackgroundTask> {
        let Some(owner) = &self.owner else { return Vec::new() };
        let mut state = self.shared.state();
        let is_left = |task: &&mut Task| {
            task.owner.as_ref() == Some(owner)
                && task.about.kind == TaskKind::Shell
                && task.is_background
                && task.is_running()
        };
        let left: Vec<BackgroundTask> = state
            .tasks
            .iter_mut()
            .filter(is_left)
            .map(|task| {
                task.owner = None;
                task.view()
            })
            .collect();
        let ids: Vec<&str> = left.iter().map(|task| task.id.as_str()).collect();
        let followers = state.followers.iter_mut();
        followers
            .filter(|it| it.task.as_deref().is_some_and(|id| ids.contains(&id)))
            .for_each(|it| it.owner = None);
        left
    }

    /// Ends all tasks of the conversation and waits until nothing of them is left; with the main one, the session's.
    pub async fn shutdown(&self) {
        match &self.owner {
            None => self.shared.shutdown.cancel(),
            Some(_) => {
                self.agent_end.cancel();
                let state = self.shared.state();
                state
                    .tasks
                    .iter()
                    .filter(|task| task.owner == self.owner)
                    .for_each(|task| task.stop.cancel());
            }
        }
        let followers = self.shared.state().take_followers(self.owner.as_ref());
        for follower in followers {
            // A follower that panicked has dropped its process tree, which kills it.
            follower.await.ok();
        }
    }

    /// Returns what ends commands should the session be killed.
    pub(crate) fn death_watch(&self) -> &DeathWatch {
        &self.shared.death_watch
    }

    /// Puts work of any kind into the table; whoever does it ends it by the handle.
    pub fn register(&self, about: NewTask, is_background: bool) -> TaskHandle {
        let stop = self.shared.shutdown.child_token();
        let (status, _) = watch::channel(BackgroundStatus::Running);
        let id = about.id.clone();
        let task = Task {
            about,
            owner: self.owner.clone(),
            status,
            report: None,
            stop: stop.clone(),
            stop_reason: None,
            is_background,
            n_shown: 0,
        };
        let view = task.view();
        {
            let mut state = self.shared.state();
            // Work that goes on again takes the place of what it was.
            state.tasks.retain(|task| task.about.id != id);
            state.finished.retain(|finished| *finished != id);
            state.tasks.push(task);
        }
        self.shared.tell(TaskNews::Started(view));
        TaskHandle { id, stop, shared: Arc::clone(&self.shared) }
    }

    /// Keeps what follows a task, so that a shutdown can wait for it.
    pub fn keep(&self, follower: JoinHandle<()>) {
        self.shared.state().keep(Follower { owner: self.owner.clone(), task: None, handle: follower });
    }

    /// Makes a running command a task; what it has written so far goes to the task's file first. After `limit` it is stopped.
    pub(crate) async fn start(
        &self,
        about: NewTask,
        running: Running,
        mut capture: Capture,
        limit: Option<Duration>,
    ) -> io::Result<PathBuf> {
        capture.move_to(&about.output).await?;
        let output = about.output.clone();
        let task = Some(about.id.clone());
        let handle = self.register(about, true);
        let stop = handle.stop.clone();
        let handle = tokio::spawn(follower::follow(running, capture, stop, handle, limit));
        self.shared.state().keep(Follower { owner: self.owner.clone(), task, handle });
        Ok(output)
    }

    /// Makes a running command a monitor; whoever has what is returned tells its lines.
    pub(crate) async fn start_monitor(
        &self,
        about: NewTask,
        running: Running,
        capture: Capture,
    ) -> io::Result<TaskLines> {
        let id = about.id.clone();
        self.start(about, running, capture, None).await?;
        Ok(TaskLines { id, shared: Arc::clone(&self.shared) })
    }

    /// Takes over processes that a finished command left behind with its pipes open: they are read, so that they
    /// do not block, and end with the session, or with the agent whose command it was.
    pub(crate) fn adopt(&self, running: Running) {
        let stop = match &self.owner {
            None => self.shared.shutdown.clone(),
            Some(_) => self.agent_end.clone(),
        };
        self.keep(tokio::spawn(async move { running.outlive(None, &stop).await }));
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
    pub fn mark_known(&self, id: &str) {
        self.shared.state().finished.retain(|finished| finished != id);
    }
}

impl TaskHandle {
    /// Tells whether its conversation goes on without waiting for it.
    pub fn is_background(&self) -> bool {
        self.shared.state().find(&self.id).is_some_and(|task| task.is_background)
    }

    /// Returns why it was stopped.
    pub(crate) fn stop_reason(&self) -> String {
        let reason = self.shared.state().find(&self.id).and_then(|task| task.stop_reason.clone());
        reason.unwrap_or_else(|| "stopped by request".to_owned())
    }

    /// Returns the way to tell its conversation what it watches.
    pub(crate) fn lines(&self) -> TaskLines {
        TaskLines { id: self.id.clone(), shared: Arc::clone(&self.shared) }
    }

    /// The task goes on in the background from now on: its end is news for its conversation.
    pub fn move_to_background(&self) {
        let view = self.shared.state().find_mut(&self.id).map(|task| {
            task.is_background = true;
            task.view()
        });
        if let Some(view) = view {
            self.shared.tell(TaskNews::Backgrounded(view));
        }
    }

    /// Says that it is getting on.
    pub fn progress(&self, description: String, last_tool: Option<String>, usage: TaskUsage) {
        let view = self.shared.state().find(&self.id).map(Task::view);
        if let Some(task) = view {
            self.shared.tell(TaskNews::Progress { task, description, last_tool, usage });
        }
    }

    /// Says that it has ended, and what came of it.
    pub fn end(&self, status: BackgroundStatus, report: Option<TaskReport>) {
        let view = {
            let mut state = self.shared.state();
            let Some(task) = state.find_mut(&self.id).filter(|task| task.is_running()) else { return };
            task.report = report;
            task.status.send_replace(status);
            let (view, is_news) = (task.view(), task.is_background);
            if is_news {
                state.finished.push(self.id.clone());
            }
            view
        };
        self.shared.tell(TaskNews::Ended(view));
        self.shared.n_finished.send_modify(|n_finished| *n_finished += 1);
    }
}

impl Drop for BackgroundTasks {
    fn drop(&mut self) {
        for follower in self.shared.state().take_followers(self.owner.as_ref()) {
            follower.abort();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, news: TaskNews) {
        if let Some(observer) = self.observer.get() {
            observer(news);
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("state", &self.state).finish_non_exhaustive()
    }
}

impl State {
    fn find(&self, id: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.about.id == id)
    }

    fn find_mut(&mut self, id: &str) -> Option<&mut Task> {
        self.tasks.iter_mut().find(|task| task.about.id == id)
    }

    fn keep(&mut self, follower: Follower) {
        self.followers.retain(|follower| !follower.handle.is_finished());
        self.followers.push(follower);
    }

    /// Takes the followers of an agent's tasks; of the main conversation, all.
    fn take_followers(&mut self, owner: Option<&AgentId>) -> Vec<JoinHandle<()>> {
        let all = std::mem::take(&mut self.followers);
        let is_own = |follower: &Follower| owner.is_none() || follower.owner.as_ref() == owner;
        let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_own);
        self.followers = others;
        own.into_iter().map(|follower| follower.handle).collect()
    }
}

impl Task {
    fn is_running(&self) -> bool {
        *self.status.borrow() == BackgroundStatus::Running
    }

    fn view(&self) -> BackgroundTask {
        BackgroundTask {
            about: self.about.clone(),
            owner: self.owner.clone(),
            status: self.status.borrow().clone(),
            is_background: self.is_background,
            report: self.report.clone(),
        }
    }
}
