//! What a command leaves in repositories inside the project that git outside goes into by itself: taken away.
//!
//! `git status`, and any shell prompt that shows it, starts git in every submodule: in each directory that the index says is
//! one and that has a `.git`. A command may write the index and any directory, so that it could have git outside run what the
//! configuration of such a repository names (`core.fsmonitor`, filters) or what lies in its hooks. What submodules have below
//! the project's own `.git/modules` is shut; of every other this is looked at before a command begins and when nothing of it
//! is left: its configuration, its hooks, and what leads git to others. What has not changed is somebody's own; of what has,
//! that which git would run is set aside ([`super::aside`]), and a configuration is written anew ([`HarmlessConfig`]).
//!
//! An index without a submodule is told by four bytes that it does not have; only one that has them is read entry by entry.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use loci_core::git_index::{SHA1_LEN, SHA256_LEN, read_git_index};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, renameat, statat, unlinkat};

use super::aside::{SET_ASIDE, SetAside, listed, open_in, shown};
use super::git_links::{Stamp, now};
use super::placeholders::open_dir;
use super::staging::{kind_of, names_in, read_file};
use crate::plan::GitDir;
use crate::repository_check::{EntryFate, HarmlessConfig};

/// The longest index that is looked at.
const LONGEST_INDEX: u64 = 128 << 20;
/// How deep submodules lie in each other.
const DEEPEST: usize = 8;
/// How many submodules are looked at.
const MOST_SUBMODULES: usize = 2_000;
/// The mode of a submodule, as every index has it.
const MODE: [u8; 4] = 0o160_000_u32.to_be_bytes();

/// What steers git in submodules, by where it lies, and what it says.
type Steering = HashMap<PathBuf, Vec<u8>>;

/// What steered git in the submodules of every repository that a command may write to, before it began.
pub(super) struct SubmodulesBefore {
    git_dirs: Vec<PathBuf>,
    known: Steering,
    /// Indexes without a submodule, which need not be read again where they are as they were.
    without: HashMap<PathBuf, Stamp>,
}

impl SubmodulesBefore {
    /// Looks. `staged` are repositories that the command may make: they had no submodules.
    pub(super) fn new(git_dirs: &[GitDir], staged: &[PathBuf]) -> Self {
        let with_files = git_dirs.iter().filter(|dir| !dir.is_bare).map(|dir| dir.path.clone());
        let mut git_dirs: Vec<PathBuf> = with_files.collect();
        let (mut known, mut without) = (Steering::new(), HashMap::new());
        for dir in &git_dirs {
            // Before it is read: what changes meanwhile is another.
            let stamp = only_index(dir).filter(|stamp| stamp.is_settled(now()));
            let looked = Walk::through(dir, &mut |found| {
                known.insert(found.path.clone(), found.text());
                Ok(())
            });
            match (looked, stamp) {
                (Ok(false), Some(stamp)) => drop(without.insert(dir.clone(), stamp)),
                (Ok(_), _) => {}
                (Err(error), _) => {
                    tracing::debug!(target: "loci::sandbox", dir = %dir.display(), %error, "submodules were not looked at");
                }
            }
        }
        git_dirs.extend(staged.iter().cloned());
        Self { git_dirs, known, without }
    }

    /// Sets aside what would run outside by now and was not there; returns what is to be said. Nothing of the command may be
    /// left, and the repositories that it has made must be in their places.
    pub(super) fn set_aside_others(&self) -> Vec<String> {
        self.git_dirs.iter().filter_map(|dir| self.set_aside_in(dir)).collect()
    }

    fn set_aside_in(&self, git_dir: &Path) -> Option<String> {
        if self.without.get(git_dir).is_some_and(|stamp| only_index(git_dir).as_ref() == Some(stamp)) {
            return None;
        }
        let mut told = Vec::new();
        let looked = Walk::through(git_dir, &mut |found| {
            let text = found.text();
            let before = self.known.get(&found.path).map(Vec::as_slice).unwrap_or_default();
            if text != before {
                told.extend(found.make_harmless(&text, before)?);
            }
            Ok(())
        });
        let said = (!told.is_empty()).then(|| {
            format!(
                "git outside goes into the repositories that lie in this one and would run, or be led elsewhere by, what the \
                 command left there ({}): it lies in `{SET_ASIDE}` beside",
                listed(&told)
            )
        });
        let failed = looked.err().map(|error| {
            format!(
                "the repositories inside that of `{}` could not all be looked at ({error}): `git status` there may run what the \
                 command left in them",
                git_dir.display()
            )
        });
        [said, failed].into_iter().flatten().reduce(|a, b| format!("{a}; {b}"))
    }
}

/// What steers git in a submodule.
struct Found<'a> {
    /// The directory that it lies in.
    dir: BorrowedFd<'a>,
    name: &'a str,
    path: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A configuration.
    Config,
    /// A file in the place of `.git`, or `commondir`, which say where git goes on; a symlink in the place of any.
    Lead,
    /// What git runs.
    Hook,
}

impl Found<'_> {
    /// Returns what it says; a symlink, where it leads.
    fn text(&self) -> Vec<u8> {
        match rustix::fs::readlinkat(self.dir, self.name, Vec::new()) {
            Ok(target) => [b"-> ", target.as_bytes()].concat(),
            // What cannot be read is like nothing that was there before.
            Err(_) => {
                read_file(self.dir, self.name.as_ref()).map_or_else(|_| b"?".to_vec(), String::into_bytes)
            }
        }
    }

    /// Sets it aside where git would run something by it; returns its name then. A configuration is written anew whatever is
    /// in it, since git may read it otherwise than it was read here; what was there before is somebody's own.
    fn make_harmless(&self, text: &[u8], before: &[u8]) -> io::Result<Option<String>> {
        let mut aside = SetAside::new(self.dir);
        if self.kind != Kind::Config || text.starts_with(b"-> ") {
            aside.take_untold(self.dir, self.name.as_ref(), Path::new(self.name))?;
            return Ok(Some(shown(&self.path.display().to_string())));
        }
        let config = HarmlessConfig::beside(&String::from_utf8_lossy(text), &String::from_utf8_lossy(before));
        let new = format!("{}.sandbox", self.name);
        unlinkat(self.dir, &new, AtFlags::empty()).ok();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(self.dir, &new, flags, Mode::from_raw_mode(0o644))?);
        file.write_all(config.text.as_bytes())?;
        if !config.left_out.is_empty() {
            aside.take_untold(self.dir, self.name.as_ref(), Path::new(self.name))?;
        }
        renameat(self.dir, &new, self.dir, self.name)?;
        if config.left_out.is_empty() {
            return Ok(None);
        }
        let names = config.left_out.join(", ");
        Ok(Some(shown(&format!("{} ({names})", self.path.display()))))
    }
}

/// A walk through the submodules of a repository.
struct Walk<'a> {
    /// What is shut: what lies there is as it was.
    modules: PathBuf,
    n_left: usize,
    /// Whether half of an index is in another file.
    is_split: bool,
    failed: Option<io::Error>,
    visit: &'a mut dyn FnMut(Found<'_>) -> io::Result<()>,
}

impl<'a> Walk<'a> {
    /// Walks through the submodules of the working copies that a directory of git has; returns whether
    /// there are any, or may be some day without a change of the index itself.
    fn through(git_dir: &Path, visit: &'a mut dyn FnMut(Found<'_>) -> io::Result<()>) -> io::Result<bool> {
        let mut walk = Self {
            modules: git_dir.join("modules"),
            n_left: MOST_SUBMODULES,
            is_split: false,
            failed: None,
            visit,
        };
        let looked = walk.repository(git_dir);
        walk.note(looked);
        walk.failed.map_or(Ok(walk.is_split || walk.n_left < MOST_SUBMODULES), Err)
    }

    /// Notes a failure; that something is not there is none.
    fn note(&mut self, done: io::Result<()>) {
        let error = done.err().filter(|error| error.kind() != io::ErrorKind::NotFound);
        self.failed = self.failed.take().or(error);
    }

    fn repository(&mut self, git_dir: &Path) -> io::Result<()> {
        let git = open_dir(git_dir)?;
        if let Some(files) = git_dir.parent() {
            let done = self.submodules(git.as_fd(), files, DEEPEST);
            self.note(done);
        }
        let Ok(linked) = open_in(git.as_fd(), "worktrees".as_ref(), OFlags::DIRECTORY) else { return Ok(()) };
        for name in names_in(linked.as_fd())? {
            let Ok(own) = open_in(linked.as_fd(), &name, OFlags::DIRECTORY) else { continue };
            let Ok(text) = read_file(own.as_fd(), "gitdir".as_ref()) else { continue };
            if let Some(files) = Path::new(text.trim_end_matches('\n')).parent().filter(|it| it.is_absolute())
            {
                let done = self.submodules(own.as_fd(), files, DEEPEST);
                self.note(done);
            }
        }
        Ok(())
    }

    /// Looks at the submodules that an index names, whose files lie in a directory.
    fn submodules(&mut self, git: BorrowedFd<'_>, files: &Path, depth: usize) -> io::Result<()> {
        let IndexLinks { paths, is_split } = submodules_of(git)?;
        self.is_split |= is_split;
        for path in paths {
            if self.n_left == 0 || depth == 0 {
                return Err(io::Error::other("there are too many of them"));
            }
            self.n_left -= 1;
            let done = match open_dir(&files.join(&path)) {
                Ok(dir) => self.submodule(&dir, &files.join(&path), depth),
                // Git does not go through a symlink here, nor into what is not there.
                Err(error) if is_no_directory(&error) => Ok(()),
                Err(error) => Err(error),
            };
            self.note(done);
        }
        Ok(())
    }

    fn submodule(&mut self, files: &OwnedFd, path: &Path, depth: usize) -> io::Result<()> {
        let name = OsStr::new(".git");
        match kind_of(files.as_fd(), name)? {
            FileType::Directory => {
                let git = open_in(files.as_fd(), name, OFlags::DIRECTORY)?;
                self.git_dir(&git, &path.join(name), path, depth)
            }
            FileType::RegularFile => {
                let text = read_file(files.as_fd(), name)?;
                let Some(git_dir) = led_to(path, &text) else { return self.lead(files, path) };
                if git_dir.starts_with(&self.modules) {
                    return Ok(());
                }
                let done = self.lead(files, path);
                self.note(done);
                let git = open_dir(&git_dir)?;
                self.git_dir(&git, &git_dir, path, depth)
            }
            FileType::Symlink => self.lead(files, path),
            _ => Ok(()),
        }
    }

    /// Something in the place of `.git` that leads elsewhere.
    fn lead(&mut self, files: &OwnedFd, path: &Path) -> io::Result<()> {
        let found = Found { dir: files.as_fd(), name: ".git", path: path.join(".git"), kind: Kind::Lead };
        (self.visit)(found)
    }

    fn git_dir(&mut self, git: &OwnedFd, path: &Path, files: &Path, depth: usize) -> io::Result<()> {
        for (name, kind) in
            [("config", Kind::Config), ("config.worktree", Kind::Config), ("commondir", Kind::Lead)]
        {
            if kind_of(git.as_fd(), name.as_ref()).is_ok_and(|it| it != FileType::Directory) {
                let done = (self.visit)(Found { dir: git.as_fd(), name, path: path.join(name), kind });
                self.note(done);
            }
        }
        let hooks = self.hooks(git, path);
        self.note(hooks);
        // It has submodules of its own, into which git goes as well.
        self.submodules(git.as_fd(), files, depth - 1)
    }

    fn hooks(&mut self, git: &OwnedFd, path: &Path) -> io::Result<()> {
        let name = "hooks";
        if kind_of(git.as_fd(), name.as_ref())? == FileType::Symlink {
            return (self.visit)(Found { dir: git.as_fd(), name, path: path.join(name), kind: Kind::Lead });
        }
        let dir = open_in(git.as_fd(), name.as_ref(), OFlags::DIRECTORY)?;
        for hook in names_in(dir.as_fd())? {
            let Some(hook) = hook.to_str().filter(|it| !EntryFate::is_sample(it) && *it != SET_ASIDE) else {
                continue;
            };
            let path = path.join(name).join(hook);
            let done = (self.visit)(Found { dir: dir.as_fd(), name: hook, path, kind: Kind::Hook });
            self.note(done);
        }
        Ok(())
    }
}

/// Returns what tells of changes of the index, where that is the only one that a directory of git has.
fn only_index(git_dir: &Path) -> Option<Stamp> {
    let git = open_dir(git_dir).ok()?;
    let has_others = statat(&git, "worktrees", AtFlags::SYMLINK_NOFOLLOW).is_ok();
    let found = statat(&git, "index", AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (!has_others).then(|| Stamp::of(&found))
}

fn is_no_directory(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::NOENT, Errno::LOOP, Errno::NOTDIR]
        .iter()
        .any(|it| error.raw_os_error() == Some(it.raw_os_error()))
}

/// Returns the directory that a file in the place of `.git` names; none where its path is not plain: steps up first, then
/// names.
fn led_to(files: &Path, text: &str) -> Option<PathBuf> {
    let named = Path::new(text.strip_prefix("gitdir:")?.trim());
    let mut found = if named.is_absolute() { PathBuf::from("/") } else { files.to_owned() };
    let mut has_names = false;
    for part in named.components() {
        match part {
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir if !has_names && found.pop() => {}
            Component::Normal(name) => {
                has_names = true;
                found.push(name);
            }
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(found)
}

/// Returns the submodules that the index in a directory of git names, and those that are in the other half of a split one.
fn submodules_of(git: BorrowedFd<'_>) -> io::Result<IndexLinks> {
    let mut found = match read_index(git, "index".as_ref()) {
        Ok(bytes) => submodules_in(&bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(IndexLinks::default()),
        Err(error) => return Err(error),
    };
    if found.is_split {
        let shared = names_in(git)?.into_iter().filter(|name| name.as_bytes().starts_with(b"sharedindex."));
        for name in shared {
            found.paths.extend(submodules_in(&read_index(git, &name)?)?.paths);
        }
    }
    Ok(found)
}

fn read_index(git: BorrowedFd<'_>, name: &OsStr) -> io::Result<Vec<u8>> {
    let file = File::from(open_in(git, name, OFlags::empty())?);
    let length = file.metadata()?.len();
    if length > LONGEST_INDEX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    file.take(LONGEST_INDEX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What an index says of submodules.
#[derive(Debug, Default, PartialEq, Eq)]
struct IndexLinks {
    paths: Vec<PathBuf>,
    /// Whether the other half is in another file.
    is_split: bool,
}

/// Tells whether an index may have the extension that names its other half: its name, and a length that fits. Names of files
/// have the word in them as well.
fn may_be_split(bytes: &[u8]) -> bool {
    memchr::memmem::find_iter(bytes, b"link").any(|at| {
        let length = bytes.get(at + 4..at + 8).and_then(|it| Some(u32::from_be_bytes(it.try_into().ok()?)));
        length.is_some_and(|it| it > 0 && it as usize <= bytes.len() - at - 8)
    })
}

fn submodules_in(bytes: &[u8]) -> io::Result<IndexLinks> {
    if memchr::memmem::find(bytes, &MODE).is_none() && !may_be_split(bytes) {
        return Ok(IndexLinks::default());
    }
    let read = |id_len: usize| {
        let mut paths = Vec::new();
        let extensions = read_git_index(bytes, id_len, |entry| {
            let path = Path::new(OsStr::from_bytes(entry.path));
            let is_plain = path.components().all(|it| matches!(it, Component::Normal(_)));
            if entry.is_submodule() && is_plain {
                paths.push(path.to_owned());
            }
            Some(())
        })?;
        Some(IndexLinks { paths, is_split: extensions.iter().any(|it| it.signature == b"link") })
    };
    read(SHA1_LEN)
        .or_else(|| read(SHA256_LEN))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the index cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_in_the_place_of_a_repository_leads_where_its_path_is_plain() {
        for (text, expected) in [
            ("gitdir: ../.git/modules/sub\n", Some("/p/.git/modules/sub")),
            ("gitdir: ../../p/.git/modules/sub\n", Some("/p/.git/modules/sub")),
            ("gitdir: /p/.git/modules/sub", Some("/p/.git/modules/sub")),
            ("gitdir: ./own", Some("/p/sub/own")),
            ("gitdir: link/../../.git/modules/sub", None),
            ("gitdir: /p/link/../.git/modules/sub", None),
            ("../.git/modules/sub", None),
        ] {
            assert_eq!(led_to(Path::new("/p/sub"), text).as_deref(), expected.map(Path::new), "{text}");
        }
    }
}
