//! A session that is killed outright: what it was running goes with it.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use loci_testkit::Step;
use serde_json::json;

use crate::support::{Pipe, World, watched};

/// How long processes may take to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Reads the process numbers that a command wrote, a line each.
fn process_ids(file: &Path) -> Vec<u32> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().map(|line| line.trim().parse().unwrap()).collect()
}

fn wait_until(is_so: impl Fn() -> bool, what: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The shell, its child, and a grandchild in a session of its own.
#[tokio::test]
async fn command_and_its_children_die_when_loci_is_killed() {
    let command = "echo $$ >> pids; sleep 1000 & echo $! >> pids; \
                   setsid sh -c 'echo $$ >> pids; exec sleep 1000' & wait";
    for in_background in [false, true] {
        let call = json!({"command": command, "run_in_background": in_background});
        // In the background, another command keeps the turn going.
        let held = Step::call("Bash", json!({"command": "cat held.pipe"}));
        let steps =
            if in_background { vec![Step::call("Bash", call), held] } else { vec![Step::call("Bash", call)] };
        let world = World::new(steps).await;
        let _held = Pipe::new(&world.home, "held.pipe");
        let session = world.start_closed(&watched(["hi", "--allowedTools", "Bash,Edit(pids)"]));
        let file = world.home.project().join("pids");
        wait_until(|| process_ids(&file).len() == 3, "the command has started");
        let started = process_ids(&file);
        session.crash();
        for pid in started {
            wait_until(|| !loci_stdx::is_alive(pid), "a process of the command is left");
        }
    }
}

/// A hook that runs, and one that goes on beside the turn.
#[tokio::test]
async fn hooks_and_their_children_die_when_loci_is_killed() {
    let command = "echo $$ >> pids; sleep 1000 & echo $! >> pids; \
                   setsid sh -c 'echo $$ >> pids; exec sleep 1000' & wait";
    for is_async in [false, true] {
        // Beside an asynchronous hook, a command keeps the turn going.
        let world = World::new([Step::call("Bash", json!({"command": "cat held.pipe"}))]).await;
        let _held = Pipe::new(&world.home, "held.pipe");
        let handler = json!({"type": "command", "command": command, "async": is_async});
        crate::hooks::configure(&world, json!({"UserPromptSubmit": [{"hooks": [handler]}]}));
        let session = world.start_closed(&watched(["hi", "--allowedTools", "Bash"]));
        let file = world.home.project().join("pids");
        wait_until(|| process_ids(&file).len() == 3, "the hook has started");
        let started = process_ids(&file);
        session.crash();
        for pid in started {
            wait_until(|| !loci_stdx::is_alive(pid), "a process of the hook is left");
        }
    }
}

/// A server that heeds nothing, its child, and a grandchild in a session of its own.
#[tokio::test]
async fn mcp_servers_and_their_children_die_when_loci_is_killed() {
    let world = World::new([Step::call("Bash", json!({"command": "cat held.pipe"}))]).await;
    let _held = Pipe::new(&world.home, "held.pipe");
    let command = "trap '' TERM HUP; echo $$ >> pids; sleep 1000 & echo $! >> pids; \
                   setsid sh -c 'echo $$ >> pids; exec sleep 1000' & while :; do sleep 1; done";
    let servers = json!({"mcpServers": {"s": {"command": "sh", "args": ["-c", command]}}}).to_string();
    let run = watched(["hi", "--allowedTools", "Bash"])
        .args(["--mcp-config", &servers])
        .env("MCP_TIMEOUT", "60000");
    let session = world.start_closed(&run);
    let file = world.home.project().join("pids");
    wait_until(|| process_ids(&file).len() == 3, "the server has started");
    let started = process_ids(&file);
    session.crash();
    for pid in started {
        wait_until(|| !loci_stdx::is_alive(pid), "a process of the server is left");
    }
}

/// Returns the children of a process that are helpers of the sandbox.
fn sandbox_helpers(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    let pids = entries.filter_map(|name| name.to_str().and_then(|name| name.parse::<u32>().ok()));
    let is_helper = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect::<Vec<_>>());
        let is_child = fields.is_some_and(|fields| fields.get(1) == Some(&parent.to_string().as_str()));
        is_child
            && fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"loci-sandbox\0"))
    };
    pids.filter(is_helper).collect()
}

/// The helper that waits for the next command of a sandbox knows nothing of the last, and goes with the session.
#[tokio::test]
async fn waiting_helper_of_the_sandbox_ends_when_loci_is_killed() {
    let world = World::new([]).await;
    if !crate::sandbox::has_full(&world) {
        return;
    }
    let settings = json!({"sandbox": {"enabled": true, "excludedCommands": ["cat *"]}});
    world.home.write_config("settings.json", settings.to_string());
    let calls = ["echo inside", "cat held.pipe"].map(|it| Step::call("Bash", json!({"command": it})));
    let world = world.then(calls.to_vec()).await;
    let held = Pipe::new(&world.home, "held.pipe");
    let session = world.start_closed(&watched(["hi", "--allowedTools", "Bash(cat *)"]));
    let _writer = held.reader_came();
    wait_until(|| sandbox_helpers(session.id()).len() == 1, "a helper waits");
    let [pid] = sandbox_helpers(session.id())[..] else { panic!("one helper waits") };
    assert_eq!(fs::read(format!("/proc/{pid}/environ")).unwrap(), b"", "it has no variables");
    assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).unwrap(), Path::new("/"));
    let inside = format!("/proc/{pid}/task/{pid}/children");
    wait_until(|| fs::read_to_string(&inside).is_ok_and(|it| !it.is_empty()), "namespaces are prepared");
    let inside: u32 = fs::read_to_string(&inside).unwrap().trim().parse().unwrap();
    session.crash();
    wait_until(|| !loci_stdx::is_alive(pid), "the helper is left");
    wait_until(|| !loci_stdx::is_alive(inside), "what it had prepared is left");
}

/// A process that was left on purpose, by a command that has ended, is not the session's any more.
#[tokio::test]
async fn daemon_left_by_an_ended_command_outlives_loci() {
    let left = json!({"command": "setsid sleep 1000 > /dev/null 2>&1 < /dev/null & echo $! > pid"});
    let world =
        World::new([Step::call("Bash", left), Step::call("Bash", json!({"command": "cat held.pipe"}))]).await;
    let held = Pipe::new(&world.home, "held.pipe");
    let session = world.start_closed(&watched(["hi", "--allowedTools", "Bash,Edit(pid)"]));
    let _writer = held.reader_came();
    let [pid] = process_ids(&world.home.project().join("pid"))[..] else { panic!("one process was left") };
    session.crash();
    assert!(loci_stdx::is_alive(pid));
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
}
