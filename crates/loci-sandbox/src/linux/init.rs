//! The first process of a sandbox: makes its mounts and its network, starts the program, and ends everything with it.
//!
//! It waits without a timeout for three things: its child's end, a connection to the proxy's ports, which it hands to the
//! process that started the sandbox, and the end of that process. When it ends, so does every process of the namespace.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{Gid, Pid, Signal, Uid, WaitOptions, set_parent_process_death_signal, setsid, wait};
use rustix::thread::UnshareFlags;

use super::helper::{FAILED, HelperLaunch, checked, code_of, leave_streams, say_failure};
use super::mounts::{self, WritableTrees};
use super::restrict::{has_proxy, restrict};
use super::sys;
use crate::control::{self, Message, ProxyPort};
use crate::plan::{Plan, RealDisk};
use crate::policy::{HelperStep, Namespaces, Policy};

/// What the first process is to do.
pub(super) struct FirstProcess<'a> {
    pub(super) policy: &'a Policy,
    pub(super) plan: &'a Plan,
    pub(super) disk: &'a RealDisk,
    pub(super) launch: &'a HelperLaunch,
    pub(super) cwd: &'a Path,
    pub(super) control: &'a OwnedFd,
    /// The user and the group, as they are outside.
    pub(super) user: (Uid, Gid),
}

/// Runs the program inside; returns the exit code of the sandbox. `ready` says that placeholders are there.
pub(super) fn run(first: &FirstProcess<'_>, ready: OwnedFd) -> u8 {
    let FirstProcess { policy, launch, control, .. } = first;
    match prepare(first, ready) {
        Ok(Some(ports)) => match start(policy, launch, control) {
            Ok(child) => supervise(child, &ports, control).unwrap_or(FAILED),
            Err(error) => say_failure(&error, control),
        },
        // Who waits outside has failed, and has said so.
        Ok(None) => FAILED,
        Err(error) => say_failure(&error, control),
    }
}

/// Makes the sandbox around this process; none where there are no placeholders to be had.
fn prepare(first: &FirstProcess<'_>, ready: OwnedFd) -> io::Result<Option<Vec<(ProxyPort, TcpListener)>>> {
    let FirstProcess { policy, plan, disk, cwd, .. } = first;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    checked(policy, HelperStep::UserMap, || map_user(first.user))?;
    sys::make_undumpable()?;
    setsid()?;
    checked(policy, HelperStep::Namespaces, enter_namespaces)?;
    let writable = checked(policy, HelperStep::ReadOnly, || match policy.files.is_some() {
        true => mounts::make_read_only(&plan.mounts),
        // Without rules for files the user's mounts stay as they are, in a namespace of their own.
        false => mounts::make_private().map(|()| WritableTrees::default()),
    })?;
    checked(policy, HelperStep::Devices, mounts::make_devices)?;
    checked(policy, HelperStep::Proc, || match policy.layers.namespaces {
        Namespaces::Full => mounts::make_proc(),
        Namespaces::OldProc | Namespaces::None => mounts::shut_proc(),
    })?;
    let ports = checked(policy, HelperStep::Network, || make_network(policy))?;
    let Some(left_out) = wait_for_placeholders(ready)? else { return Ok(None) };
    checked(policy, HelperStep::Paths, || mounts::apply(&plan.mounts, &left_out, writable))?;
    // What was mounted lies on top of where this process stood.
    std::env::set_current_dir(cwd)
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", cwd.display())))?;
    restrict(policy, *disk)?;
    Ok(Some(ports))
}

/// Maps the user, and nobody else, to the same number.
fn map_user((user, group): (Uid, Gid)) -> io::Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
    std::fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))
}

/// Enters all namespaces but those that this process was started in.
fn enter_namespaces() -> io::Result<()> {
    let needed = UnshareFlags::NEWNS | UnshareFlags::NEWNET | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    // What needs it sees cgroups as its own; without that they are read-only all the same.
    sys::unshare(needed | UnshareFlags::NEWCGROUP).or_else(|_| sys::unshare(needed))
}

/// Waits until placeholders are there; returns where none could be made, or nothing where the other process has failed.
fn wait_for_placeholders(ready: OwnedFd) -> io::Result<Option<Vec<PathBuf>>> {
    let mut message = Vec::new();
    File::from(ready).read_to_end(&mut message)?;
    let Some((b'+', paths)) = message.split_last() else { return Ok(None) };
    let paths = paths.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(Some(paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect()))
}

/// Brings the loopback up and opens the proxy's ports, where there is one.
fn make_network(policy: &Policy) -> io::Result<Vec<(ProxyPort, TcpListener)>> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sys::bring_loopback_up(socket.as_fd())?;
    let wanted = [ProxyPort::Http, ProxyPort::Socks].into_iter().filter(|_| has_proxy(policy));
    wanted.map(|port| Ok((port, TcpListener::bind((Ipv4Addr::LOCALHOST, port.number()))?))).collect()
}

/// Starts the program in a child that holds nothing but its standard streams.
fn start(policy: &Policy, launch: &HelperLaunch, control: &OwnedFd) -> io::Result<Pid> {
    let child = launch.program(policy, control)?.spawn().map_err(|error| launch.not_started(&error))?;
    leave_streams()?;
    Ok(child)
}

/// Waits for the program's end, and serves the proxy's ports meanwhile.
fn supervise(child: Pid, ports: &[(ProxyPort, TcpListener)], control: &OwnedFd) -> io::Result<u8> {
    let signals = sys::child_signals()?;
    loop {
        if let Some(code) = reap(child)? {
            return Ok(code);
        }
        let ready = {
            let mut fds = vec![PollFd::new(&signals, PollFlags::IN), PollFd::new(control, PollFlags::IN)];
            fds.extend(ports.iter().map(|(_, port)| PollFd::new(port, PollFlags::IN)));
            match poll(&mut fds, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(other) => return Err(other.into()),
            }
            fds.iter().map(PollFd::revents).collect::<Vec<_>>()
        };
        let is_ready = |idx: usize| ready.get(idx).is_some_and(|events| !events.is_empty());
        if is_ready(0) {
            // What is told is looked up at the top.
            rustix::io::read(&signals, &mut [0; 1024]).ok();
        }
        if is_ready(1) {
            // Nothing is ever sent here: whoever started the sandbox has gone.
            return Ok(FAILED);
        }
        for (idx, (kind, port)) in ports.iter().enumerate() {
            if is_ready(idx + 2) {
                let (connection, _) = port.accept()?;
                control::send(control.as_fd(), &Message::Connection(*kind, connection.into()))?;
            }
        }
    }
}

/// Collects children that have ended; returns the code of the program once it has.
fn reap(child: Pid) -> io::Result<Option<u8>> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == child => return Ok(Some(code_of(status))),
            Ok(Some(_)) => {}
            Ok(None) => return Ok(None),
            Err(rustix::io::Errno::INTR) => {}
            Err(other) => return Err(other.into()),
        }
    }
}
