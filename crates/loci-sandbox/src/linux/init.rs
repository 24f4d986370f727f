//! The first process of a sandbox: makes its mounts and its network, starts the program, and ends everything with it.
//!
//! It waits without a timeout for three things: its child's end, a connection to the proxy's ports, which it hands to the
//! process that started the sandbox, and the end of that process. When it ends, so does every process of the namespace.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, setsid, wait};
use rustix::thread::UnshareFlags;

use super::helper::{FAILED, HelperLaunch, checked, code_of, say_failure};
use super::mounts::{self, MountTable};
use super::restrict::{has_proxy, restrict};
use super::sys::{self, Forked};
use crate::control::{self, Message, ProxyPort};
use crate::plan::Plan;
use crate::policy::{HelperStep, Namespaces, Policy};

/// Runs the program inside; returns the exit code of the sandbox.
pub(super) fn run(policy: &Policy, plan: &Plan, launch: &HelperLaunch, cwd: &Path, control: &OwnedFd) -> u8 {
    match prepare(policy, plan, cwd)
        .and_then(|ports| start(policy, launch, control).map(|child| (ports, child)))
    {
        Ok((ports, child)) => supervise(child, &ports, control).unwrap_or(FAILED),
        Err(error) => say_failure(&error, control),
    }
}

fn prepare(policy: &Policy, plan: &Plan, cwd: &Path) -> io::Result<Vec<(ProxyPort, TcpListener)>> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    sys::make_undumpable()?;
    setsid()?;
    let before = checked(policy, HelperStep::ReadOnly, || {
        sys::unshare(UnshareFlags::NEWNS)?;
        // Without rules for files the user's mounts stay as they are, in a namespace of their own.
        if policy.files.is_some() {
            mounts::make_read_only()
        } else {
            mounts::make_private().map(|()| MountTable::default())
        }
    })?;
    checked(policy, HelperStep::Devices, mounts::make_devices)?;
    checked(policy, HelperStep::Proc, || match policy.layers.namespaces {
        Namespaces::Full => mounts::make_proc(),
        Namespaces::OldProc | Namespaces::None => mounts::shut_proc(),
    })?;
    checked(policy, HelperStep::Paths, || mounts::apply(&plan.mounts, &before))?;
    // What was mounted lies on top of where this process stood.
    std::env::set_current_dir(cwd)
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", cwd.display())))?;
    let ports = checked(policy, HelperStep::Network, || make_network(policy))?;
    restrict(policy)?;
    Ok(ports)
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
    match sys::fork()? {
        Forked::Parent(child) => {
            super::helper::leave_streams()?;
            Ok(child)
        }
        Forked::Child => {
            let error = launch.exec(policy, control);
            std::process::exit(i32::from(say_failure(&error, control)));
        }
    }
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
