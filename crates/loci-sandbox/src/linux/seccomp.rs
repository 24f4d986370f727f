//! The filter of system calls: what no command needs and what leads around the other layers.
//!
//! Refusals are errors, so that programs go on. `clone3` does not exist for them: its flags cannot be looked at, and libc
//! falls back to `clone`, whose flags can. A call of another architecture ends the process.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

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
pub(super) struct Sockets {
    /// Those of the internet, in a network of the command's own.
    pub(super) inet: bool,
    /// Those of the machine.
    pub(super) unix: bool,
}

/// Restricts this process and all that it starts.
pub(super) fn apply(sockets: Sockets) -> io::Result<()> {
    let program = program(sockets).map_err(io::Error::other)?;
    seccompiler::apply_filter(&program).map_err(io::Error::other)
}

/// Makes the filter.
fn program(sockets: Sockets) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, socket_rules(sockets)?);
    rules.insert(libc::SYS_clone, vec![flag_rule(0, libc::CLONE_NEWUSER)?]);
    rules.insert(libc::SYS_ioctl, vec![equal_rule(1, libc::TIOCSTI)?, equal_rule(1, libc::TIOCLINUX)?]);
    let arch = std::env::consts::ARCH.try_into()?;
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter: BpfProgram = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()?;
    Ok(first_checks().into_iter().chain(filter).collect())
}

/// What cannot be said in rules: ranges of calls, and another error. Jumps are relative, so this goes in front.
fn first_checks() -> Vec<sock_filter> {
    let clone3 = u32::try_from(libc::SYS_clone3).unwrap_or_default();
    let error = |number: i32| libc::SECCOMP_RET_ERRNO | number.unsigned_abs();
    let step = |code: u32, jt: u8, jf: u8, k: u32| sock_filter { code: code as u16, jt, jf, k };
    vec![
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, X32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, error(libc::EPERM)),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, clone3),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, error(libc::ENOSYS)),
    ]
}

/// Refuses sockets of every family but those that there may be.
fn socket_rules(sockets: Sockets) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let families =
        [(sockets.inet, libc::AF_INET), (sockets.inet, libc::AF_INET6), (sockets.unix, libc::AF_UNIX)];
    let allowed = families.into_iter().filter(|(is_allowed, _)| *is_allowed);
    let conditions: Vec<SeccompCondition> = allowed
        .map(|(_, family)| {
            SeccompCondition::new(
                0,
                SeccompCmpArgLen::Dword,
                SeccompCmpOp::Ne,
                u64::from(family.unsigned_abs()),
            )
        })
        .collect::<Result<_, _>>()?;
    // No rule at all refuses every call.
    if conditions.is_empty() { Ok(Vec::new()) } else { Ok(vec![SeccompRule::new(conditions)?]) }
}

fn flag_rule(argument: u8, flag: i32) -> Result<SeccompRule, seccompiler::BackendError> {
    let flag = u64::from(flag.unsigned_abs());
    SeccompRule::new(vec![SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(flag),
        flag,
    )?])
}

fn equal_rule(argument: u8, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?])
}
