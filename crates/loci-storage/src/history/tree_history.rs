//! What shell commands change: the project tree compared around each call, and what it held kept.
//!
//! Before a call the tree is looked at, so that what others did since the last look is theirs; after the call it is
//! looked at again, and what is different was done by the call. The log of the session says what each path was and
//! became; contents are in the store of blobs, or in the project's repository where a file is clean there. Files
//! that Edit and Write change are noted one by one, wherever they lie.
//!
//! 1. Nothing below `.git` is ever read through or written; git's index and objects are read as files.
//! 2. A content that is in the log can be brought back, or the log says that it was not kept.
//! 3. What others change between two looks is not taken for the session's.
//! 4. A look never fails a call: what cannot be watched is told once, and the work goes on.
//! 5. Worktrees below `.claude/worktrees` are checkouts of their own and no part of the tree.

mod blobs;
mod capture;
mod collect;
mod git_index;
mod git_objects;
mod log;
pub(crate) mod rules;
mod stamp;
mod tree;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use loci_core::file_history::{ChangeSet, FileContent, HistoryLine, PathChange, PathState, PathText};
use loci_core::ids::{EntryId, SessionId, ToolUseId};
use loci_stdx::{AppendError, Env, rfc3339_millis};
use rustix::fs::{AtFlags, CWD};

use crate::layout::ConfigHome;
use crate::project::find_repository;
use crate::project::git::git_dir;
use capture::{Capture, CaptureBudget, CaptureSkips, CapturedChange};
use git_index::{GitIndex, IndexStamp, index_stamp};
use rules::TreeRules;
use stamp::NodeStamp;
use tree::{Tree, TreeError};

pub(crate) use blobs::Digest32;
pub use blobs::{BlobStore, BlobUsage};
pub use collect::{CollectError, CollectReport, collect_blobs};
pub(crate) use git_objects::GitObjects;
pub(crate) use log::{append, copy_log, has_call, log_path, logs_dir, read_log, read_log_since};

/// Who did what is being noted.
#[derive(Debug, Clone)]
pub struct ChangeOrigin {
    /// The call, if it was one.
    pub call: Option<ToolUseId>,
    /// A tool's name, or `background`.
    pub by: String,
}

/// Beyond what a tree is not watched, or a content not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// The most paths a tree may have to be watched.
    pub paths: usize,
    /// The largest file whose content is kept.
    pub file_bytes: u64,
    /// The most bytes that are kept of what was there before the session.
    pub first_bytes: u64,
    /// And the most files.
    pub first_files: usize,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self { paths: 300_000, file_bytes: 64 << 20, first_bytes: 512 << 20, first_files: 50_000 }
    }
}

/// The history of a project tree, as one session writes it.
#[derive(Debug)]
pub struct TreeHistory {
    env: Env,
    root: PathBuf,
    repository: Option<GitDirs>,
    log: PathBuf,
    store: BlobStore,
    state: TreeState,
    index: (Option<IndexStamp>, GitIndex),
    prompt: Option<EntryId>,
    never: Vec<PathBuf>,
    watched_from: usize,
    limits: TreeLimits,
    /// What files were left as since the last look, by those that were noted one by one.
    noted: HashMap<PathBuf, PathState>,
    /// Keeps contents from being collected that no log names yet.
    _guard: Option<File>,
    /// What the user should know, told once.
    notes: Vec<String>,
    has_told_not_kept: bool,
}

#[derive(Debug)]
struct GitDirs {
    top: PathBuf,
    git_dir: PathBuf,
}

#[derive(Debug)]
enum TreeState {
    /// Not looked at yet.
    Unseen,
    /// Watched.
    Seen(Box<Tree>),
    /// Not watched, for a reason that was told.
    Off,
}

impl TreeHistory {
    /// Prepares to watch the tree below `root`, a real path; nothing is looked at yet.
    pub fn new(home: &ConfigHome, session: &SessionId, root: &Path, env: &Env) -> Self {
        let top = find_repository(root).map(|repository| repository.root);
        let repository = top.and_then(|top| Some(GitDirs { git_dir: git_dir(&top)?, top }));
        let worktrees = [Some(root), repository.as_ref().map(|it: &GitDirs| it.top.as_path())];
        let worktrees = worktrees.into_iter().flatten().map(|dir| dir.join(crate::worktree::DIR));
        let never = [home.root().to_owned()].into_iter().chain(worktrees).collect();
        let mut history = Self {
            env: env.clone(),
            root: root.to_owned(),
            repository,
            log: log_path(home, session),
            store: BlobStore::new(home),
            state: TreeState::Unseen,
            index: (None, GitIndex::default()),
            prompt: None,
            never,
            watched_from: tree::WATCHED_FROM,
            limits: TreeLimits::default(),
            noted: HashMap::new(),
            _guard: collect::guard(home),
            notes: Vec::new(),
            has_told_not_kept: false,
        };
        if root.parent().is_none() || root == env.home || home.root() == root {
            history.turn_off("it is not a project but a whole home or disk");
        }
        history
    }

    /// Keeps contents in another store.
    #[must_use]
    pub fn with_store(self, store: BlobStore) -> Self {
        Self { store, ..self }
    }

    /// Sets other limits.
    #[must_use]
    pub fn with_limits(self, limits: TreeLimits) -> Self {
        Self { limits, ..self }
    }

    /// Asks the system what changed from so many files on; without it, that is for large trees only.
    #[must_use]
    pub fn watched_from(self, n_files: usize) -> Self {
        Self { watched_from: n_files, ..self }
    }

    /// Takes what the user should know.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Marks a place to go back to: everything noted from here on belongs to this prompt.
    pub fn begin_prompt(&mut self, prompt: &EntryId) -> Result<(), AppendError> {
        self.prompt = Some(prompt.clone());
        let at = rfc3339_millis(self.env.clock.now());
        append(&self.log, &HistoryLine::Point { prompt: prompt.clone(), at })
    }

    /// Looks at the tree before something is done to it: what is different since the last look was done by others.
    pub fn scan_before_call(&mut self) {
        self.noted.clear();
        self.scan();
    }

    /// Looks at the tree and notes what is different as done by `origin`; returns how many paths are.
    pub fn record_changes(&mut self, origin: &ChangeOrigin) -> Result<usize, AppendError> {
        self.record_changes_except(origin, |_| false)
    }

    /// The same, without paths that are noted one by one when whoever is changing them is done.
    pub fn record_changes_except(
        &mut self,
        origin: &ChangeOrigin,
        is_noted_later: impl Fn(&Path) -> bool,
    ) -> Result<usize, AppendError> {
        let noted = std::mem::take(&mut self.noted);
        let seen = self.scan();
        let changes = seen.into_iter().filter_map(|seen| self.change(seen));
        let changes = changes.filter(|change| !is_noted_later(change.path.as_path()));
        // What was noted as a file of its own is not noted twice.
        let changes = changes.filter_map(|change| match noted.get(change.path.as_path()) {
            Some(known) if *known == change.after => None,
            Some(known) => Some(PathChange { before: known.clone(), ..change }),
            None => Some(change),
        });
        let changes = changes.collect();
        self.write(origin, changes)
    }

    /// Looks at one file that is about to be changed; give what is returned to [`Self::record_file_change`].
    pub fn state_before(&mut self, path: &Path) -> Vec<(PathBuf, PathState)> {
        let missing = path.ancestors().skip(1).take_while(|dir| std::fs::symlink_metadata(dir).is_err());
        let mut before: Vec<(PathBuf, PathState)> =
            missing.map(|dir| (dir.to_owned(), PathState::None)).collect();
        before.reverse();
        before.push((path.to_owned(), self.state_of(path).1));
        before
    }

    /// Notes what became of a file and of the directories made for it; returns those that are different, as they are.
    pub fn record_file_change(
        &mut self,
        origin: &ChangeOrigin,
        before: Vec<(PathBuf, PathState)>,
    ) -> Result<Vec<(PathBuf, PathState)>, AppendError> {
        let (mut changes, mut changed) = (Vec::new(), Vec::new());
        for (path, before) in before {
            let (_, after) = self.state_of(&path);
            if before != after {
                self.noted.insert(path.clone(), after.clone());
                changed.push((path.clone(), after.clone()));
                changes.push(PathChange { path: path.into(), before, after, from: None });
            }
        }
        self.write(origin, changes)?;
        Ok(changed)
    }

    fn write(&mut self, origin: &ChangeOrigin, changes: Vec<PathChange>) -> Result<usize, AppendError> {
        let n_changes = changes.len();
        if n_changes > 0 {
            let set = ChangeSet {
                prompt: self.prompt.clone(),
                call: origin.call.clone(),
                by: origin.by.clone(),
                at: rfc3339_millis(self.env.clock.now()),
                root: PathText::from(self.root.clone()),
                changes,
            };
            append(&self.log, &HistoryLine::Change(Box::new(set)))?;
        }
        Ok(n_changes)
    }

    /// Returns what lies at any path now, its content kept.
    fn state_of(&mut self, path: &Path) -> (Option<NodeStamp>, PathState) {
        let Ok(stat) = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) else {
            return (None, PathState::None);
        };
        self.refresh_index();
        let below = path.strip_prefix(&self.root).map(Path::to_owned);
        let keeping = Capture {
            root: &self.root,
            below_top: below.is_ok().then(|| self.below_top()).flatten(),
            index: &self.index.1,
            store: &self.store,
            limits: self.limits,
        };
        let below = below.unwrap_or_else(|_| path.to_owned());
        keeping.state(&below, NodeStamp::from_stat(&stat), true, &CaptureBudget::default())
    }

    /// Looks at the tree; returns what is different and remembers it.
    fn scan(&mut self) -> Vec<CapturedChange> {
        match self.try_scan() {
            Ok(seen) => seen,
            Err(error) => {
                self.turn_off(&error.to_string());
                Vec::new()
            }
        }
    }

    fn try_scan(&mut self) -> Result<Vec<CapturedChange>, TreeError> {
        if matches!(self.state, TreeState::Off) {
            return Ok(Vec::new());
        }
        self.refresh_index();
        let now = self.env.clock.now().as_nanosecond();
        if matches!(self.state, TreeState::Unseen) {
            let top = self.repository.as_ref().map(|it| (it.top.as_path(), it.git_dir.as_path()));
            let rules = TreeRules::read(&self.root, top, &self.env.home, self.never.clone());
            self.state = TreeState::Seen(Box::new(Tree::new(
                &self.root,
                rules,
                self.watched_from,
                self.limits.paths,
            )?));
        }
        let below_top = self.below_top().map(Path::to_owned);
        let TreeState::Seen(tree) = &mut self.state else { return Ok(Vec::new()) };
        let index = &self.index.1;
        let is_tracked = |path: &Path| {
            use std::os::unix::ffi::OsStrExt;
            below_top.as_ref().is_some_and(|below| index.tracks(below.join(path).as_os_str().as_bytes()))
        };
        let differences = tree.scan(now, &is_tracked)?;
        let most = self.limits.paths;
        if tree.n_files() + differences.len() > most {
            return Err(TreeError::TooLarge { most });
        }
        let keeping = Capture {
            root: &self.root,
            below_top: below_top.as_deref(),
            index,
            store: &self.store,
            limits: self.limits,
        };
        let (seen, skips) = keeping.all(differences, now);
        for seen in &seen {
            let is_file = |node: &&tree::FileNode| !matches!(node.state, PathState::Dir { .. });
            match seen.after.as_ref() {
                Some(node) if is_file(&node) => tree.remember(&seen.path, Some(node.clone())),
                // A directory is remembered by its own names.
                Some(_) | None => tree.remember(&seen.path, None),
            }
        }
        self.warn_skipped(skips);
        Ok(seen)
    }

    fn change(&self, seen: CapturedChange) -> Option<PathChange> {
        if seen.is_taken_in {
            return None;
        }
        // What was not kept, and is kept now that it was looked at again, is the same as far as anyone can tell.
        if let (Some(before), Some(after)) = (&seen.before, &seen.after)
            && matches!(before.state, PathState::File { content: FileContent::Lost, .. })
            && before.stamp == after.stamp
        {
            return None;
        }
        let state = |node: Option<tree::FileNode>| node.map_or(PathState::None, |node| node.state);
        let (before, after) = (state(seen.before), state(seen.after));
        let path = |below: PathBuf| PathText::from(join(&self.root, &below));
        (before != after).then(|| PathChange {
            path: path(seen.path),
            before,
            after,
            from: seen.from.map(path),
        })
    }

    fn below_top(&self) -> Option<&Path> {
        self.repository.as_ref().and_then(|repository| self.root.strip_prefix(&repository.top).ok())
    }

    /// Reads git's index again if it changed.
    fn refresh_index(&mut self) {
        let Some(repository) = &self.repository else { return };
        let stamp = index_stamp(&repository.git_dir);
        if self.index.0 != stamp {
            let configs = [self.env.home.join(".gitconfig"), self.env.home.join(".config/git/config")];
            self.index = (stamp, GitIndex::read(&repository.top, &repository.git_dir, &configs));
        }
    }

    fn turn_off(&mut self, reason: &str) {
        self.state = TreeState::Off;
        self.notes.push(format!(
            "Changes by shell commands are not kept and cannot be rewound here: `{}`: {reason}",
            self.root.display()
        ));
    }

    fn warn_skipped(&mut self, skips: CaptureSkips) {
        if skips == CaptureSkips::default() || self.has_told_not_kept {
            return;
        }
        self.has_told_not_kept = true;
        let CaptureSkips { n_large, n_no_room, n_unreadable } = skips;
        let parts = [
            (n_large, "too large"),
            (n_no_room, "without room for them in the store"),
            (n_unreadable, "not readable"),
        ];
        let parts = parts.iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{n} {why}"));
        self.notes.push(format!(
            "Of some files what they hold is not kept, so changes to them cannot be rewound: {}",
            parts.collect::<Vec<_>>().join(", ")
        ));
    }
}

/// The root itself is the empty path below it.
fn join(root: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { root.to_owned() } else { root.join(below) }
}
