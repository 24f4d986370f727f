//! The probes of the specification, under each layer alone and together.
//!
//! A row is a probe and what comes of it under {landlock, namespaces, seccomp, full, weak}. What a layer does not hold alone is
//! `ok` there: that is why there are three. Under full `ok` means that it is meant to work.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use super::kit::{LAYERINGS, ORDINARY_USER, PROBE, Run, World, has_full, is_root};
use super::probe_table::{FILES, NETWORK, PROCESSES, Row};

/// Who makes the attempts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// Who runs the tests: every error must be the one that is written down.
    Us,
    /// An ordinary user, whom other checks may stop earlier: what is shut must be shut, what works must work.
    OrdinaryUser,
}

fn is_shut(answer: &str) -> bool {
    answer.starts_with('E') || answer == "few" || answer.starts_with("signal")
}

/// Tells whether an ordinary user is held as well as is written down: a row without a number is meant to work, and must.
fn is_as_shut(layering: &str, label: &str, found: &str, expected: &str) -> bool {
    let is_probe = label.starts_with(|c: char| c.is_ascii_digit());
    // Without namespaces nobody but root can empty the bounding set, which nothing can be taken from then.
    let without_bounds = |text: &str| text.split(", bounding").next().map(str::to_owned);
    let is_unbounded = layering == "weak" && found.contains(", bounding");
    (is_shut(found) && (is_probe || is_shut(expected)))
        || (is_unbounded && without_bounds(found) == without_bounds(expected))
}

/// Checks rows under every layering, so many of them in a sandbox of their own.
fn check(by: By, rows: &[Row], n_together: usize, fill: impl Fn(&World, &str) -> String + Sync) {
    if !has_full() {
        return;
    }
    let wrong = std::sync::Mutex::new(Vec::new());
    let check_one = |layering: &str, idx: usize, found: &str, (label, _, expected): &Row| {
        // A device that this machine lacks is shut as well.
        let is_missing_device = label.starts_with("16 ") && found == "ENOENT";
        let is_as_shut = by == By::OrdinaryUser && is_as_shut(layering, label, found, expected[idx]);
        if found != expected[idx] && !is_missing_device && !is_as_shut {
            let line = format!("{label} under {layering}: {found}, expected {}", expected[idx]);
            wrong.lock().unwrap().push(line);
        }
    };
    let check_some = |idx: usize, run: Run, rows: &[Row]| {
        let (layering, layers) = LAYERINGS[idx];
        let world = match by {
            By::Us => prepared(),
            By::OrdinaryUser => prepared().of_user(ORDINARY_USER),
        };
        let filled = |probe: &str| {
            let probe = fill(&world, probe).replace('@', &world.text(""));
            probe.replace(' ', "\t").replace('\u{a0}', " ").replace("//", "/")
        };
        let probes: Vec<String> = rows.iter().map(|(_, probe, _)| filled(probe)).collect();
        let found = world.probe(run, &world.policy(layers), &probes);
        assert_eq!(found.len(), rows.len(), "{layering}");
        found.iter().zip(rows).for_each(|(found, row)| check_one(layering, idx, found, row));
    };
    std::thread::scope(|scope| {
        // Alone the layers hold whoever it is.
        let layerings = if by == By::Us { 0..LAYERINGS.len() } else { LAYERINGS.len() - 2..LAYERINGS.len() };
        for idx in layerings {
            // All together hold as well in what was prepared before anybody knew of the attempts.
            let has_waited = LAYERINGS[idx].0 == "full";
            let ways = [Some(World::run as Run), has_waited.then_some(World::run_by_waiting_helper as Run)];
            let check_some = &check_some;
            scope.spawn(move || {
                for run in ways.into_iter().flatten() {
                    rows.chunks(n_together).for_each(|rows| check_some(idx, run, rows));
                }
            });
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
    world.write("home/p/.claude/skills/s/SKILL.md", "");
    world.write("home/dot/netrc", "secret");
    for dir in ["outside/empty", "home/p/dir", "scratch2"] {
        std::fs::create_dir(world.path(dir)).unwrap();
    }
    for (link, target) in [("home/p/there", "outside/file"), ("home/.netrc", "home/dot/netrc")] {
        std::os::unix::fs::symlink(world.path(target), world.path(link)).unwrap();
    }
    world
}

#[test]
fn file_probes_are_shut() {
    check(By::Us, FILES, 1, |_, probe| probe.to_owned());
}

#[test]
fn file_probes_are_shut_for_an_ordinary_user() {
    if is_root() {
        check(By::OrdinaryUser, FILES, 1, |_, probe| probe.to_owned());
    }
}

/// Makes or removes memory, semaphores and queues of the machine.
fn queues(verb: &str, key: &str) {
    let output = std::process::Command::new(PROBE).args(["one", verb, key]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "ok", "{verb}");
}

/// What a probe of the weak level lets through that the full one does not, by the probes' numbers.
#[test]
fn what_is_open_in_the_weak_level_is_listed_by_name() {
    use std::collections::BTreeSet;
    let weak = loci_sandbox::LevelCheck {
        level: loci_sandbox::Level::Weak,
        layers: loci_sandbox::policy::Layers::WEAK,
        reports: Vec::new(),
    };
    let numbers = |text: &str| -> BTreeSet<u32> {
        text.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse().ok()).collect()
    };
    let listed: BTreeSet<u32> = weak.open().iter().flat_map(|line| numbers(line)).collect();
    let rows = FILES.iter().chain(PROCESSES).chain(NETWORK);
    let open = rows.filter(|(_, _, answers)| !is_shut(answers[4]) && is_shut(answers[3]));
    let open: BTreeSet<u32> = open
        .map(|(label, ..)| {
            label.split(' ').next().and_then(|it| it.parse().ok()).unwrap_or_else(|| panic!("{label}"))
        })
        .collect();
    assert_eq!(listed, open);
}

#[test]
fn process_probes_are_shut() {
    check_processes(By::Us);
}

#[test]
fn process_probes_are_shut_for_an_ordinary_user() {
    if is_root() {
        check_processes(By::OrdinaryUser);
    }
}

fn check_processes(by: By) {
    let mut host = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = host.id().to_string();
    // A key for the machine's queues that no other test has.
    let key =
        (0x10c1_0000 + std::process::id() % 0xffff + if by == By::Us { 0 } else { 0x1_0000 }).to_string();
    let memory = format!("/dev/shm/loci-probe-{key}");
    queues("make-queues", &key);
    std::fs::write(&memory, "secret").unwrap();
    check(by, PROCESSES, PROCESSES.len(), |_, probe| {
        probe.replace("PID", &pid).replace("IPCKEY", &key).replace("SHMFILE", &memory)
    });
    queues("remove-queues", &key);
    std::fs::remove_file(&memory).unwrap();
    host.kill().unwrap();
    host.wait().unwrap();
}

#[test]
fn network_probes_are_shut() {
    check_network(By::Us);
}

#[test]
fn network_probes_are_shut_for_an_ordinary_user() {
    if is_root() {
        check_network(By::OrdinaryUser);
    }
}

fn check_network(by: By) {
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
    let name = format!("loci-probe-{}-{}", std::process::id(), if by == By::Us { "us" } else { "user" });
    let address =
        <std::os::unix::net::SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name)
            .unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    check(by, NETWORK, NETWORK.len(), |_, probe| {
        let filled = probe.replace("PORT6", &port6).replace("UDPPORT", &udp_port).replace("PORT", &port);
        filled.replace("SOCKET", &socket.display().to_string()).replace("NAME", &name)
    });
    // Landlock knows no UDP; in a network of its own what is sent to the loopback stays there.
    let arrived = std::iter::from_fn(|| udp.recv(&mut [0; 16]).ok()).count();
    let is_alone_tried = by == By::Us;
    assert!(
        !has_full() || arrived == usize::from(is_alone_tried),
        "{arrived} datagrams have left, and one only without namespaces"
    );
}
