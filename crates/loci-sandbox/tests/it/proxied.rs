//! The proxy as a sandboxed program meets it: probes 49 to 56 from inside, on this machine's kernel.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use loci_sandbox::egress::rules::DomainRules;
use loci_sandbox::egress::{Egress, HostDecision, connections};
use loci_sandbox::policy::{Layers, Namespaces, Network};
use loci_sandbox::{Policy, launch};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::kit::{ORDINARY_USER, PROBE, World, has_full, is_root};

/// Runs probes in a sandbox whose way out is this proxy; returns a line for each.
async fn probe(world: &World, egress: &Arc<Egress>, probes: &[String]) -> Vec<String> {
    let policy = Policy { network: Network::Proxy, ..world.policy(Layers::FULL) };
    let args = std::iter::once("all".to_owned()).chain(probes.iter().map(|it| it.replace(' ', "\t")));
    let (mut command, helper_handle) = launch(PROBE.as_ref(), &policy, PROBE.as_ref(), args).unwrap();
    command.current_dir(world.path("home/p")).env_clear().envs(world.env()).envs(proxy_env());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut command = tokio::process::Command::from(command);
    let child = command.spawn().unwrap();
    drop(command);
    let running = helper_handle.of_command("the probe").watch(Some(connections(Arc::clone(egress)))).unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(running.report().await.why_not_run(), None);
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// Variables as a command gets them when it tries to go around the proxy.
fn proxy_env() -> Vec<(String, String)> {
    vec![("NO_PROXY".to_owned(), "*".to_owned()), ("no_proxy".to_owned(), "good.test,127.0.0.1".to_owned())]
}

/// A proxy to which every name leads to the loopback, and which may be reached there.
fn egress(allowed: &[&str], denied: &[&str]) -> Egress {
    let mut rules = DomainRules::default();
    allowed.iter().chain(&["127.0.0.1"]).for_each(|it| rules.allow(it).unwrap());
    denied.iter().for_each(|it| rules.deny(it).unwrap());
    let mut egress = Egress::new(rules, None);
    egress.resolver = Some(Arc::new(|_| vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]));
    egress
}

/// A server that answers every connection with the same bytes; returns its port and how often it was reached.
async fn server(answer: String) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let n_reached = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_reached);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let mut got = vec![0; 4096];
            // A client that says nothing is answered too, and one that has gone not at all.
            if stream.read(&mut got).await.is_ok() && stream.write_all(answer.as_bytes()).await.is_ok() {
                stream.shutdown().await.ok();
            }
        }
    });
    (port, n_reached)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_proxy_leads_out_and_only_to_what_was_decided() {
    if !has_full() {
        return;
    }
    let (port, n_reached) = server("hello".to_owned()).await;
    let world = World::new();
    let egress = Arc::new(egress(&["good.test", "*.below.test"], &["bad.test", "bad.below.test"]));
    let long = "a".repeat(254);
    let cases = [
        // 42, 43, 54: no way around it, whatever variables say (55).
        (format!("tcp 127.0.0.1:{port}"), "ECONNREFUSED"),
        ("tcp 192.0.2.1:80".to_owned(), "ENETUNREACH"),
        (
            "proxy-env".to_owned(),
            "HTTP_PROXY=unset https_proxy=unset ALL_PROXY=unset NO_PROXY=* no_proxy=good.test,127.0.0.1",
        ),
        // What is allowed.
        (format!("proxy-connect good.test:{port} ping"), "200 hello"),
        (format!("proxy-connect GOOD.test.:{port} ping"), "200 hello"),
        (format!("proxy-connect x.below.test:{port} ping"), "200 hello"),
        // 49: denied, in every spelling.
        (format!("proxy-connect bad.test:{port} ping"), "403"),
        (format!("proxy-connect BAD.test.:{port} ping"), "403"),
        (format!("proxy-connect bad.below.test:{port} ping"), "403"),
        (format!("proxy-connect below.test:{port} ping"), "403"),
        (format!("proxy-connect good.test@bad.test:{port} ping"), "400"),
        (format!("proxy-connect bad.test%00.good.test:{port} ping"), "400"),
        (format!("proxy-connect xn--bd-via.test:{port} ping"), "403"),
        (format!("proxy-connect {long}:{port} ping"), "400"),
        (format!("proxy-connect bad.test:{port}:443 ping"), "400"),
        ("proxy-connect 169.254.169.254:80 x".to_owned(), "403"),
        ("proxy-connect 2852039166:80 x".to_owned(), "403"),
        ("proxy-connect 0xa9fea9fe:80 x".to_owned(), "403"),
        ("proxy-connect 0251.0376.0251.0376:80 x".to_owned(), "403"),
        ("proxy-connect [::ffff:169.254.169.254]:80 x".to_owned(), "403"),
        ("proxy-connect [fd00:ec2::254]:80 x".to_owned(), "403"),
        // 51.
        (format!("proxy-get http://bad.test:{port}/"), "403"),
        (format!("proxy-get https://good.test:{port}/"), "400"),
        (format!("proxy-get ftp://good.test:{port}/"), "400"),
    ];
    let probes: Vec<String> = cases.iter().map(|(probe, _)| probe.clone()).collect();
    let found = probe(&world, &egress, &probes).await;
    for ((probe, expected), found) in cases.iter().zip(&found) {
        assert_eq!(found, expected, "{probe}");
    }
    assert_eq!(found.len(), cases.len());
    assert_eq!(n_reached.load(Ordering::SeqCst), 3, "the server was reached by what is allowed alone");
}

/// 56: where a redirect leads is asked about like any other host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirect_from_an_allowed_to_a_denied_host_ends_there() {
    if !has_full() {
        return;
    }
    let (target, n_reached) = server("HTTP/1.1 200 OK\r\n\r\n".to_owned()).await;
    let (port, _) = server(format!(
        "HTTP/1.1 302 Found\r\nLocation: http://bad.test:{target}/\r\nContent-Length: 0\r\n\r\n"
    ))
    .await;
    let egress = Arc::new(egress(&["good.test"], &["bad.test"]));
    let found = probe(&World::new(), &egress, &[format!("proxy-follow http://good.test:{port}/")]).await;
    assert_eq!(found, ["302 403"]);
    assert_eq!(n_reached.load(Ordering::SeqCst), 0);
}

/// 54: the ports of the proxy are those of the namespace: nothing listens on the machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ports_of_the_proxy_are_not_the_machine_s() {
    if !has_full() {
        return;
    }
    // Two sandboxes at once have the same ports, and neither sees the other's.
    let (worlds, egress) = ([World::new(), World::new()], Arc::new(egress(&[], &[])));
    let probes = ["proxy-connect unknown.test:1 x".to_owned(), "tcp 127.0.0.1:1080".to_owned()];
    let (a, b) = tokio::join!(probe(&worlds[0], &egress, &probes), probe(&worlds[1], &egress, &probes));
    assert_eq!((a, b), (vec!["403".to_owned(), "ok".to_owned()], vec!["403".to_owned(), "ok".to_owned()]));
    let own: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .map(|it| std::fs::read_to_string(it).unwrap_or_default())
        .collect();
    // In the kernel's table: the port in hexadecimal, and the state of a listening socket.
    let listens = |port: u16| {
        let end = format!(":{port:04X}");
        let is_it = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            fields.get(1).is_some_and(|it| it.ends_with(&end)) && fields.get(3) == Some(&"0A")
        };
        own.iter().any(|table| table.lines().any(is_it))
    };
    assert!(!listens(3128) && !listens(1080), "{own:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_asked_about_a_host_hears_which_command_wants_it() {
    if !has_full() {
        return;
    }
    let heard = Arc::new(Mutex::new(Vec::new()));
    let egress = egress(&[], &[]);
    let noted = Arc::clone(&heard);
    egress.set_asker(Arc::new(move |target, command| {
        noted.lock().unwrap().push(format!("{target} {}", command.unwrap_or("nobody")));
        Box::pin(async { HostDecision::Refused(None) })
    }));
    let probes = vec!["proxy-connect new.test:443 x".to_owned(); 3];
    let found = probe(&World::new(), &Arc::new(egress), &probes).await;
    assert_eq!(found, ["403", "403", "403"]);
    assert_eq!(*heard.lock().unwrap(), ["new.test:443 the probe"], "once, and the answer is kept");
}

/// SB-11: while a program works and holds a connection that nobody uses, neither helper nor proxy do anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_spins_while_a_program_works() {
    if !has_full() {
        return;
    }
    let (port, _) = server("hello".to_owned()).await;
    let world = World::new();
    let egress = Arc::new(egress(&["good.test"], &[]));
    // The program spends half a second of processor time, counted by itself, and tells what others have spent.
    let found = probe(&world, &egress, &[format!("spend good.test:{port}")]).await;
    assert_eq!(found, ["the first process has spent nothing"]);
}

/// The filter lets nobody ask about links, so that it is left out here.
#[test]
fn loopback_of_a_sandbox_with_a_proxy_has_large_packets() {
    if !has_full() {
        return;
    }
    let mut worlds = vec![World::new()];
    if is_root() {
        worlds.push(World::new().of_user(ORDINARY_USER));
    }
    for world in worlds {
        let layers = Layers { namespaces: Namespaces::Full, landlock: false, seccomp: false };
        let policy = Policy { network: Network::Proxy, ..world.policy(layers) };
        let found = world.probe(World::run, &policy, &["loopback-packets".to_owned()]);
        if found == ["unknown"] {
            eprintln!("skipped: this kernel has no large packets");
            return;
        }
        assert_eq!(found, ["524280"]);
    }
}
