//! Where a command makes a repository at the top of a root that has none: beside, so that nobody outside uses it before it
//! has been looked at.
//!
//! While the command runs, its `.git` is a directory inside the placeholder of that name (`.git/sandbox-0`), which is mounted
//! over it. From outside there is a `.git` without anything that makes a repository of it, so that whatever git is run
//! there runs nothing of the command's. When every process of the sandbox has ended, what is data is moved into the
//! `.git` outside, `HEAD` last; the configuration is written anew ([`crate::repository_check`]); what else there is goes to
//! `.git/sandbox-set-aside`, where git does not look. The placeholder itself is never replaced: other sandboxes have mounts on it.
//!
//! Each command has a directory of its own, which it holds by a lock. What is no repository yet when its command ends stays for
//! the next one, and so does what a killed helper has left.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, mkdirat, openat, statat,
    unlinkat,
};
use rustix::io::Errno;

use super::aside::{SET_ASIDE, SetAside, listed, open_in, rename, shown};
use super::placeholders::{lock, open_dir};
use crate::plan::is_placeholder_mode;
use crate::repository_check::{EntryFate, HarmlessConfig, MINIMAL_CONFIG, is_head};

/// How directories of commands are called, with a number behind it.
const PREFIX: &str = "sandbox-";
/// How many commands may run beside each other.
const MOST_BESIDE: usize = 256;
/// How deep data lies at most: git has no name that is longer than a path.
const DEEPEST: usize = 64;
/// The longest configuration, and the longest `HEAD`, that is looked at.
const LONGEST_FILE: u64 = 1 << 20;

/// A directory that is a command's `.git` while it runs.
#[derive(Debug)]
pub(super) struct StagedRepository {
    path: PathBuf,
    /// The `.git` outside.
    git: OwnedFd,
    /// What the command sees in its place; locked.
    dir: OwnedFd,
    name: String,
}

impl StagedRepository {
    /// Makes one in a placeholder, or takes one that nobody uses; none where something else has the placeholder's name by now.
    pub(super) fn new(path: &Path) -> io::Result<Option<Self>> {
        let git = match open_dir(path) {
            Ok(git) => git,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = fstat(&git)?;
        if !is_placeholder_mode(found.st_mode, false) {
            return Ok(None);
        }
        for number in 0..MOST_BESIDE {
            let name = format!("{PREFIX}{number}");
            match mkdirat(&git, &name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                // An earlier release made placeholders that nobody may write into.
                Err(Errno::ACCESS | Errno::PERM) => return Ok(None),
                Err(other) => return Err(other.into()),
            }
            let dir = open_in(git.as_fd(), name.as_ref(), OFlags::DIRECTORY)?;
            match flock(&dir, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => continue,
                other => other?,
            }
            // Whoever had it may have removed it meanwhile.
            let is_same = statat(&git, &name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|it| {
                fstat(&dir).is_ok_and(|dir| (it.st_dev, it.st_ino) == (dir.st_dev, dir.st_ino))
            });
            if is_same {
                return Ok(Some(Self { path: path.to_owned(), git, dir, name }));
            }
        }
        Err(io::Error::other(format!("`{}`: too many commands run beside each other", path.display())))
    }

    /// Returns the path of the directory, and that of the `.git` it is mounted on.
    pub(super) fn mount(&self) -> (PathBuf, PathBuf) {
        (self.path.join(&self.name), self.path.clone())
    }

    /// Makes of what the command has left the repository outside, once nothing of the command is left; returns what is to be
    /// said.
    pub(super) fn publish(self) -> Option<String> {
        let shown = self.path.display();
        match self.publish_harmless() {
            Ok(Outcome::Nothing) => None,
            Ok(Outcome::Published(left_out)) if left_out.is_empty() => None,
            Ok(Outcome::Published(left_out)) => Some(format!(
                "the repository that the command made in `{shown}` is used without {}, which git would run, or be led elsewhere \
                 by, outside the sandbox; as the command left it, it lies in `{SET_ASIDE}` there",
                listed(&left_out)
            )),
            Ok(Outcome::Occupied) => Some(format!(
                "the command made a repository in `{shown}`, where there is another by now; what it made lies in `{}` there",
                self.name
            )),
            Err(error) => Some(format!(
                "the repository that the command made in `{shown}` is not used outside the sandbox, and lies in `{}` there: {error}",
                self.name
            )),
        }
    }

    fn publish_harmless(&self) -> io::Result<Outcome> {
        let names = names_in(self.dir.as_fd())?;
        if names.is_empty() {
            unlinkat(&self.git, &self.name, AtFlags::REMOVEDIR)?;
            return Ok(Outcome::Nothing);
        }
        if !is_repository(self.dir.as_fd()) {
            return Ok(Outcome::Nothing);
        }
        let is_occupied =
            || names_in(self.git.as_fd()).map(|names| names.iter().any(|name| !is_staging(name)));
        // Two commands may end at once; who has a repository to hold is not waited for.
        if is_occupied()?
            || lock(&self.git, FlockOperation::NonBlockingLockExclusive).and_then(|()| is_occupied())?
        {
            // Without this it is no repository to anybody who goes there.
            rename(self.dir.as_fd(), "HEAD", self.dir.as_fd(), "HEAD.set-aside")?;
            return Ok(Outcome::Occupied);
        }
        let mut harmless = HarmlessParts {
            git: self.git.as_fd(),
            dir: self.dir.as_fd(),
            aside: SetAside::new(self.git.as_fd()),
        };
        names.iter().try_for_each(|name| harmless.take(name))?;
        if !names.iter().any(|name| name == "config") {
            harmless.write_config(MINIMAL_CONFIG)?;
        }
        let mode = Mode::from_raw_mode(fstat(&self.dir)?.st_mode & 0o777 | 0o700);
        rename(self.dir.as_fd(), "HEAD", self.git.as_fd(), "HEAD")?;
        fchmod(&self.git, mode)?;
        unlinkat(&self.git, &self.name, AtFlags::REMOVEDIR)?;
        Ok(Outcome::Published(harmless.aside.told))
    }
}

/// What became of what a command has left.
enum Outcome {
    /// It has made no repository.
    Nothing,
    /// It is the repository outside, without these.
    Published(Vec<String>),
    /// There is another.
    Occupied,
}

/// Tells whether a name in a `.git` is that of a directory of commands.
pub(super) fn is_staging(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
    number.is_some_and(|number| number.bytes().all(|it| it.is_ascii_digit()))
}

/// Tells whether git would take a directory for a repository, or nearly.
fn is_repository(dir: BorrowedFd<'_>) -> bool {
    let kind = |name: &str| {
        statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok().map(|it| FileType::from_raw_mode(it.st_mode))
    };
    let has_head = || read_file(dir, "HEAD".as_ref()).is_ok_and(|text| is_head(&text));
    ["objects", "refs"].iter().all(|name| kind(name) == Some(FileType::Directory)) && has_head()
}

/// The parts of a repository that are moved to where it is used.
struct HarmlessParts<'a> {
    git: BorrowedFd<'a>,
    dir: BorrowedFd<'a>,
    aside: SetAside<'a>,
}

impl HarmlessParts<'_> {
    /// Moves an entry at the top to where it is used, or sets it aside; `HEAD` is left.
    fn take(&mut self, name: &OsStr) -> io::Result<()> {
        let fate = name.to_str().map_or(EntryFate::SetAside, EntryFate::of);
        let kind = kind_of(self.dir, name)?;
        match (fate, kind) {
            (EntryFate::Head, _) => return Ok(()),
            (EntryFate::Config, FileType::RegularFile) => return self.take_config(name),
            (EntryFate::File, FileType::RegularFile) => {}
            (EntryFate::Tree, FileType::Directory) => {
                let tree = open_in(self.dir, name, OFlags::DIRECTORY)?;
                self.check_tree(tree.as_fd(), Path::new(name), DEEPEST)?;
            }
            (EntryFate::Hooks, FileType::Directory) => {
                let hooks = open_in(self.dir, name, OFlags::DIRECTORY)?;
                for hook in names_in(hooks.as_fd())? {
                    let is_sample = hook.to_str().is_some_and(EntryFate::is_sample);
                    if !is_sample || kind_of(hooks.as_fd(), &hook)? != FileType::RegularFile {
                        self.aside.take(hooks.as_fd(), &hook, &Path::new(name).join(&hook))?;
                    }
                }
            }
            _ => return self.aside.take(self.dir, name, Path::new(name)),
        }
        rename(self.dir, name, self.git, name)
    }

    /// Sets aside what in a tree of data is neither a file nor a directory, or leads elsewhere.
    fn check_tree(&mut self, dir: BorrowedFd<'_>, path: &Path, depth: usize) -> io::Result<()> {
        for name in names_in(dir)? {
            let path = path.join(&name);
            let leads_elsewhere = path.to_str().is_some_and(EntryFate::leads_elsewhere);
            match kind_of(dir, &name)? {
                FileType::RegularFile if !leads_elsewhere => {}
                FileType::Directory if !leads_elsewhere && depth > 0 => {
                    self.check_tree(open_in(dir, &name, OFlags::DIRECTORY)?.as_fd(), &path, depth - 1)?;
                }
                _ => self.aside.take(dir, &name, &path)?,
            }
        }
        Ok(())
    }

    fn take_config(&mut self, name: &OsStr) -> io::Result<()> {
        let Ok(text) = read_file(self.dir, name) else {
            self.aside.take(self.dir, name, Path::new(name))?;
            return self.write_config(MINIMAL_CONFIG);
        };
        let config = HarmlessConfig::new(&text);
        self.write_config(&config.text)?;
        if config.left_out.is_empty() {
            return Ok(unlinkat(self.dir, name, AtFlags::empty())?);
        }
        self.aside.take_untold(self.dir, name, Path::new(name))?;
        self.aside.told.extend(config.left_out.iter().map(|it| shown(it)));
        Ok(())
    }

    fn write_config(&self, text: &str) -> io::Result<()> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(self.git, "config", flags, Mode::from_raw_mode(0o644))?);
        file.write_all(text.as_bytes())
    }
}

pub(super) fn kind_of(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode))
}

pub(super) fn read_file(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<String> {
    let file = open_in(dir, name, OFlags::empty())?;
    if FileType::from_raw_mode(fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = String::new();
    match File::from(file).take(LONGEST_FILE + 1).read_to_string(&mut text)? as u64 {
        n if n > LONGEST_FILE => Err(io::ErrorKind::FileTooLarge.into()),
        _ => Ok(text),
    }
}

/// Returns the names in a directory.
pub(super) fn names_in(dir: BorrowedFd<'_>) -> io::Result<Vec<OsString>> {
    let names =
        Dir::read_from(dir)?.map(|entry| Ok(OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned()));
    let names = names.collect::<io::Result<Vec<_>>>()?;
    Ok(names.into_iter().filter(|name| name != "." && name != "..").collect())
}
