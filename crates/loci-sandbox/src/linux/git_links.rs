//! What a command leaves in a directory of git that leads git elsewhere when it runs outside the sandbox: taken away.
//!
//! Git appends to its logs, and writes `COMMIT_EDITMSG`, `FETCH_HEAD` and many others, through a symlink that lies there, and
//! of a lock it makes the file that a symlink leads to. What is written is in part up to whoever left it. No mount could
//! hold these names: git itself makes, replaces and removes them. So a directory is looked through before the command begins
//! and when nothing of it is left; what leads elsewhere by then and did not before is set aside ([`super::aside`]).
//!
//! A file is looked at only where its text leads git on: the `commondir` of a linked worktree to another configuration, its
//! `config.worktree` to programs, `alternates`, and files in `branches` and `remotes`, to another repository.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat, chmodat, fchmod, fstat, readlinkat, statat, unlinkat,
};

use super::aside::{SET_ASIDE, SetAside, listed, open_in};
use super::mounts::open_path;
use super::placeholders::open_dir;
use super::staging::{kind_of, read_file};
use crate::plan::GitDir;
use crate::repository_check::{EntryFate, is_own_link, is_own_text};

/// How deep names are looked for; git has none that is longer than a path.
const DEEPEST: usize = 64;
/// How many names are looked at in a directory of git.
const MOST_NAMES: usize = 200_000;
/// How much of a directory is read at once.
const BUFFER: usize = 16 << 10;

/// What leads elsewhere, with the text that says where.
type Leads = HashMap<PathBuf, Vec<u8>>;

/// What there was in every directory of git that a command may write to, before it began.
#[derive(Default)]
pub(super) struct LeadsBefore(Vec<(GitDir, Snapshot)>);

impl LeadsBefore {
    /// Looks; what cannot be looked at leads nowhere, so that what is found there later is set aside.
    pub(super) fn new(dirs: &[GitDir]) -> Self {
        Self(dirs.iter().map(|dir| (dir.clone(), Snapshot::new(dir))).collect())
    }

    /// Sets aside what leads elsewhere by now; returns what is to be said. Nothing of the command may be left.
    pub(super) fn set_aside_others(self) -> Vec<String> {
        self.0.into_iter().filter_map(|(dir, before)| set_aside_others(&dir, &before)).collect()
    }
}

/// A directory of git as it was.
#[derive(Default)]
struct Snapshot {
    leads: Leads,
    /// Every directory and file that was looked at below the top, where placeholders come and go; none where it cannot be
    /// told by them whether something changes.
    stamps: Vec<(PathBuf, Stamp)>,
}

impl Snapshot {
    fn new(dir: &GitDir) -> Self {
        Self::by(dir, now)
    }

    /// Looks, by a clock that is read at the end.
    fn by(dir: &GitDir, now: impl FnOnce() -> i128) -> Self {
        let (mut leads, mut stamps) = (Leads::new(), Vec::new());
        let mut remember = |found: Lead<'_>| {
            leads.insert(found.path.to_owned(), found.text());
            Ok(())
        };
        let looked = open_dir(&dir.path)
            .and_then(|git| Walk::through(&git, dir, Purpose::Remember(&mut stamps), &mut remember));
        if let Err(error) = &looked {
            tracing::debug!(target: "loci::sandbox", dir = %dir.path.display(), %error, "not looked through");
        }
        let now = now();
        let are_settled = looked.is_ok() && stamps.iter().all(|(_, stamp)| stamp.is_settled(now));
        if !are_settled {
            stamps.clear();
        }
        Self { leads, stamps }
    }

    /// Tells whether nothing can have been added to a directory at the top, or below it.
    fn is_current(&self, git: BorrowedFd<'_>, name: &OsStr) -> bool {
        // A part of a path that has become a symlink has changed the directory that it lies in.
        let is_same = |(path, stamp): &(PathBuf, Stamp)| {
            statat(git, path, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|it| Stamp::of(&it) == *stamp)
        };
        self.stamps.iter().any(|(path, _)| path == Path::new(name))
            && self.stamps.iter().filter(|(path, _)| path.starts_with(name)).all(is_same)
    }
}

/// Returns the time in seconds.
pub(super) fn now() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| i128::from(it.as_secs()))
}

/// What changes when a name is added to a directory or a file is written. Nobody can set the time of a change.
#[derive(PartialEq, Eq)]
pub(super) struct Stamp([i128; 4]);

impl Stamp {
    pub(super) fn of(found: &Stat) -> Self {
        Self([found.st_dev.into(), found.st_ino.into(), found.st_ctime.into(), found.st_ctime_nsec.into()])
    }

    /// Tells whether the next change has another time: clocks of disks do not tell moments apart.
    pub(super) fn is_settled(&self, now: i128) -> bool {
        self.0[2] + 2 <= now
    }
}

fn set_aside_others(dir: &GitDir, before: &Snapshot) -> Option<String> {
    let shown = dir.path.display();
    let git = match open_dir(&dir.path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_path(&dir.path).and_then(|closed| open_again(&closed))
        }
        other => other,
    };
    let git = match git {
        Ok(git) => git,
        // A command may remove what it may write.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return Some(format!("`{shown}` could not be looked through: {error}")),
    };
    let mut aside = SetAside::new(git.as_fd());
    let mut take = |found: Lead<'_>| {
        let is_known = before.leads.get(found.path).is_some_and(|text| *text == found.text());
        if is_known || found.is_harmless() { Ok(()) } else { found.set_aside(&mut aside) }
    };
    let looked = Walk::through(&git, dir, Purpose::Mend(before), &mut take);
    let told = (!aside.told.is_empty()).then(|| {
        format!(
            "in `{shown}` the command left {}, by which git outside the sandbox would write, or be led, elsewhere; it lies in \
             `{SET_ASIDE}` there",
            listed(&aside.told)
        )
    });
    let failed = looked.err().map(|error| {
        format!("`{shown}` could not be looked through to its end ({error}): look for symlinks in it before git is used there")
    });
    [told, failed].into_iter().flatten().reduce(|a, b| format!("{a}; {b}"))
}

/// Opens a directory that its user may not read any more: git may go through it all the same.
fn open_again(closed: &OwnedFd) -> io::Result<OwnedFd> {
    let by_descriptor = format!("/proc/self/fd/{}", closed.as_raw_fd());
    chmodat(CWD, by_descriptor, Mode::from_raw_mode(0o755), AtFlags::empty())?;
    open_in(closed.as_fd(), OsStr::new("."), OFlags::DIRECTORY)
}

/// Something in a directory of git that leads elsewhere.
struct Lead<'a> {
    dir: BorrowedFd<'a>,
    name: &'a OsStr,
    /// Below the directory of git.
    path: &'a Path,
    kind: FileType,
}

impl Lead<'_> {
    /// Returns what says where it leads.
    fn text(&self) -> Vec<u8> {
        match self.kind {
            FileType::Symlink => {
                readlinkat(self.dir, self.name, Vec::new()).map(|it| it.into_bytes()).unwrap_or_default()
            }
            FileType::RegularFile => {
                read_file(self.dir, self.name).map(String::into_bytes).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Tells whether git itself leaves such a thing.
    fn is_harmless(&self) -> bool {
        match self.kind {
            FileType::Symlink => is_own_link(self.path, &self.text()),
            FileType::RegularFile => is_own_text(self.path, &self.text()),
            _ => false,
        }
    }

    fn set_aside(&self, aside: &mut SetAside<'_>) -> io::Result<()> {
        let taken = aside.take(self.dir, self.name, self.path).or_else(|error| {
            // Who may remove a right of the user's own directory may not keep what lies in it by that.
            let mode = fstat(self.dir)?.st_mode & 0o7777;
            if mode & 0o700 == 0o700 {
                return Err(error);
            }
            fchmod(self.dir, Mode::from_raw_mode(mode | 0o700))?;
            aside.take(self.dir, self.name, self.path)
        });
        match taken {
            // All there is of it is what it leads to.
            Err(_) if self.kind == FileType::Symlink => {
                unlinkat(self.dir, self.name, AtFlags::empty())?;
                let target = String::from_utf8_lossy(&self.text()).into_owned();
                aside.told.push(super::aside::shown(&format!(
                    "{} (removed; it led to {target})",
                    self.path.display()
                )));
                Ok(())
            }
            other => other,
        }
    }
}

/// What a walk is for.
enum Purpose<'a> {
    /// To know later what has changed.
    Remember(&'a mut Vec<(PathBuf, Stamp)>),
    /// To mend what a command has left since: directories that it has closed to its user are opened again.
    Mend(&'a Snapshot),
}

/// A walk through the parts of a directory of git by which git is led.
struct Walk<'a> {
    purpose: Purpose<'a>,
    n_left: usize,
    /// Why not everything was looked at; what can be is all the same.
    failed: Option<io::Error>,
    visit: &'a mut dyn FnMut(Lead<'_>) -> io::Result<()>,
}

impl<'a> Walk<'a> {
    /// Walks through a directory of git.
    fn through(
        git: &OwnedFd,
        dir: &GitDir,
        purpose: Purpose<'a>,
        visit: &'a mut dyn FnMut(Lead<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut walk = Self { purpose, n_left: MOST_NAMES, failed: None, visit };
        let looked = walk.git_dir(git.as_fd(), Path::new(""), dir.is_bare);
        walk.note(looked);
        walk.failed.map_or(Ok(()), Err)
    }

    /// Notes a failure; that something is gone by now is none.
    fn note(&mut self, done: io::Result<()>) {
        self.failed =
            self.failed.take().or(done.err().filter(|error| error.kind() != io::ErrorKind::NotFound));
    }

    /// A directory of git, or what a linked worktree has of one.
    fn git_dir(&mut self, dir: BorrowedFd<'_>, path: &Path, is_bare: bool) -> io::Result<()> {
        for (name, kind) in self.entries_in(dir, path)? {
            let done = self.entry(dir, &name, &path.join(&name), kind, is_bare);
            self.note(done);
        }
        Ok(())
    }

    /// An entry at the top.
    fn entry(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &OsStr,
        path: &Path,
        kind: FileType,
        is_bare: bool,
    ) -> io::Result<()> {
        let is_linked = path != Path::new(name);
        if let Purpose::Mend(before) = &self.purpose
            && kind == FileType::Directory
            && !is_linked
            && before.is_current(dir, name)
        {
            return Ok(());
        }
        match (name.to_str().unwrap_or_default(), kind) {
            (
                "branches" | "remotes" | "info" | "logs" | "refs" | "rebase-merge" | "rebase-apply"
                | "sequencer",
                FileType::Directory,
            ) => self.tree(dir, name, path, DEEPEST),
            ("objects", FileType::Directory) => self.objects(dir, name, path),
            ("worktrees", FileType::Directory) if !is_linked => self.worktrees(dir, name, path),
            ("commondir" | "config.worktree", FileType::RegularFile) if is_linked => {
                self.found(Lead { dir, name, path, kind })
            }
            // Beside a repository without a `.git` there may be anything.
            (text, _) if is_bare && !EntryFate::is_of_git(text) => Ok(()),
            _ => self.check(dir, name, path, kind),
        }
    }

    /// Of objects, which are many, only what is beside them.
    fn objects(&mut self, dir: BorrowedFd<'_>, name: &OsStr, path: &Path) -> io::Result<()> {
        let dir = self.open(dir, name)?;
        self.remember(path, fstat(&dir)?);
        for name in ["pack", "info"].map(OsStr::new) {
            let below = path.join(name);
            let done = kind_of(dir.as_fd(), name).and_then(|kind| match kind {
                FileType::Directory if name == "info" => self.tree(dir.as_fd(), name, &below, DEEPEST),
                _ => self.check(dir.as_fd(), name, &below, kind),
            });
            self.note(done);
        }
        Ok(())
    }

    fn worktrees(&mut self, dir: BorrowedFd<'_>, name: &OsStr, path: &Path) -> io::Result<()> {
        let dir = self.open(dir, name)?;
        for (name, kind) in self.entries_in(dir.as_fd(), path)? {
            let below = path.join(&name);
            let done = match kind {
                FileType::Directory => self
                    .open(dir.as_fd(), &name)
                    .and_then(|linked| self.git_dir(linked.as_fd(), &below, false)),
                _ => self.check(dir.as_fd(), &name, &below, kind),
            };
            self.note(done);
        }
        Ok(())
    }

    fn tree(&mut self, dir: BorrowedFd<'_>, name: &OsStr, path: &Path, depth: usize) -> io::Result<()> {
        if depth == 0 {
            return Err(io::Error::other("directories are too deep"));
        }
        let dir = self.open(dir, name)?;
        for (name, kind) in self.entries_in(dir.as_fd(), path)? {
            let below = path.join(&name);
            let done = match kind {
                FileType::Directory => self.tree(dir.as_fd(), &name, &below, depth - 1),
                _ => self.check(dir.as_fd(), &name, &below, kind),
            };
            self.note(done);
        }
        Ok(())
    }

    fn check(&mut self, dir: BorrowedFd<'_>, name: &OsStr, path: &Path, kind: FileType) -> io::Result<()> {
        let leads = match kind {
            FileType::Directory | FileType::Socket => false,
            FileType::RegularFile => path.to_str().is_some_and(EntryFate::leads_elsewhere),
            _ => true,
        };
        if leads { self.found(Lead { dir, name, path, kind }) } else { Ok(()) }
    }

    fn remember(&mut self, path: &Path, found: Stat) {
        if let Purpose::Remember(stamps) = &mut self.purpose {
            stamps.push((path.to_owned(), Stamp::of(&found)));
        }
    }

    fn found(&mut self, lead: Lead<'_>) -> io::Result<()> {
        if lead.kind == FileType::RegularFile {
            self.remember(lead.path, statat(lead.dir, lead.name, AtFlags::SYMLINK_NOFOLLOW)?);
        }
        (self.visit)(lead)
    }

    fn open(&self, dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
        match open_in(dir, name, OFlags::DIRECTORY) {
            Err(error)
                if matches!(self.purpose, Purpose::Mend(_))
                    && error.kind() == io::ErrorKind::PermissionDenied =>
            {
                open_again(&open_in(dir, name, OFlags::DIRECTORY | OFlags::PATH)?)
            }
            other => other,
        }
    }

    /// Lists a directory that was just opened.
    fn entries_in(&mut self, dir: BorrowedFd<'_>, path: &Path) -> io::Result<Vec<(OsString, FileType)>> {
        if matches!(self.purpose, Purpose::Remember(_)) && path != Path::new("") {
            // Before it is read: what is added meanwhile changes it.
            self.remember(path, fstat(dir)?);
        }
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut listing = RawDir::new(dir, &mut buffer);
        let mut entries = Vec::new();
        while let Some(entry) = listing.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            self.n_left =
                self.n_left.checked_sub(1).ok_or_else(|| io::Error::other("there are too many names"))?;
            let kind = match entry.file_type() {
                FileType::Unknown => kind_of(dir, name)?,
                known => known,
            };
            entries.push((name.to_owned(), kind));
        }
        Ok(entries)
    }
}
#[cfg(test)]
mod tests {
    use std::fs::{create_dir_all, remove_dir_all, rename, write};
    use std::os::unix::fs::symlink;

    use super::*;

    /// What may have changed something, in a repository that nobody has touched for a while.
    type Change = fn(&Path) -> io::Result<()>;

    const CHANGES: [(&str, Change, bool); 10] = [
        ("nothing", |_| Ok(()), true),
        ("a file is written", |git| write(git.join("logs/HEAD"), "more"), true),
        ("an object is made", |git| write(git.join("objects/ab/c"), ""), true),
        ("a symlink below", |git| symlink("/x", git.join("logs/refs/heads/a/b")), false),
        (
            "a symlink in the place of a directory",
            |git| {
                rename(git.join("logs/refs/heads"), git.join("logs/refs/moved"))?;
                symlink("moved", git.join("logs/refs/heads"))
            },
            false,
        ),
        (
            "packs elsewhere",
            |git| {
                remove_dir_all(git.join("objects/pack"))?;
                symlink("/x", git.join("objects/pack"))
            },
            false,
        ),
        ("a graph elsewhere", |git| symlink("/x", git.join("objects/info/commit-graph")), false),
        ("another repository", |git| write(git.join("worktrees/w/commondir"), "../../../x"), false),
        ("settings", |git| write(git.join("worktrees/w/config.worktree"), "x"), false),
        ("a worktree", |git| create_dir_all(git.join("worktrees/v")), false),
    ];

    /// Waits until what changes has another time than what has changed.
    fn await_another_time(dir: &Path) {
        let stamp = || {
            write(dir.join("time"), "").unwrap();
            Stamp::of(&statat(CWD, dir.join("time"), AtFlags::empty()).unwrap())
        };
        let before = stamp();
        while stamp() == before {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_has_not_changed_is_not_looked_through_again() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let git = |idx: usize| GitDir { path: root.join(idx.to_string()), is_bare: false };
        let begun = now();
        for idx in 0..CHANGES.len() {
            for name in
                ["logs/refs/heads/a", "objects/pack", "objects/info", "objects/ab", "refs", "worktrees/w"]
            {
                create_dir_all(git(idx).path.join(name)).unwrap();
            }
            for name in ["logs/HEAD", "worktrees/w/commondir", "worktrees/w/config.worktree"] {
                write(git(idx).path.join(name), "").unwrap();
            }
        }
        let is_current = |idx: usize, before: &Snapshot| {
            let git = open_dir(&git(idx).path).unwrap();
            ["logs", "objects", "refs", "worktrees"]
                .iter()
                .all(|it| before.is_current(git.as_fd(), it.as_ref()))
        };
        assert!(!is_current(0, &Snapshot::by(&git(0), || begun)), "another change could have the same time");
        await_another_time(&root);
        for (idx, (what, change, expected)) in CHANGES.iter().enumerate() {
            let before = Snapshot::by(&git(idx), || begun + 1000);
            assert!(is_current(idx, &before), "{what}");
            change(&git(idx).path).unwrap();
            assert_eq!(is_current(idx, &before), *expected, "{what}");
        }
    }
}
