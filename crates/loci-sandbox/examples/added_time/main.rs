//! What the sandbox adds to a command, and the proxy to a connection, on this machine.
//!
//! `[--loci BIN] [--codex BIN]`. This program is its own helper, so that what is measured is the sandbox and the start of a
//! small program; with loci's own binary, that of a large one as well. In a session only the first command waits for that:
//! the helper of the next is started ahead, while the model thinks, which is measured too. Codex is started as a program of its
//! own, which is all that can be seen of it from outside. The caller gives it a machine without a network.
#![expect(clippy::print_stdout, reason = "the tables are its output")]

mod proxy;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use loci_sandbox::policy::{
    FileRules, Layers, Namespaces, Network, PathSettings, Preparation, SessionPlaces,
};
use loci_sandbox::{Policy, ProgramStart, WaitingHelper, launch, waiting_helper};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// How often each command is started; a peer that takes a hundred times as long, less often.
const ROUNDS: usize = 300;
const PEER_ROUNDS: usize = 20;

fn main() -> Outcome<ExitCode> {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    if loci_sandbox::is_helper(&name) {
        return Ok(ExitCode::from(loci_sandbox::run_helper(args)));
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((proxy::CLIENT, words)) = words.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        proxy::client(words)?;
        return Ok(ExitCode::SUCCESS);
    }
    let dir = std::env::current_dir()?.join("target").join(format!("added-time-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("p/.git/hooks"))?;
    std::fs::write(dir.join("p/.git/config"), "")?;
    for name in ["scratch", "codex/.codex"] {
        std::fs::create_dir_all(dir.join(name))?;
    }
    let measured = programs(args).and_then(|programs| tables(&dir.canonicalize()?, programs));
    std::fs::remove_dir_all(&dir)?;
    println!("{}", measured?);
    Ok(ExitCode::SUCCESS)
}

fn tables(dir: &Path, programs: Programs) -> Outcome<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let commands = commands(dir, programs)?;
    Ok([commands, proxy::table(&runtime, dir)?].join("\n"))
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
                let (mut command, helper_handle) =
                    launch(helper, &policy(dir, *layers), OsStr::new("true"), nothing)?;
                quiet(&mut command);
                let mut child = command.spawn()?;
                drop(command);
                let report = helper_handle.wait()?;
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
    let helper_handle = helper.hand_over(&policy(dir, Layers::FULL), &start)?;
    let report = helper_handle.wait()?;
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
