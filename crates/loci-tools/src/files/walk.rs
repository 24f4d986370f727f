//! Walking a directory tree for Grep and Glob: in parallel, without following symlinks, within a [`Limit`].
//!
//! The walk starts at the real path of the search root, so what it finds has two spellings: below the root as
//! it was asked for, and below the root as it is. A rule that forbids reading either of them hides the file.
//! The rules are asked on the caller's side of the channel, because the host does not leave its thread.
//!
//! The walk goes by names, and a name may lead elsewhere by the time it is used: a directory that was swapped for a
//! symlink would have its target listed. So every find is looked at once more, inside the directory that was opened
//! at the start and past no symlink, and what does not lie there was never found (S-29).
//!
//! The library opens ignore files by their name, and would wait for ever on one that is a FIFO. So a directory with such
//! a one is walked by itself, without regard to ignore files ([`ignore_file`]).
//!
//! Directories of version control systems are never entered on the way, nor are the kernel's own trees; naming
//! one as the root is asking for it.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use ignore::overrides::Override;
use ignore::types::Types;
use ignore::{DirEntry, WalkBuilder, WalkState};
use loci_core::path::display_relative;
use loci_core::tool::PathEffect;
use loci_stdx::{Env, RealDir, is_symlink_error};
use tokio::sync::mpsc;

use crate::Host;

mod ignore_file;
mod limit;
#[cfg(test)]
pub(crate) mod trip_clock;

pub(crate) use limit::{Ending, Limit, drain};

/// Names that belong to version control, not to the project.
const VCS_NAMES: [&str; 6] = [".git", ".svn", ".hg", ".bzr", ".jj", ".sl"];
/// Trees that are windows into the kernel, where reading may wait for ever or show other processes' secrets.
const KERNEL_TREES: [&str; 3] = ["/proc", "/sys", "/dev"];
/// More threads than this only get into each other's way on the disk.
const MAX_THREADS: usize = 4;

/// Says whether a path below the root is wanted.
pub(crate) type Accept = Box<dyn Fn(&Path) -> bool + Send + Sync>;

/// What to walk and what to leave out.
pub(crate) struct Walk {
    /// The directory to start in, symlinks resolved.
    pub(crate) root: PathBuf,
    /// The same directory, opened before anything is looked at.
    pub(crate) dir: Arc<RealDir>,
    /// Whether `.gitignore` and its kin are heeded, and the user's own ignore file if there is one.
    pub(crate) ignores: Ignores,
    /// Whether names that start with a dot are left out.
    pub(crate) skip_hidden: bool,
    /// How deep to go; the root's own entries are at depth 1.
    pub(crate) max_depth: Option<usize>,
    /// Globs that choose files, before any ignore file.
    pub(crate) overrides: Override,
    /// File types to choose.
    pub(crate) types: Types,
    /// Whether a symlink to a file is a find.
    pub(crate) symlinked_files: bool,
    /// Which files to report.
    pub(crate) accept: Accept,
}

/// Which ignore files count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ignores {
    /// None at all.
    Nothing,
    /// Those of the project and its parents, and the user's own if there is one.
    Project { users: Option<PathBuf> },
}

impl Ignores {
    /// Returns the ignore files of the project and those of the user in whose world we run.
    pub(crate) fn of(env: &Env) -> Self {
        let config =
            env.vars.non_empty("XDG_CONFIG_HOME").map_or_else(|| env.home.join(".config"), PathBuf::from);
        let users = config.join("git/ignore");
        Self::Project { users: users.is_file().then_some(users) }
    }
}

/// A file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WalkEntry {
    /// Its path below the root.
    pub(crate) path: PathBuf,
    /// When it was last changed.
    pub(crate) modified: SystemTime,
    /// Where it leads when it is a symlink.
    pub(crate) target: Option<PathBuf>,
}

impl WalkEntry {
    /// Orders finds for people: newest first, then by path.
    pub(crate) fn cmp_newest(&self, other: &Self) -> std::cmp::Ordering {
        other.modified.cmp(&self.modified).then_with(|| self.path.cmp(&other.path))
    }
}

/// Opens the directory that was judged, to search in it and nowhere else.
pub(crate) fn open_root(root: &PathEffect) -> io::Result<Arc<RealDir>> {
    RealDir::open(&root.real).map(Arc::new)
}

/// Says why a root cannot be opened.
pub(crate) fn open_problem(root: &PathEffect, error: &io::Error) -> String {
    let path = root.requested.display();
    if is_symlink_error(error) {
        format!("Path leads elsewhere since it was allowed: {path}. Search again to have it judged anew.")
    } else {
        format!("Failed to open path: {path}: {error}")
    }
}

/// Walks on blocking threads and hands every find that may be read to `take`, in no particular order.
pub(crate) async fn walk(
    walk: Walk,
    root: &PathEffect,
    limit: &Limit,
    host: &dyn Host,
    mut take: impl FnMut(WalkEntry) -> ControlFlow<()>,
) -> Ending {
    let worker_limit = limit.clone();
    let produce = move |sender| walk_blocking(&walk, &worker_limit, &sender);
    drain(limit, produce, |found: WalkEntry| {
        if is_hidden_by_rule(host, root, &found) { ControlFlow::Continue(()) } else { take(found) }
    })
    .await
}

/// Shows a path below the root as the model sees it: relative to the working directory when inside.
pub(crate) fn display_below(cwd: &Path, root: &PathEffect, below: &Path) -> String {
    display_relative(cwd, &below_root(&root.requested, below))
}

/// Joins a path below the root to it; the root itself, when it is a file, stays without a slash at its end.
pub(crate) fn below_root(root: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() { root.to_path_buf() } else { root.join(below) }
}

/// Returns how many threads to search with.
pub(crate) fn thread_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

/// Returns true when a rule forbids reading the find by any of its spellings.
pub(crate) fn is_hidden_by_rule(host: &dyn Host, root: &PathEffect, found: &WalkEntry) -> bool {
    host.is_read_denied(&below_root(&root.requested, &found.path))
        || (root.real != root.requested && host.is_read_denied(&below_root(&root.real, &found.path)))
        || found.target.as_deref().is_some_and(|target| host.is_read_denied(target))
}

fn walk_blocking(walk: &Walk, limit: &Limit, sender: &mpsc::Sender<WalkEntry>) -> Ending {
    // Guards the directories that are to be walked by themselves.
    let apart = Arc::new(Mutex::new(Vec::new()));
    let heeds = walk.ignores != Ignores::Nothing && !ignore_file::would_block_above(&walk.root);
    let mut ending = run(walk, builder(walk, &walk.root, heeds.then_some(&apart)), limit, sender);
    let dirs = std::mem::take(&mut *apart.lock().unwrap_or_else(PoisonError::into_inner));
    for dir in dirs {
        if ending == Ending::Complete {
            ending = run(walk, builder(walk, &dir, None), limit, sender);
        }
    }
    ending
}

fn run(walk: &Walk, builder: WalkBuilder, limit: &Limit, sender: &mpsc::Sender<WalkEntry>) -> Ending {
    // Guards the reason of whichever thread stopped first.
    let ending = Mutex::new(Ending::Complete);
    builder.build_parallel().run(|| {
        let mut second_look = SecondLook { root: &walk.dir, parent: None };
        let ending = &ending;
        Box::new(move |entry| {
            if let Some(reason) = limit.reached() {
                *ending.lock().unwrap_or_else(PoisonError::into_inner) = reason;
                return WalkState::Quit;
            }
            // An entry that cannot be looked at (vanished, forbidden) is no reason to stop.
            let Ok(entry) = entry else { return WalkState::Continue };
            if is_left_out(&entry) {
                return WalkState::Skip;
            }
            let found = find(walk, &entry, &mut second_look);
            let is_unheard = found.is_some_and(|found| sender.blocking_send(found).is_err());
            if is_unheard { WalkState::Quit } else { WalkState::Continue }
        })
    });
    ending.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the walk from `top` on. Ignore files are heeded where there is a place for the directories that have to be walked
/// without.
fn builder(walk: &Walk, top: &Path, apart: Option<&Arc<Mutex<Vec<PathBuf>>>>) -> WalkBuilder {
    let heeds = apart.is_some();
    let n_above = top.components().count() - walk.root.components().count();
    let mut builder = WalkBuilder::new(top);
    builder
        .standard_filters(heeds)
        // The library would read the real home for this; the user's file is added below instead.
        .git_global(false)
        .hidden(walk.skip_hidden)
        .max_depth(walk.max_depth.map(|depth| depth.saturating_sub(n_above)))
        .overrides(walk.overrides.clone())
        .types(walk.types.clone())
        .current_dir(&walk.root)
        .threads(thread_count());
    if let Some(apart) = apart.cloned() {
        builder.add_custom_ignore_filename(ignore_file::CUSTOM);
        builder.filter_entry(move |entry| {
            let would_block =
                entry.file_type().is_some_and(|kind| kind.is_dir()) && ignore_file::would_block(entry.path());
            if would_block {
                apart.lock().unwrap_or_else(PoisonError::into_inner).push(entry.path().to_path_buf());
            }
            !would_block
        });
    }
    if let (true, Ignores::Project { users: Some(file) }) = (heeds, &walk.ignores) {
        // Globs that are wrong are left out and the others count; nothing is to be said about them here.
        drop(builder.add_ignore(file));
    }
    builder
}

fn is_left_out(entry: &DirEntry) -> bool {
    entry.depth() > 0
        && (VCS_NAMES.iter().any(|name| entry.file_name() == *name)
            || KERNEL_TREES.iter().any(|tree| entry.path() == Path::new(tree)))
}

/// Returns the entry as a find when it is a file that is wanted and still there.
fn find(walk: &Walk, entry: &DirEntry, second_look: &mut SecondLook<'_>) -> Option<WalkEntry> {
    let kind = entry.file_type()?;
    let is_link = kind.is_symlink() && walk.symlinked_files;
    if !kind.is_file() && !is_link {
        return None;
    }
    let path = entry.path().strip_prefix(&walk.root).ok()?;
    if !(walk.accept)(path) {
        return None;
    }
    let seen = second_look.at(path)?;
    if is_link && seen.is_link {
        let target = entry.path().canonicalize().ok()?;
        let metadata = target.metadata().ok()?;
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        return metadata.is_file().then(|| WalkEntry {
            path: path.to_path_buf(),
            modified,
            target: Some(target),
        });
    }
    let is_same = seen.is_file && kind.is_file();
    is_same.then(|| WalkEntry { path: path.to_path_buf(), modified: seen.modified_at(), target: None })
}

/// Looks at finds inside the directory that was opened. Finds of one directory mostly come one after the other, so
/// the last one stays open.
struct SecondLook<'a> {
    root: &'a RealDir,
    parent: Option<(PathBuf, RealDir)>,
}

impl SecondLook<'_> {
    /// Returns what lies at a path below the root, when no symlink is on the way there.
    fn at(&mut self, below: &Path) -> Option<loci_stdx::FileStat> {
        let (parent, name) = (below.parent()?, below.file_name()?);
        if self.parent.as_ref().is_none_or(|(open, _)| open != parent) {
            self.parent = Some((parent.to_path_buf(), self.root.dir_below(parent).ok()?));
        }
        let (_, dir) = self.parent.as_ref()?;
        dir.stat(name).ok().flatten()
    }
}
