//! Keeping what files held: between tools that are about to change them, the disk, and the transcript.
//!
//! Tools run in tasks of their own, the transcript belongs to the session. So a checkpoint is made where the tool
//! runs, its snapshot is handed to the session to be recorded, and only then may the tool go on.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use loci_core::file_history::{Snapshot, SnapshotEntry};
use loci_core::ids::{EntryId, ToolUseId};
use loci_stdx::{Env, rfc3339_millis};
use loci_storage::{FileHistory, KeepError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::host::lock;

/// Keeps files for the calls of a session.
pub(crate) struct FileKeeper {
    env: Env,
    /// Guards the order of versions; held while a file is copied.
    history: Arc<Mutex<FileHistory>>,
    updates: UnboundedSender<SnapshotUpdate>,
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
    pub(crate) fn done(self) {
        // A call that was given up waits no more.
        self.recorded.send(()).ok();
    }
}

/// The session's end of it.
pub(crate) struct Checkpoints {
    keeper: Option<Arc<FileKeeper>>,
    updates: UnboundedReceiver<SnapshotUpdate>,
}

impl Checkpoints {
    /// Makes both ends; without a history nothing is kept.
    pub(crate) fn new(env: &Env, history: Option<FileHistory>) -> Self {
        let (sender, updates) = unbounded_channel();
        let keeper = history.map(|history| {
            Arc::new(FileKeeper { env: env.clone(), history: Arc::new(Mutex::new(history)), updates: sender })
        });
        Self { keeper, updates }
    }

    /// Returns the end that calls use.
    pub(crate) fn keeper(&self) -> Option<Arc<FileKeeper>> {
        self.keeper.clone()
    }

    /// Waits for a snapshot to record; for ever, when nothing is kept.
    pub(crate) async fn next(&mut self) -> SnapshotUpdate {
        match self.updates.recv().await {
            Some(update) => update,
            None => std::future::pending().await,
        }
    }

    /// Makes the snapshot of a prompt.
    pub(crate) fn begin_prompt(&self, prompt: &EntryId) -> Option<(SnapshotEntry, Vec<KeepError>)> {
        let keeper = self.keeper.as_ref()?;
        Some(lock(&keeper.history).begin_prompt(prompt, &keeper.now()))
    }
}

impl FileKeeper {
    fn now(&self) -> String {
        rfc3339_millis(self.env.clock.now())
    }

    /// Keeps a file that a call is about to change; the transcript knows of it when this returns.
    pub(crate) async fn checkpoint(&self, call: &ToolUseId, path: &Path) -> io::Result<()> {
        let (history, path, now) = (Arc::clone(&self.history), PathBuf::from(path), self.now());
        let tracked = tokio::task::spawn_blocking(move || lock(&history).track(&path, &now));
        let Some(snapshot) = tracked.await?.map_err(|error| error.source)? else { return Ok(()) };
        let (recorded, is_recorded) = oneshot::channel();
        let update = SnapshotUpdate { call: call.clone(), snapshot, recorded };
        let is_over = |_| io::Error::other("the session is over");
        self.updates.send(update).map_err(|_| io::Error::other("the session is over"))?;
        is_recorded.await.map_err(is_over)
    }
}
