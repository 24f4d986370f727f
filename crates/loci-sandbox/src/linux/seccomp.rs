//! The filter of system calls: what no command needs and what leads around the other layers.
//!
//! Refusals are errors, so that programs go on. `clone3` does not exist for them: its flags cannot be looked at, and libc
//! falls back to `clone`, whose flags can. A call of another architecture ends the process.
//!
//! The number of a call is found by halving, not one after the other: the kernel tries every number once when a filter is
//! applied, before each command that is.

use std::io;

use seccompiler::{BpfProgram, sock_filter};

use crate::policy::Preparation;

/// Refused whatever their arguments are.
const REFUSED: &[i64] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_lookup_dcookie,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
];

/// The first number of the x32 calls, which the kernel counts to the same architecture.
const X32: u32 = 0x4000_0000;

/// Which sockets there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sockets {
    /// Those of the internet, in a network of the command's own.
    inet: bool,
    /// Those of the machine.
    unix: bool,
}

/// The filter of a sandbox, ready to be applied.
pub(super) struct Filter(BpfProgram);

impl Filter {
    /// Makes what a sandbox needs; none where that layer is not asked for.
    pub(super) fn for_sandbox(asked: &Preparation) -> io::Result<Option<Self>> {
        let sockets = Sockets { inet: asked.layers.has_mounts(), unix: asked.allows_unix_sockets };
        asked.layers.seccomp.then(|| program(sockets).map(Self)).transpose()
    }

    /// Restricts this process and all that it starts.
    pub(super) fn apply(&self) -> io::Result<()> {
        seccompiler::apply_filter(&self.0).map_err(io::Error::other)
    }
}

/// What the kernel calls this architecture (`linux/audit.h`); none of another can be made sure of.
const ARCHITECTURE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else if cfg!(target_arch = "riscv64") {
    Some(0xc000_00f3)
} else {
    None
};

/// Where the number of a call, its architecture, and the lower half of an argument lie in what a filter looks at.
const NUMBER: u32 = 0;
const ARCHITECTURE_OF_CALL: u32 = 4;
const fn argument(idx: u32) -> u32 {
    16 + 8 * idx
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Allow,
    /// An error.
    Refuse(i32),
    /// One of these values in the argument is refused, all others are not.
    RefuseValues(u32, [u32; 2]),
    /// An argument with this flag is refused.
    RefuseFlag(u32, u32),
    /// Sockets of other families than these are refused.
    Sockets(Sockets),
}

/// Makes the filter.
fn program(sockets: Sockets) -> io::Result<BpfProgram> {
    let unknown = || io::Error::new(io::ErrorKind::Unsupported, "no filter is known for this architecture");
    let architecture = ARCHITECTURE.ok_or_else(unknown)?;
    let mut program = vec![
        step(LOAD, ARCHITECTURE_OF_CALL),
        jump(libc::BPF_JEQ, architecture, 1, 0),
        step(RETURN, libc::SECCOMP_RET_KILL_PROCESS),
        step(LOAD, NUMBER),
    ];
    search(&ranges(sockets), &mut program)?;
    Ok(program)
}

/// Returns from which number on which verdict holds, up to the next.
fn ranges(sockets: Sockets) -> Vec<(u32, Verdict)> {
    let refused = REFUSED.iter().map(|call| (*call, Verdict::Refuse(libc::EPERM)));
    let clone = Verdict::RefuseFlag(0, libc::CLONE_NEWUSER.unsigned_abs());
    let terminal = [libc::TIOCSTI, libc::TIOCLINUX].map(|it| u32::try_from(it).unwrap_or_default());
    let others = [
        (libc::SYS_socket, Verdict::Sockets(sockets)),
        (libc::SYS_clone, clone),
        (libc::SYS_clone3, Verdict::Refuse(libc::ENOSYS)),
        (libc::SYS_ioctl, Verdict::RefuseValues(1, terminal)),
    ];
    let mut calls: Vec<(u32, Verdict)> = refused
        .chain(others)
        .filter_map(|(call, verdict)| Some((u32::try_from(call).ok()?, verdict)))
        .collect();
    calls.sort_by_key(|(call, _)| *call);
    let mut ranges = vec![(0, Verdict::Allow)];
    for (call, verdict) in calls {
        // What begins behind the last call begins here after all.
        if ranges.last().is_some_and(|(from, _)| *from == call) {
            ranges.pop();
        }
        if ranges.last().is_none_or(|(_, last)| *last != verdict) {
            ranges.push((call, verdict));
        }
        ranges.push((call + 1, Verdict::Allow));
    }
    // The x32 calls, which the kernel counts to the same architecture, come last.
    ranges.push((X32, Verdict::Refuse(libc::EPERM)));
    ranges
}

/// Adds what finds the range that a number lies in, and ends with its verdict.
fn search(ranges: &[(u32, Verdict)], program: &mut BpfProgram) -> io::Result<()> {
    let (lower, upper) = ranges.split_at(ranges.len() / 2);
    let Some((from, verdict)) = upper.first() else { return Ok(()) };
    if lower.is_empty() {
        judge(*verdict, program);
        return Ok(());
    }
    let place = program.len();
    program.push(jump(libc::BPF_JGE, *from, 0, 0));
    search(lower, program)?;
    // Jumps lead over as many steps as fit into a byte.
    let is_far = |_| io::Error::other("the filter has become too long");
    let distance = u8::try_from(program.len() - place - 1).map_err(is_far)?;
    if let Some(found) = program.get_mut(place) {
        found.jt = distance;
    }
    search(upper, program)
}

/// Adds a verdict, which ends the filter.
fn judge(verdict: Verdict, program: &mut BpfProgram) {
    let allow = step(RETURN, libc::SECCOMP_RET_ALLOW);
    let refuse = |error: i32| step(RETURN, libc::SECCOMP_RET_ERRNO | error.unsigned_abs());
    match verdict {
        Verdict::Allow => program.push(allow),
        Verdict::Refuse(error) => program.push(refuse(error)),
        Verdict::RefuseValues(idx, [one, other]) => program.extend([
            step(LOAD, argument(idx)),
            jump(libc::BPF_JEQ, one, 1, 0),
            jump(libc::BPF_JEQ, other, 0, 1),
            refuse(libc::EPERM),
            allow,
        ]),
        Verdict::RefuseFlag(idx, flag) => program.extend([
            step(LOAD, argument(idx)),
            jump(libc::BPF_JSET, flag, 0, 1),
            refuse(libc::EPERM),
            allow,
        ]),
        Verdict::Sockets(sockets) => {
            program.push(step(LOAD, argument(0)));
            for family in sockets.families() {
                program.extend([jump(libc::BPF_JEQ, family, 0, 1), allow.clone()]);
            }
            program.push(refuse(libc::EPERM));
        }
    }
}

/// Takes a word of what is looked at.
const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
/// Ends with a verdict.
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

fn step(code: u32, k: u32) -> sock_filter {
    sock_filter { code: u16::try_from(code).unwrap_or_default(), jt: 0, jf: 0, k }
}

/// Compares the word that was taken, and goes on so many steps later.
fn jump(comparison: u32, k: u32, if_true: u8, if_false: u8) -> sock_filter {
    let code = libc::BPF_JMP | comparison | libc::BPF_K;
    sock_filter { jt: if_true, jf: if_false, ..step(code, k) }
}

impl Sockets {
    fn families(self) -> impl Iterator<Item = u32> {
        let families = [(self.inet, libc::AF_INET), (self.inet, libc::AF_INET6), (self.unix, libc::AF_UNIX)];
        let allowed = families.into_iter().filter(|(is_allowed, _)| *is_allowed);
        allowed.map(|(_, family)| family.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a filter over a call, as the kernel would; returns its verdict and how many steps it took.
    fn run(program: &BpfProgram, architecture: u32, number: u32, arguments: [u32; 2]) -> (u32, usize) {
        let (mut at, mut word, mut n_steps) = (0, 0, 0);
        loop {
            let step = &program[at];
            n_steps += 1;
            at += 1;
            match u32::from(step.code) {
                RETURN => return (step.k, n_steps),
                LOAD => {
                    word = match step.k {
                        NUMBER => number,
                        ARCHITECTURE_OF_CALL => architecture,
                        place => arguments[usize::try_from((place - argument(0)) / 8).unwrap()],
                    }
                }
                code => {
                    let is_true = match code & 0xf0 {
                        libc::BPF_JEQ => word == step.k,
                        libc::BPF_JGE => word >= step.k,
                        libc::BPF_JSET => word & step.k != 0,
                        other => panic!("{other}"),
                    };
                    at += usize::from(if is_true { step.jt } else { step.jf });
                }
            }
        }
    }

    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
    const REFUSED_CALL: u32 = libc::SECCOMP_RET_ERRNO | 1;

    #[test]
    fn every_call_is_refused_or_allowed_by_its_number_within_few_steps() {
        let architecture = ARCHITECTURE.unwrap();
        let with_arguments = [libc::SYS_socket, libc::SYS_clone, libc::SYS_ioctl];
        let filter = program(Sockets { inet: true, unix: false }).unwrap();
        for number in (0..2_000).chain([X32 - 1, X32, X32 + 41, u32::MAX]) {
            let call = i64::from(number);
            let (verdict, n_steps) = run(&filter, architecture, number, [0, 0]);
            let expected = match call {
                libc::SYS_clone3 => libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
                _ if number >= X32 || REFUSED.contains(&call) => REFUSED_CALL,
                libc::SYS_socket => REFUSED_CALL,
                _ => ALLOWED,
            };
            assert_eq!(verdict, expected, "{number}");
            assert!(n_steps <= 12 || with_arguments.contains(&call), "{number}: {n_steps} steps");
            assert_eq!(
                run(&filter, architecture ^ 1, number, [0, 0]).0,
                libc::SECCOMP_RET_KILL_PROCESS,
                "{number} of another architecture"
            );
        }
    }

    #[test]
    fn arguments_of_calls_are_looked_at() {
        let architecture = ARCHITECTURE.unwrap();
        let [inet, inet6, unix, netlink] =
            [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX, libc::AF_NETLINK].map(i32::unsigned_abs);
        for (sockets, allowed) in [
            (Sockets { inet: true, unix: false }, vec![inet, inet6]),
            (Sockets { inet: true, unix: true }, vec![inet, inet6, unix]),
            (Sockets { inet: false, unix: true }, vec![unix]),
            (Sockets { inet: false, unix: false }, vec![]),
        ] {
            let filter = program(sockets).unwrap();
            let verdict = |call: i64, arguments: [u32; 2]| {
                run(&filter, architecture, u32::try_from(call).unwrap(), arguments).0
            };
            for family in [inet, inet6, unix, netlink, 40] {
                let expected = if allowed.contains(&family) { ALLOWED } else { REFUSED_CALL };
                assert_eq!(verdict(libc::SYS_socket, [family, 0]), expected, "{sockets:?} {family}");
            }
            let new_user = libc::CLONE_NEWUSER.unsigned_abs();
            assert_eq!(verdict(libc::SYS_clone, [new_user | 17, 0]), REFUSED_CALL);
            assert_eq!(verdict(libc::SYS_clone, [17, new_user]), ALLOWED);
            for (request, expected) in [
                (u32::try_from(libc::TIOCSTI).unwrap(), REFUSED_CALL),
                (u32::try_from(libc::TIOCLINUX).unwrap(), REFUSED_CALL),
                (u32::try_from(libc::TIOCGWINSZ).unwrap(), ALLOWED),
            ] {
                assert_eq!(verdict(libc::SYS_ioctl, [0, request]), expected, "{request}");
            }
        }
    }
}
