//! Keeping what files held: between tools that are about to change them, the disk, and the transcript.
//!
//! Tools run in tasks of their own, the transcript belongs to the session. So a checkpoint is made where the tool
//! runs, its snapshot is handed to the session to be recorded, and only then may the tool go on. Around calls that may
//! change anything the whole tree is looked at. What background commands change belongs to the session too: while one
//! runs, and once after it ended, everything that is different counts as theirs.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use loci_core::file_history::{PathState, Snapshot, SnapshotEntry};
use loci_core::ids::{EntryId, ToolUseId};
use loci_stdx::{Env, rfc3339_millis};
use loci_storage::history::{BackupError, ChangeOrigin, FileHistory, TreeHistory};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::calls::{CallLayer, Next, OutcomeFuture};
use crate::conversation::host::lock;
use crate::prepared_call::PreparedCall;

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
    open: HashMap<ToolUseId, Vec<(PathBuf, PathState)>>,
    /// Whether a background command ran since the last look.
    had_background: bool,
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
                tree: Mutex::new(Watched { tree, open: HashMap::new(), had_background: false }),
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
    /// Notes what is different as done by background commands, if there were any. `is_running` says whether one goes
    /// on, if that is known.
    fn note_background(&mut self, is_running: Option<bool>) -> Vec<String> {
        if !self.had_background {
            return Vec::new();
        }
        self.had_background = is_running.unwrap_or(true);
        self.note(&ChangeOrigin { call: None, by: "background".to_owned() })
    }

    fn note(&mut self, doing: &ChangeOrigin) -> Vec<String> {
        let failed = self.tree.record_changes(doing).err().map(|error| error.to_string());
        self.tree.take_warnings().into_iter().chain(failed).collect()
    }
}

impl FileHistoryRecorder {
    fn now(&self) -> String {
        rfc3339_millis(self.env.clock.now())
    }

    /// Keeps a file that a call is about to change; the transcript knows of it when this returns.
    pub(crate) async fn checkpoint(self: &Arc<Self>, call: &ToolUseId, path: &Path) -> io::Result<()> {
        let (keeper, id, path) = (Arc::clone(self), call.clone(), PathBuf::from(path));
        let tracked = tokio::task::spawn_blocking(move || {
            let mut watched = lock(&keeper.tree);
            let before = watched.tree.state_before(&path);
            watched.open.entry(id).or_default().extend(before);
            drop(watched);
            lock(&keeper.history).track(&path, &keeper.now())
        });
        let Some(snapshot) = tracked.await?.map_err(|error| error.source)? else { return Ok(()) };
        let (recorded, is_recorded) = oneshot::channel();
        let update = SnapshotUpdate { call: call.clone(), snapshot, recorded };
        let is_over = || io::Error::other("the session is over");
        self.updates.send(update).map_err(|_| is_over())?;
        is_recorded.await.map_err(|_| is_over())
    }

    /// Looks at the tree before a call that may change anything; returns what people should know.
    pub(crate) async fn before(self: &Arc<Self>, call: &PreparedCall, is_background: bool) -> Vec<String> {
        if !may_change_anything(call) {
            return Vec::new();
        }
        let keeper = Arc::clone(self);
        let looked = tokio::task::spawn_blocking(move || {
            let mut watched = lock(&keeper.tree);
            watched.had_background |= is_background;
            if watched.had_background {
                return watched.note_background(Some(is_background));
            }
            watched.tree.scan_before_call();
            watched.tree.take_warnings()
        });
        looked.await.unwrap_or_default()
    }

    /// Notes what a call changed.
    pub(crate) async fn after(self: &Arc<Self>, call: &PreparedCall, is_background: bool) -> Vec<String> {
        let doing = ChangeOrigin { call: Some(call.id.clone()), by: call.tool.clone() };
        let is_watched = may_change_anything(call);
        let keeper = Arc::clone(self);
        let noted = tokio::task::spawn_blocking(move || {
            let mut watched = lock(&keeper.tree);
            if is_watched {
                watched.had_background |= is_background;
                return watched.note(&doing);
            }
            let Some(before) = doing.call.as_ref().and_then(|call| watched.open.remove(call)) else {
                return Vec::new();
            };
            let failed = watched.tree.record_file_change(&doing, before).err();
            failed.map(|error| error.to_string()).into_iter().collect()
        });
        noted.await.unwrap_or_default()
    }
}

/// Looks at the tree before and after calls that may change anything.
pub(crate) struct FileHistoryLayer;

impl CallLayer for FileHistoryLayer {
    fn run<'a>(&'a self, call: PreparedCall, next: Next<'a>) -> OutcomeFuture<'a> {
        let host = Arc::clone(next.host);
        let Some(keeper) = host.keeper().cloned() else { return next.run(call) };
        Box::pin(async move {
            host.tell_trouble(keeper.before(&call, host.has_background()).await);
            let outcome = next.run(call.clone()).await;
            host.tell_trouble(keeper.after(&call, host.has_background()).await);
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
