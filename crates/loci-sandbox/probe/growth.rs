//! Whether anything grows in the process that starts commands: descriptors, memory, names in the project.

use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};

use loci_sandbox::policy::{FileRules, Layers, Network, PathSettings, Preparation, SessionPlaces};
use loci_sandbox::{HelperHandle, Policy, ProgramStart, launch, waiting_helper};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// How many commands are started before anything is counted: what is only made once is there then.
const WARM_UP: usize = 20;

/// Starts so many commands in a sandbox; returns a line of what has grown.
pub(crate) fn growth(n_commands: usize) -> Outcome<String> {
    let dir = own_dir()?;
    let measured = grow_in(&dir, n_commands);
    std::fs::remove_dir_all(&dir)?;
    measured
}

fn own_dir() -> Outcome<std::path::PathBuf> {
    let own = std::env::current_exe()?.canonicalize()?;
    let dir = own.with_file_name(format!("growth-{}", std::process::id()));
    for name in ["p/.git/hooks", "scratch", "home"] {
        std::fs::create_dir_all(dir.join(name))?;
    }
    Ok(dir)
}

fn grow_in(dir: &std::path::Path, n_commands: usize) -> Outcome<String> {
    let places = SessionPlaces {
        dirs: vec![dir.join("p")],
        scratch: dir.join("scratch"),
        git_dirs: Vec::new(),
        home: dir.join("home"),
        config_home: dir.join("home/.claude"),
    };
    let policy = Policy {
        layers: Layers::FULL,
        files: Some(FileRules::new(&places, &PathSettings::default())),
        network: Network::Proxy,
        allows_unix_sockets: false,
        fault: None,
    };
    for _ in 0..WARM_UP {
        command(&places.dirs[0], &policy)?;
    }
    let before = (n_descriptors()?, resident_kib()?);
    for _ in 0..n_commands / 2 {
        command(&places.dirs[0], &policy)?;
    }
    let after = (n_descriptors()?, resident_kib()?);
    let left = std::fs::read_dir(&places.dirs[0])?.count();
    Ok(format!(
        "{n_commands} commands: {:+} descriptors, {:+} KiB resident, {} names left in the project",
        after.0 - before.0,
        after.1 - before.1,
        left - 1
    ))
}

/// Runs a program by a helper that was started for it, and another by one that was started ahead.
fn command(dir: &std::path::Path, policy: &Policy) -> Outcome<()> {
    let own = std::env::current_exe()?;
    let nothing: [&OsStr; 0] = [];
    let (mut command, helper_handle) = launch(&own, policy, OsStr::new("/bin/true"), nothing)?;
    ended(quiet(command.current_dir(dir)).spawn()?, command, helper_handle)?;
    let (mut command, helper) = waiting_helper(&own, &Preparation::of(policy))?;
    let child = quiet(&mut command).spawn()?;
    let start = ProgramStart { words: vec!["/bin/true".into()], cwd: dir.to_owned(), env: Vec::new() };
    ended(child, command, helper.hand_over(policy, &start)?)
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

fn ended(mut child: Child, command: Command, helper_handle: HelperHandle) -> Outcome<()> {
    // It holds the helper's end of the socket.
    drop(command);
    let status = child.wait()?;
    match (helper_handle.wait()?.why_not_run(), status.success()) {
        (None, true) => Ok(()),
        (why, _) => Err(why.unwrap_or_else(|| format!("it failed: {status}")).into()),
    }
}

fn n_descriptors() -> Outcome<i64> {
    Ok(i64::try_from(std::fs::read_dir("/proc/self/fd")?.count())?)
}

fn resident_kib() -> Outcome<i64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
