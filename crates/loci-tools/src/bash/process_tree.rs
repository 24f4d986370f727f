//! A command and everything it started, as one thing that can be ended.
//!
//! The shell gets a session of its own, so its group catches most of what it starts. A process can leave the
//! group (`setsid`, a daemon); on Linux such ones are found by walking `/proc`: descendants of the shell, members
//! of its session, and processes that inherited the mark which every command of ours has in its environment.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::death_watch::WatchedCommand;

/// The environment variable that marks the processes of one command.
pub const MARK_VARIABLE: &str = "LOCI_PROCESS_MARK";

/// How long processes have to end by themselves.
const GRACE: Duration = Duration::from_millis(500);

const POLL: Duration = Duration::from_millis(10);

/// How often what is left is killed before giving up on it (a process stuck in the kernel, say).
const KILL_ROUNDS: usize = 100;

const FREEZE_ROUNDS: usize = 20;

/// The processes of one command; dropping it kills what still runs.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    /// The shell, as long as it has not been waited for: then its number may belong to somebody else.
    root: Option<Pid>,
    mark: String,
    is_armed: bool,
    /// Kills it should we be killed.
    watched: Option<WatchedCommand>,
}

impl ProcessTree {
    pub(crate) fn new(root: Option<u32>, mark: String) -> Self {
        let root = root.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { root, mark, is_armed: true, watched: None }
    }

    /// Has it killed should we be.
    pub(crate) fn watched(mut self, mut watched: WatchedCommand) -> Self {
        if let Some(root) = self.root.and_then(|root| u32::try_from(root.as_raw_nonzero().get()).ok()) {
            watched.started(root);
        }
        self.watched = Some(watched);
        self
    }

    /// Notes that the shell has been waited for.
    pub(crate) fn root_has_ended(&mut self) {
        self.root = None;
    }

    /// Lets what still runs live on.
    pub(crate) fn release(&mut self) {
        self.is_armed = false;
        self.watched = None;
    }

    /// Ends every process: asked first, made to after a short grace. Returns when none is left.
    pub(crate) async fn kill(&self) {
        let (root, mark) = (self.root, self.mark.clone());
        let ended = tokio::task::spawn_blocking(move || kill(root, &mark)).await;
        if ended.is_err() {
            self.kill_now();
        }
    }

    fn kill_now(&self) {
        let members = freeze(self.root, &self.mark, Vec::new());
        signal(&members, Signal::KILL);
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if self.is_armed {
            self.kill_now();
        }
    }
}

/// Asks all members to end, and kills those that are there after the grace.
fn kill(root: Option<Pid>, mark: &str) {
    let deadline = Instant::now() + GRACE;
    let mut members = freeze(root, mark, Vec::new());
    signal(&members, Signal::TERM);
    signal(&members, Signal::CONT);
    while Instant::now() < deadline {
        members = find(root, mark, members);
        if members.is_empty() {
            return;
        }
        std::thread::sleep(POLL);
    }
    for _ in 0..KILL_ROUNDS {
        members = freeze(root, mark, members);
        if members.is_empty() {
            return;
        }
        signal(&members, Signal::KILL);
        std::thread::sleep(POLL);
    }
}

/// Stops all members and returns them. One that is stopped can neither start another nor end, which would hide
/// its children from us, so searching again until nothing new turns up finds them all.
fn freeze(root: Option<Pid>, mark: &str, known: Vec<Member>) -> Vec<Member> {
    let mut members = find(root, mark, known);
    signal(&members, Signal::STOP);
    for _ in 0..FREEZE_ROUNDS {
        let n_known = members.len();
        members = find(root, mark, members);
        let new: Vec<Member> = members.iter().skip(n_known).copied().collect();
        if new.is_empty() {
            break;
        }
        signal(&new, Signal::STOP);
    }
    members
}

/// Sends a signal to processes. One that has just ended is no error, and one that may not be signalled (it
/// changed its user) cannot be helped.
fn signal(members: &[Member], signal: Signal) {
    for member in members {
        #[cfg(target_os = "linux")]
        rustix::process::kill_process(member.pid, signal).ok();
        #[cfg(not(target_os = "linux"))]
        rustix::process::kill_process_group(member.pid, signal).ok();
    }
}

/// One process; the time it started at tells it from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Member {
    pid: Pid,
    started: u64,
}

/// Returns the living processes of a command, those in `known` first and our own never among them.
#[cfg(target_os = "linux")]
fn find(root: Option<Pid>, mark: &str, known: Vec<Member>) -> Vec<Member> {
    let own = rustix::process::getpid();
    let wanted = format!("{MARK_VARIABLE}={mark}");
    let is_ours = |process: &proc::Process| {
        root.is_some_and(|root| process.is_in(root))
            || proc::has_variable(process.member.pid, wanted.as_bytes())
    };
    let (mut found, others): (Vec<_>, Vec<_>) = proc::all()
        .filter(|process| process.member.pid != own)
        .partition(|process| known.contains(&process.member));
    found.sort_by_key(|process| known.iter().position(|member| *member == process.member));
    let (mut new, mut others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_ours);
    loop {
        found.append(&mut new);
        let is_child =
            |process: &proc::Process| found.iter().any(|parent| process.parent == Some(parent.member.pid));
        (new, others) = others.into_iter().partition(is_child);
        if new.is_empty() {
            break;
        }
    }
    found.into_iter().filter(|process| process.is_alive).map(|process| process.member).collect()
}

/// Without `/proc` only the group is known, under the number of its leader.
#[cfg(not(target_os = "linux"))]
fn find(root: Option<Pid>, _mark: &str, _known: Vec<Member>) -> Vec<Member> {
    let root = root.filter(|root| rustix::process::test_kill_process_group(*root).is_ok());
    root.into_iter().map(|pid| Member { pid, started: 0 }).collect()
}

#[cfg(target_os = "linux")]
mod proc {
    use super::{Member, Pid};

    pub(super) struct Process {
        pub(super) member: Member,
        pub(super) parent: Option<Pid>,
        group: Option<Pid>,
        session: Option<Pid>,
        /// False for one that has ended and waits to be collected.
        pub(super) is_alive: bool,
    }

    impl Process {
        /// Returns true for the shell itself and the members of its group and session.
        pub(super) fn is_in(&self, root: Pid) -> bool {
            self.member.pid == root || self.group == Some(root) || self.session == Some(root)
        }

        /// Reads `pid (name) state parent group session …`; the name may hold anything, brackets too.
        fn read(pid: Pid) -> Option<Self> {
            let stat = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
            let stat = String::from_utf8_lossy(&stat);
            let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
            let pid_at = |at: usize| fields.get(at).and_then(|field| pid_from(field));
            Some(Self {
                member: Member { pid, started: fields.get(19)?.parse().ok()? },
                parent: pid_at(1),
                group: pid_at(2),
                session: pid_at(3),
                is_alive: !matches!(*fields.first()?, "Z" | "X"),
            })
        }
    }

    /// Iterates over all processes; one that ends meanwhile is left out.
    pub(super) fn all() -> impl Iterator<Item = Process> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| Process::read(pid_from(entry.file_name().to_str()?)?))
    }

    pub(super) fn has_variable(pid: Pid, variable: &[u8]) -> bool {
        let environ = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
        environ.is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|entry| entry == variable))
    }

    /// Reads a process number. A process that is just being collected shows -1 for group and session, which
    /// `Pid::from_raw` does not take.
    fn pid_from(text: &str) -> Option<Pid> {
        text.parse().ok().filter(|number| *number > 0).and_then(Pid::from_raw)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn only_positive_numbers_are_processes() {
            for (text, expected) in [
                ("1", Some(1)),
                ("4194304", Some(4_194_304)),
                ("0", None),
                ("-1", None),
                ("self", None),
                ("", None),
            ] {
                assert_eq!(pid_from(text).map(|pid| pid.as_raw_nonzero().get()), expected, "{text}");
            }
        }
    }
}
