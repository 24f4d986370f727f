//! Helpers that are started ahead and wait for their program.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use loci_sandbox::policy::{Layers, Network, PathSettings, Preparation};
use loci_sandbox::{
    HelperHandle, Level, Policy, ProgramStart, Sandbox, SandboxReport, Standby, WaitingHelper, waiting_helper,
};

use super::kit::{PROBE, World, first_process, has_full, is_root, wait_until_prepared};

/// Starts a helper that prepares for a policy and waits, with variables and a directory of its own.
fn start_ahead(policy: &Policy) -> (Child, WaitingHelper) {
    start_helper_ahead(Path::new(PROBE), policy)
}

fn start_helper_ahead(helper: &Path, policy: &Policy) -> (Child, WaitingHelper) {
    let (mut command, helper) = waiting_helper(helper, &Preparation::of(policy)).unwrap();
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

fn finished(mut child: Child, helper_handle: HelperHandle) -> (String, SandboxReport) {
    let report = helper_handle.wait().unwrap();
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
        let policy = world.policy(layers);
        let (child, helper) = start_ahead(&policy);
        let start = script(&world, "pwd; env | sort");
        let (printed, report) = finished(child, helper.hand_over(&policy, &start).unwrap());
        // A weak sandbox is the program in the end, which tells nothing.
        let exit_code = layers.has_mounts().then_some(0);
        assert_eq!(report, SandboxReport { is_ready: true, exit_code, ..SandboxReport::default() });
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
    let (mut child, helper) = start_ahead(&World::new().policy(Layers::FULL));
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
    let policy = world.policy(Layers::FULL);
    let (mut child, helper) = start_ahead(&policy);
    let inside = has_full().then(|| first_process(&child));
    child.kill().unwrap();
    child.wait().unwrap();
    // What it had started goes with it.
    while inside.is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
        std::thread::yield_now();
    }
    assert!(helper.hand_over(&policy, &start).is_err());
    let lost = ProgramStart { cwd: world.path("nowhere"), ..start.clone() };
    let (child, helper) = start_ahead(&policy);
    let (_, report) = finished(child, helper.hand_over(&policy, &lost).unwrap());
    assert!(report.why_not_run().is_some_and(|why| why.contains("nowhere")), "{report:?}");
    let (child, helper) = start_ahead(&policy);
    let none = ProgramStart { words: Vec::new(), ..start };
    let (_, report) = finished(child, helper.hand_over(&policy, &none).unwrap());
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
        egress: None,
        connections: None,
        standby: Standby::default(),
    }
}

/// Runs a command of a session; returns its process and what it printed.
async fn run(sandbox: &Sandbox, world: &World, text: &str) -> (u32, String) {
    let dirs = [world.path("home/p")];
    let (child, helper_handle) = sandbox.start(&dirs, &script(world, text)).unwrap();
    let pid = child.id().unwrap();
    let running = sandbox.watch(helper_handle).unwrap();
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

/// Has a helper prepare for one policy and run a script under another; returns what it printed.
fn run_prepared_for(world: &World, ahead: &Policy, policy: &Policy, text: &str) -> String {
    let (child, helper) = start_ahead(ahead);
    if ahead.layers.has_mounts() && is_root() {
        wait_until_prepared(first_process(&child));
    }
    let (printed, report) = finished(child, helper.hand_over(policy, &script(world, text)).unwrap());
    assert_eq!(report.why_not_run(), None);
    printed
}

#[test]
fn sandbox_that_was_prepared_for_another_policy_is_not_used() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let full = world.policy(Layers::FULL);
    let connected = Policy { network: Network::Proxy, ..full.clone() };
    let without_files = Policy { files: None, ..full };
    let with_sockets = Policy { allows_unix_sockets: true, ..full.clone() };
    let weak = world.policy(Layers::WEAK);
    // The proxy's port, the rules of files, sockets of the machine, the processes that are seen.
    let text = "(exec 3<>/dev/tcp/127.0.0.1/3128) 2>/dev/null && echo port
        touch \"$HOME/outside\" 2>/dev/null && echo files
        python3 -c 'import socket; socket.socket(socket.AF_UNIX)' 2>/dev/null && echo sockets
        [ -d /proc/$PPID ] && [ \"$PPID\" = 1 ] && echo processes; rm -f \"$HOME/outside\"";
    let bash = |policy: &Policy, ahead: &Policy| {
        let line = format!("exec bash -c '{}'", text.replace('\'', r"'\''"));
        run_prepared_for(&world, ahead, policy, &line).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let policies = [
        (&full, "processes"),
        (&connected, "port processes"),
        (&without_files, "files processes"),
        (&with_sockets, "sockets processes"),
        (&weak, ""),
    ];
    for (ahead, _) in policies {
        for (policy, expected) in policies {
            assert_eq!(bash(policy, ahead), expected, "{policy:?} prepared for {ahead:?}");
        }
    }
}

#[test]
fn names_that_appear_or_change_while_a_helper_waits_are_held_as_they_are_by_then() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let policy = world.policy(Layers::FULL);
    let tries = "for name in .envrc .mcp.json .claude/settings.json elsewhere/settings.json .bashrc; do
        (echo planted > $name) 2>/dev/null && echo $name; done; cat \"$HOME/.netrc\" 2>/dev/null; echo done";
    let (child, helper) = start_ahead(&policy);
    let inside = first_process(&child);
    // A file, a directory behind a symlink, a secret; and what was there before is gone.
    world.write("home/p/.envrc", "own");
    world.write("home/p/elsewhere/settings.json", "own");
    std::os::unix::fs::symlink("elsewhere", world.path("home/p/.claude")).unwrap();
    world.write("home/.netrc", "secret");
    std::fs::remove_dir_all(world.path("home/.ssh")).unwrap();
    let (printed, report) = finished(child, helper.hand_over(&policy, &script(&world, tries)).unwrap());
    assert_eq!(report.why_not_run(), None);
    assert_eq!(printed, "done\n");
    assert_eq!(std::fs::read_to_string(world.path("home/p/.envrc")).unwrap(), "own");
    assert_eq!(world.names(), [".claude", ".envrc", "elsewhere", "file"]);
    assert!(!Path::new(&format!("/proc/{inside}")).exists());
    // Another directory of the session counts from the next command on, and one that is none any more does not.
    std::fs::create_dir(world.path("added")).unwrap();
    let mut more = policy.clone();
    more.files.as_mut().unwrap().roots.push(world.path("added"));
    let write = format!("touch {}/file && echo written; true", world.text("added"));
    assert_eq!(run_prepared_for(&world, &policy, &more, &write), "written\n");
    assert_eq!(run_prepared_for(&world, &more, &policy, &write), "");
}

#[test]
fn sandbox_whose_first_process_has_died_is_made_anew() {
    if !has_full() || !is_root() {
        return;
    }
    let world = World::new();
    let policy = world.policy(Layers::FULL);
    let (child, helper) = start_ahead(&policy);
    let inside = first_process(&child);
    wait_until_prepared(inside);
    let inside = inside.to_string();
    assert!(Command::new("kill").args(["-KILL", &inside]).status().unwrap().success());
    let is_over = || {
        let state = std::fs::read_to_string(format!("/proc/{inside}/stat")).unwrap_or_default();
        state.is_empty() || state.contains(") Z ")
    };
    while !is_over() {
        std::thread::yield_now();
    }
    let (printed, report) = finished(child, helper.hand_over(&policy, &script(&world, "echo ran")).unwrap());
    assert_eq!((printed.as_str(), report.why_not_run()), ("ran\n", None));
}

/// What somebody mounts meanwhile is seen by the next command, and what they unmount is not kept in use.
#[test]
fn mounts_that_change_while_a_helper_waits_are_those_of_its_program() {
    if !has_full() || !is_root() {
        return;
    }
    let world = World::new();
    world.write("outside/disk/file", "below");
    let policy = world.policy(Layers::FULL);
    // A machine of its own, so that nobody else's mounts change.
    let shell = "mount --make-rprivate / && mount -t tmpfs none \"$1\" && echo first > \"$1/file\" && echo ready && \
                 while read line; do eval \"$line\"; echo done; done";
    let mut machine = Command::new("unshare")
        .args(["-m", "sh", "-c", shell, "sh", &world.text("outside/disk")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = machine.stdin.take().unwrap();
    let mut answers = std::io::BufReader::new(machine.stdout.take().unwrap());
    let mut answered = || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut answers, &mut line).unwrap();
        line
    };
    assert_eq!(answered(), "ready\n");
    let helper = world.path("helper");
    let enter = format!("/usr/bin/nsenter --mount=/proc/{}/ns/mnt", machine.id());
    let line = format!("exec {enter} /bin/bash -c 'exec -a loci-sandbox \"$0\" \"$@\"' {PROBE} \"$@\"");
    world.write("helper", &format!("#!/bin/bash\n{line}\n"));
    std::fs::set_permissions(&helper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (change, expected) in [
        ("true", "first\n"),
        ("mount -t tmpfs none \"$1\"; echo second > \"$1/file\"", "second\n"),
        ("umount \"$1\"", "first\n"),
    ] {
        let (child, helper) = start_helper_ahead(&helper, &policy);
        wait_until_prepared(first_process(&child));
        std::io::Write::write_all(&mut orders, format!("{change}\n").as_bytes()).unwrap();
        assert_eq!(answered(), "done\n");
        let text = format!("cat {}/file", world.text("outside/disk"));
        let (printed, report) = finished(child, helper.hand_over(&policy, &script(&world, &text)).unwrap());
        assert_eq!((printed.as_str(), report.why_not_run()), (expected, None), "{change}");
    }
    drop(orders);
    machine.wait().unwrap();
}
