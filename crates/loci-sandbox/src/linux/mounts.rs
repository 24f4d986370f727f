//! The mounts of a command: the machine read-only, a small `/dev`, a `/proc` of its own, and the steps of a plan.
//!
//! Every path is opened without following a symlink, and mounted on by its descriptor: one that has become a symlink since
//! the plan was made is an error, never a way out (SB-2).

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, chmodat, fstat, mkdirat, mknodat, openat2, statat,
    symlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount_change, move_mount, open_tree,
};
use rustix::path::Arg;

use super::restrict::MOST_PROCESSES;
use super::sys::set_mount;
use crate::plan::MountStep;

/// Devices that a command has.
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];

/// What of `/proc` may be read and not written, for a user that owns it.
const PROC_SHUT: &[&str] = &["sys", "sysrq-trigger", "irq", "bus", "fs"];

/// What of `/proc` says something about the machine that no command needs.
const PROC_HIDDEN: &[&str] =
    &["kcore", "keys", "key-users", "timer_list", "acpi", "scsi", "kmsg", "sched_debug"];

/// What lies in `/dev` to cover what is hidden.
const COVER_FILE: &str = ".hidden-file";
const COVER_DIR: &str = ".hidden-dir";
const COVER_SOCKET: &str = ".blocked";

/// How large `/dev`, of which only `/dev/shm` can be written, may get: it is memory.
const DEV_BYTES: &str = "1073741824";

/// Keeps the mounts of the namespace to itself.
pub(super) fn make_private() -> io::Result<()> {
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// What is to be writable, taken before everything became read-only: as writable as it was for the user, and so are the
/// mounts below it.
#[derive(Debug, Default)]
pub(super) struct WritableTrees(Vec<(PathBuf, OwnedFd)>);

/// Mounts of the sandbox's own that programs write to.
#[derive(Debug, Default)]
pub(super) struct OwnMounts(Vec<OwnedFd>);

/// Makes all mounts private and, but for the sandbox's own, read-only; returns what the steps of a plan open again.
pub(super) fn make_read_only(steps: &[MountStep], own: &OwnMounts) -> io::Result<WritableTrees> {
    make_private()?;
    let opened = steps.iter().filter_map(|step| match step {
        MountStep::Open(path) => Some(path),
        _ => None,
    });
    let trees = opened.map(|path| {
        let tree = open_no_link(path).and_then(|place| clone_tree(&place, true));
        let tree = tree.and_then(|tree| {
            set_mount(tree.as_fd(), libc::MOUNT_ATTR_NOSUID, 0, true)?;
            Ok((path.clone(), tree))
        });
        tree.map_err(|error| named(path, &error))
    });
    let trees = WritableTrees(trees.collect::<io::Result<_>>()?);
    let root = open_path(Path::new("/"))?;
    set_mount(root.as_fd(), libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID, 0, true)?;
    own.0.iter().try_for_each(|mount| set_mount(mount.as_fd(), 0, libc::MOUNT_ATTR_RDONLY, false))?;
    Ok(trees)
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

/// Makes a `/dev` of the few devices that programs need.
///
/// `/dev/shm` is a directory of the same filesystem, mounted on itself before all else becomes read-only.
pub(super) fn make_devices() -> io::Result<OwnMounts> {
    let devices: Vec<(&str, OwnedFd)> = DEVICES
        .iter()
        .filter_map(|name| {
            Some((*name, clone_tree(&open_path(&Path::new("/dev").join(name)).ok()?, false).ok()?))
        })
        .collect();
    let dev = new_filesystem("tmpfs", &[("mode", "0755"), ("size", DEV_BYTES)])?;
    attach(&dev, &open_path(Path::new("/dev"))?)?;
    for (name, device) in devices {
        mknodat(&dev, name, FileType::RegularFile, Mode::from_raw_mode(0o644), 0)?;
        attach_at(&device, &dev, name)?;
    }
    for dir in ["shm", "pts", COVER_DIR] {
        mkdirat(&dev, dir, Mode::from_raw_mode(0o755))?;
    }
    mknodat(&dev, COVER_FILE, FileType::RegularFile, Mode::empty(), 0)?;
    mknodat(&dev, COVER_SOCKET, FileType::Socket, Mode::empty(), 0)?;
    for (name, mode) in [(COVER_DIR, 0o0), ("shm", 0o1777)] {
        chmodat(&dev, name, Mode::from_raw_mode(mode), AtFlags::empty())?;
    }
    let pts = new_filesystem("devpts", &[("ptmxmode", "0666"), ("mode", "0620")])?;
    attach_at(&pts, &dev, "pts")?;
    for (link, target) in [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlinkat(target, &dev, link)?;
    }
    let shm = open_tree(&dev, "shm", OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    attach_at(&shm, &dev, "shm")?;
    set_mount(dev.as_fd(), libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID, 0, false)?;
    Ok(OwnMounts(vec![pts, shm]))
}

/// Makes a `/proc` of the namespace's own processes.
pub(super) fn make_proc(own: &mut OwnMounts) -> io::Result<()> {
    let proc = new_filesystem("proc", &[])?;
    attach(&proc, &open_path(Path::new("/proc"))?)?;
    own.0.push(proc);
    limit_processes();
    shut_proc()
}

/// Bounds the processes of this namespace, for root too, whom the limit of a user's processes does not bind.
///
/// Only where the kernel has a bound for each namespace (6.14): before that the machine's own would be changed.
fn limit_processes() {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if has_pid_bounds(&release) {
        // What remains is the limit of the user's processes.
        fs::write("/proc/sys/kernel/pid_max", MOST_PROCESSES.to_string()).ok();
    }
}

fn has_pid_bounds(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map_while(|it| it.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 14)
}

/// Shuts what of `/proc` belongs to the machine. None of these names is a symlink in any `/proc`.
pub(super) fn shut_proc() -> io::Result<()> {
    let proc = open_path(Path::new("/proc"))?;
    for name in PROC_SHUT {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        match open_tree(
            &proc,
            *name,
            flags | OpenTreeFlags::AT_RECURSIVE | OpenTreeFlags::AT_SYMLINK_NOFOLLOW,
        ) {
            Err(Errno::NOENT) => {}
            tree => {
                let tree = tree?;
                set_mount(tree.as_fd(), libc::MOUNT_ATTR_RDONLY, 0, true)?;
                attach_at(&tree, &proc, *name)?;
            }
        }
    }
    for name in PROC_HIDDEN {
        match statat(&proc, *name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            found => attach_at(&cover_of(FileType::from_raw_mode(found?.st_mode))?, &proc, *name)?,
        }
    }
    Ok(())
}

/// Carries out steps of a plan.
pub(super) fn apply(steps: &[MountStep], mut writable: WritableTrees) -> io::Result<()> {
    let mut blocked = BlockedNames::default();
    for step in steps {
        let done = match step {
            MountStep::Reduce(dir, kept) => reduce(dir, kept),
            MountStep::HideDir(path) | MountStep::HideFile(path) => hide(path),
            MountStep::Open(path) => open(path, &mut writable),
            MountStep::Pin(path) => pin(path),
            MountStep::Shut(path) => shut(path),
            MountStep::Block(path) => blocked.block(path),
            MountStep::Stage { from, at } => stage(from, at),
        };
        done.map_err(|error| named(step.path(), &error))?;
    }
    Ok(())
}

/// Mounts what was taken of a path on it.
fn open(path: &Path, writable: &mut WritableTrees) -> io::Result<()> {
    let idx = writable.0.iter().position(|(of, _)| of == path).ok_or(io::ErrorKind::NotFound)?;
    attach(&writable.0.swap_remove(idx).1, &open_no_link(path)?)
}

/// Mounts a directory on another.
fn stage(from: &Path, at: &Path) -> io::Result<()> {
    attach(&clone_tree(&open_no_link(from)?, false)?, &open_no_link(at)?)
}

fn pin(path: &Path) -> io::Result<()> {
    let place = open_path(path)?;
    attach(&clone_tree(&place, true)?, &place)
}

/// Covers placeholders, many of which lie in one directory.
#[derive(Default)]
struct BlockedNames {
    cover: Option<OwnedFd>,
    dir: Option<(PathBuf, OwnedFd)>,
}

impl BlockedNames {
    fn block(&mut self, path: &Path) -> io::Result<()> {
        let (parent, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
        if self.cover.is_none() {
            self.cover = Some(open_path(&Path::new("/dev").join(COVER_SOCKET))?);
        }
        if self.dir.as_ref().is_none_or(|(dir, _)| dir != parent) {
            self.dir = Some((parent.to_owned(), open_path(parent)?));
        }
        let (Some(cover), Some((_, dir))) = (&self.cover, &self.dir) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => Err(io::Error::other("it has become a symlink")),
            // A disk without sockets.
            FileType::Directory => shut(path),
            _ => attach_at(&clone_tree(cover, false)?, dir, name),
        }
    }
}

fn shut(path: &Path) -> io::Result<()> {
    let place = open_no_link(path)?;
    let tree = clone_tree(&place, true)?;
    set_mount(tree.as_fd(), libc::MOUNT_ATTR_RDONLY, 0, true)?;
    attach(&tree, &place)
}

fn hide(path: &Path) -> io::Result<()> {
    let place = open_path(path)?;
    match FileType::from_raw_mode(fstat(&place)?.st_mode) {
        FileType::Symlink => Err(io::Error::other("it has become a symlink")),
        kind => attach(&cover_of(kind)?, &place),
    }
}

/// Takes what covers a directory or a file: empty, not to be opened, and as read-only as `/dev`, which it lies in.
fn cover_of(kind: FileType) -> io::Result<OwnedFd> {
    let name = if kind == FileType::Directory { COVER_DIR } else { COVER_FILE };
    clone_tree(&open_path(&Path::new("/dev").join(name))?, false)
}

/// Covers a directory with an empty one, in which some of its contents are shown.
fn reduce(dir: &Path, kept: &[PathBuf]) -> io::Result<()> {
    let trees: Vec<(&PathBuf, OwnedFd, bool)> = kept
        .iter()
        .map(|path| {
            let place = open_no_link(path)?;
            let is_dir = FileType::from_raw_mode(fstat(&place)?.st_mode) == FileType::Directory;
            Ok((path, clone_tree(&place, true)?, is_dir))
        })
        .collect::<io::Result<_>>()?;
    let cover = new_filesystem("tmpfs", &[("mode", "0755"), ("size", "65536")])?;
    attach(&cover, &open_no_link(dir)?)?;
    for (path, tree, is_dir) in trees {
        let parent = if is_dir { Some(path.as_path()) } else { path.parent() };
        parent.map_or(Ok(()), fs::create_dir_all)?;
        if !is_dir {
            fs::write(path, "")?;
        }
        attach(&tree, &open_no_link(path)?)?;
    }
    set_mount(open_path(dir)?.as_fd(), libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID, 0, false)
}

/// Opens a path for mounting; no part of it may be a symlink but the last.
pub(super) fn open_path(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

/// Opens a path that is no symlink either.
fn open_no_link(path: &Path) -> io::Result<OwnedFd> {
    let fd = open_path(path)?;
    match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
        FileType::Symlink => Err(io::Error::other("it has become a symlink")),
        _ => Ok(fd),
    }
}

fn clone_tree(fd: &OwnedFd, is_recursive: bool) -> io::Result<OwnedFd> {
    let mut flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    if is_recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    Ok(open_tree(fd, "", flags)?)
}

fn attach(tree: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(move_mount(tree, "", place, "", flags)?)
}

/// Mounts on a name in a directory, and on nothing that it may lead to.
fn attach_at(tree: &OwnedFd, dir: &OwnedFd, name: impl Arg) -> io::Result<()> {
    Ok(move_mount(tree, "", dir, name, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// Makes a filesystem that is mounted nowhere yet.
fn new_filesystem(kind: &str, options: &[(&str, &str)]) -> io::Result<OwnedFd> {
    let named = |error: rustix::io::Errno| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("a new {kind}: {error}"))
    };
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).map_err(named)?;
    for (key, value) in options {
        fsconfig_set_string(context.as_fd(), *key, *value).map_err(named)?;
    }
    fsconfig_create(context.as_fd()).map_err(named)?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    if kind == "proc" {
        attributes |= MountAttrFlags::MOUNT_ATTR_NOEXEC;
    }
    if kind == "devpts" {
        attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    }
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_a_namespace_are_told_by_the_kernel_s_release() {
        for (release, expected) in [
            ("6.18.44-fc-v490\n", true),
            ("6.14.0", true),
            ("7.0-rc1", true),
            ("6.13.9", false),
            ("5.15.167.4-microsoft-standard-WSL2", false),
            ("", false),
        ] {
            assert_eq!(has_pid_bounds(release), expected, "{release}");
        }
    }
}
