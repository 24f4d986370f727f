//! The process outside the namespaces: has a sandbox prepared, waits for its program, makes what lies outside the mounts, waits
//! for the end and cleans up.
//!
//! It works beside the first process inside ([`super::init`]), which needs no path for most of what it makes: while that one
//! enters namespaces and mounts what is always there, this one waits for a program, or has it already, looks at the disk, makes
//! the plan and the placeholders, and adds to the rules of Landlock what they give of the machine's files. What is prepared ahead
//! holds for one state of the machine's mounts: when they change it is thrown away, so that what somebody unmounts is not
//! kept in use, and made anew for its program. Placeholders are removed when the namespaces are gone: to remove what something
//! is mounted on, the kernel waits each time.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::git_links::LeadsBefore;
use super::handover::{self, OutcomeReceiver, Sender};
use super::helper::{ProgramSource, checked, code_of, leave_streams};
use super::init::{self, FirstProcess};
use super::landlock::{self, Grant, Rules};
use super::placeholders::{self, Made};
use super::staging::StagedRepository;
use super::submodules::SubmodulesBefore;
use super::sys::{self, Forked};
use crate::control::{self, Message};
use crate::plan::{MountStep, Plan, RealDisk};
use crate::policy::{FileRules, HelperStep, Policy, Preparation};

/// What waits for a program.
pub(super) struct WaitingSandbox {
    /// None where it could not be prepared, or is of no use any more: it is made once there is a program.
    prepared: Option<(PreparedSandbox, MountWatch)>,
    /// Where it is told that there is one.
    go: Option<OwnedFd>,
}

impl WaitingSandbox {
    /// Begins to prepare a sandbox for a program that will be written into a file.
    pub(super) fn new(ahead: Preparation, file: &File, control: &OwnedFd, go: OwnedFd) -> Self {
        let mut go = Some(go);
        // Why not is said where it is tried again for a program.
        let prepared = ahead.layers.has_mounts().then(|| {
            // Before anything is taken of the mounts: what changes from here on is seen.
            let mounts = MountWatch::new().ok()?;
            let source = ProgramSource::Handed(file);
            let sandbox = PreparedSandbox::begin(ahead, source, control, &mut go).ok()?;
            Some((sandbox, mounts))
        });
        Self { prepared: prepared.flatten(), go }
    }

    /// Waits to be told that there is a program; false when nobody is left to tell.
    pub(super) fn wait_for_program(&mut self) -> io::Result<bool> {
        let Some(go) = &self.go else { return Ok(false) };
        // Whoever wants to end what waits may.
        sys::unblock_signals()?;
        loop {
            let (is_told, has_changed) = match &self.prepared {
                None => (true, false),
                Some((_, mounts)) => {
                    let mut fds = [PollFd::new(go, PollFlags::IN), PollFd::new(&mounts.0, PollFlags::PRI)];
                    match poll(&mut fds, None) {
                        Ok(_) | Err(rustix::io::Errno::INTR) => {}
                        Err(other) => return Err(other.into()),
                    }
                    (!fds[0].revents().is_empty(), !fds[1].revents().is_empty())
                }
            };
            if has_changed {
                self.prepared = None;
            }
            if is_told {
                return control::wait_for_go(go.as_fd());
            }
        }
    }

    /// Returns what was prepared, where it is what is asked for and still as good as new.
    pub(super) fn into_prepared(self, asked: Preparation) -> Option<PreparedSandbox> {
        let (mut sandbox, mounts) = self.prepared?;
        let is_good = sandbox.asked == asked && !mounts.has_changed() && !sandbox.first.has_ended();
        is_good.then_some(sandbox)
    }
}

/// Tells when the machine's mounts change (`proc_pid_mountinfo(5)`).
struct MountWatch(File);

impl MountWatch {
    fn new() -> io::Result<Self> {
        File::open("/proc/self/mountinfo").map(Self)
    }

    /// Tells whether they have since the watch began; what cannot be told has.
    fn has_changed(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::PRI)];
        !matches!(poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
    }
}

/// A sandbox that is being made, by its first process, without a program. Dropped, it ends.
pub(super) struct PreparedSandbox {
    asked: Preparation,
    first: FirstChild,
    /// Both processes have these rules: one adds to them while the other makes what is mounted.
    rules: Option<Rules>,
    inside: Sender,
    outcome: OutcomeReceiver,
}

impl PreparedSandbox {
    /// Starts the first process of the namespaces, which begins to prepare. Signals are blocked from here on. The other
    /// process lets go of what is this one's alone.
    pub(super) fn begin(
        asked: Preparation,
        source: ProgramSource<'_>,
        control: &OwnedFd,
        of_this_alone: &mut Option<OwnedFd>,
    ) -> io::Result<Self> {
        let rules = checked(asked.fault, HelperStep::Ruleset, || match asked.layers.landlock {
            true => Rules::new(asked.has_files, true).map(Some),
            false => Ok(None),
        })?;
        let (inside, outside) = handover::pair()?;
        let (tell, outcome) = handover::outcome_pair()?;
        let user = (rustix::process::geteuid(), rustix::process::getegid());
        sys::block_signals()?;
        match checked(asked.fault, HelperStep::Init, sys::fork_apart)? {
            Forked::Child => {
                drop((inside, outcome, of_this_alone.take()));
                let first = FirstProcess { asked, source, control, user };
                init::run(&first, rules, outside, tell)
            }
            Forked::Parent(child) => {
                Ok(Self { asked, first: FirstChild(Some(child)), rules, inside, outcome })
            }
        }
    }

    /// Has the program run under a policy, waits for it, and cleans up; returns its code.
    pub(super) fn run(self, policy: &Policy, control: &OwnedFd) -> io::Result<u8> {
        let Self { asked, first, rules, inside, outcome } = self;
        sys::block_signals()?;
        policy.files.as_ref().map_or(Ok(()), refuse_everything_writable)?;
        let disk = RealDisk::default();
        let plan = policy.files.as_ref().map(|files| Plan::new(files, &disk)).unwrap_or_default();
        let (mut staged, mut removed, mut submodules) = (Vec::new(), Vec::new(), None);
        let code = match make_outside(&asked, policy, &plan, rules, &disk, inside, &mut staged) {
            // Placeholders are held until the program has ended.
            Ok((_made, leads, before)) => {
                submodules = Some(before);
                let code = wait_for_program(first, outcome);
                // Nothing of the program is left to write into what is looked at here.
                removed = leads.set_aside_others();
                code
            }
            Err(error) => {
                drop(first);
                Err(error)
            }
        };
        removed.extend(staged.into_iter().filter_map(StagedRepository::publish));
        removed.extend(submodules.iter().flat_map(SubmodulesBefore::set_aside_others));
        for text in removed {
            // Nobody is left to tell when the other end is gone.
            drop(control::send(control.as_fd(), &Message::Removed(text)));
        }
        if let Some(files) = &policy.files {
            placeholders::sweep(files, &plan);
        }
        remove_absent(&plan.absent, control);
        if let Ok(code) = &code {
            // Nobody is left to tell when the other end is gone.
            drop(control::send(control.as_fd(), &Message::Done(*code)));
        }
        code
    }
}

/// Waits until the program has ended; returns its code, or why there is no sandbox for it.
fn wait_for_program(first: FirstChild, outcome: OutcomeReceiver) -> io::Result<u8> {
    outcome.check()?;
    leave_streams()?;
    first.wait()
}

/// The first process of the namespaces. Dropped, it ends and, with it, everything in them.
struct FirstChild(Option<Pid>);

impl FirstChild {
    /// Waits for its end; returns its code.
    fn wait(mut self) -> io::Result<u8> {
        self.0.take().map_or(Err(io::ErrorKind::NotFound.into()), wait_for)
    }

    /// Tells whether it has ended; one that cannot be asked about has.
    fn has_ended(&mut self) -> bool {
        // Once asked about, the number of one that has ended may be another's.
        self.0 = self.0.filter(|pid| matches!(waitpid(Some(*pid), WaitOptions::NOHANG), Ok(None)));
        self.0.is_none()
    }
}

impl Drop for FirstChild {
    fn drop(&mut self) {
        if let Some(pid) = self.0.take() {
            // It may have ended by itself.
            kill_process(pid, Signal::KILL).ok();
            drop(wait_for(pid));
        }
    }
}

fn wait_for(child: Pid) -> io::Result<u8> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(code_of(status)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(other) => return Err(other.into()),
        }
    }
}

fn refuse_everything_writable(files: &FileRules) -> io::Result<()> {
    match files.roots.iter().any(|root| root == Path::new("/")) {
        true => Err(io::Error::other(format!(
            "`/` cannot be writable in a sandbox ({} roots)",
            files.roots.len()
        ))),
        false => Ok(()),
    }
}

/// Makes what lies outside the namespaces, beside the first process in them, and says so.
fn make_outside(
    asked: &Preparation,
    policy: &Policy,
    plan: &Plan,
    rules: Option<Rules>,
    disk: &RealDisk,
    mut inside: Sender,
    staged: &mut Vec<StagedRepository>,
) -> io::Result<(Made, LeadsBefore, SubmodulesBefore)> {
    let held: HashSet<&Path> = plan.placeholders.iter().map(|it| it.path.as_path()).collect();
    let is_held = |step: &MountStep| held.contains(step.path());
    inside.send_mounts(plan.mounts.iter().filter(|step| !is_held(step)));
    // Before the program begins, and while the other process mounts.
    let leads = LeadsBefore::new(&plan.git_dirs);
    let submodules = SubmodulesBefore::new(&plan.git_dirs, &plan.staged);
    let made = checked(asked.fault, HelperStep::Placeholders, || placeholders::make(&plan.placeholders))?;
    let is_made = |step: &MountStep| !made.left_out.iter().any(|path| path == step.path());
    let repositories = stage(plan, &made, staged)?;
    let on_placeholders = plan.mounts.iter().filter(|step| is_held(step) && is_made(step));
    inside.send_mounts(on_placeholders.chain(&repositories));
    let grants = checked(asked.fault, HelperStep::Grants, || grant_outside(policy, rules, disk))?;
    inside.send_ready(&grants);
    Ok((made, leads, submodules))
}

/// Makes the directories in which the program may make repositories; returns their mounts. Where something else has the name
/// of a placeholder by now, that is shut.
fn stage(plan: &Plan, made: &Made, staged: &mut Vec<StagedRepository>) -> io::Result<Vec<MountStep>> {
    let mut steps = Vec::new();
    for path in plan.staged.iter().filter(|path| !made.left_out.contains(path)) {
        steps.push(match StagedRepository::new(path)? {
            Some(repository) => {
                let (from, at) = repository.mount();
                staged.push(repository);
                MountStep::Stage { from, at }
            }
            None => MountStep::Shut(path.clone()),
        });
    }
    Ok(steps)
}

/// Adds to the rules of Landlock what they give of the machine's files; returns what can be added only inside.
fn grant_outside(
    policy: &Policy,
    rules: Option<Rules>,
    disk: &RealDisk,
) -> io::Result<Vec<(PathBuf, Grant)>> {
    let (Some(rules), Some(files)) = (rules, &policy.files) else { return Ok(Vec::new()) };
    let (inside, outside) =
        landlock::grants(files, disk).into_iter().partition(|(path, _)| landlock::is_made_inside(path));
    rules.grant(outside)?;
    Ok(inside)
}

/// Removes what a command made although it must not be there, and says so.
fn remove_absent(paths: &[PathBuf], control: &OwnedFd) {
    for path in paths.iter().filter(|path| path.symlink_metadata().is_ok()) {
        let text = match placeholders::remove_made(path) {
            Ok(()) => format!("`{}` was removed: it would lead git to another configuration", path.display()),
            Err(error) => format!("`{}` must not be there and could not be removed: {error}", path.display()),
        };
        // Nobody is left to tell when the other end is gone.
        drop(control::send(control.as_fd(), &Message::Removed(text)));
    }
}
