//! The first process of a sandbox: makes its mounts and its network, starts the program, and ends everything with it.
//!
//! It prepares what is the same for every program, and only then waits for the plan of its own. While that runs it waits
//! without a timeout for three things: its child's end, a connection to the proxy's ports, which it hands to the
//! process that started the sandbox, and the end of that process. When it ends, so does every process of the namespace.

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Gid, Pid, Signal, Uid, WaitOptions, set_parent_process_death_signal, setsid, wait};
use rustix::thread::UnshareFlags;

use super::handover::{OutcomeSender, Receiver};
use super::helper::{
    FAILED, ProgramSource, checked, code_of, enter, leave_streams, not_started, program, say_failure,
};
use super::landlock::{self, Rules};
use super::mounts::{self, OwnMounts, WritableTrees};
use super::network::NewNetwork;
use super::restrict::restrict;
use super::seccomp::Filter;
use super::sys;
use crate::control::{self, Message, ProxyPort};
use crate::policy::{HelperStep, Namespaces, Preparation};

/// What the first process is to do.
pub(super) struct FirstProcess<'a> {
    pub(super) asked: Preparation,
    pub(super) source: ProgramSource<'a>,
    pub(super) control: &'a OwnedFd,
    /// The user and the group, as they are outside.
    pub(super) user: (Uid, Gid),
}

/// What was made without a program.
struct Prepared {
    /// The rules of Landlock, with what every program is given.
    rules: Option<Rules>,
    mounts: OwnMounts,
    ports: Vec<(ProxyPort, TcpListener)>,
    filter: Option<Filter>,
}

/// Runs the program inside and ends with the exit code of the sandbox. `outside` hands over what the other process makes,
/// which is told whether this one could prepare.
pub(super) fn run(
    first: &FirstProcess<'_>,
    rules: Option<Rules>,
    outside: Receiver,
    tell: OutcomeSender,
) -> ! {
    let mut prepared = match prepare(first, rules) {
        Ok(prepared) => prepared,
        Err(error) => {
            tell.failed(&error);
            std::process::exit(i32::from(FAILED));
        }
    };
    tell.made();
    let code = run_prepared(first, &mut prepared, outside);
    // What is open is closed by the system, all at once.
    std::process::exit(i32::from(code))
}

/// Runs the program; returns its exit code, or that of a sandbox that could not be made.
fn run_prepared(first: &FirstProcess<'_>, prepared: &mut Prepared, outside: Receiver) -> u8 {
    match complete(first, prepared, outside) {
        Ok(Some(words)) => match start(&first.asked, &words, first.control) {
            Ok(child) => {
                let code = supervise(child, &prepared.ports, first.control).unwrap_or(FAILED);
                tell_of_leftovers(first.control);
                code
            }
            Err(error) => say_failure(&error, first.control),
        },
        // Who waits outside has failed, and has said so.
        Ok(None) => FAILED,
        Err(error) => say_failure(&error, first.control),
    }
}

/// Makes of the sandbox what needs no program. Mounts still follow those of the machine.
fn prepare(first: &FirstProcess<'_>, rules: Option<Rules>) -> io::Result<Prepared> {
    let asked = &first.asked;
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let network = NewNetwork::begin(asked.network)?;
    checked(asked.fault, HelperStep::UserMap, || map_user(first.user))?;
    sys::make_undumpable()?;
    setsid()?;
    checked(asked.fault, HelperStep::Namespaces, || {
        sys::unshare(UnshareFlags::NEWNS | UnshareFlags::NEWIPC)
    })?;
    let mut mounts = checked(asked.fault, HelperStep::Devices, mounts::make_devices)?;
    checked(asked.fault, HelperStep::Proc, || match asked.layers.namespaces {
        Namespaces::Full => mounts::make_proc(&mut mounts),
        Namespaces::OldProc | Namespaces::None => mounts::shut_proc(),
    })?;
    let ports = checked(asked.fault, HelperStep::Network, || network.enter())?;
    checked(asked.fault, HelperStep::Capabilities, sys::empty_bounding_set)?;
    let grants = landlock::own_grants(asked.has_files, true);
    let rules = rules.map(|rules| rules.grant(grants)).transpose()?;
    Ok(Prepared { rules, mounts, ports, filter: Filter::for_sandbox(asked)? })
}

/// Makes the rest of the sandbox around this process, for its program; none where the other process has failed.
fn complete(
    first: &FirstProcess<'_>,
    prepared: &mut Prepared,
    mut outside: Receiver,
) -> io::Result<Option<Vec<OsString>>> {
    let asked = &first.asked;
    let Some(steps) = outside.mounts()? else { return Ok(None) };
    name_machine()?;
    let writable = checked(asked.fault, HelperStep::ReadOnly, || match asked.has_files {
        true => mounts::make_read_only(&steps, &prepared.mounts),
        // Without rules for files the user's mounts stay as they are, in a namespace of their own.
        false => mounts::make_private().map(|()| WritableTrees::default()),
    })?;
    checked(asked.fault, HelperStep::Paths, || mounts::apply(&steps, writable))?;
    let program = first.source.program()?;
    let Some(steps) = outside.mounts()? else { return Ok(None) };
    checked(asked.fault, HelperStep::Paths, || mounts::apply(&steps, WritableTrees::default()))?;
    // What was mounted lies on top of where this process stood.
    enter(&program)?;
    let Some(grants) = outside.ready()? else { return Ok(None) };
    restrict(asked, prepared.filter.as_ref(), || {
        let missing = || io::Error::other("Landlock: there are no rules");
        prepared.rules.take().ok_or_else(missing)?.grant(grants)
    })?;
    sys::set_environment(program.env);
    Ok(Some(program.words))
}

/// Maps the user, and nobody else, to the same number.
fn map_user((user, group): (Uid, Gid)) -> io::Result<()> {
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
    std::fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))
}

/// Enters namespaces of what the machine is called and of its control groups, which are as they are at this moment.
fn name_machine() -> io::Result<()> {
    // What needs it sees control groups as its own; without that they are read-only all the same.
    sys::unshare(UnshareFlags::NEWUTS | UnshareFlags::NEWCGROUP)
        .or_else(|_| sys::unshare(UnshareFlags::NEWUTS))
}

/// Starts the program in a child that holds nothing but its standard streams.
fn start(asked: &Preparation, words: &[OsString], control: &OwnedFd) -> io::Result<Pid> {
    let child = program(asked, words, control)?.spawn().map_err(|error| not_started(words, &error))?;
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

/// Says which programs are about to end with this process: whoever started a server by `&` looks for it in vain.
fn tell_of_leftovers(control: &OwnedFd) {
    // All that is left are children of this process, or theirs.
    if wait(WaitOptions::NOHANG).is_err() {
        return;
    }
    let names = leftovers();
    if !names.is_empty() {
        let text = format!(
            "what the command had left running was ended with it ({}); a server that is to stay is a command of its own in the \
             background",
            names.join(", ")
        );
        // Whoever does not hear it has gone.
        control::send(control.as_fd(), &Message::Removed(text)).ok();
    }
}

/// Returns the names of programs that run on, some of them. Git ends its own housekeeping when it likes.
fn leftovers() -> Vec<String> {
    const MOST: usize = 3;
    let own = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    let names = own.split_whitespace().filter_map(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        let is_dead =
            std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|it| it.contains(") Z "));
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || "._+-".contains(*c);
        let name: String = name.trim().chars().filter(is_plain).collect();
        (!is_dead && !name.is_empty() && name != "git").then(|| format!("`{name}`"))
    });
    names.take(MOST).collect()
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
