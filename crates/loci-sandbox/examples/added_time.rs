//! What the sandbox adds to a command, and the proxy to a connection, on this machine.
//!
//! This program is its own helper, so that what is measured is the sandbox and the start of a small program, without that
//! of loci.
#![expect(clippy::print_stdout, reason = "the tables are its output")]

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use loci_sandbox::egress::rules::DomainRules;
use loci_sandbox::egress::{Egress, connections};
use loci_sandbox::policy::{FileRules, Layers, Namespaces, Network, PathSettings, SessionPlaces};
use loci_sandbox::{Policy, ProxyConnection, ProxyPort, launch};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// How often each command is started.
const ROUNDS: usize = 300;
/// How many connections are made, and how many bytes are carried by one.
const CONNECTIONS: usize = 500;
const BYTES: usize = 1 << 30;

fn main() -> Outcome<ExitCode> {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    if loci_sandbox::is_helper(&name) {
        return Ok(ExitCode::from(loci_sandbox::run_helper(args)));
    }
    let dir = std::env::current_dir()?.join("target").join(format!("added-time-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("p/.git/hooks"))?;
    std::fs::write(dir.join("p/.git/config"), "")?;
    std::fs::create_dir_all(dir.join("scratch"))?;
    let measured = commands(&dir.canonicalize()?);
    std::fs::remove_dir_all(&dir)?;
    println!("{}\n", measured?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    println!("{}", runtime.block_on(proxy())?);
    Ok(ExitCode::SUCCESS)
}

/// Starts `true` in each way, in turns, and tells the median and the slow end.
fn commands(dir: &Path) -> Outcome<String> {
    let alone = |namespaces, landlock, seccomp| Layers { namespaces, landlock, seccomp };
    let ways: Vec<(&str, Way)> = [
        ("`true` alone", Way::Alone),
        ("Landlock and filter", Way::Sandbox(Layers::WEAK)),
        ("namespaces and mounts", Way::Sandbox(alone(Namespaces::Full, false, false))),
        ("full", Way::Sandbox(Layers::FULL)),
        ("bubblewrap, roughly the same policy", Way::Bubblewrap),
    ]
    .into_iter()
    .filter(|(_, way)| !matches!(way, Way::Bubblewrap) || has_bubblewrap())
    .collect();
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); ways.len()];
    for round in 0..ROUNDS + 10 {
        for ((_, way), times) in ways.iter().zip(&mut times) {
            let started = Instant::now();
            way.run(dir)?;
            if round >= 10 {
                times.push(started.elapsed());
            }
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
    Sandbox(Layers),
    Bubblewrap,
}

impl Way {
    fn run(&self, dir: &Path) -> Outcome<()> {
        let quiet = |command: &mut Command| {
            command
                .current_dir(dir.join("p"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
        };
        let status = match self {
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
            Self::Sandbox(layers) => {
                let nothing: [&OsStr; 0] = [];
                let own: PathBuf = std::env::current_exe()?;
                let (mut command, supervisor) =
                    launch(&own, &policy(dir, *layers), OsStr::new("true"), nothing)?;
                quiet(&mut command);
                let mut child = command.spawn()?;
                drop(command);
                let status = child.wait()?;
                if let Some(why) = supervisor.wait()?.why_not_run() {
                    return Err(why.into());
                }
                status
            }
        };
        if status.success() { Ok(()) } else { Err("`true` failed".into()) }
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

/// Measures connections and bytes, straight and through the proxy.
async fn proxy() -> Outcome<String> {
    let server = TcpListener::bind("127.0.0.1:0").await?;
    let port = server.local_addr()?.port();
    tokio::spawn(serve(server));
    let mut rules = DomainRules::default();
    rules.allow("bench.test")?;
    rules.allow("127.0.0.1")?;
    let mut egress = Egress::new(rules, None);
    egress.resolver = Some(Arc::new(|_| vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]));
    let take = connections(Arc::new(egress));
    let entrance = TcpListener::bind("127.0.0.1:0").await?;
    let entrance_port = entrance.local_addr()?.port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = entrance.accept().await {
            if let Ok(stream) = stream.into_std() {
                take(ProxyConnection { port: ProxyPort::Http, stream, command: None });
            }
        }
    });
    let (mut straight, mut proxied) = (Vec::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        for (times, at) in [(&mut straight, None), (&mut proxied, Some(entrance_port))] {
            let started = Instant::now();
            let mut stream = connect(port, at).await?;
            stream.write_all(b"p").await?;
            stream.read_u8().await?;
            times.push(started.elapsed());
        }
    }
    let (a, b) = (quantile(&mut straight, 50), quantile(&mut proxied, 50));
    let (mut fast, mut slow) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        fast.push(carry(connect(port, None).await?).await?);
        slow.push(carry(connect(port, Some(entrance_port)).await?).await?);
    }
    let rate = |times: &mut Vec<Duration>| BYTES as f64 / quantile(times, 50).as_secs_f64() / 1e6;
    let (fast, slow) = (rate(&mut fast), rate(&mut slow));
    Ok(format!(
        "| the proxy, upstream on the loopback | straight | proxied | |\n|---|---|---|---|\n\
         | a connection and one byte each way, median | {:.3} ms | {:.3} ms | {:+.3} ms |\n\
         | 1 GiB upwards | {fast:.0} MB/s | {slow:.0} MB/s | {:.0} % |\n",
        a.as_secs_f64() * 1e3,
        b.as_secs_f64() * 1e3,
        (b.as_secs_f64() - a.as_secs_f64()) * 1e3,
        slow / fast * 100.0
    ))
}

/// Answers one byte with one; takes everything else until the end, and answers that.
async fn serve(server: TcpListener) {
    while let Ok((mut stream, _)) = server.accept().await {
        tokio::spawn(async move {
            if stream.read_u8().await.ok() == Some(b'p') {
                return stream.write_all(b"q").await.is_ok();
            }
            let taken = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
            taken.is_ok() && stream.write_all(b"q").await.is_ok()
        });
    }
}

async fn connect(port: u16, proxy: Option<u16>) -> Outcome<TcpStream> {
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.unwrap_or(port))).await?;
    if proxy.is_some() {
        stream.write_all(format!("CONNECT bench.test:{port} HTTP/1.1\r\n\r\n").as_bytes()).await?;
        let mut answer = [0; 39];
        stream.read_exact(&mut answer).await?;
    }
    Ok(stream)
}

async fn carry(mut stream: TcpStream) -> Outcome<Duration> {
    let chunk = vec![b'x'; 1 << 20];
    let started = Instant::now();
    for _ in 0..BYTES / chunk.len() {
        stream.write_all(&chunk).await?;
    }
    stream.shutdown().await?;
    stream.read_u8().await?;
    Ok(started.elapsed())
}
