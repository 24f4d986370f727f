//! The project tree as it was seen last, and what is different now.
//!
//! Everything that is not left out is remembered with its `stat`. A look compares: a directory whose `stat` is the
//! same has the same names, a file whose `stat` is the same has the same content, unless either was changed in the
//! very moment it was looked at ([`NodeStamp::is_racy`]); those are looked at again. So a look costs one `stat` for each
//! path, spread over threads, and reading is for what moved. In a large tree the system is asked for the directories
//! in which something happened ([`TreeWatcher`]), and only those are looked at.
//!
//! Rules that change make paths appear and go that nobody made or removed. What was left out before is taken in as it
//! is, and what is left out from now on is forgotten; neither is a change.

mod scan;
mod watch;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::gitignore::Gitignore;
use loci_core::file_history::PathState;
use loci_stdx::is_temporary_name;

use super::rules::{RULES, TreeRules, is_vcs, rules_in};
use super::stamp::{Kind, NodeStamp};
use scan::{DirChange, DirListing};
use watch::TreeWatcher;

/// Trees with fewer files are looked at as a whole: that is quick enough, and needs nothing of the system.
pub(super) const WATCHED_FROM: usize = 5_000;

/// What is remembered of a file or a link.
#[derive(Debug, Clone)]
pub(super) struct FileNode {
    pub(super) stamp: NodeStamp,
    pub(super) is_racy: bool,
    pub(super) state: PathState,
}

/// What is remembered of a directory.
#[derive(Debug, Clone, Default)]
pub(super) struct DirNode {
    stamp: Option<NodeStamp>,
    is_racy: bool,
    files: BTreeMap<OsString, FileNode>,
    dirs: BTreeSet<OsString>,
    left_out: HashSet<OsString>,
    rules: Option<Arc<Gitignore>>,
}

impl DirNode {
    /// Returns true when it must be looked at whatever the system says.
    fn is_doubtful(&self) -> bool {
        self.is_racy || self.files.values().any(FileNode::is_doubtful)
    }
}

impl FileNode {
    /// Returns true when it may have changed in the moment it was looked at, or may change by another name.
    fn is_doubtful(&self) -> bool {
        self.is_racy || (self.stamp.kind == Kind::File && self.stamp.n_links > 1)
    }
}

/// A path that is not what it was.
#[derive(Debug)]
pub(super) struct Difference {
    /// Below the root.
    pub(super) path: PathBuf,
    /// What was remembered.
    pub(super) before: Option<FileNode>,
    /// What `stat` says now; `None` when it is gone.
    pub(super) now: Option<NodeStamp>,
    /// Whether it was there before and is only now looked at.
    pub(super) is_taken_in: bool,
}

/// The tree.
#[derive(Debug)]
pub(super) struct Tree {
    root: PathBuf,
    device: u64,
    rules: TreeRules,
    /// Directories by their path below the root; parents come before children.
    dirs: BTreeMap<PathBuf, DirNode>,
    /// Those among them that are looked at each time.
    doubtful: BTreeSet<PathBuf>,
    watched_from: usize,
    /// The most paths it may have.
    most_paths: usize,
    watch: Watching,
}

/// Whether the system is asked for what changed.
#[derive(Debug)]
enum Watching {
    /// Not yet.
    No,
    Yes(TreeWatcher),
    /// Not any more: it could not be relied upon.
    Never,
}

/// Why a tree is not watched.
#[derive(Debug, thiserror::Error)]
pub(super) enum TreeError {
    #[error("it has more than {most} files")]
    TooLarge { most: usize },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Tells whether a file is tracked by the repository, so that rules do not hide it.
pub(super) type IsTracked<'a> = &'a dyn Fn(&Path) -> bool;

impl Tree {
    /// Begins with nothing; the first look takes everything in.
    pub(super) fn new(
        root: &Path,
        rules: TreeRules,
        watched_from: usize,
        most_paths: usize,
    ) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let device = std::fs::metadata(root)?.dev();
        let dirs = BTreeMap::from([(PathBuf::new(), DirNode::default())]);
        let (root, doubtful) = (root.to_owned(), BTreeSet::new());
        Ok(Self { root, device, rules, dirs, doubtful, watched_from, most_paths, watch: Watching::No })
    }

    /// Returns how many files and links are remembered.
    pub(super) fn n_files(&self) -> usize {
        self.dirs.values().map(|dir| dir.files.len()).sum()
    }

    /// Looks at everything and returns what is different. What is returned must be settled with
    /// [`Tree::remember`] or it is found again.
    pub(super) fn scan(
        &mut self,
        now: i128,
        is_tracked: IsTracked<'_>,
    ) -> Result<Vec<Difference>, TreeError> {
        let is_first = self.dirs.get(Path::new("")).is_some_and(|top| top.stamp.is_none());
        let findings = self.findings()?;
        let mut differences = Vec::new();
        let mut to_list: BTreeMap<PathBuf, bool> = BTreeMap::new();
        for finding in findings {
            match finding {
                DirChange::DirListing(dir) => {
                    to_list.entry(dir).or_insert(false);
                }
                DirChange::File { dir, name, now } => {
                    if name == RULES {
                        self.rules_changed(&dir, &mut to_list);
                    }
                    let before = self.dirs.get(&dir).and_then(|node| node.files.get(&name)).cloned();
                    differences.push(Difference { path: dir.join(name), before, now, is_taken_in: false });
                }
            }
        }
        let has_listed = !to_list.is_empty();
        // A listing may add directories and rules below, which are listed in turn.
        while let Some((dir, has_new_rules)) = to_list.pop_first() {
            self.list(&dir, has_new_rules, is_first, now, is_tracked, &mut to_list, &mut differences)?;
        }
        // A name that is listed anew may have been found different before.
        differences.sort_by(|a, b| a.path.cmp(&b.path));
        differences.dedup_by(|later, earlier| {
            let is_same = later.path == earlier.path;
            if is_same {
                earlier.now = later.now;
                earlier.is_taken_in |= later.is_taken_in;
            }
            is_same
        });
        self.follow(has_listed, differences.len());
        Ok(differences)
    }

    /// Compares what is remembered with what is there, as far as it may be different.
    fn findings(&mut self) -> io::Result<Vec<DirChange>> {
        let touched = match &mut self.watch {
            Watching::Yes(watch) => watch.take(),
            Watching::No | Watching::Never => None,
        };
        let Some(mut touched) = touched else {
            return scan::scan_dirs(&self.root, self.dirs.iter().collect());
        };
        let dirs = &self.dirs;
        self.doubtful.retain(|dir| dirs.get(dir).is_some_and(DirNode::is_doubtful));
        touched.extend(self.doubtful.iter().cloned());
        scan::scan_dirs(&self.root, touched.iter().filter_map(|dir| self.dirs.get_key_value(dir)).collect())
    }

    /// Lets the system watch the directories that are remembered now, where they are others or many at last.
    fn follow(&mut self, has_listed: bool, n_new: usize) {
        if matches!(self.watch, Watching::No) && self.n_files() + n_new >= self.watched_from {
            self.watch = TreeWatcher::new(&self.root).map_or(Watching::Never, Watching::Yes);
        }
        if let Watching::Yes(watch) = &mut self.watch
            && (has_listed || watch.has_lost())
            && !watch.follow(self.dirs.keys())
        {
            self.watch = Watching::Never;
        }
    }

    /// Notes the state of a path that was found different.
    pub(super) fn remember(&mut self, path: &Path, node: Option<FileNode>) {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Some(remembered) = self.dirs.get_mut(dir) else { return };
        if node.as_ref().is_some_and(FileNode::is_doubtful) && !self.doubtful.contains(dir) {
            self.doubtful.insert(dir.to_owned());
        }
        match node {
            Some(node) => drop(remembered.files.insert(name.to_owned(), node)),
            None => drop(remembered.files.remove(name)),
        }
    }

    /// All directories below one whose rules changed are listed anew.
    fn rules_changed(&self, dir: &Path, to_list: &mut BTreeMap<PathBuf, bool>) {
        let below = self.dirs.range(dir.to_owned()..).take_while(|(path, _)| path.starts_with(dir));
        to_list.extend(below.map(|(path, _)| (path.clone(), true)));
    }

    #[expect(clippy::too_many_arguments, reason = "one step of `look`, which holds these as its locals")]
    fn list(
        &mut self,
        dir: &Path,
        has_new_rules: bool,
        takes_in: bool,
        now: i128,
        is_tracked: IsTracked<'_>,
        to_list: &mut BTreeMap<PathBuf, bool>,
        differences: &mut Vec<Difference>,
    ) -> Result<(), TreeError> {
        let Some(old) = self.dirs.remove(dir) else { return Ok(()) };
        let Some(listing) = DirListing::read(&self.root.join(dir), self.device)? else {
            return self.forget(dir, old, Some(differences));
        };
        let Some(names) = listing.names else {
            self.note_mode(dir, old.stamp, &listing.stamp, differences);
            self.dirs.insert(dir.to_owned(), DirNode { stamp: Some(listing.stamp), is_racy: false, ..old });
            return Ok(());
        };
        let has_rules = names.iter().any(|(name, _)| name == RULES);
        let rules = if has_new_rules || old.rules.is_none() || !has_rules {
            has_rules
                .then(|| rules_in(&self.root.join(dir), &self.root.join(dir).join(RULES)))
                .flatten()
                .map(Arc::new)
        } else {
            old.rules.clone()
        };
        let mut has_new_rules = has_new_rules;
        if old.stamp.is_some() && rules.is_some() != old.rules.is_some() && !has_new_rules {
            has_new_rules = true;
            self.rules_changed(dir, to_list);
        }
        let mut node = DirNode {
            stamp: Some(listing.stamp),
            is_racy: listing.stamp.is_racy(now),
            rules,
            ..DirNode::default()
        };
        self.note_mode(dir, old.stamp, &listing.stamp, differences);
        self.dirs.insert(dir.to_owned(), node.clone());
        let mut old = old;
        for (name, stamp) in names {
            let path = dir.join(&name);
            let is_known = old.files.contains_key(&name) || old.dirs.contains(&name);
            let was_left_out = old.left_out.contains(&name);
            let is_left_out = match (has_new_rules, is_known, was_left_out) {
                (false, true, _) => false,
                (false, false, true) => true,
                _ => self.is_left_out(&path, &name, &stamp, is_tracked),
            };
            if is_left_out {
                node.left_out.insert(name.clone());
                old.files.remove(&name);
                if old.dirs.remove(&name) {
                    self.forget_below(&path, None)?;
                }
                continue;
            }
            let is_taken_in = takes_in || was_left_out;
            if stamp.kind == Kind::Dir {
                node.dirs.insert(name.clone());
                if old.dirs.remove(&name) && self.dirs.contains_key(&path) {
                    continue;
                }
                let before = old.files.remove(&name);
                differences.push(Difference { path: path.clone(), before, now: Some(stamp), is_taken_in });
                self.add(&path, is_taken_in, now, is_tracked, differences)?;
            } else {
                let before = old.files.remove(&name);
                if old.dirs.remove(&name) {
                    self.forget_below(&path, Some(differences))?;
                }
                let is_same = before.as_ref().is_some_and(|it| it.stamp == stamp && !it.is_racy);
                if let Some(before) = &before {
                    node.files.insert(name.clone(), before.clone());
                }
                if !is_same {
                    differences.push(Difference { path, before, now: Some(stamp), is_taken_in });
                }
            }
        }
        for (name, before) in old.files {
            let path = dir.join(name);
            differences.push(Difference { path, before: Some(before), now: None, is_taken_in: false });
        }
        for name in old.dirs {
            self.forget_below(&dir.join(name), Some(differences))?;
        }
        if node.is_doubtful() {
            self.doubtful.insert(dir.to_owned());
        }
        self.dirs.insert(dir.to_owned(), node);
        if self.dirs.len() > self.most_paths || differences.len() > self.most_paths {
            return Err(TreeError::TooLarge { most: self.most_paths });
        }
        Ok(())
    }

    /// Notes that a directory has another mode.
    fn note_mode(
        &self,
        dir: &Path,
        old: Option<NodeStamp>,
        now: &NodeStamp,
        differences: &mut Vec<Difference>,
    ) {
        if let Some(stamp) = old.filter(|old| old.mode != now.mode) {
            let before = FileNode { stamp, is_racy: false, state: stamp.plain_state() };
            let (path, now) = (dir.to_owned(), Some(*now));
            differences.push(Difference { path, before: Some(before), now, is_taken_in: false });
        }
    }

    /// Takes a new directory in, with all that is below it.
    fn add(
        &mut self,
        dir: &Path,
        is_taken_in: bool,
        now: i128,
        is_tracked: IsTracked<'_>,
        differences: &mut Vec<Difference>,
    ) -> Result<(), TreeError> {
        self.dirs.insert(dir.to_owned(), DirNode::default());
        // Nothing below it was known, so nothing there must be listed again.
        self.list(dir, false, is_taken_in, now, is_tracked, &mut BTreeMap::new(), differences)
    }

    /// Forgets a directory and all below it; with `differences`, each is gone.
    fn forget_below(
        &mut self,
        dir: &Path,
        mut differences: Option<&mut Vec<Difference>>,
    ) -> Result<(), TreeError> {
        let below = self.dirs.range(dir.to_owned()..).take_while(|(path, _)| path.starts_with(dir));
        let below: Vec<PathBuf> = below.map(|(path, _)| path.clone()).collect();
        for path in below {
            if let Some(node) = self.dirs.remove(&path) {
                self.forget(&path, node, differences.as_deref_mut())?;
            }
        }
        Ok(())
    }

    fn forget(
        &mut self,
        dir: &Path,
        node: DirNode,
        differences: Option<&mut Vec<Difference>>,
    ) -> Result<(), TreeError> {
        let Some(differences) = differences else { return Ok(()) };
        let gone =
            |path: PathBuf, before| Difference { path, before: Some(before), now: None, is_taken_in: false };
        if let Some(stamp) = node.stamp {
            let before = FileNode { stamp, is_racy: false, state: stamp.plain_state() };
            differences.push(gone(dir.to_owned(), before));
        }
        differences.extend(node.files.into_iter().map(|(name, before)| gone(dir.join(name), before)));
        for name in node.dirs {
            let path = dir.join(name);
            if let Some(node) = self.dirs.remove(&path) {
                self.forget(&path, node, Some(differences))?;
            }
        }
        Ok(())
    }

    fn is_left_out(&self, path: &Path, name: &OsStr, stamp: &NodeStamp, is_tracked: IsTracked<'_>) -> bool {
        // What is being written beside a file is the file's, once it is whole.
        let is_never = is_vcs(name) || is_temporary_name(name);
        if is_never || (stamp.kind == Kind::Dir && stamp.device != self.device) {
            return true;
        }
        let above = path.ancestors().skip(1).filter_map(|dir| self.dirs.get(dir)?.rules.as_ref());
        let is_dir = stamp.kind == Kind::Dir;
        self.rules.is_left_out(&self.root.join(path), is_dir, above) && (is_dir || !is_tracked(path))
    }
}
