//! What the proxy adds to connections and to the bytes that they carry.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use loci_sandbox::egress::rules::DomainRules;
use loci_sandbox::egress::{Egress, connections};
use loci_sandbox::policy::Layers;
use loci_sandbox::{Connections, ProxyConnection, ProxyPort, SandboxReport, SandboxRun, launch};

use super::{Outcome, policy, quantile};

/// How many connections are made, and how many bytes are carried by one.
const CONNECTIONS: usize = 500;
const BYTES: usize = 1 << 30;

/// Who takes what the program sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    /// The server, from outside.
    Straight,
    /// The proxy, from inside a full sandbox.
    Proxied,
    /// From inside as well, a relay that decides nothing and looks at nothing: what any relay costs here.
    Spliced,
}

/// What the program does that is measured.
#[derive(Debug, Clone, Copy)]
enum Load {
    /// Makes connections, with one byte each way.
    Connections,
    /// Sends, as fast as it goes or with so many Gbit in a second.
    Upwards(Option<u32>),
    /// Receives, as fast as it goes.
    Downwards,
}

/// What was measured of one run of the program.
struct Measured {
    times: Vec<Duration>,
    /// The processor time of all who took part.
    cpu: Duration,
}

/// What carries bytes is run so often.
const TURNS: usize = 5;

/// Measures connections and bytes, straight and through the proxy. Whoever asks is this program again, outside or in a
/// sandbox with all layers; whoever answers is a thread that blocks; the proxy has the runtime to itself, as in a session that
/// waits for a command.
pub(super) fn table(runtime: &tokio::runtime::Runtime, dir: &Path) -> Outcome<String> {
    let server = TcpListener::bind("127.0.0.1:0")?;
    let port = server.local_addr()?.port();
    std::thread::spawn(move || serve(&server));
    let run = |route, load| runtime.block_on(run_client(dir, port, route, load));
    let connections = |route| -> Outcome<f64> {
        Ok(quantile(&mut run(route, Load::Connections)?.times, 50).as_secs_f64() * 1e3)
    };
    let (a, b) = (connections(Route::Straight)?, connections(Route::Proxied)?);
    let mut out = format!(
        "| the proxy, upstream on the loopback | straight | proxied | | processor time of a GiB |\n|---|---|---|---|---|\n\
         | a connection and one byte each way, median | {a:.3} ms | {b:.3} ms | {:+.3} ms | |\n",
        b - a
    );
    let rates = [5, 10, 15, 20].map(|rate| Load::Upwards(Some(rate)));
    for load in [Load::Upwards(None), Load::Downwards].into_iter().chain(rates) {
        out += &rows(load, run)?;
    }
    Ok(out)
}

/// Carries bytes in each way, in turns; returns the rows.
fn rows(load: Load, run: impl Fn(Route, Load) -> Outcome<Measured>) -> Outcome<String> {
    let mut routes = vec![(Route::Straight, "")];
    routes.push((Route::Proxied, ""));
    if !matches!(load, Load::Upwards(Some(_))) {
        routes.push((Route::Spliced, ", through a relay that only splices, in a thread that blocks"));
    }
    let mut found: Vec<(Vec<Duration>, Vec<Duration>)> = vec![Default::default(); routes.len()];
    for _ in 0..TURNS {
        for ((route, _), (times, cpus)) in routes.iter().zip(&mut found) {
            let measured = run(*route, load)?;
            times.extend(measured.times);
            cpus.push(measured.cpu);
        }
    }
    let what = match load {
        Load::Upwards(Some(rate)) => format!("upwards, at {rate} Gbit/s"),
        Load::Upwards(None) => "upwards, as fast as it goes".to_owned(),
        Load::Downwards | Load::Connections => "downwards, as fast as it goes".to_owned(),
    };
    let mut medians = found.iter_mut().map(|(times, cpus)| {
        let rate = BYTES as f64 / quantile(times, 50).as_secs_f64() / 1e6;
        (rate, quantile(cpus, 50).as_secs_f64())
    });
    let (fast, straight) = medians.next().ok_or("nothing was measured")?;
    let mut out = String::new();
    for ((_, how), (rate, cpu)) in routes[1..].iter().zip(medians) {
        out += &format!(
            "| 1 GiB {what}{how} | {fast:.0} MB/s | {rate:.0} MB/s | {:.0} % | {straight:.2} s, {cpu:.2} s |\n",
            rate / fast * 100.0
        );
    }
    Ok(out)
}

/// Runs the program that asks; returns what it measured.
async fn run_client(dir: &Path, port: u16, route: Route, load: Load) -> Outcome<Measured> {
    let own = std::env::current_exe()?;
    let words = [CLIENT.to_owned(), format!("{load:?}"), format!("{route:?}"), port.to_string()];
    let before = cpu_time()?;
    let (mut command, helper_handle) = match route {
        Route::Straight => {
            let mut command = Command::new(&own);
            command.args(words);
            (command, None)
        }
        Route::Proxied | Route::Spliced => {
            let (command, helper_handle) = launch(&own, &policy(dir, Layers::FULL), own.as_os_str(), words)?;
            (command, Some(helper_handle))
        }
    };
    command.current_dir(dir.join("p")).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut command = tokio::process::Command::from(command);
    let child = command.spawn()?;
    drop(command);
    let take = if route == Route::Spliced { bare_relay(port) } else { connections(Arc::new(egress()?)) };
    let running = helper_handle.map(|it| it.watch(Some(take))).transpose()?;
    let output = child.wait_with_output().await?;
    if let Some(why) = report_of(running).await.and_then(|report| report.why_not_run()) {
        return Err(why.into());
    }
    let text = String::from_utf8(output.stdout)?;
    let times =
        text.lines().map(|line| Ok(Duration::from_nanos(line.parse()?))).collect::<Outcome<Vec<_>>>()?;
    if times.is_empty() {
        return Err("whoever asks has failed".into());
    }
    Ok(Measured { times, cpu: cpu_time()?.saturating_sub(before) })
}

async fn report_of(running: Option<SandboxRun>) -> Option<SandboxReport> {
    match running {
        Some(running) => Some(running.report().await),
        None => None,
    }
}

/// Returns the processor time of this process and of those that it has waited for.
fn cpu_time() -> Outcome<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(4);
    let ticks = fields.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(ticks * 10))
}

/// Takes connections to a relay that decides nothing.
fn bare_relay(to: u16) -> Connections {
    Arc::new(move |connection: ProxyConnection| {
        std::thread::spawn(move || splice_all(connection.stream, to));
    })
}

/// Moves everything upwards through a pipe, and what comes back through another.
fn splice_all(from: TcpStream, port: u16) -> std::io::Result<()> {
    let to = TcpStream::connect(("127.0.0.1", port))?;
    let (back, client) = (to.try_clone()?, from.try_clone()?);
    let downwards = std::thread::spawn(move || splice_one_way(&back, &client));
    splice_one_way(&from, &to)?;
    downwards.join().map_err(|_| std::io::ErrorKind::Other)?
}

fn splice_one_way(from: &TcpStream, to: &TcpStream) -> std::io::Result<()> {
    use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, pipe, splice};
    let (out, into) = pipe()?;
    let size = fcntl_setpipe_size(&into, 1 << 20)?;
    loop {
        let mut left = splice(from, None, &into, None, size, SpliceFlags::MOVE)?;
        if left == 0 {
            return to.shutdown(std::net::Shutdown::Write);
        }
        while left > 0 {
            left -= splice(&out, None, to, None, left, SpliceFlags::MOVE)?;
        }
    }
}

/// Makes a proxy that lets the program through to the server.
fn egress() -> Outcome<Egress> {
    let mut rules = DomainRules::default();
    rules.allow("bench.test")?;
    rules.allow("127.0.0.1")?;
    let mut egress = Egress::new(rules, None);
    egress.resolver = Some(Arc::new(|_| vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]));
    Ok(egress)
}

/// Answers one byte with one, or with everything; takes everything else until the end, and answers that.
fn serve(server: &TcpListener) {
    while let Ok((mut stream, _)) = server.accept() {
        std::thread::spawn(move || -> std::io::Result<()> {
            let mut buffer = vec![0; READ];
            loop {
                match stream.read(&mut buffer)? {
                    1 if buffer[0] == b'p' => return stream.write_all(b"q"),
                    1 if buffer[0] == b'd' => return send(&mut stream, None),
                    0 => return stream.write_all(b"q"),
                    _ => {}
                }
            }
        });
    }
}

/// The word that makes this program the one that asks.
pub(super) const CLIENT: &str = "client";
/// How much is written and read at once.
const WRITTEN: usize = 256 << 10;
const READ: usize = 128 << 10;

/// Does what it is told by its words, and prints how long each took, in nanoseconds.
pub(super) fn client(words: &[String]) -> Outcome<()> {
    let [load, route, port] = words else { return Err("words are missing".into()) };
    let port: u16 = port.parse()?;
    let open = || match route.as_str() {
        "Proxied" => tunnel(port),
        "Spliced" => Ok(TcpStream::connect(("127.0.0.1", ProxyPort::Http.number()))?),
        _ => Ok(TcpStream::connect(("127.0.0.1", port))?),
    };
    let print = |time: Duration| println!("{}", time.as_nanos());
    if load == "Connections" {
        for _ in 0..CONNECTIONS {
            let started = Instant::now();
            let mut stream = open()?;
            stream.write_all(b"p")?;
            stream.read_exact(&mut [0])?;
            print(started.elapsed());
        }
        return Ok(());
    }
    let mut stream = open()?;
    let started = Instant::now();
    if load == "Downwards" {
        stream.write_all(b"d")?;
        receive(&mut stream)?;
    } else {
        let digits: String = load.chars().filter(char::is_ascii_digit).collect();
        send(&mut stream, digits.parse::<f64>().ok())?;
        stream.shutdown(std::net::Shutdown::Write)?;
        stream.read_exact(&mut [0])?;
    }
    print(started.elapsed());
    Ok(())
}

fn tunnel(port: u16) -> Outcome<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", ProxyPort::Http.number()))?;
    stream.write_all(format!("CONNECT bench.test:{port} HTTP/1.1\r\n\r\n").as_bytes())?;
    stream.read_exact(&mut [0; 39])?;
    Ok(stream)
}

/// Sends all of it, not faster than so many Gbit in a second.
fn send(stream: &mut TcpStream, gigabits: Option<f64>) -> std::io::Result<()> {
    let chunk = vec![b'x'; WRITTEN];
    let started = Instant::now();
    for n in 0..BYTES / chunk.len() {
        let due = gigabits.map(|it| Duration::from_secs_f64((n * chunk.len()) as f64 / (it * 125e6)));
        std::thread::sleep(due.unwrap_or_default().saturating_sub(started.elapsed()));
        stream.write_all(&chunk)?;
    }
    Ok(())
}

/// Receives all of it.
fn receive(stream: &mut TcpStream) -> Outcome<()> {
    let mut buffer = vec![0; READ];
    let mut n_bytes = 0;
    while n_bytes < BYTES {
        match stream.read(&mut buffer)? {
            0 => return Err("the server has ended too early".into()),
            n => n_bytes += n,
        }
    }
    Ok(())
}
