//! Files that hooks want to hear of: those that matchers of `FileChanged` name, and those that answers name (`watchPaths`).
//!
//! They are compared a few times a second (`loci_storage::file_print`), by one task that is there only while there are
//! hooks to tell and files to look at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use loci_core::hooks::{EventInput, HookEvent};
use loci_storage::file_print::{FilePrint, file_prints};
use tokio::task::AbortHandle;

use super::{HookService, HookState};
use crate::conversation::host::lock;
use crate::extensions::{FeatureHooks, TurnHooks};

/// How long between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// What is watched.
#[derive(Default)]
pub(super) struct FileWatch {
    /// Where names of matchers begin; none before the session has begun.
    cwd: Option<PathBuf>,
    /// What answers named last.
    named: Vec<PathBuf>,
    paths: Vec<PathBuf>,
    /// What the files were at the last look; shared with the task.
    seen: Arc<Mutex<BTreeMap<PathBuf, FilePrint>>>,
    task: Option<AbortHandle>,
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        self.stop();
    }
}

impl FileWatch {
    fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

impl HookService {
    /// Watches from now on, with names that begin at `cwd`.
    pub(crate) fn watch_from(&self, cwd: &Path) {
        lock(&self.inner.watch).cwd = Some(cwd.to_owned());
        self.update_watch();
    }

    /// Watches these files in the place of those that answers named before.
    pub(super) fn set_watch_paths(&self, paths: &[String]) {
        let named = paths.iter().map(PathBuf::from).filter(|path| path.is_absolute()).collect();
        lock(&self.inner.watch).named = named;
        self.update_watch();
    }

    pub(super) fn stop_watching(&self) {
        let mut watch = lock(&self.inner.watch);
        watch.stop();
        (watch.cwd, watch.paths) = (None, Vec::new());
    }

    /// Brings the task in line with what is to be watched.
    pub(super) fn update_watch(&self) {
        let names = self.file_names();
        let mut watch = lock(&self.inner.watch);
        let Some(cwd) = watch.cwd.clone() else { return };
        let mut paths: Vec<PathBuf> = names.iter().map(|name| cwd.join(name)).collect();
        if self.has(HookEvent::FileChanged) {
            paths.extend(watch.named.iter().cloned());
        }
        paths.sort();
        paths.dedup();
        if paths == watch.paths {
            return;
        }
        watch.stop();
        watch.paths.clone_from(&paths);
        let known = watch.seen.clone();
        if paths.is_empty() {
            lock(&known).clear();
            return;
        }
        // What was watched before is compared with what it was then; what is new, with what it is now.
        let now = file_prints(&paths);
        let mut seen = lock(&known);
        seen.retain(|path, _| paths.iter().any(|it| path.starts_with(it)));
        now.into_iter().for_each(|(path, print)| {
            seen.entry(path).or_insert(print);
        });
        drop(seen);
        let service = Arc::downgrade(&self.inner);
        watch.task = Some(tokio::spawn(follow(service, paths, known)).abort_handle());
    }

    /// Returns the names that matchers list: literally, whatever they look like.
    fn file_names(&self) -> Vec<String> {
        let config = self.config_for(None);
        let entries = config.entries().iter().filter(|entry| entry.event == HookEvent::FileChanged);
        let names = entries.flat_map(|entry| entry.matcher_text.split('|'));
        names.map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }
}

/// Looks at files again and again, and tells hooks what became of them.
async fn follow(
    service: Weak<HookState>,
    paths: Vec<PathBuf>,
    seen: Arc<Mutex<BTreeMap<PathBuf, FilePrint>>>,
) {
    let paths = Arc::new(paths);
    loop {
        tokio::time::sleep(PAUSE).await;
        let looked_at = Arc::clone(&paths);
        let Ok(now) = tokio::task::spawn_blocking(move || file_prints(&looked_at)).await else { return };
        let Some(inner) = service.upgrade() else { return };
        let service = HookService { inner };
        for (file_path, event) in differences(&lock(&seen), &now) {
            tracing::debug!(target: "loci::hooks", event, "watched file");
            let event = event.to_owned();
            service.notify(EventInput::FileChanged { file_path, event }, service.moment());
        }
        *lock(&seen) = now;
    }
}

/// Says what became of each file that is not as it was.
fn differences(
    before: &BTreeMap<PathBuf, FilePrint>,
    now: &BTreeMap<PathBuf, FilePrint>,
) -> Vec<(PathBuf, &'static str)> {
    let gone = before.keys().filter(|path| !now.contains_key(*path)).map(|path| (path.clone(), "unlink"));
    let changed = now.iter().filter_map(|(path, print)| match before.get(path) {
        None => Some((path.clone(), "add")),
        Some(old) if old != print => Some((path.clone(), "change")),
        Some(_) => None,
    });
    gone.chain(changed).collect()
}
