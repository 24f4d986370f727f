//! Helpers that are started ahead and wait for their program.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use loci_sandbox::policy::{Layers, PathSettings};
use loci_sandbox::{
    Level, ProgramStart, Sandbox, SandboxReport, Standby, Supervisor, WaitingHelper, waiting_helper,
};

use super::kit::{PROBE, World, has_full};

/// Starts a helper that waits, with variables and a directory of its own.
fn start_ahead() -> (Child, WaitingHelper) {
    let (mut command, helper) = waiting_helper(Path::new(PROBE)).unwrap();
    command.env("AHEAD", "1").env("HOME", "/ahead");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    // It holds the helper's end of the socket.
    drop(command);
    (child, helper)
}

fn script(world: &World, text: &str) -> ProgramStart {
    let env = world.env().into_iter().map(|(name, value)| (name.into(), value.into()));
    ProgramStart {
        words: ["/bin/sh", "-c", text].map(Into::into).to_vec(),
        cwd: world.path("home/p"),
        env: env.collect(),
    }
}

fn finished(mut child: Child, supervisor: Supervisor) -> (String, SandboxReport) {
    let report = supervisor.wait().unwrap();
    let mut printed = String::new();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    child.wait().unwrap();
    (printed, report)
}

#[test]
fn program_has_its_own_directory_and_variables_and_none_of_the_helper_that_waited() {
    if !has_full() {
        return;
    }
    let world = World::new();
    for layers in [Layers::FULL, Layers::WEAK] {
        let (child, helper) = start_ahead();
        let start = script(&world, "pwd; env | sort");
        let (printed, report) = finished(child, helper.hand_over(&world.policy(layers), &start).unwrap());
        assert_eq!(report, SandboxReport { is_ready: true, ..SandboxReport::default() });
        let mut lines = printed.lines();
        assert_eq!(lines.next(), Some(world.text("home/p").as_str()));
        let mut expected: Vec<String> =
            world.env().iter().map(|(name, value)| format!("{name}={value}")).collect();
        expected.push(format!("PWD={}", world.text("home/p")));
        expected.sort();
        // The shell sets a few of its own.
        let own = |line: &&str| !["OLDPWD=", "SHLVL=", "_="].iter().any(|it| line.starts_with(it));
        let found: Vec<&str> = lines.filter(own).collect();
        assert_eq!(found, expected, "{layers:?}");
    }
}

#[test]
fn helper_that_waits_ends_with_whoever_started_it_and_has_run_nothing() {
    let (mut child, helper) = start_ahead();
    drop(helper);
    assert!(!child.wait().unwrap().success());
    let mut printed = String::new();
    child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
    assert_eq!(printed, "");
}

#[test]
fn dead_helper_takes_no_program_and_one_that_cannot_be_read_runs_nothing() {
    let world = World::new();
    let start = script(&world, "touch ran");
    let (mut child, helper) = start_ahead();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(helper.hand_over(&world.policy(Layers::FULL), &start).is_err());
    let lost = ProgramStart { cwd: world.path("nowhere"), ..start.clone() };
    let (child, helper) = start_ahead();
    let (_, report) = finished(child, helper.hand_over(&world.policy(Layers::FULL), &lost).unwrap());
    assert!(report.why_not_run().is_some_and(|why| why.contains("nowhere")), "{report:?}");
    let (child, helper) = start_ahead();
    let none = ProgramStart { words: Vec::new(), ..start };
    let (_, report) = finished(child, helper.hand_over(&world.policy(Layers::FULL), &none).unwrap());
    assert!(report.why_not_run().is_some(), "{report:?}");
    assert_eq!(world.names(), ["file"]);
}

fn sandbox(world: &World) -> Sandbox {
    Sandbox {
        helper: PROBE.into(),
        level: Level::Full,
        layers: Layers::FULL,
        scratch: world.path("scratch"),
        home: world.path("home"),
        config_home: world.path("home/.claude"),
        paths: Some(PathSettings::default()),
        allows_unix_sockets: false,
        allows_unsandboxed: true,
        hidden_env: Vec::new(),
        refused_hosts: std::sync::Arc::default(),
        egress: None,
        connections: None,
        standby: Standby::default(),
    }
}

/// Runs a command of a session; returns its process and what it printed.
async fn run(sandbox: &Sandbox, world: &World, text: &str) -> (u32, String) {
    let dirs = [world.path("home/p")];
    let (child, supervisor) = sandbox.start(&dirs, &script(world, text)).unwrap();
    let pid = child.id().unwrap();
    let running = sandbox.watch(supervisor).unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert_eq!(running.report().await.why_not_run(), None);
    (pid, String::from_utf8(output.stdout).unwrap())
}

/// Has a helper wait; returns its process.
async fn prepared(sandbox: &Sandbox) -> u32 {
    sandbox.prepare_next().await.unwrap();
    sandbox.standby.process().unwrap()
}

#[tokio::test]
async fn next_command_is_run_by_the_helper_that_waits_and_a_dead_one_is_replaced() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let sandbox = sandbox(&world);
    let (first, printed) = run(&sandbox, &world, "echo first > made; cat made").await;
    assert_eq!(printed, "first\n");
    let waiting = prepared(&sandbox).await;
    assert_ne!(waiting, first);
    assert_eq!(prepared(&sandbox).await, waiting, "one is enough");
    let (pid, printed) = run(&sandbox, &world, "cat made").await;
    assert_eq!((pid, printed.as_str()), (waiting, "first\n"));
    assert_eq!(sandbox.standby.process(), None, "each runs one program");
    let waiting = prepared(&sandbox).await;
    let killed = Command::new("kill").args(["-KILL", &waiting.to_string()]).status().unwrap();
    assert!(killed.success());
    let socket_is_closed = || {
        let state = std::fs::read_to_string(format!("/proc/{waiting}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    };
    while !socket_is_closed() {
        tokio::task::yield_now().await;
    }
    let (pid, printed) = run(&sandbox, &world, "cat made").await;
    assert_eq!(printed, "first\n");
    assert_ne!(pid, waiting);
    let waiting = prepared(&sandbox).await;
    drop(sandbox);
    while Path::new(&format!("/proc/{waiting}/fd")).read_dir().is_ok_and(|mut it| it.next().is_some()) {
        tokio::task::yield_now().await;
    }
}
