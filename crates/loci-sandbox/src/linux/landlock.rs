//! The file rules once more, as Landlock has them: what may be read and written is named, all else is refused.
//!
//! Landlock cannot take away below what it gave. What may not be read is therefore left out by naming everything beside
//! it; what is shut inside a root stays writable here, and only mounts keep it shut.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use crate::plan::{Disk, PathKind, resolve};
use crate::policy::{FileRules, is_public};

/// What write rights need: without them nothing runs.
const REQUIRED: ABI = ABI::V3;
/// What is used where the kernel has it.
const WANTED: ABI = ABI::V7;

/// Devices that every command may write.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

/// Rules that are being made. They belong to the kernel: two processes that hold them add to the same.
#[derive(Debug)]
pub(super) struct Rules(RulesetCreated);

impl Rules {
    /// Begins rules, which give nothing yet.
    pub(super) fn new(has_files: bool, has_mounts: bool) -> io::Result<Self> {
        let mut ruleset = Ruleset::default();
        if has_files {
            ruleset = ruleset
                .set_compatibility(CompatLevel::HardRequirement)
                .handle_access(AccessFs::from_all(REQUIRED))
                .map_err(|error| failed(&error))?
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(AccessFs::from_all(WANTED))
                .map_err(|error| failed(&error))?;
        }
        ruleset = ruleset
            .set_compatibility(CompatLevel::BestEffort)
            .scope(Scope::from_all(WANTED))
            .map_err(|error| failed(&error))?;
        if !has_mounts {
            // Without a network of its own: none of the machine's either.
            ruleset = ruleset.handle_access(AccessNet::from_all(WANTED)).map_err(|error| failed(&error))?;
        }
        ruleset.create().map(Self).map_err(|error| failed(&error))
    }

    /// Adds what is given below paths.
    pub(super) fn grant(mut self, grants: Vec<(PathBuf, Grant)>) -> io::Result<Self> {
        for (path, access) in grants {
            self.0 = add(self.0, &path, access.rights()).map_err(|error| failed(&error))?;
        }
        Ok(self)
    }

    /// Restricts this process and all that it starts.
    pub(super) fn enforce(self) -> io::Result<()> {
        let status = self.0.restrict_self().map_err(|error| failed(&error))?;
        match status.ruleset {
            RulesetStatus::NotEnforced => Err(io::Error::other("Landlock: this kernel does not enforce it")),
            RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
        }
    }
}

fn failed(error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("Landlock: {error}"))
}

/// Tells whether a path lies in what is mounted anew for each command: rules are about what lies there, not about names, so
/// that they can be added only where it is seen.
pub(super) fn is_made_inside(path: &Path) -> bool {
    ["/dev", "/proc"].iter().any(|dir| path.starts_with(dir))
}

fn add(
    created: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    // What has gone meanwhile, or cannot be opened, is not given.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(fd) = openat(CWD, path, flags, Mode::empty()) else { return Ok(created) };
    let is_dir = fstat(&fd).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory);
    let access = if is_dir { access } else { access & AccessFs::from_file(WANTED) };
    created.add_rule(PathBeneath::new(fd, access).set_compatibility(CompatLevel::BestEffort))
}

/// What is given below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grant {
    /// Names of a directory.
    List,
    /// Reading and starting programs.
    Read,
    /// Reading and writing a device.
    Device,
    /// Everything.
    Write,
}

impl Grant {
    fn rights(self) -> BitFlags<AccessFs> {
        match self {
            Self::List => AccessFs::ReadDir.into(),
            Self::Read => AccessFs::from_read(WANTED),
            Self::Device => {
                AccessFs::from_read(WANTED) | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev
            }
            Self::Write => AccessFs::from_all(WANTED),
        }
    }
}

/// Returns what every program is given of devices and, where they are its own, of shared memory and processes.
pub(super) fn own_grants(has_files: bool, has_mounts: bool) -> Vec<(PathBuf, Grant)> {
    if !has_files {
        return Vec::new();
    }
    let mut grants: Vec<(PathBuf, Grant)> =
        DEVICES.iter().map(|path| (PathBuf::from(path), Grant::Device)).collect();
    if has_mounts {
        grants.push((PathBuf::from("/dev/shm"), Grant::Write));
        grants.push((PathBuf::from("/proc"), Grant::Device));
    }
    grants
}

/// Returns what rules give, path by path.
pub(super) fn grants(files: &FileRules, disk: &dyn Disk) -> Vec<(PathBuf, Grant)> {
    let mut grants = vec![(PathBuf::from("/"), Grant::List)];
    // A symlink is given by the name of what it leads to.
    let resolved = |paths: &[PathBuf]| -> Vec<PathBuf> {
        let both = paths.iter().flat_map(|path| [Some(path.clone()), resolve(disk, path).map(|it| it.0)]);
        both.flatten().filter(|it| disk.kind(it) != PathKind::Missing).collect()
    };
    let (all, mixed) = (resolved(&files.unreadable), resolved(&files.mixed));
    let hidden = HiddenPaths {
        on_the_way: all.iter().flat_map(|path| path.ancestors()).collect(),
        all: all.iter().map(PathBuf::as_path).collect(),
        mixed: mixed.iter().map(PathBuf::as_path).collect(),
    };
    readable_below(Path::new("/"), &hidden, disk, &mut grants);
    grants.extend(files.readable.iter().cloned().map(|path| (path, Grant::Read)));
    grants.extend(files.roots.iter().cloned().map(|path| (path, Grant::Write)));
    grants
}

/// What may not be read, and of which of it only what is private. There may be thousands, so that each path is looked up.
struct HiddenPaths<'a> {
    all: HashSet<&'a Path>,
    mixed: HashSet<&'a Path>,
    /// All of it, and every directory that some of it lies in.
    on_the_way: HashSet<&'a Path>,
}

/// Gives reading of a directory as a whole, or of everything in it but what is hidden.
fn readable_below(dir: &Path, hidden: &HiddenPaths<'_>, disk: &dyn Disk, grants: &mut Vec<(PathBuf, Grant)>) {
    if !hidden.on_the_way.contains(dir) {
        return grants.push((dir.to_owned(), Grant::Read));
    }
    if hidden.all.contains(dir) {
        if hidden.mixed.contains(dir) {
            let public = disk.names(dir).into_iter().filter(|name| name.to_str().is_some_and(is_public));
            grants.extend(public.map(|name| (dir.join(name), Grant::Read)));
        }
        return;
    }
    let mut names = disk.names(dir);
    names.sort();
    for name in names {
        let path = dir.join(&name);
        match hidden.on_the_way.contains(path.as_path()) {
            // A symlink, once opened, gives nothing: what it leads to is given, or not, by its own name.
            false => grants.push((path, Grant::Read)),
            true if disk.kind(&path) == PathKind::Dir => readable_below(&path, hidden, disk, grants),
            true => {}
        }
    }
}
