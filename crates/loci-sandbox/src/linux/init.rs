//! The first process of a sandbox: makes its mounts and its network, starts the program, and ends everything with it.
//!
//! It waits without a timeout for three things: its child's end, a connection to the proxy's ports, which it hands to the
//! process that started the sandbox, and the end of that process. When it ends, so does every process of the namespace.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Gid, Pid, Signal, Uid, WaitOptions, set_parent_process_death_signal, setsid, wait};
use rustix::thread::UnshareFlags;

use super::handover::Receiver;
use super::helper::{FAILED, HelperLaunch, checked, code_of, leave_streams, say_failure};
use super::landlock::Rules;
use super::mounts::{self, WritableTrees};
use super::network::NewNetwork;
use super::restrict::restrict;
use super::sys;
use crate::control::{self, Message, ProxyPort};
use crate::policy::{HelperStep, Namespaces, Policy};

/// What the first process is to do.
pub(super) struct FirstProcess<'a> {
    pub(super) policy: &'a Policy,
    pub(super) launch: &'a HelperLaunch,
    pub(super) cwd: &'a Path,
    pub(super) control: &'a OwnedFd,
    /// The user and the group, as they are outside.
    pub(super) user: (Uid, Gid),
}

/// Runs the program inside; returns the exit code of the sandbox. `outside` hands over what the other process makes.
pub(super) fn run(first: &FirstProcess<'_>, rules: Option<Rules>, outside: Receiver) -> u8 {
    let FirstProcess { policy, launch, control, .. } = first;
    match prepare(first, rules, outside) {
        Ok(Some(ports)) => match start(policy, launch, control) {
            Ok(child) => supervise(child, &ports, control).unwrap_or(FAILED),
            Err(error) => say_failure(&error, control),
        },
        // Who waits outside has failed, and has said so.
        Ok(None) => FAILED,
        Err(error) => say_failure(&error, control),
    }
}

/// Makes the sandbox around this process; none where the other process has failed.
fn prepare(
    first: &FirstProcess<'_>,
    rules: Option<Rules>,
    mut outside: Receiver,
) -> io::Result<Option<Vec<(ProxyPort, TcpListener)>>> {
    let FirstProcess { policy, cwd, .. } = first;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let network = NewNetwork::begin(policy)?;
    checked(policy, HelperStep::UserMap, || map_user(first.user))?;
    sys::make_undumpable()?;
    setsid()?;
    checked(policy, HelperStep::Namespaces, enter_namespaces)?;
    let Some(steps) = outside.mounts()? else { return Ok(None) };
    let writable = checked(policy, HelperStep::ReadOnly, || match policy.files.is_some() {
        true => mounts::make_read_only(&steps),
        // Without rules for files the user's mounts stay as they are, in a namespace of their own.
        false => mounts::make_private().map(|()| WritableTrees::default()),
    })?;
    checked(policy, HelperStep::Devices, mounts::make_devices)?;
    checked(policy, HelperStep::Proc, || match policy.layers.namespaces {
        Namespaces::Full => mounts::make_proc(),
        Namespaces::OldProc | Namespaces::None => mounts::shut_proc(),
    })?;
    let ports = checked(policy, HelperStep::Network, || network.enter())?;
    let Some(ready) = outside.ready()? else { return Ok(None) };
    checked(policy, HelperStep::Paths, || mounts::apply(&steps, &ready.left_out, writable))?;
    // What was mounted lies on top of where this process stood.
    std::env::set_current_dir(cwd)
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", cwd.display())))?;
    restrict(policy, || {
        let missing = || io::Error::other("Landlock: there are no rules");
        rules.ok_or_else(missing)?.grant(ready.grants)
    })?;
    Ok(Some(ports))
}

/// Maps the user, and nobody else, to the same number.
fn map_user((user, group): (Uid, Gid)) -> io::Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
    std::fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))
}

/// Enters all namespaces but those that this process was started in, and that of the network.
fn enter_namespaces() -> io::Result<()> {
    let needed = UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    // What needs it sees cgroups as its own; without that they are read-only all the same.
    sys::unshare(needed | UnshareFlags::NEWCGROUP).or_else(|_| sys::unshare(needed))
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
