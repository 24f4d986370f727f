//! What the sandbox adds to a command, and the proxy to a connection, on this machine.
//!
//! `[--loci BIN] [--codex BIN]`. This program is its own helper, so that what is measured is the sandbox and the start of a
//! small program; with loci's own binary, that of a large one as well. In a session only the first command waits for that:
//! the helper of the next is started ahead, while the model thinks, which is measured too. Codex is started as a program of its
//! own, which is all that can be seen of it from outside. The caller gives it a machine without a network.
#![expect(clippy::print_stdout, reason = "the tables are its output")]

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use loci_sandbox::egress::rules::DomainRules;
use loci_sandbox::egress::{Egress, connections};
use loci_sandbox::policy::{
    FileRules, Layers, Namespaces, Network, PathSettings, Preparation, SessionPlaces,
};
use loci_sandbox::{Policy, ProgramStart, ProxyConnection, ProxyPort, WaitingHelper, launch, waiting_helper};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// How often each command is started; a peer that takes a hundred times as long, less often.
const ROUNDS: usize = 300;
const PEER_ROUNDS: usize = 20;
/// How many connections are made, and how many bytes are carried by one.
const CONNECTIONS: usize = 500;
const BYTES: usize = 1 << 30;
/// The bytes in a second of a line that is faster than most people's.
const LINE: f64 = 625e6;

fn main() -> Outcome<ExitCode> {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    if loci_sandbox::is_helper(&name) {
        return Ok(ExitCode::from(loci_sandbox::run_helper(args)));
    }
    let dir = std::env::current_dir()?.join("target").join(format!("added-time-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("p/.git/hooks"))?;
    std::fs::write(dir.join("p/.git/config"), "")?;
    for name in ["scratch", "codex/.codex"] {
        std::fs::create_dir_all(dir.join(name))?;
    }
    let measured = programs(args).and_then(|programs| commands(&dir.canonicalize()?, programs));
    std::fs::remove_dir_all(&dir)?;
    println!("{}\n", measured?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    println!("{}", proxy(&runtime)?);
    Ok(ExitCode::SUCCESS)
}

/// Programs that are measured where they are given.
#[derive(Default)]
struct Programs {
    loci: Option<PathBuf>,
    codex: Option<PathBuf>,
}

fn programs(mut args: std::env::ArgsOs) -> Outcome<Programs> {
    let mut programs = Programs::default();
    while let Some(name) = args.next() {
        let place = match name.to_str() {
            Some("--loci") => &mut programs.loci,
            Some("--codex") => &mut programs.codex,
            _ => return Err(format!("`{}` is not known", name.display()).into()),
        };
        *place = Some(PathBuf::from(args.next().ok_or("a program is missing")?).canonicalize()?);
    }
    Ok(programs)
}

/// Starts `true` in each way, in turns, and tells the median and the slow end.
fn commands(dir: &Path, programs: Programs) -> Outcome<String> {
    let own = std::env::current_exe()?;
    let alone = |namespaces, landlock, seccomp| Layers { namespaces, landlock, seccomp };
    let mut ways: Vec<(&str, Way)> = vec![
        ("`true` alone", Way::Alone),
        ("Landlock and filter", Way::Sandbox(own.clone(), Layers::WEAK)),
        ("namespaces and mounts", Way::Sandbox(own.clone(), alone(Namespaces::Full, false, false))),
        ("full", Way::Sandbox(own.clone(), Layers::FULL)),
    ];
    ways.push(("full, helper started ahead", Way::Ahead(own)));
    if let Some(loci) = programs.loci {
        ways.push(("full, loci, the first command of a session", Way::Sandbox(loci.clone(), Layers::FULL)));
        ways.push(("full, loci, every further command", Way::Ahead(loci)));
    }
    if has_bubblewrap() {
        ways.push(("bubblewrap, roughly the same policy", Way::Bubblewrap));
    }
    ways.extend(programs.codex.map(|codex| ("Codex's sandbox, with its whole start", Way::Codex(codex))));
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); ways.len()];
    for round in 0..ROUNDS + 10 {
        for ((_, way), times) in ways.iter().zip(&mut times) {
            if matches!(way, Way::Codex(_)) && times.len() == PEER_ROUNDS {
                continue;
            }
            let ahead = way.start_ahead(dir)?;
            let started = Instant::now();
            let left = way.run(dir, ahead)?;
            if round >= 10 {
                times.push(started.elapsed());
            }
            left.map(|mut child| child.wait()).transpose()?;
        }
    }
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let bare = quantile(&mut times[0], 50);
    let mut out = "| a command | median | added | 95 of 100 within |\n|---|---|---|---|\n".to_owned();
    for ((name, _), times) in ways.iter().zip(&mut times) {
        let (median, late) = (quantile(times, 50), quantile(times, 95));
        out += &format!(
            "| {name} | {:.2} ms | {:+.2} ms | {:.2} ms |\n",
            ms(median),
            ms(median) - ms(bare),
            ms(late)
        );
    }
    if !has_bubblewrap() {
        out += "\nbubblewrap is not installed here and was left out.\n";
    }
    Ok(out)
}

enum Way {
    Alone,
    Sandbox(PathBuf, Layers),
    /// By a helper that waits for its program, with all layers.
    Ahead(PathBuf),
    Bubblewrap,
    Codex(PathBuf),
}

/// A helper that waits.
type Ahead = (Child, WaitingHelper);

/// How long a helper that was started ahead has before its program comes; models take longer.
const THINKING: Duration = Duration::from_millis(30);

impl Way {
    fn start_ahead(&self, dir: &Path) -> Outcome<Option<Ahead>> {
        let Self::Ahead(helper) = self else { return Ok(None) };
        let (mut command, helper) = waiting_helper(helper, &Preparation::of(&policy(dir, Layers::FULL)))?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        std::thread::sleep(THINKING);
        Ok(Some((child, helper)))
    }

    /// Runs it to the end of its command, which is told before the process that told it has ended.
    fn run(&self, dir: &Path, ahead: Option<Ahead>) -> Outcome<Option<Child>> {
        let quiet = |command: &mut Command| {
            command
                .current_dir(dir.join("p"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
        };
        let status = match self {
            Self::Ahead(_) => return run_ahead(dir, ahead).map(Some),
            Self::Alone => {
                let mut command = Command::new("true");
                quiet(&mut command);
                command.status()?
            }
            Self::Bubblewrap => {
                let mut command = Command::new("bwrap");
                command.args([
                    "--ro-bind",
                    "/",
                    "/",
                    "--dev",
                    "/dev",
                    "--proc",
                    "/proc",
                    "--unshare-all",
                    "--die-with-parent",
                ]);
                command.arg("--bind").args([dir.join("p"), dir.join("p")]).arg("true");
                quiet(&mut command);
                command.status()?
            }
            Self::Codex(codex) => {
                let mut command = Command::new(codex);
                command.args(["sandbox", "--", "true"]).env_clear();
                command.env("HOME", dir.join("codex")).envs(std::env::var_os("PATH").map(|it| ("PATH", it)));
                quiet(&mut command);
                command.status()?
            }
            Self::Sandbox(helper, layers) => {
                let nothing: [&OsStr; 0] = [];
                let (mut command, supervisor) =
                    launch(helper, &policy(dir, *layers), OsStr::new("true"), nothing)?;
                quiet(&mut command);
                let mut child = command.spawn()?;
                drop(command);
                let report = supervisor.wait()?;
                if let Some(why) = report.why_not_run() {
                    return Err(why.into());
                }
                if report.exit_code == Some(0) {
                    return Ok(Some(child));
                }
                child.wait()?
            }
        };
        if status.success() { Ok(None) } else { Err("`true` failed".into()) }
    }
}

fn run_ahead(dir: &Path, ahead: Option<Ahead>) -> Outcome<Child> {
    let (child, helper) = ahead.ok_or("no helper waits")?;
    let start =
        ProgramStart { words: vec!["true".into()], cwd: dir.join("p"), env: std::env::vars_os().collect() };
    let supervisor = helper.hand_over(&policy(dir, Layers::FULL), &start)?;
    let report = supervisor.wait()?;
    match (report.why_not_run(), report.exit_code) {
        (Some(why), _) => Err(why.into()),
        (None, Some(0)) => Ok(child),
        (None, code) => Err(format!("`true` failed: {code:?}").into()),
    }
}

fn policy(dir: &Path, layers: Layers) -> Policy {
    let places = SessionPlaces {
        dirs: vec![dir.join("p")],
        scratch: dir.join("scratch"),
        git_dirs: Vec::new(),
        home: std::env::home_dir().unwrap_or_else(|| dir.to_owned()),
        config_home: dir.join("config"),
    };
    Policy {
        layers,
        files: Some(FileRules::new(&places, &PathSettings::default())),
        network: Network::Proxy,
        allows_unix_sockets: false,
        fault: None,
    }
}

fn has_bubblewrap() -> bool {
    Command::new("bwrap").arg("--version").output().is_ok_and(|it| it.status.success())
}

fn quantile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort();
    times.get(times.len() * percent / 100).copied().unwrap_or_default()
}

/// Measures connections and bytes, straight and through the proxy. Whoever asks and whoever answers are threads that block, as
/// programs beside loci are; the proxy has the runtime to itself, as in a session that waits for a command.
fn proxy(runtime: &tokio::runtime::Runtime) -> Outcome<String> {
    let server = TcpListener::bind("127.0.0.1:0")?;
    let port = server.local_addr()?.port();
    std::thread::spawn(move || serve(&server));
    let entrance = runtime.block_on(entrance())?;
    let (mut straight, mut proxied) = (Vec::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        for (times, at) in [(&mut straight, None), (&mut proxied, Some(entrance))] {
            let started = Instant::now();
            let mut stream = connect(port, at)?;
            stream.write_all(b"p")?;
            stream.read_exact(&mut [0])?;
            times.push(started.elapsed());
        }
    }
    let (a, b) = (quantile(&mut straight, 50), quantile(&mut proxied, 50));
    let mut out = format!(
        "| the proxy, upstream on the loopback | straight | proxied | |\n|---|---|---|---|\n\
         | a connection and one byte each way, median | {:.3} ms | {:.3} ms | {:+.3} ms |\n",
        a.as_secs_f64() * 1e3,
        b.as_secs_f64() * 1e3,
        (b.as_secs_f64() - a.as_secs_f64()) * 1e3,
    );
    let bare = bare_relay(port)?;
    for (name, line) in [("as fast as it goes", None), ("over a line of 5 Gbit/s", Some(LINE))] {
        let (mut fast, mut slow, mut floor) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..5 {
            fast.push(carry(connect(port, None)?, line)?);
            slow.push(carry(connect(port, Some(entrance))?, line)?);
            floor.push(carry(TcpStream::connect(("127.0.0.1", bare))?, line)?);
        }
        let rate = |times: &mut Vec<Duration>| BYTES as f64 / quantile(times, 50).as_secs_f64() / 1e6;
        let (fast, slow, floor) = (rate(&mut fast), rate(&mut slow), rate(&mut floor));
        for (what, rate) in
            [("", slow), (", through a relay that only splices, in a thread that blocks", floor)]
        {
            out += &format!(
                "| 1 GiB upwards, {name}{what} | {fast:.0} MB/s | {rate:.0} MB/s | {:.0} % |\n",
                rate / fast * 100.0
            );
        }
    }
    Ok(out)
}

/// Opens the port of a relay that decides nothing and looks at nothing, for what any relay costs here; returns its number.
fn bare_relay(to: u16) -> Outcome<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    std::thread::spawn(move || {
        while let Ok((from, _)) = listener.accept() {
            std::thread::spawn(move || splice_all(from, to));
        }
    });
    Ok(port)
}

/// Moves everything upwards through a pipe, and the answer back.
fn splice_all(mut from: TcpStream, port: u16) -> std::io::Result<()> {
    use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, pipe, splice};
    let mut to = TcpStream::connect(("127.0.0.1", port))?;
    let (out, into) = pipe()?;
    let size = fcntl_setpipe_size(&into, 1 << 20)?;
    loop {
        let mut left = splice(&from, None, &into, None, size, SpliceFlags::MOVE)?;
        if left == 0 {
            break;
        }
        while left > 0 {
            left -= splice(&out, None, &to, None, left, SpliceFlags::MOVE)?;
        }
    }
    to.shutdown(std::net::Shutdown::Write)?;
    std::io::copy(&mut to, &mut from).map(drop)
}

/// Opens the proxy's port; returns its number.
async fn entrance() -> Outcome<u16> {
    let mut rules = DomainRules::default();
    rules.allow("bench.test")?;
    rules.allow("127.0.0.1")?;
    let mut egress = Egress::new(rules, None);
    egress.resolver = Some(Arc::new(|_| vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]));
    let take = connections(Arc::new(egress));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = stream.into_std() {
                take(ProxyConnection { port: ProxyPort::Http, stream, command: None });
            }
        }
    });
    Ok(port)
}

/// Answers one byte with one; takes everything else until the end, and answers that.
fn serve(server: &TcpListener) {
    while let Ok((mut stream, _)) = server.accept() {
        std::thread::spawn(move || -> std::io::Result<()> {
            let mut buffer = vec![0; 128 << 10];
            loop {
                match stream.read(&mut buffer)? {
                    1 if buffer[0] == b'p' => return stream.write_all(b"q"),
                    0 => return stream.write_all(b"q"),
                    _ => {}
                }
            }
        });
    }
}

fn connect(port: u16, proxy: Option<u16>) -> Outcome<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.unwrap_or(port)))?;
    if proxy.is_some() {
        stream.write_all(format!("CONNECT bench.test:{port} HTTP/1.1\r\n\r\n").as_bytes())?;
        stream.read_exact(&mut [0; 39])?;
    }
    Ok(stream)
}

/// Sends all of it, not faster than a line would, and waits for the answer.
fn carry(mut stream: TcpStream, line: Option<f64>) -> Outcome<Duration> {
    let chunk = vec![b'x'; 256 << 10];
    let started = Instant::now();
    for n in 0..BYTES / chunk.len() {
        let due = line.map(|rate| Duration::from_secs_f64((n * chunk.len()) as f64 / rate));
        std::thread::sleep(due.unwrap_or_default().saturating_sub(started.elapsed()));
        stream.write_all(&chunk)?;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    stream.read_exact(&mut [0])?;
    Ok(started.elapsed())
}
