//! From a policy and the disk as it is to what is done, in order: data that can be looked at without a kernel.
//!
//! Steps go from the outside in, so that the more specific one lies on top. A path that is shut and missing gets a
//! placeholder at its first missing part, since nothing can be mounted on what is not there; every directory on the way to
//! it is made a mount point, which can neither be renamed nor removed (SB-3). A symlink is mounted on itself, and what it
//! leads to is shut as well (SB-2).

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::policy::{FileRules, absent_git_paths, git_paths, is_bare_name, is_public, placeholder_kind};

/// How many symlinks are followed on the way to what is shut.
const MOST_LINKS: usize = 16;

/// How deep, and how many of, symlinks inside what is shut are looked for: `.claude/skills/NAME` is as deep as settings go.
const LINK_DEPTH: usize = 2;
const MOST_INNER_LINKS: usize = 200;

/// The disk, as far as a plan looks at it.
pub trait Disk {
    /// Returns what lies at a path, without following a symlink at its end.
    fn kind(&self, path: &Path) -> PathKind;
    /// Returns the names in a directory; none where it cannot be read.
    fn names(&self, dir: &Path) -> Vec<OsString>;
}

/// What lies at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing.
    Missing,
    /// A directory.
    Dir,
    /// A file, or anything else that is no directory.
    File,
    /// A symlink to this.
    Link(PathBuf),
}

/// What is done to the paths of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Made before and removed afterwards, outside the namespaces.
    pub placeholders: Vec<Placeholder>,
    /// Those of the placeholders that are a `.git` at the top of a root: a command may make a repository there, which is kept
    /// apart until it has been looked at.
    pub staged: Vec<PathBuf>,
    /// Removed afterwards where the command made them.
    pub absent: Vec<PathBuf>,
    /// Directories of git that the command may write to.
    pub git_dirs: Vec<GitDir>,
    /// Mounts, in order.
    pub mounts: Vec<MountStep>,
}

/// A directory of git.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitDir {
    /// Where, without symlinks.
    pub path: PathBuf,
    /// Whether it is a root of its own, with other files beside those of git.
    pub is_bare: bool,
}

/// Something that stands where nothing may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder {
    /// Where.
    pub path: PathBuf,
    /// What it is.
    pub kind: PlaceholderKind,
}

/// What stands where nothing may be made. Git sees neither sockets nor empty directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceholderKind {
    /// A socket that nobody listens on: it can be neither read, written nor entered, and takes no block of the disk.
    Socket,
    /// An empty directory, where others look for names in it.
    Dir,
    /// An empty file, where git reads one.
    File,
}

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MountStep {
    /// Covers a directory with an empty one that has nothing but these of its contents.
    Reduce(PathBuf, Vec<PathBuf>),
    /// Covers a directory with an empty one that cannot be opened.
    HideDir(PathBuf),
    /// Covers a file with an empty one that cannot be opened.
    HideFile(PathBuf),
    /// Mounts a path on itself, writable.
    Open(PathBuf),
    /// Mounts a path on itself, so that it stays where it is.
    Pin(PathBuf),
    /// Mounts a path on itself, read-only.
    Shut(PathBuf),
    /// Covers a placeholder with something that can be neither read nor written.
    Block(PathBuf),
    /// Mounts a directory inside a placeholder on it, writable. No plan has it: which directory is known once it is made.
    Stage {
        /// The directory.
        from: PathBuf,
        /// The placeholder.
        at: PathBuf,
    },
}

impl MountStep {
    /// Returns the path that is mounted on.
    pub fn path(&self) -> &Path {
        match self {
            Self::Reduce(path, _)
            | Self::HideDir(path)
            | Self::HideFile(path)
            | Self::Open(path)
            | Self::Pin(path)
            | Self::Shut(path)
            | Self::Block(path)
            | Self::Stage { at: path, .. } => path,
        }
    }

    /// At equal depth what hides and shuts lies on top.
    fn rank(&self) -> u8 {
        match self {
            Self::Open(_) => 0,
            Self::Pin(_) => 1,
            Self::Reduce(..) => 2,
            Self::Shut(_) | Self::Block(_) | Self::Stage { .. } => 3,
            Self::HideDir(_) | Self::HideFile(_) => 4,
        }
    }
}

impl Plan {
    /// Plans what rules ask for.
    pub fn new(rules: &FileRules, disk: &dyn Disk) -> Self {
        let mut plan = Self::default();
        plan.hide(rules, disk);
        let existing = rules.roots.iter().chain(&rules.reopened);
        plan.mounts.extend(existing.filter(|it| is_there(disk, it)).cloned().map(MountStep::Open));
        let bare: Vec<&Path> =
            rules.roots.iter().map(PathBuf::as_path).filter(|root| is_bare_repository(disk, root)).collect();
        for path in rules.shut.iter().cloned().chain(bare.iter().flat_map(|root| git_paths(root))) {
            plan.shut(rules, disk, &path);
            // What a shut directory leads to is not shut with it.
            let mut links = Vec::new();
            links_in(disk, &path, LINK_DEPTH, &mut links);
            links.iter().for_each(|target| plan.shut(rules, disk, target));
        }
        let configs = rules.shut.iter().filter(|path| path.ends_with("config"));
        let git_dirs: Vec<&Path> = configs.filter_map(|path| path.parent()).chain(bare.clone()).collect();
        plan.git_dirs = git_dirs
            .iter()
            .filter_map(|dir| {
                // What lies above it is a root, without symlinks.
                let path = match disk.kind(dir) {
                    PathKind::Link(_) => resolve(disk, dir)?.0,
                    _ => dir.to_path_buf(),
                };
                Some(GitDir { path, is_bare: bare.contains(dir) })
            })
            .filter(|dir| is_git_dir(disk, &dir.path))
            .collect();
        for GitDir { path, .. } in plan.git_dirs.clone() {
            // Missing, it is set aside behind a command that makes one: git says something of whatever stands there.
            let alternates = path.join("objects/info/alternates");
            if disk.kind(&alternates) != PathKind::Missing {
                plan.shut(rules, disk, &alternates);
            }
        }
        let dirs = git_dirs.into_iter().filter(|dir| disk.kind(dir) == PathKind::Dir);
        let absent = dirs.flat_map(absent_git_paths);
        plan.absent.extend(absent.filter(|path| disk.kind(path) == PathKind::Missing));
        plan.in_order()
    }

    /// From the outside in, each path once for each thing that is done to it.
    fn in_order(mut self) -> Self {
        self.mounts.sort_by_cached_key(|step| {
            (step.path().components().count(), step.path().to_owned(), step.rank())
        });
        self.mounts.dedup();
        // A path that is opened or shut is a mount point already.
        let mounted: HashSet<PathBuf> = self
            .mounts
            .iter()
            .filter(|it| !matches!(it, MountStep::Pin(_)))
            .map(|it| it.path().to_owned())
            .collect();
        self.mounts.retain(|step| !matches!(step, MountStep::Pin(path) if mounted.contains(path)));
        self.placeholders.sort_by(|a, b| a.path.cmp(&b.path));
        self.placeholders.dedup();
        self.absent.sort();
        self.absent.dedup();
        self.staged.sort();
        self.staged.dedup();
        self.git_dirs.sort();
        self.git_dirs.dedup_by(|a, b| a.path == b.path);
        let shut = |path: &PathBuf| self.mounts.contains(&MountStep::Shut(path.clone()));
        self.staged.retain(|path| !shut(path));
        self.without_hidden()
    }

    /// Leaves out what lies in something hidden: there is nothing left there to mount on.
    fn without_hidden(mut self) -> Self {
        let mut covers: HashMap<PathBuf, Vec<Vec<PathBuf>>> = HashMap::new();
        for step in &self.mounts {
            let kept = match step {
                MountStep::HideDir(_) => Vec::new(),
                MountStep::Reduce(_, kept) => kept.clone(),
                _ => continue,
            };
            covers.entry(step.path().to_owned()).or_default().push(kept);
        }
        let is_hidden = |path: &Path| {
            let is_left_out = |kept: &Vec<PathBuf>| !kept.iter().any(|it| path.starts_with(it));
            let mut around = path.ancestors().skip(1).filter_map(|dir| covers.get(dir));
            around.any(|all| all.iter().any(is_left_out))
        };
        self.mounts.retain(|step| !is_hidden(step.path()));
        self.placeholders.retain(|it| !is_hidden(&it.path));
        self.staged.retain(|it| !is_hidden(it));
        self
    }

    fn hide(&mut self, rules: &FileRules, disk: &dyn Disk) {
        for named in &rules.unreadable {
            let Some((path, kind)) = resolve(disk, named) else { continue };
            let shown: Vec<PathBuf> = rules
                .readable
                .iter()
                .chain(&rules.roots)
                .filter(|it| **it != path && it.starts_with(&path) && is_there(disk, it))
                .cloned()
                .collect();
            match kind {
                PathKind::Dir if rules.mixed.contains(named) => {
                    let names = disk.names(&path).into_iter();
                    let private = names.filter(|name| !name.to_str().is_some_and(is_public));
                    let private =
                        private.map(|name| path.join(name)).filter(|it| !rules.readable.contains(it));
                    self.mounts.extend(private.filter_map(|it| hiding(disk, it)));
                }
                PathKind::Dir if !shown.is_empty() => {
                    self.mounts.push(MountStep::Reduce(path.clone(), outermost(shown)));
                }
                _ => self.mounts.extend(hiding(disk, path.clone())),
            }
            self.pin_parents(rules, disk, &path);
        }
    }

    /// Shuts a path: what is there, or its first missing part; and what symlinks on the way lead to.
    fn shut(&mut self, rules: &FileRules, disk: &dyn Disk, path: &Path) {
        let mut pending = path.to_owned();
        for _ in 0..MOST_LINKS {
            let Some(root) = root_of(rules, &pending).map(Path::to_path_buf) else { return };
            if disk.kind(&root) != PathKind::Dir {
                return;
            }
            match self.shut_below(disk, &root, &pending) {
                Some(next) => pending = next,
                None => return,
            }
        }
    }

    /// Shuts a path below a root; returns where it goes on when a symlink is in the way.
    fn shut_below(&mut self, disk: &dyn Disk, root: &Path, path: &Path) -> Option<PathBuf> {
        let parts: Vec<Component<'_>> = path.strip_prefix(root).ok()?.components().collect();
        let mut at = root.to_owned();
        for (idx, part) in parts.iter().enumerate() {
            at.push(part);
            let is_last = idx + 1 == parts.len();
            match disk.kind(&at) {
                PathKind::Missing if is_last && is_removed_afterwards(disk, root, &at) => {
                    self.absent.push(at);
                    return None;
                }
                PathKind::Missing => {
                    // Programs look for other names in a directory on the way to what is shut.
                    let kind = if is_last { placeholder_kind(&at) } else { PlaceholderKind::Dir };
                    self.placeholders.push(Placeholder { path: at.clone(), kind });
                    // Somebody who denies something else in it denies that it is made.
                    if idx == 0 && at.ends_with(".git") && git_paths(&at).iter().any(|it| it == path) {
                        self.staged.push(at);
                        return None;
                    }
                    self.mounts.push(match kind {
                        PlaceholderKind::Socket => MountStep::Block(at),
                        PlaceholderKind::Dir | PlaceholderKind::File => MountStep::Shut(at),
                    });
                    return None;
                }
                PathKind::Link(target) => {
                    self.mounts.push(MountStep::Pin(at.clone()));
                    let rest: PathBuf = parts.iter().skip(idx + 1).collect();
                    let target = at.parent().unwrap_or(root).join(target);
                    return Some(loci_core::path::normalise(Path::new("/"), &target.join(rest)));
                }
                PathKind::Dir if is_last && is_bare_name(&at) => return None,
                PathKind::Dir | PathKind::File if is_last => self.mounts.push(MountStep::Shut(at.clone())),
                PathKind::Dir => self.mounts.push(MountStep::Pin(at.clone())),
                // A file where a directory would have to be, such as the `.git` of a worktree: it is what must stay.
                PathKind::File => {
                    self.mounts.push(MountStep::Shut(at));
                    return None;
                }
            }
        }
        // The root itself.
        if parts.is_empty() {
            self.mounts.push(MountStep::Shut(at));
        }
        None
    }

    fn pin_parents(&mut self, rules: &FileRules, disk: &dyn Disk, path: &Path) {
        let Some(root) = root_of(rules, path) else { return };
        let parents = path.ancestors().skip(1).take_while(|it| *it != root && it.starts_with(root));
        self.mounts.extend(
            parents.filter(|it| disk.kind(it) == PathKind::Dir).map(|it| MountStep::Pin(it.to_owned())),
        );
    }
}

/// Tells whether a directory is a repository without a `.git`: what git runs lies in it.
fn is_bare_repository(disk: &dyn Disk, dir: &Path) -> bool {
    disk.kind(&dir.join("HEAD")) == PathKind::File && has_bare_dirs(disk, dir)
}

/// Tells whether git may take a directory for a repository, or could if something were added.
fn is_git_dir(disk: &dyn Disk, dir: &Path) -> bool {
    disk.kind(dir) == PathKind::Dir
        && (dir.ends_with(".git") || disk.kind(&dir.join("HEAD")) != PathKind::Missing)
}

fn has_bare_dirs(disk: &dyn Disk, dir: &Path) -> bool {
    ["objects", "refs"].iter().all(|name| disk.kind(&dir.join(name)) == PathKind::Dir)
}

/// Tells whether a missing path is removed after the command rather than held during it: a `HEAD` in the working directory
/// of a repository, or where a command may make one, makes `git log HEAD` ambiguous, whatever it is. What else a repository
/// in disguise needs is held.
fn is_removed_afterwards(disk: &dyn Disk, root: &Path, path: &Path) -> bool {
    path.parent() == Some(root) && path.ends_with("HEAD") && !has_bare_dirs(disk, root)
}

/// Collects what symlinks in a directory lead to.
fn links_in(disk: &dyn Disk, dir: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    if disk.kind(dir) != PathKind::Dir {
        return;
    }
    for path in disk.names(dir).into_iter().map(|name| dir.join(name)) {
        match disk.kind(&path) {
            _ if found.len() == MOST_INNER_LINKS => return,
            PathKind::Link(target) => {
                found.push(loci_core::path::normalise(Path::new("/"), &dir.join(target)));
            }
            PathKind::Dir if depth > 1 => links_in(disk, &path, depth - 1, found),
            PathKind::Dir | PathKind::File | PathKind::Missing => {}
        }
    }
}

/// Returns the innermost root that a path lies in.
fn root_of<'a>(rules: &'a FileRules, path: &Path) -> Option<&'a Path> {
    let inside = rules.roots.iter().filter(|root| path.starts_with(root));
    inside.max_by_key(|root| root.components().count()).map(PathBuf::as_path)
}

fn is_there(disk: &dyn Disk, path: &Path) -> bool {
    matches!(disk.kind(path), PathKind::Dir | PathKind::File)
}

fn hiding(disk: &dyn Disk, path: PathBuf) -> Option<MountStep> {
    match resolve(disk, &path)? {
        (path, PathKind::Dir) => Some(MountStep::HideDir(path)),
        (path, _) => Some(MountStep::HideFile(path)),
    }
}

/// Leaves out what is there twice, or lies inside another of them.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup();
    let is_inner = |path: &PathBuf| paths.iter().any(|other| other != path && path.starts_with(other));
    paths.iter().filter(|path| !is_inner(path)).cloned().collect()
}

/// Follows symlinks; returns what lies at the end, if anything does.
pub(crate) fn resolve(disk: &dyn Disk, path: &Path) -> Option<(PathBuf, PathKind)> {
    // Most of what is looked for is not there.
    if disk.kind(path) == PathKind::Missing {
        return None;
    }
    let mut path = path.to_owned();
    'links: for _ in 0..MOST_LINKS {
        let mut at = PathBuf::new();
        let parts: Vec<Component<'_>> = path.components().collect();
        for (idx, part) in parts.iter().enumerate() {
            at.push(part);
            match disk.kind(&at) {
                PathKind::Missing => return None,
                PathKind::Link(target) => {
                    let rest: PathBuf = parts.iter().skip(idx + 1).collect();
                    let target = at.parent().unwrap_or(Path::new("/")).join(target).join(rest);
                    path = loci_core::path::normalise(Path::new("/"), &target);
                    continue 'links;
                }
                PathKind::File if idx + 1 < parts.len() => return None,
                PathKind::Dir | PathKind::File => {}
            }
        }
        let kind = disk.kind(&path);
        return Some((path, kind));
    }
    None
}

/// The disk of this machine, each path of which is looked at once.
#[derive(Debug, Default)]
pub struct RealDisk {
    kinds: RefCell<HashMap<PathBuf, PathKind>>,
}

impl Disk for RealDisk {
    fn kind(&self, path: &Path) -> PathKind {
        if let Some(kind) = self.kinds.borrow().get(path) {
            return kind.clone();
        }
        let kind = match std::fs::symlink_metadata(path) {
            Err(_) => PathKind::Missing,
            Ok(found) if found.is_symlink() => PathKind::Link(std::fs::read_link(path).unwrap_or_default()),
            Ok(found) if is_placeholder(&found) => PathKind::Missing,
            Ok(found) if found.is_dir() => PathKind::Dir,
            Ok(_) => PathKind::File,
        };
        self.kinds.borrow_mut().insert(path.to_owned(), kind.clone());
        kind
    }

    fn names(&self, dir: &Path) -> Vec<OsString> {
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
    }
}

/// The permissions that mark placeholders; nobody has a reason to give them to anything else. Their owner may write into
/// a directory from outside: settings are saved while a command runs.
pub(crate) const PLACEHOLDER_DIR: u32 = 0o1755;
/// Those of files and sockets.
pub(crate) const PLACEHOLDER_FILE: u32 = 0o1444;

/// Tells whether this is a placeholder, of a command that runs beside this one or that was killed.
pub(crate) fn is_placeholder(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    is_placeholder_mode(found.mode(), found.len() == 0)
}

/// Tells the same by what the system says of it.
pub(crate) fn is_placeholder_mode(mode: u32, is_empty: bool) -> bool {
    const DIR: u32 = 0o040_000;
    const FILE: u32 = 0o100_000;
    const SOCKET: u32 = 0o140_000;
    match (mode & 0o7777, mode & 0o170_000) {
        // Earlier releases made directories that nobody could write into.
        (PLACEHOLDER_DIR | 0o1555, DIR) | (PLACEHOLDER_FILE, SOCKET) => true,
        (PLACEHOLDER_FILE, FILE) => is_empty,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
