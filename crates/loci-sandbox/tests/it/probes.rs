//! The probes of the specification, under each layer alone and together.
//!
//! A row is a probe and what comes of it under {landlock, namespaces, seccomp, full}. What a layer does not hold alone is
//! `ok` there: that is why there are three. In the last column `ok` means that it is meant to work.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use super::kit::{LAYERINGS, World, has_full};

/// Label, probe with its arguments (`@` stands for the world's directory), and the four answers.
type Row = (&'static str, &'static str, [&'static str; 4]);

const FILES: &[Row] = &[
    ("1 write outside", "write @/outside/new", ["EACCES", "EROFS", "ok", "EROFS"]),
    ("1 write an outside file", "write @/outside/file", ["EACCES", "EROFS", "ok", "EROFS"]),
    ("1 write in the home", "write @/home/new", ["EACCES", "EROFS", "ok", "EROFS"]),
    (
        "1 write in the temporary directory of the machine",
        "write /tmp/loci-probe",
        ["EACCES", "EROFS", "ok", "EROFS"],
    ),
    ("2 through a symlink", "symlink-write @/outside/file @/home/p/link", ["EACCES", "EROFS", "ok", "EROFS"]),
    ("3 by a hard link", "link-write @/outside/file @/home/p/hard", ["EXDEV", "EXDEV", "ok", "EXDEV"]),
    ("4 rename out", "rename @/home/p/file @/outside/moved", ["EACCES", "EXDEV", "ok", "EXDEV"]),
    ("5 rename in", "rename @/outside/file @/home/p/moved", ["EACCES", "EXDEV", "ok", "EXDEV"]),
    ("6 truncate", "truncate @/outside/file", ["EACCES", "EROFS", "ok", "EROFS"]),
    ("7 chmod", "chmod @/outside/file", ["ok", "EROFS", "ok", "EROFS"]),
    ("7 chown", "chown @/outside/file", ["ok", "EROFS", "ok", "EROFS"]),
    ("8 utime", "utime @/outside/file", ["ok", "EROFS", "ok", "EROFS"]),
    ("8 xattr", "xattr @/outside/file", ["ok", "EROFS", "ok", "EROFS"]),
    ("9 unlink", "unlink @/outside/file", ["EACCES", "EROFS", "ok", "EROFS"]),
    ("10 mkdir", "mkdir @/outside/dir", ["EACCES", "EROFS", "ok", "EROFS"]),
    ("11 missing: .mcp.json", "create-new @/home/p/.mcp.json", ["ok", "EEXIST", "ok", "EEXIST"]),
    ("11 missing: .envrc", "create-new @/home/p/.envrc", ["ok", "EEXIST", "ok", "EEXIST"]),
    ("11 missing: .vscode", "create-new @/home/p/.vscode/tasks.json", ["ENOENT", "EROFS", "ENOENT", "EROFS"]),
    ("11 missing: .vscode itself", "mkdir @/home/p/.vscode", ["ok", "EEXIST", "ok", "EEXIST"]),
    ("11 missing: .gitconfig", "create-new @/home/p/.gitconfig", ["ok", "EEXIST", "ok", "EEXIST"]),
    ("11 missing: .bashrc", "create-new @/home/p/.bashrc", ["ok", "EEXIST", "ok", "EEXIST"]),
    (
        "11 missing: .claude/settings.local.json",
        "create-new @/home/p/.claude/settings.local.json",
        ["ok", "EROFS", "ok", "EROFS"],
    ),
    ("11 missing: .claude/skills", "mkdir @/home/p/.claude/skills", ["ok", "EROFS", "ok", "EROFS"]),
    (
        "11 missing: .git/config.worktree",
        "write @/home/p/.git/config.worktree",
        ["ok", "EACCES", "ok", "EACCES"],
    ),
    ("11 missing: HEAD", "create-new @/home/p/HEAD", ["ok", "EEXIST", "ok", "EEXIST"]),
    ("11 a placeholder removed", "rmdir @/home/p/.envrc", ["ENOENT", "EBUSY", "ENOENT", "EBUSY"]),
    ("11 a placeholder renamed", "rename @/home/p/.envrc @/home/p/x", ["ENOENT", "EBUSY", "ENOENT", "EBUSY"]),
    (
        "12 overwrite .claude/settings.json",
        "write @/home/p/.claude/settings.json",
        ["ok", "EROFS", "ok", "EROFS"],
    ),
    (
        "12 replace .claude/settings.json",
        "rename @/home/p/file @/home/p/.claude/settings.json",
        ["ok", "EXDEV", "ok", "EXDEV"],
    ),
    ("12 overwrite .git/config", "write @/home/p/.git/config", ["ok", "EROFS", "ok", "EROFS"]),
    ("12 replace .git/config", "rename @/home/p/file @/home/p/.git/config", ["ok", "EXDEV", "ok", "EXDEV"]),
    ("12 write a hook", "write @/home/p/.git/hooks/pre-commit", ["ok", "EROFS", "ok", "EROFS"]),
    ("12 change a hook", "write @/home/p/.git/hooks/post-commit", ["ok", "EROFS", "ok", "EROFS"]),
    ("12 chmod a hook", "chmod @/home/p/.git/hooks/post-commit", ["ok", "EROFS", "ok", "EROFS"]),
    ("13 rename .git", "rename @/home/p/.git @/home/p/git2", ["ok", "EBUSY", "ok", "EBUSY"]),
    ("13 rename .claude", "rename @/home/p/.claude @/home/p/c2", ["ok", "EBUSY", "ok", "EBUSY"]),
    ("13 rename .git/hooks", "rename @/home/p/.git/hooks @/home/p/.git/h2", ["ok", "EBUSY", "ok", "EBUSY"]),
    ("14 read a hidden file", "read @/home/p/private/key", ["ok", "EACCES", "ok", "EACCES"]),
    ("14 by a descriptor", "proc-fd-read @/home/p/private/key", ["ok", "EACCES", "ok", "EACCES"]),
    ("14 by a hard link", "link @/home/p/private/key @/home/p/hard", ["ok", "EXDEV", "ok", "EXDEV"]),
    ("14 by a symlink", "symlink-read @/home/p/private/key @/home/p/link", ["ok", "EACCES", "ok", "EACCES"]),
    ("14 rename its directory", "rename @/home/p/private @/home/p/p2", ["ok", "EBUSY", "ok", "EBUSY"]),
    ("14 read in a hidden directory", "read @/outside/hidden/file", ["EACCES", "EACCES", "ok", "EACCES"]),
    ("14 list a hidden directory", "list @/outside/hidden", ["ok", "EACCES", "ok", "EACCES"]),
    ("14 credentials", "read @/home/.aws/credentials", ["EACCES", "EACCES", "ok", "EACCES"]),
    ("14 a private key", "read @/home/.ssh/id", ["EACCES", "EACCES", "ok", "EACCES"]),
    ("14 our own credentials", "read @/home/.claude/.credentials.json", ["EACCES", "EACCES", "ok", "EACCES"]),
    ("a public key", "read @/home/.ssh/id.pub", ["ok", "ok", "ok", "ok"]),
    ("an outside file is read", "read @/outside/file", ["ok", "ok", "ok", "ok"]),
    ("an inside file is written", "write @/home/p/file", ["ok", "ok", "ok", "ok"]),
    ("the scratch directory is written", "write @/scratch/x", ["ok", "ok", "ok", "ok"]),
    ("git's index is written", "write @/home/p/.git/index", ["ok", "ok", "ok", "ok"]),
    ("16 /dev/mem", "append-open /dev/mem", ["ENOENT", "ENOENT", "ENOENT", "ENOENT"]),
    ("16 /dev/kvm", "append-open /dev/kvm", ["EACCES", "ENOENT", "ok", "ENOENT"]),
    ("16 /dev/fuse", "append-open /dev/fuse", ["EACCES", "ENOENT", "ok", "ENOENT"]),
    ("16 a disk", "read /dev/vda", ["EPERM", "ENOENT", "EPERM", "ENOENT"]),
    ("/dev/null is written", "write /dev/null", ["ok", "ok", "ok", "ok"]),
    ("17 mknod", "mknod @/home/p/mem", ["EPERM", "EPERM", "EPERM", "EPERM"]),
    ("18 tmpfs over a protected path", "mount-tmpfs @/home/p/.git", ["EPERM", "EPERM", "EPERM", "EPERM"]),
    (
        "18 bind over a protected path",
        "bind @/home/p/file @/home/p/.git/config",
        ["EPERM", "EPERM", "EPERM", "EPERM"],
    ),
    ("chroot", "chroot @/home/p", ["EPERM", "EPERM", "EPERM", "EPERM"]),
    ("handle", "handle @/home/p", ["EPERM", "EPERM", "EPERM", "EPERM"]),
    ("23 descriptors", "fds", ["", "", "", ""]),
    ("41 core pattern", "append-open /proc/sys/kernel/core_pattern", ["EACCES", "EROFS", "ok", "EROFS"]),
    (
        "41 binfmt_misc",
        "append-open /proc/sys/fs/binfmt_misc/register",
        ["ENOENT", "ENOENT", "ENOENT", "ENOENT"],
    ),
    ("41 sysrq", "append-open /proc/sysrq-trigger", ["ENOENT", "ENOENT", "ENOENT", "ENOENT"]),
    ("41 core files", "limit Max core file size", ["0", "0", "0", "0"]),
];
const PROCESSES: &[Row] = &[
    ("15 root of a process", "list /proc/PID/root", ["EACCES", "ENOENT", "EACCES", "ENOENT"]),
    ("15 cwd of a process", "list /proc/PID/cwd", ["EACCES", "ENOENT", "EACCES", "ENOENT"]),
    ("15 descriptors of a process", "list /proc/PID/fd", ["ok", "ENOENT", "ok", "ENOENT"]),
    ("15 environment of a process", "read /proc/PID/environ", ["EACCES", "ENOENT", "EACCES", "ENOENT"]),
    ("15 memory of a process", "read /proc/PID/mem", ["EACCES", "ENOENT", "EACCES", "ENOENT"]),
    ("25 see a process", "see PID", ["ok", "ENOENT", "ok", "ENOENT"]),
    ("25 count processes", "pids", ["many", "few", "many", "few"]),
    ("26 signal a process", "kill PID", ["EPERM", "ESRCH", "ok", "ESRCH"]),
    ("27 ptrace a process", "ptrace PID", ["EPERM", "ESRCH", "EPERM", "EPERM"]),
    ("28 ptrace a child", "ptrace-child", ["ok", "ok", "EPERM", "EPERM"]),
    ("29 process_vm_readv", "vm-read PID", ["EPERM", "ESRCH", "EPERM", "EPERM"]),
    ("31 TIOCSTI", "tiocsti", ["ENOTTY", "ENOTTY", "EPERM", "EPERM"]),
    ("35 keyring", "keyctl", ["ok", "ok", "EPERM", "EPERM"]),
    ("36 unshare", "unshare-user", ["ok", "ok", "EPERM", "EPERM"]),
    ("36 clone", "clone-user", ["ok", "ok", "EPERM", "EPERM"]),
    ("36 clone3", "clone3", ["EINVAL", "EINVAL", "ENOSYS", "ENOSYS"]),
    ("37 setns", "setns /proc/self/ns/user", ["EINVAL", "EINVAL", "EPERM", "EPERM"]),
    ("38 io_uring", "io-uring", ["ok", "ok", "EPERM", "EPERM"]),
    ("39 bpf", "bpf", ["EINVAL", "EINVAL", "EPERM", "EPERM"]),
    ("39 perf", "perf", ["ok", "ok", "EPERM", "EPERM"]),
    ("39 userfaultfd", "userfaultfd", ["ok", "ok", "EPERM", "EPERM"]),
    ("40 x32", "x32", ["ENOSYS", "ENOSYS", "EPERM", "EPERM"]),
    ("40 32 bits", "int80", ["ok", "ok", "signal 31", "signal 31"]),
    ("kcmp", "kcmp", ["ok", "ok", "EPERM", "EPERM"]),
    (
        "19 privileges",
        "setuid-bit",
        [
            "new privileges no, effective \"\", bounding \"\"",
            "new privileges no, effective \"\", bounding \"\"",
            "new privileges no, effective \"\", bounding \"\"",
            "new privileges no, effective \"\", bounding \"\"",
        ],
    ),
    ("threads", "threads", ["ok", "ok", "ok", "ok"]),
    ("fork", "fork", ["ok", "ok", "ok", "ok"]),
    ("pseudo terminal", "pty", ["ok", "ok", "ok", "ok"]),
];
const NETWORK: &[Row] = &[
    (
        "42 TCP to the machine's loopback",
        "tcp 127.0.0.1:PORT",
        ["EACCES", "ECONNREFUSED", "EPERM", "ECONNREFUSED"],
    ),
    ("48 TCP over IPv6", "tcp [::1]:PORT6", ["EACCES", "ECONNREFUSED", "EPERM", "ECONNREFUSED"]),
    (
        "48 TCP to a mapped address",
        "tcp [::ffff:127.0.0.1]:PORT",
        ["EACCES", "ECONNREFUSED", "EPERM", "ECONNREFUSED"],
    ),
    ("43 TCP elsewhere", "tcp 192.0.2.1:80", ["EACCES", "ENETUNREACH", "EPERM", "ENETUNREACH"]),
    ("44 UDP to the machine's loopback", "udp 127.0.0.1:UDPPORT", ["ok", "ok", "EPERM", "ok"]),
    ("45 DNS", "udp 192.0.2.53:53", ["ok", "ENETUNREACH", "EPERM", "ENETUNREACH"]),
    ("46 ICMP", "socket 2 3", ["93", "93", "EPERM", "93"]),
    ("47 netlink", "socket 16 3", ["ok", "ok", "EPERM", "EPERM"]),
    ("47 packet", "socket 17 3", ["EPERM", "EPERM", "EPERM", "EPERM"]),
    ("47 vsock", "socket 40 1", ["ok", "ok", "EPERM", "EPERM"]),
    ("32 abstract socket", "abstract NAME", ["EPERM", "ECONNREFUSED", "EPERM", "EPERM"]),
    ("33 path socket", "unix SOCKET", ["ok", "ok", "EPERM", "EPERM"]),
];

fn check(rows: &[Row], fill: impl Fn(&World, &str) -> String + Sync) {
    if !has_full() {
        return;
    }
    let wrong = std::sync::Mutex::new(Vec::new());
    let check_one = |idx: usize, (label, probe, expected): &Row| {
        let (layering, layers) = LAYERINGS[idx];
        let world = prepared();
        let probe = fill(&world, probe).replace('@', &world.text(""));
        let probe = probe.replace(' ', "\t").replace('\u{a0}', " ").replace("//", "/");
        let found = world.probe(&world.policy(layers), &[probe]).pop().unwrap_or_default();
        if found != expected[idx] {
            let line = format!("{label} under {layering}: {found}, expected {}", expected[idx]);
            wrong.lock().unwrap().push(line);
        }
    };
    std::thread::scope(|scope| {
        for idx in 0..LAYERINGS.len() {
            let check_one = &check_one;
            scope.spawn(move || rows.iter().for_each(|row| check_one(idx, row)));
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn prepared() -> World {
    let mut world = World::new();
    world.write("home/p/.git/config", "");
    world.write("home/p/.git/HEAD", "ref: refs/heads/main");
    world.write("home/p/.claude/settings.json", "{}");
    world.write("home/p/.git/hooks/post-commit", "");
    world.write("home/p/private/key", "secret");
    world.settings.deny_read = vec![world.path("home/p/private/key"), world.path("outside/hidden")];
    world.write("outside/hidden/file", "x");
    world
}

#[test]
fn file_probes_are_shut() {
    check(FILES, |_, probe| probe.to_owned());
}

#[test]
fn process_probes_are_shut() {
    let mut host = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = host.id().to_string();
    check(PROCESSES, |_, probe| probe.replace("PID", &pid));
    host.kill().unwrap();
    host.wait().unwrap();
}

#[test]
fn network_probes_are_shut() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp6 = TcpListener::bind("[::1]:0");
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port().to_string();
    let port6 = tcp6.as_ref().map_or(1, |it| it.local_addr().unwrap().port()).to_string();
    udp.set_nonblocking(true).unwrap();
    let udp_port = udp.local_addr().unwrap().port().to_string();
    let dir = tempfile::tempdir_in(std::path::Path::new(super::kit::PROBE).parent().unwrap()).unwrap();
    let socket = dir.path().join("s");
    let _unix = UnixListener::bind(&socket).unwrap();
    let name = format!("loci-probe-{}", std::process::id());
    let address =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name)
            .unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    check(NETWORK, |_, probe| {
        let filled = probe.replace("PORT6", &port6).replace("UDPPORT", &udp_port).replace("PORT", &port);
        filled.replace("SOCKET", &socket.display().to_string()).replace("NAME", &name)
    });
    // Landlock knows no UDP; in a network of its own what is sent to the loopback stays there.
    let arrived = std::iter::from_fn(|| udp.recv(&mut [0; 16]).ok()).count();
    assert!(!has_full() || arrived == 1, "{arrived} datagrams have left, and one only without namespaces");
}
