//! Probes about processes, namespaces, queues, terminals and sockets of the machine.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;

use crate::probes::{call, number, raw, text};

/// The most processes that a probe starts.
const MOST: i32 = 6000;

/// Runs a probe by its name; none where it is not one of these.
pub(crate) fn run(name: &str, a: &str, b: &str) -> Option<io::Result<String>> {
    let done = match name {
        "unshare" => flags(a).and_then(|flags| call(unsafe { libc::unshare(flags) })),
        "clone" => flags(a).and_then(clone),
        "pidfd" => number(a).and_then(pidfd),
        "pidfd-signal" => number(a).and_then(pidfd_signal),
        "prlimit" => number(a).and_then(prlimit),
        "priority" => number(a)
            .and_then(|pid| call(unsafe { libc::setpriority(libc::PRIO_PROCESS, pid.unsigned_abs(), 10) })),
        "affinity" => number(a).and_then(affinity),
        "setns-of" => setns_of(a, b),
        "message-queue" => {
            raw(unsafe { libc::syscall(libc::SYS_mq_open, text(a).unwrap_or_default().as_ptr(), 0, 0, 0) })
        }
        "own-queue" => own_queue(),
        "semaphore" => number(a).and_then(|key| call(unsafe { libc::semget(key, 0, 0) })),
        "queue" => number(a).and_then(|key| call(unsafe { libc::msgget(key, 0) })),
        "own-memory" => own_memory(),
        "shared-memory" => {
            fs::write("/dev/shm/loci-probe", "x").and_then(|()| fs::remove_file("/dev/shm/loci-probe"))
        }
        "make-queues" => number(a).and_then(make_queues),
        "remove-queues" => number(a).and_then(remove_queues),
        "terminal" => terminal_input(a),
        "socketpair" => socketpair(),
        "datagram" => datagram(a),
        "listen" => std::net::TcpListener::bind(a).map(drop),
        "execute-setuid" => return Some(execute_setuid(a)),
        "fork-bomb" => return Some(fork_bomb()),
        "large-file" => large_file(a),
        "no-new-privileges" => call(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) }),
        "setuid" => call(unsafe { libc::setuid(65534) }),
        "ambient" => call(unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, 21, 0, 0) }),
        _ => return None,
    };
    Some(done.map(|()| "ok".to_owned()))
}

/// Returns flags of namespaces by their names.
fn flags(names: &str) -> io::Result<i32> {
    names.split('+').try_fold(0, |all, name| {
        let flag = match name {
            "user" => libc::CLONE_NEWUSER,
            "mount" => libc::CLONE_NEWNS,
            "net" => libc::CLONE_NEWNET,
            "pid" => libc::CLONE_NEWPID,
            "ipc" => libc::CLONE_NEWIPC,
            "uts" => libc::CLONE_NEWUTS,
            "cgroup" => libc::CLONE_NEWCGROUP,
            "time" => 0x80,
            _ => return Err(io::Error::other(format!("no namespace `{name}`"))),
        };
        Ok(all | flag)
    })
}

/// Makes a process that ends at once.
pub(crate) fn clone(flags: i32) -> io::Result<()> {
    let id = unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) };
    if id == 0 {
        unsafe { libc::_exit(0) };
    }
    raw(id)
}

fn pidfd(pid: i32) -> io::Result<()> {
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    raw(fd)?;
    raw(unsafe { libc::syscall(libc::SYS_pidfd_getfd, fd, 0, 0) })
}

fn pidfd_signal(pid: i32) -> io::Result<()> {
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    raw(fd)?;
    raw(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, fd, 0, 0, 0) })
}

fn prlimit(pid: i32) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
    call(unsafe { libc::prlimit(pid, libc::RLIMIT_NOFILE, &raw const limit, std::ptr::null_mut()) })
}

fn affinity(pid: i32) -> io::Result<()> {
    let mask = [1_u64; 16];
    call(unsafe { libc::sched_setaffinity(pid, size_of_val(&mask), mask.as_ptr().cast()) })
}

/// Enters a namespace of another process.
fn setns_of(pid: &str, kind: &str) -> io::Result<()> {
    let file = File::open(format!("/proc/{pid}/ns/{kind}"))?;
    call(unsafe { libc::setns(file.as_raw_fd(), 0) })
}

fn own_memory() -> io::Result<()> {
    let id = unsafe { libc::shmget(libc::IPC_PRIVATE, 4096, 0o600) };
    call(id)?;
    call(unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) })
}

/// Makes memory, semaphores and queues that a sandbox must not see.
fn make_queues(key: i32) -> io::Result<()> {
    let name = text(&format!("loci-probe-{key}"))?;
    let flags = libc::IPC_CREAT | 0o600;
    call(unsafe { libc::shmget(key, 4096, flags) })?;
    call(unsafe { libc::semget(key, 1, flags) })?;
    call(unsafe { libc::msgget(key, flags) })?;
    raw(unsafe { libc::syscall(libc::SYS_mq_open, name.as_ptr(), libc::O_CREAT, 0o600, 0) })
}

fn remove_queues(key: i32) -> io::Result<()> {
    let name = text(&format!("loci-probe-{key}"))?;
    let nothing = std::ptr::null_mut();
    call(unsafe { libc::shmctl(libc::shmget(key, 0, 0), libc::IPC_RMID, nothing) })?;
    call(unsafe { libc::semctl(libc::semget(key, 0, 0), 0, libc::IPC_RMID) })?;
    call(unsafe { libc::msgctl(libc::msgget(key, 0), libc::IPC_RMID, nothing.cast()) })?;
    raw(unsafe { libc::syscall(libc::SYS_mq_unlink, name.as_ptr()) })
}

fn own_queue() -> io::Result<()> {
    let id = unsafe { libc::msgget(libc::IPC_PRIVATE, 0o600) };
    call(id)?;
    call(unsafe { libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()) })
}

/// Writes into the input of a terminal as if somebody had typed.
fn terminal_input(way: &str) -> io::Result<()> {
    let terminal = unsafe { libc::posix_openpt(libc::O_RDWR) };
    call(terminal)?;
    match way {
        "sti" => call(unsafe { libc::ioctl(terminal, libc::TIOCSTI, c"x".as_ptr()) }),
        // The kernel looks at the lower half of the number alone.
        "sti-high" => {
            raw(unsafe { libc::syscall(libc::SYS_ioctl, terminal, 0x1_0000_5412_u64, c"x".as_ptr()) })
        }
        _ => call(unsafe { libc::ioctl(terminal, libc::TIOCLINUX, c"\x03".as_ptr()) }),
    }
}

fn socketpair() -> io::Result<()> {
    let mut fds = [0; 2];
    call(unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, fds.as_mut_ptr()) })
}

fn datagram(path: &str) -> io::Result<()> {
    std::os::unix::net::UnixDatagram::unbound()?.send_to(b"x", path).map(drop)
}

/// Makes a copy of `id` that would run as its owner, and says whom it finds there to be.
fn execute_setuid(dir: &str) -> io::Result<String> {
    use std::os::unix::fs::PermissionsExt;
    let path = format!("{dir}/setuid-sleep");
    fs::copy("/proc/self/exe", &path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4755))?;
    let output = std::process::Command::new(&path).args(["one", "setuid-bit"]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Starts processes until it may not, and says whether it was stopped.
fn fork_bomb() -> io::Result<String> {
    let mut children = Vec::new();
    let mut end = "went on".to_owned();
    for _ in 0..MOST {
        let child = unsafe { libc::fork() };
        if child < 0 {
            end = match io::Error::last_os_error().raw_os_error() {
                Some(libc::EAGAIN | libc::ENOMEM) => "stopped".to_owned(),
                other => format!("{other:?}"),
            };
            break;
        }
        if child == 0 {
            unsafe {
                libc::pause();
                libc::_exit(0);
            }
        }
        children.push(child);
    }
    for child in &children {
        unsafe { libc::kill(*child, libc::SIGKILL) };
    }
    children.iter().for_each(|child| unsafe {
        libc::waitpid(*child, std::ptr::null_mut(), 0);
    });
    Ok(end)
}

/// Makes a file larger than any command needs; nothing is written.
fn large_file(path: &str) -> io::Result<()> {
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let file = File::create(path)?;
    let done = file.set_len(65 << 30);
    fs::remove_file(path)?;
    done
}
