//! The probes: each tries one thing that a sandbox has to refuse, or to let through.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(5);

/// Runs a probe by its name; returns `ok`, an answer, or the name of the error.
pub(crate) fn run(args: &[String]) -> String {
    let arg = |idx: usize| args.get(idx).map(String::as_str).unwrap_or_default();
    match try_probe(arg(0), arg(1), arg(2)) {
        Ok(answer) => answer,
        Err(error) => error.raw_os_error().map_or_else(|| error.to_string(), errno_name),
    }
}

fn try_probe(name: &str, a: &str, b: &str) -> io::Result<String> {
    match name {
        "write" => write(a),
        "append-open" => OpenOptions::new().append(true).open(a).map(drop),
        "create-new" => OpenOptions::new().write(true).create_new(true).open(a).map(drop),
        "read" => read(a).map(drop),
        "list" => fs::read_dir(a).map(drop),
        "truncate" => call(unsafe { libc::truncate(text(a)?.as_ptr(), 0) }),
        "chmod" => fs::set_permissions(a, fs::Permissions::from_mode(0o600)),
        "chown" => call(unsafe { libc::chown(text(a)?.as_ptr(), libc::geteuid(), libc::getegid()) }),
        "utime" => File::open(a)?.set_modified(std::time::SystemTime::UNIX_EPOCH),
        "xattr" => xattr(a),
        "unlink" => fs::remove_file(a),
        "mkdir" => fs::create_dir(a),
        "rmdir" => fs::remove_dir(a),
        "rename" => fs::rename(a, b),
        "link" => fs::hard_link(a, b),
        "link-write" => fs::hard_link(a, b).and_then(|()| write(b)),
        "symlink-write" => symlink(a, b).and_then(|()| write(b)),
        "symlink-read" => symlink(a, b).and_then(|()| read(b)).map(drop),
        "proc-fd-read" => proc_fd_read(a),
        "mknod" => mknod(a),
        "mount-tmpfs" => mount_tmpfs(a),
        "bind" => bind(a, b),
        "chroot" => std::os::unix::fs::chroot(a),
        "setuid-bit" => return privileges(),
        "see" => fs::metadata(format!("/proc/{a}/stat")).map(drop),
        "kill" => call(unsafe { libc::kill(number(a)?, 0) }),
        "ptrace" => {
            call(unsafe { libc::ptrace(libc::PTRACE_ATTACH, number(a)?, 0, 0) }.try_into().unwrap_or(0))
        }
        "ptrace-child" => ptrace_child(),
        "vm-read" => vm_read(number(a)?),
        "unshare-user" => call(unsafe { libc::unshare(libc::CLONE_NEWUSER) }),
        "clone-user" => crate::processes::clone(libc::CLONE_NEWUSER),
        "clone3" => raw(unsafe { libc::syscall(libc::SYS_clone3, 0, 0) }),
        "setns" => {
            let file = File::open(a)?;
            call(unsafe { libc::setns(file.as_raw_fd(), 0) })
        }
        "io-uring" => io_uring(),
        "bpf" => raw(unsafe { libc::syscall(libc::SYS_bpf, 0, 0, 0) }),
        "perf" => perf(),
        "userfaultfd" => raw(unsafe { libc::syscall(libc::SYS_userfaultfd, 1) }),
        "keyctl" => raw(unsafe { libc::syscall(libc::SYS_keyctl, 0, -3, 1) }),
        "call" => {
            return crate::calls::call(a)
                .unwrap_or_else(|| Err(io::Error::other(format!("no call `{a}`"))))
                .map(|()| "ok".to_owned());
        }
        "open-truncate" => OpenOptions::new().write(true).truncate(true).open(a).map(drop),
        "symlink" => symlink(a, b),
        "symlink-into" => symlink(a, b).and_then(|()| write(&format!("{b}/new"))),
        "exchange" => exchange(a, b),
        "remove-xattr" => call(unsafe { libc::removexattr(text(a)?.as_ptr(), c"user.loci".as_ptr()) }),
        "capability" => capability(a),
        "link-chmod" => call(unsafe {
            libc::fchmodat(libc::AT_FDCWD, text(a)?.as_ptr(), 0o600, libc::AT_SYMLINK_NOFOLLOW)
        }),
        "block" => {
            call(unsafe { libc::mknod(text(a)?.as_ptr(), libc::S_IFBLK | 0o600, libc::makedev(254, 0)) })
        }
        "fifo" => call(unsafe { libc::mkfifo(text(a)?.as_ptr(), 0o600) }),
        "proc-fd-write" => proc_fd_write(a),
        "size" => return Ok(fs::metadata(a)?.len().to_string()),
        "copy-range" => copy_range(a, b),
        "remount" => remount(a),
        "umount" => call(unsafe { libc::umount2(text(a)?.as_ptr(), libc::MNT_DETACH) }),
        "fallocate" => {
            let file = OpenOptions::new().write(true).open(a)?;
            call(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, 1 << 20) })
        }
        "kcmp" => raw(unsafe { libc::syscall(libc::SYS_kcmp, libc::getpid(), libc::getpid(), 0, 0, 0) }),
        "x32" => raw(unsafe { libc::syscall(0x4000_0000 + libc::SYS_getpid) }),
        "int80" => int80(),
        "handle" => handle(a),
        "socket" => return socket(number(a)?, number(b)?, 0).map(|_| "ok".to_owned()),
        "protocol" => return socket(libc::AF_INET, number(a)?, number(b)?).map(|_| "ok".to_owned()),
        "tcp" => connect(a),
        "udp" => UdpSocket::bind(if a.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" })?
            .send_to(b"x", a)
            .map(drop),
        "unix" => UnixStream::connect(a).map(drop),
        "abstract" => abstract_socket(a),
        "tiocsti" => call(unsafe { libc::ioctl(0, libc::TIOCSTI, c"x".as_ptr()) }),
        "shmget" => call(unsafe { libc::shmget(number(a)?, 0, 0) }),
        "shm-file" => read(a).map(drop),
        "fds" => return Ok(open_descriptors()),
        "env" => return std::env::var(a).map_err(io::Error::other),
        "threads" => std::thread::spawn(|| ()).join().map_err(|_| io::Error::other("a thread died")),
        "fork" => crate::processes::clone(0),
        "pty" => call(unsafe { libc::posix_openpt(libc::O_RDWR) }),
        "pids" => return Ok(pids()),
        "limit" => return limit(a),
        _ => {
            return crate::processes::run(name, a, b)
                .or_else(|| crate::proxied::run(name, a, b))
                .unwrap_or_else(|| Err(io::Error::other(format!("no probe `{name}`"))));
        }
    }
    .map(|()| "ok".to_owned())
}

fn write(path: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(b"x")
}

fn read(path: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(16).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn xattr(path: &str) -> io::Result<()> {
    let (path, name) = (text(path)?, c"user.loci");
    call(unsafe { libc::setxattr(path.as_ptr(), name.as_ptr(), name.as_ptr().cast(), 1, 0) })
}

/// Reads a file by the descriptor of one that was opened without the right to read.
fn proc_fd_read(path: &str) -> io::Result<()> {
    let fd = unsafe { libc::open(text(path)?.as_ptr(), libc::O_PATH) };
    call(fd)?;
    read(&format!("/proc/self/fd/{fd}")).map(drop)
}

fn exchange(a: &str, b: &str) -> io::Result<()> {
    let (a, b) = (text(a)?, text(b)?);
    let (here, flags) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
    raw(unsafe { libc::syscall(libc::SYS_renameat2, here, a.as_ptr(), here, b.as_ptr(), flags) })
}

/// Gives a file the right to change the owner of others, as programs with file capabilities have it.
fn capability(path: &str) -> io::Result<()> {
    let mut value = [0_u8; 20];
    value[3] = 2;
    value[4] = 1;
    let name = c"security.capability";
    call(unsafe {
        libc::setxattr(text(path)?.as_ptr(), name.as_ptr(), value.as_ptr().cast(), value.len(), 0)
    })
}

/// Writes a file by the descriptor of one that was opened without the right to write.
fn proc_fd_write(path: &str) -> io::Result<()> {
    let fd = unsafe { libc::open(text(path)?.as_ptr(), libc::O_PATH) };
    call(fd)?;
    write(&format!("/proc/self/fd/{fd}"))
}

fn copy_range(from: &str, to: &str) -> io::Result<()> {
    let (from, to) =
        (File::open(from)?, OpenOptions::new().write(true).create(true).truncate(false).open(to)?);
    let (from, to) = (from.as_raw_fd(), to.as_raw_fd());
    raw(unsafe { libc::syscall(libc::SYS_copy_file_range, from, 0, to, 0, 1, 0) })
}

/// Makes a mount writable again.
fn remount(path: &str) -> io::Result<()> {
    let (path, flags) = (text(path)?, libc::MS_REMOUNT | libc::MS_BIND);
    call(unsafe { libc::mount(std::ptr::null(), path.as_ptr(), std::ptr::null(), flags, std::ptr::null()) })
}

/// Makes a device: the memory of the machine.
fn mknod(path: &str) -> io::Result<()> {
    let device = libc::makedev(1, 1);
    call(unsafe { libc::mknod(text(path)?.as_ptr(), libc::S_IFCHR | 0o600, device) })
}

fn mount_tmpfs(path: &str) -> io::Result<()> {
    let kind = c"tmpfs";
    call(unsafe { libc::mount(kind.as_ptr(), text(path)?.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) })
}

fn bind(from: &str, to: &str) -> io::Result<()> {
    let (from, to) = (text(from)?, text(to)?);
    call(unsafe {
        libc::mount(from.as_ptr(), to.as_ptr(), std::ptr::null(), libc::MS_BIND, std::ptr::null())
    })
}

/// Says whether programs could gain rights, and which are there.
fn privileges() -> io::Result<String> {
    let status = fs::read_to_string("/proc/self/status")?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().trim_start_matches('0').to_owned()
    };
    Ok(format!(
        "new privileges {}, effective {:?}, bounding {:?}",
        if field("NoNewPrivs:") == "1" { "no" } else { "yes" },
        field("CapEff:"),
        field("CapBnd:")
    ))
}

fn ptrace_child() -> io::Result<()> {
    let child = unsafe { libc::fork() };
    if child == 0 {
        std::thread::sleep(SOON);
        std::process::exit(0);
    }
    let attached = call(unsafe { libc::ptrace(libc::PTRACE_ATTACH, child, 0, 0) }.try_into().unwrap_or(0));
    call(unsafe { libc::kill(child, libc::SIGKILL) })?;
    attached
}

fn vm_read(pid: i32) -> io::Result<()> {
    let mut byte = 0_u8;
    let local = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let read = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    match read {
        // The address means nothing there; that it was looked up is enough.
        ..0 if io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT) => {
            Err(io::Error::last_os_error())
        }
        _ => Ok(()),
    }
}

fn io_uring() -> io::Result<()> {
    let mut parameters = [0_u8; 256];
    raw(unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) })
}

fn perf() -> io::Result<()> {
    let mut attributes = [0_u8; 128];
    // Counts a software event of this process: type 1, size 128, config 0, excluding the kernel.
    attributes[0] = 1;
    attributes[4] = 128;
    attributes[40] = 0b0110_0000;
    raw(unsafe { libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, -1, 0) })
}

/// Makes a system call of 32 bits: `getpid` is 20 there.
#[cfg(target_arch = "x86_64")]
fn int80() -> io::Result<()> {
    let result: i64;
    unsafe {
        std::arch::asm!("int 0x80", inlateout("rax") 20_i64 => result, out("r8") _, out("r9") _, out("r10") _, out("r11") _);
    }
    if result < 0 { Err(io::Error::from_raw_os_error(i32::try_from(-result).unwrap_or(0))) } else { Ok(()) }
}

#[cfg(not(target_arch = "x86_64"))]
fn int80() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn handle(path: &str) -> io::Result<()> {
    let directory = File::open(path)?;
    let mut handle = [0_u8; 136];
    handle[0] = 128;
    raw(unsafe { libc::syscall(libc::SYS_open_by_handle_at, directory.as_raw_fd(), handle.as_mut_ptr(), 0) })
}

fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<i32> {
    let fd = unsafe { libc::socket(family, kind, protocol) };
    call(fd)?;
    Ok(fd)
}

fn connect(address: &str) -> io::Result<()> {
    let address = address.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
    TcpStream::connect_timeout(&address, SOON).map(drop)
}

fn abstract_socket(name: &str) -> io::Result<()> {
    use std::os::linux::net::SocketAddrExt;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
    UnixStream::connect_addr(&address).map(drop)
}

fn open_descriptors() -> String {
    let open = (3..1024).filter(|fd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0);
    open.map(|fd| fd.to_string()).collect::<Vec<_>>().join(" ")
}

fn pids() -> String {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|it| it.file_name());
    let n = names.filter(|name| name.to_str().is_some_and(|it| it.parse::<u32>().is_ok())).count();
    if n < 8 { "few".to_owned() } else { "many".to_owned() }
}

fn limit(name: &str) -> io::Result<String> {
    let limits = fs::read_to_string("/proc/self/limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    Ok(line.split_whitespace().next().unwrap_or_default().to_owned())
}

pub(crate) fn text(path: &str) -> io::Result<CString> {
    CString::new(path).map_err(io::Error::other)
}

pub(crate) fn number(text: &str) -> io::Result<i32> {
    text.parse().map_err(io::Error::other)
}

pub(crate) fn call(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

pub(crate) fn raw(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn errno_name(number: i32) -> String {
    const NAMES: &[(i32, &str)] = &[
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::ESRCH, "ESRCH"),
        (libc::EACCES, "EACCES"),
        (libc::EBUSY, "EBUSY"),
        (libc::EEXIST, "EEXIST"),
        (libc::EXDEV, "EXDEV"),
        (libc::EISDIR, "EISDIR"),
        (libc::ENOTDIR, "ENOTDIR"),
        (libc::EINVAL, "EINVAL"),
        (libc::EROFS, "EROFS"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
        (libc::ENETUNREACH, "ENETUNREACH"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::ENXIO, "ENXIO"),
        (libc::ENOTTY, "ENOTTY"),
        (libc::ELOOP, "ELOOP"),
        (libc::EFAULT, "EFAULT"),
        (libc::ENOTEMPTY, "ENOTEMPTY"),
        (libc::EIO, "EIO"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::ENODEV, "ENODEV"),
        (libc::EBADF, "EBADF"),
        (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
        (libc::EHOSTUNREACH, "EHOSTUNREACH"),
        (libc::ECONNRESET, "ECONNRESET"),
        (libc::ETXTBSY, "ETXTBSY"),
        (libc::EFBIG, "EFBIG"),
        (libc::ENODATA, "ENODATA"),
        (libc::ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"),
        (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
    ];
    NAMES
        .iter()
        .find(|(it, _)| *it == number)
        .map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
}
