//! Programs that people run work inside, and leave nothing behind.

use std::process::Command;

use super::kit::{World, has_full};

fn is_installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success());
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

#[test]
fn git_commits_and_status_shows_no_placeholder() {
    if !has_full() {
        return;
    }
    let world = World::new();
    world.repository();
    let before = world.names();
    let inside = world.inside(
        "sh",
        &["-c", "git add file && git commit -qm one && git status --porcelain && git log --oneline | wc -l"],
    );
    assert_eq!(inside.trim(), "1", "one commit, and nothing that git sees besides");
    assert_eq!(world.names(), before, "nothing is left");
    let status = world.outside("git", &["status", "--porcelain"]);
    assert_eq!(String::from_utf8_lossy(&status.stdout), "");
}

#[test]
fn git_makes_a_repository_in_a_fresh_directory() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let script = "mkdir new && cd new && git init -q && git config user.email a@b && git config user.name a && touch x && git add x && git commit -qm x && git log --oneline | wc -l";
    assert_eq!(world.inside("sh", &["-c", script]).trim(), "1");
}

#[test]
fn linked_worktree_commits_into_the_shared_repository_and_not_its_configuration() {
    if !has_full() {
        return;
    }
    let world = World::new();
    world.repository();
    assert!(
        world
            .outside("sh", &["-c", "git add file && git commit -qm one && git worktree add -q ../w"])
            .status
            .success()
    );
    let mut places = world.places();
    places.dirs = vec![world.path("home/w")];
    places.git_dirs = loci_sandbox::git_dirs(&world.path("home/w"));
    assert_eq!(places.git_dirs, [world.path("home/p/.git")]);
    let policy = loci_sandbox::Policy {
        files: Some(loci_sandbox::policy::FileRules::new(&places, &world.settings)),
        ..world.policy(loci_sandbox::policy::Layers::FULL)
    };
    let script = "cd ../w && echo x > y && git add y && git commit -qm two && git log --oneline | wc -l; git config a.b c 2>/dev/null || echo kept; echo x > ../p/file || echo outside";
    let (output, report) = world.run(&policy, "sh", &["-c", script]);
    assert_eq!(report.why_not_run(), None);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2\nkept\noutside\n");
}

#[test]
fn interpreters_threads_and_temporary_files_work() {
    if !has_full() {
        return;
    }
    let world = World::new();
    assert_eq!(world.inside("sh", &["-c", "f=$(mktemp) && echo hi > $f && cat $f && rm $f"]), "hi\n");
    if is_installed("python3") {
        let script = "import threading,subprocess,tempfile,socket,multiprocessing as m\nt=threading.Thread(target=lambda:None);t.start();t.join()\nprint(subprocess.check_output(['echo','x']).decode().strip())\ntempfile.TemporaryFile().write(b'x')\ns=socket.socket();s.bind(('127.0.0.1',0));s.listen();c=socket.create_connection(s.getsockname())\nq=m.Queue();q.put(3);print(q.get())";
        assert_eq!(world.inside("python3", &["-c", script]), "x\n3\n");
    }
    if is_installed("node") {
        let script = "const{Worker,isMainThread}=require('worker_threads');const cp=require('child_process');new Worker('require(\"worker_threads\").parentPort.postMessage(7)',{eval:true}).on('message',m=>{console.log(m,cp.execSync('echo y').toString().trim())})";
        assert_eq!(world.inside("node", &["-e", script]), "7 y\n");
    }
    assert_eq!(world.inside("sh", &["-c", "seq 100000 | wc -l"]).trim(), "100000");
}

#[test]
fn cargo_builds_offline() {
    if !has_full() || !is_installed("cargo") {
        return;
    }
    let world = World::new();
    world.write(
        "home/p/Cargo.toml",
        "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    world.write("home/p/src/main.rs", "fn main() { println!(\"built\"); }");
    // The toolchain lies in the real home, which is readable; what cargo writes goes to a home of its own.
    let rustup = std::env::var("RUSTUP_HOME")
        .unwrap_or_else(|_| format!("{}/.rustup", std::env::var("HOME").unwrap_or_default()));
    let script = format!("export RUSTUP_HOME={rustup} CARGO_HOME=$TMPDIR/cargo; cargo run -q --offline");
    assert_eq!(world.inside("sh", &["-c", &script]), "built\n");
}

#[test]
fn exit_codes_and_streams_are_the_programs_own() {
    if !has_full() {
        return;
    }
    let world = World::new();
    for (script, code) in [("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("true", 0)] {
        let (output, _) = world.run(&world.policy(loci_sandbox::policy::Layers::FULL), "sh", &["-c", script]);
        assert_eq!(output.status.code(), Some(code), "{script}");
    }
    let (output, _) =
        world.run(&world.policy(loci_sandbox::policy::Layers::FULL), "sh", &["-c", "echo out; echo err >&2"]);
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
}

#[test]
fn what_a_program_leaves_running_is_told_by_name() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let policy = world.policy(loci_sandbox::policy::Layers::FULL);
    let started = |program: &str| format!("until grep -qx {program} /proc/$!/comm; do :; done");
    for (script, expected) in [
        (format!("sleep 1000 & {}", started("sleep")), Some("(`sleep`)")),
        (format!("sleep 1000 & {0}; sleep 1000 & {0}", started("sleep")), Some("(`sleep`, `sleep`)")),
        ("sleep 0 & wait; true | true".to_owned(), None),
        // Git's housekeeping goes on by itself, and is nothing that anybody waits for.
        (format!("ln -s $(command -v sleep) git; ./git 1000 & {}", started("git")), None),
    ] {
        let (output, report) = world.run(&policy, "sh", &["-c", &script]);
        assert!(output.status.success(), "{script}: {output:?}");
        let told = report.removed.iter().any(|it| expected.is_some_and(|names| it.contains(names)));
        assert_eq!(
            (told, report.removed.len()),
            (expected.is_some(), usize::from(expected.is_some())),
            "{report:?}"
        );
    }
}

#[test]
fn everything_ends_with_the_program_and_with_whoever_started_it() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let alive = world.text("home/p/alive");
    let script = format!(
        "(setsid sh -c 'while :; do touch {alive}; sleep 0.02; done' >/dev/null 2>&1 &) ; while [ ! -e {alive} ]; do sleep 0.01; done"
    );
    world.inside("sh", &["-c", &script]);
    std::fs::remove_file(&alive).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(150));
    assert!(!std::path::Path::new(&alive).exists(), "what it left has ended");
    // The other end of the lifeline is closed, as it is when the session is killed.
    let policy = world.policy(loci_sandbox::policy::Layers::FULL);
    let (mut command, helper_handle) = loci_sandbox::launch(
        std::path::Path::new(super::kit::PROBE),
        &policy,
        "sh".as_ref(),
        ["-c", "sleep 1000"],
    )
    .unwrap();
    let mut child = command.current_dir(world.path("home/p")).spawn().unwrap();
    drop(command);
    drop(helper_handle);
    assert!(!child.wait().unwrap().success());
}
