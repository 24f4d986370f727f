//! Process groups as Unix has them.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, kill_process_group, test_kill_process, test_kill_process_group};

use super::Signal;
use super::proc_stat::{ProcStat, group_has_running_member};

/// The pauses between looks at an ending group start here and double up to [`LONGEST_PAUSE`].
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// Makes the command the leader of a process group of its own, whose id is the child's.
///
/// For a `tokio` command, pass what its `as_std_mut` returns.
pub fn own_group(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// Signals every process in the group led by `pid`; false if there is none any more.
pub fn kill_group(pid: u32, signal: Signal) -> io::Result<bool> {
    let signal = match signal {
        Signal::Interrupt => rustix::process::Signal::INT,
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    match kill_process_group(safe_pid(pid)?, signal) {
        Ok(()) => Ok(true),
        Err(Errno::SRCH) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Asks the group led by `pid` to end, waits up to `grace` for it, and ends what is left.
///
/// Blocks the thread, for less than `grace` if the group ends earlier. The caller still has to wait for
/// its child, before or after.
pub fn terminate_then_kill(pid: u32, grace: Duration) -> io::Result<()> {
    let started = Instant::now();
    let mut pause = SHORTEST_PAUSE;
    if !kill_group(pid, Signal::Terminate)? {
        return Ok(());
    }
    while group_is_running(pid)? {
        let remaining = grace.saturating_sub(started.elapsed());
        if remaining.is_zero() {
            break;
        }
        thread::sleep(pause.min(remaining));
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    // Said even if nothing seemed to run: it does no harm to the dead.
    kill_group(pid, Signal::Kill).map(drop)
}

/// Tells whether `pid` is a process that has not ended; one we may not signal counts as alive.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    let Some(process) = raw_pid(pid) else { return false };
    match test_kill_process(process) {
        Ok(()) | Err(Errno::PERM) => !ProcStat::read(pid).is_some_and(|stat| stat.is_ended()),
        Err(_) => false,
    }
}

/// Returns when `pid` started, in clock ticks since boot; none where the system does not say (macOS).
#[must_use]
pub fn start_ticks(pid: u32) -> Option<u64> {
    ProcStat::read(pid).map(|stat| stat.start_ticks)
}

/// Tells whether we were started to outlive our terminal, as `nohup` does; false where the system does not say.
#[must_use]
pub fn ignores_hang_up() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores_signal(&status, 1))
}

/// Reads a signal's bit in the `SigIgn` line of `/proc/<pid>/status`.
fn ignores_signal(status: &str, number: u32) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & (1 << (number - 1)) != 0)
}

/// Tells whether the group still has a running process.
///
/// An ended leader nobody waited for keeps its group in being, so then the members are looked at.
fn group_is_running(pid: u32) -> io::Result<bool> {
    match test_kill_process_group(safe_pid(pid)?) {
        Ok(()) | Err(Errno::PERM) => {}
        Err(Errno::SRCH) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let leader_has_ended = ProcStat::read(pid).is_some_and(|stat| stat.is_ended());
    Ok(!leader_has_ended || group_has_running_member(pid).unwrap_or(true))
}

fn raw_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Refuses 0 and 1, which as groups mean our own and every process there is.
fn safe_pid(pid: u32) -> io::Result<Pid> {
    raw_pid(pid).filter(|pid| !pid.is_init()).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("Failed to find process group: `{pid}`"))
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Stdio};

    use super::*;

    /// More than a shell needs; should it lapse, the group is killed and the tests hold all the same.
    const GRACE: Duration = Duration::from_secs(2);

    /// Starts a shell in a group of its own and waits until it says that it is ready.
    fn shell(script: &str) -> Child {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = own_group(&mut command).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        child
    }

    #[test]
    fn ids_that_mean_everybody_are_refused() {
        for pid in [0, 1, u32::MAX, 1 << 31] {
            assert_eq!(safe_pid(pid).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{pid}");
        }
    }

    #[test]
    fn a_group_is_ended_with_the_processes_its_leader_started() {
        // The grandchild holds the pipe open: the end of output shows that it ended too.
        let mut child = shell("sleep 1000 & echo ready; wait");
        terminate_then_kill(child.id(), GRACE).unwrap();
        let mut rest = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut rest).unwrap();
        assert_eq!(rest, "");
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_group_that_does_not_listen_is_killed() {
        let mut child = shell("trap '' TERM; echo ready; while :; do sleep 1000; done");
        terminate_then_kill(child.id(), Duration::from_millis(5)).unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()), Some(9));
    }

    #[test]
    fn a_group_that_is_gone_is_no_error() {
        let mut child = shell("echo ready");
        child.wait().unwrap();
        assert!(!kill_group(child.id(), Signal::Interrupt).unwrap());
        terminate_then_kill(child.id(), GRACE).unwrap();
    }

    #[test]
    fn a_process_is_alive_until_it_ends() {
        let mut child = shell("echo ready; sleep 1000");
        assert!(is_alive(child.id()));
        assert!(kill_group(child.id(), Signal::Kill).unwrap());
        child.wait().unwrap();
        assert!(!is_alive(child.id()));
        assert!(is_alive(std::process::id()));
        assert!(!is_alive(0));
        assert!(!is_alive(u32::MAX));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_ended_child_nobody_waited_for_is_not_alive() {
        let mut child = shell("echo ready; sleep 1000");
        terminate_then_kill(child.id(), GRACE).unwrap();
        assert!(!group_is_running(child.id()).unwrap());
        assert!(!is_alive(child.id()));
        child.wait().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn start_ticks_stay_the_same_while_a_process_lives() {
        let ticks = start_ticks(std::process::id());
        assert!(ticks.is_some());
        assert_eq!(ticks, start_ticks(std::process::id()));
        assert_eq!(start_ticks(u32::MAX), None);
    }
}
