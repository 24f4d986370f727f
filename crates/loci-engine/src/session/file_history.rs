//! Keeping what files held: between tools that are about to change them, the disk, and the transcript.
//!
//! Tools run in tasks of their own, the transcript belongs to the session. So a checkpoint is made where the tool
//! runs, its snapshot is handed to the session to be recorded, and only then may the tool go on. Around calls that may
//! change anything the whole tree is looked at. What background commands change belongs to the session too: while one
//! runs, and once after it ended, everything that is different counts as theirs.
//!
//! Agents work in the same tree at the same time, so they share the recorder of the main conversation, and calls overlap:
//! 1. While a call that may change anything is under way, what another look finds is the session's and is noted, never
//!    taken for the work of others.
//! 2. A file that a call is changing by name is noted by that call alone, once, and what it was before is what the last
//!    note of it says. So notes of one path always join.
//!
//! The shared format has no changes of agents, as with the reference; the tree history, which a rewind uses, has them.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use loci_core::file_history::{PathState, Snapshot, SnapshotEntry};
use loci_core::ids::{AgentId, EntryId, ToolUseId};
use loci_stdx::{Env, rfc3339_millis};
use loci_storage::history::{BackupError, ChangeOrigin, FileHistory, TreeHistory};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::conversation::host::lock;
use crate::tools::calls::{CallLayer, Next, OutcomeFuture};
use crate::tools::prepared_call::PreparedCall;

/// What a session keeps of files.
pub struct FileHistoryStores {
    /// Backups in the shared format.
    pub shared: FileHistory,
    /// What shell commands change.
    pub tree: TreeHistory,
}

/// Keeps files for the calls of a session.
pub(crate) struct FileHistoryRecorder {
    env: Env,
    /// Guards the order of versions; held while a file is copied.
    history: Mutex<FileHistory>,
    /// Guards what was seen of the tree; held while it is looked at.
    tree: Mutex<Watched>,
    updates: UnboundedSender<SnapshotUpdate>,
}

struct Watched {
    tree: TreeHistory,
    /// What files were before the calls that are changing them.
    open: HashMap<CallKey, Vec<(PathBuf, PathState)>>,
    /// Calls under way that may change anything, oldest first.
    under_way: Vec<(CallKey, ChangeOrigin)>,
    /// Whether a background command ran since the last look.
    had_background: bool,
}

/// A call of a session: ids of calls are unique within a conversation only.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CallKey {
    /// The agent whose call it is; none for the main conversation.
    agent: Option<AgentId>,
    call: ToolUseId,
}

/// What the history has to know of a call.
#[derive(Debug, Clone)]
struct WatchedCall {
    key: CallKey,
    origin: ChangeOrigin,
    /// Whether the tree must be looked at around it.
    may_change_anything: bool,
    /// Whether a background command of the session runs.
    is_background: bool,
}

/// A snapshot that must be in the transcript before a call goes on.
pub(crate) struct SnapshotUpdate {
    /// The call.
    pub(crate) call: ToolUseId,
    /// The snapshot, with the file that the call is about to change.
    pub(crate) snapshot: Snapshot,
    /// Told when it is recorded.
    recorded: oneshot::Sender<()>,
}

impl SnapshotUpdate {
    /// Lets the call go on.
    pub(crate) fn release(self) {
        // A call that was given up waits no more.
        self.recorded.send(()).ok();
    }
}

/// The session's end of it.
pub(crate) struct Checkpoints {
    keeper: Option<Arc<FileHistoryRecorder>>,
    updates: UnboundedReceiver<SnapshotUpdate>,
}

impl Checkpoints {
    /// Makes both ends; without a history nothing is kept.
    pub(crate) fn new(env: &Env, keeping: Option<FileHistoryStores>) -> Self {
        let (sender, updates) = unbounded_channel();
        let keeper = keeping.map(|FileHistoryStores { shared, tree }| {
            Arc::new(FileHistoryRecorder {
                env: env.clone(),
                history: Mutex::new(shared),
                tree: Mutex::new(Watched::new(tree)),
                updates: sender,
            })
        });
        Self { keeper, updates }
    }

    /// Returns the end that calls use.
    pub(crate) fn keeper(&self) -> Option<Arc<FileHistoryRecorder>> {
        self.keeper.clone()
    }

    /// Waits for a snapshot to record; for ever, when nothing is kept.
    pub(crate) async fn next(&mut self) -> SnapshotUpdate {
        match self.updates.recv().await {
            Some(update) => update,
            None => std::future::pending().await,
        }
    }

    /// Makes the snapshot of a prompt and a place to go back to; returns what could not be done, too.
    pub(crate) fn begin_prompt(&self, prompt: &EntryId) -> Option<(SnapshotEntry, Vec<String>)> {
        let keeper = self.keeper.as_ref()?;
        let (entry, problems) = lock(&keeper.history).begin_prompt(prompt, &keeper.now());
        let mut notes: Vec<String> = problems.iter().map(backup_error_text).collect();
        let mut watched = lock(&keeper.tree);
        notes.extend(watched.note_background(None));
        // What agents have done until now came before the prompt.
        if !watched.under_way.is_empty() {
            notes.extend(watched.note_under_way());
        }
        notes.extend(watched.tree.begin_prompt(prompt).err().map(|error| error.to_string()));
        Some((entry, notes))
    }

    /// Notes what background commands have changed; `is_running` says whether one goes on.
    pub(crate) fn note_background(&self, is_running: bool) -> Vec<String> {
        let Some(keeper) = &self.keeper else { return Vec::new() };
        let mut watched = lock(&keeper.tree);
        watched.had_background |= is_running;
        watched.note_background(Some(is_running))
    }
}

impl Watched {
    fn new(tree: TreeHistory) -> Self {
        Self { tree, open: HashMap::new(), under_way: Vec::new(), had_background: false }
    }

    /// Notes what is different as done by background commands, if there were any. `is_running` says whether one goes
    /// on, if that is known.
    fn note_background(&mut self, is_running: Option<bool>) -> Vec<String> {
        if !self.had_background {
            return Vec::new();
        }
        self.had_background = is_running.unwrap_or(true);
        self.note(&ChangeOrigin { call: None, by: "background".to_owned() })
    }

    /// Notes what is different, but for files that calls are changing by name: those calls note them.
    fn note(&mut self, doing: &ChangeOrigin) -> Vec<String> {
        let is_open = |path: &Path| self.open.values().flatten().any(|(open, _)| open.as_path() == path);
        let failed = self.tree.record_changes_except(doing, is_open).err().map(|error| error.to_string());
        self.tree.take_warnings().into_iter().chain(failed).collect()
    }

    /// Notes what is different as done by the calls that are under way.
    fn note_under_way(&mut self) -> Vec<String> {
        let doing = match self.under_way.as_slice() {
            [(_, only)] => only.clone(),
            // Which of them it was nobody can tell.
            _ => ChangeOrigin { call: None, by: "agents".to_owned() },
        };
        self.note(&doing)
    }

    /// Looks at the tree before a call that may change anything.
    fn begin(&mut self, call: &WatchedCall) -> Vec<String> {
        self.had_background |= call.is_background;
        let notes = if self.had_background {
            self.note_background(Some(call.is_background))
        } else if self.under_way.is_empty() {
            self.tree.scan_before_call();
            self.tree.take_warnings()
        } else {
            self.note_under_way()
        };
        self.under_way.push((call.key.clone(), call.origin.clone()));
        notes
    }

    /// Notes what a call changed.
    fn end(&mut self, call: &WatchedCall) -> Vec<String> {
        if call.may_change_anything {
            self.under_way.retain(|(key, _)| *key != call.key);
            self.had_background |= call.is_background;
            return self.note(&call.origin);
        }
        let Some(before) = self.open.remove(&call.key) else { return Vec::new() };
        match self.tree.record_file_change(&call.origin, before) {
            Ok(changed) => self.refresh_open(&changed),
            Err(error) => return vec![error.to_string()],
        }
        Vec::new()
    }

    /// What has just been noted of these paths is what they were before the calls that go on to change them.
    fn refresh_open(&mut self, changed: &[(PathBuf, PathState)]) {
        for (path, before) in self.open.values_mut().flatten() {
            if let Some((_, after)) = changed.iter().find(|(changed, _)| changed == path) {
                *before = after.clone();
            }
        }
    }
}

impl FileHistoryRecorder {
    fn now(&self) -> String {
        rfc3339_millis(self.env.clock.now())
    }

    /// Keeps a file that a call of the main conversation is about to change; the transcript knows of it when this
    /// returns.
    pub(crate) async fn checkpoint(self: &Arc<Self>, call: &ToolUseId, path: &Path) -> io::Result<()> {
        self.checkpoint_for_agent(None, call, path).await?;
        let (keeper, path) = (Arc::clone(self), PathBuf::from(path));
        let tracked = tokio::task::spawn_blocking(move || lock(&keeper.history).track(&path, &keeper.now()));
        let Some(snapshot) = tracked.await?.map_err(|error| error.source)? else { return Ok(()) };
        let (recorded, is_recorded) = oneshot::channel();
        let update = SnapshotUpdate { call: call.clone(), snapshot, recorded };
        let is_over = || io::Error::other("the session is over");
        self.updates.send(update).map_err(|_| is_over())?;
        is_recorded.await.map_err(|_| is_over())
    }

    /// Keeps a file that a call is about to change, in the tree history alone.
    pub(crate) async fn checkpoint_for_agent(
        self: &Arc<Self>,
        agent: Option<&AgentId>,
        call: &ToolUseId,
        path: &Path,
    ) -> io::Result<()> {
        let key = CallKey { agent: agent.cloned(), call: call.clone() };
        let (keeper, path) = (Arc::clone(self), PathBuf::from(path));
        let kept = tokio::task::spawn_blocking(move || {
            let mut watched = lock(&keeper.tree);
            let before = watched.tree.state_before(&path);
            watched.open.entry(key).or_default().extend(before);
        });
        Ok(kept.await?)
    }

    /// Looks at the tree before a call that may change anything; returns what people should know.
    async fn before(self: &Arc<Self>, call: &WatchedCall) -> Vec<String> {
        if !call.may_change_anything {
            return Vec::new();
        }
        let (keeper, call) = (Arc::clone(self), call.clone());
        tokio::task::spawn_blocking(move || lock(&keeper.tree).begin(&call)).await.unwrap_or_default()
    }

    /// Notes what a call changed.
    async fn after(self: &Arc<Self>, call: WatchedCall) -> Vec<String> {
        let keeper = Arc::clone(self);
        tokio::task::spawn_blocking(move || lock(&keeper.tree).end(&call)).await.unwrap_or_default()
    }
}

/// Looks at the tree before and after calls that may change anything.
pub(crate) struct FileHistoryLayer;

impl CallLayer for FileHistoryLayer {
    fn run<'a>(&'a self, call: PreparedCall, next: Next<'a>) -> OutcomeFuture<'a> {
        let host = Arc::clone(next.host);
        // A call that only looks waits for nobody's look at the tree.
        let is_kept = may_change_anything(&call) || call.facts.keeps_files;
        let Some(keeper) = host.keeper().cloned().filter(|_| is_kept) else { return next.run(call) };
        Box::pin(async move {
            let mut watched = WatchedCall {
                key: CallKey { agent: host.agent().map(|agent| agent.id.clone()), call: call.id.clone() },
                origin: ChangeOrigin { call: Some(call.id.clone()), by: call.tool.clone() },
                may_change_anything: may_change_anything(&call),
                is_background: host.has_background(),
            };
            host.tell_trouble(keeper.before(&watched).await);
            let outcome = next.run(call).await;
            watched.is_background = host.has_background();
            host.tell_trouble(keeper.after(watched).await);
            outcome
        })
    }
}

/// Tells whether the tree must be looked at around a call: a tool that keeps its files itself says beforehand which
/// they are, by a checkpoint.
fn may_change_anything(call: &PreparedCall) -> bool {
    !call.effects.is_read_only() && !call.facts.keeps_files
}

fn backup_error_text(problem: &BackupError) -> String {
    format!("{problem}: {}", problem.source)
}

#[cfg(test)]
mod tests;
