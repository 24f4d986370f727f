//! A repository that a command makes at the top of the session's directory, and what of it is used outside.

use std::os::unix::process::CommandExt;
use std::path::Path;

use loci_sandbox::policy::Layers;
use loci_sandbox::{SandboxReport, launch};

use super::kit::{PROBE, World, has_full};

const INIT: &str = "git init -q && git config user.email a@b && git config user.name a";

/// A project in which there is nothing.
fn empty_project() -> World {
    let world = World::new();
    std::fs::remove_file(world.path("home/p/file")).unwrap();
    world
}

/// Runs a script inside; it must work.
fn shell(world: &World, script: &str) -> (String, SandboxReport) {
    let (output, report) = world.run(&world.policy(Layers::FULL), "sh", &["-ec", script]);
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && report.why_not_run().is_none(), "{script}: {printed}");
    (printed, report)
}

/// Runs git outside, in the project, and nowhere above it.
fn git(world: &World, args: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.args(args).current_dir(world.path("home/p")).env_clear().envs(world.env());
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "a").env(format!("GIT_{role}_EMAIL"), "a@b");
    }
    let output = command.env("GIT_CEILING_DIRECTORIES", world.path("home")).output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned()
}

/// Waits until a command has made a file; false when it has ended before.
fn wait_for(world: &World, name: &str, mut has_ended: impl FnMut() -> bool) -> bool {
    while !world.path(name).exists() && !has_ended() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    world.path(name).exists()
}

/// What a script waits for that somebody outside makes, and not for ever.
const WAIT: &str = "n=0; while [ ! -e stop ] && [ $n -lt 6000 ]; do sleep 0.02; n=$((n + 1)); done";

#[test]
fn command_makes_a_repository_in_the_session_s_own_directory_and_the_next_commits() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let (printed, report) = shell(
        &world,
        &format!(
            "{INIT} && git add . && git commit -qm one && git status --porcelain && git log --oneline HEAD | wc -l"
        ),
    );
    assert_eq!((printed.as_str(), report.removed.as_slice()), ("1\n", &[][..]));
    assert_eq!(world.names(), [".git", "file"], "nothing else is left");
    let names: Vec<_> =
        std::fs::read_dir(world.path("home/p/.git")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with("sandbox-")), "{names:?}");
    assert_eq!(git(&world, &["status", "--porcelain"]), "");
    assert_eq!(git(&world, &["log", "--format=%an %s"]), "a one");
    let (printed, report) =
        shell(&world, "echo x > new && git add new && git commit -qm two && git log --oneline | wc -l");
    assert_eq!((printed.as_str(), report.removed.as_slice()), ("2\n", &[][..]));
    assert_eq!(git(&world, &["fsck"]), "");
}

#[test]
fn package_managers_make_projects_there() {
    if !has_full() {
        return;
    }
    let world = empty_project();
    let (_, report) = shell(&world, "git init -q . && mkdir src && echo 'fn main() {}' > src/main.rs");
    assert_eq!(report.removed, Vec::<String>::new());
    for (program, script, expected) in [
        ("cargo", "cargo init -q --vcs git --name x", "Cargo.toml"),
        ("npm", "npm init -y >/dev/null", "package.json"),
    ] {
        let world = empty_project();
        // The tests' own workspace lies around the project.
        world.write("home/Cargo.toml", "[workspace]\nexclude = [\"p\"]\n");
        let rustup = std::env::var("RUSTUP_HOME")
            .unwrap_or_else(|_| format!("{}/.rustup", std::env::var("HOME").unwrap_or_default()));
        let script = format!("export RUSTUP_HOME={rustup} CARGO_HOME=$TMPDIR/cargo; {script}");
        if !std::process::Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success())
        {
            eprintln!("skipped: {program} is not installed");
            continue;
        }
        let (_, report) = shell(&world, &script);
        assert_eq!(report.removed, Vec::<String>::new(), "{program}");
        assert!(world.path("home/p").join(expected).exists(), "{program}");
        // Cargo makes no repository where it sees a `.git` of any kind.
        shell(&world, "git init -q");
        assert!(git(&world, &["status", "--porcelain"]).contains(expected), "{program}");
    }
}

/// A clone wants an empty directory, which a directory with placeholders is not.
#[test]
fn repository_is_pulled_where_it_cannot_be_cloned() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let (source, script) =
        (world.text("outside/source"), format!("{INIT} && git add . && git commit -qm one"));
    shell(&world, &script);
    let run = |args: &[&str]| assert!(world.outside("git", args).status.success(), "{args:?}");
    run(&["clone", "-q", "--bare", ".", &source]);
    for name in [".git", "file"].map(|name| world.path("home/p").join(name)) {
        if name.is_dir() {
            std::fs::remove_dir_all(name).unwrap();
        } else {
            std::fs::remove_file(name).unwrap();
        }
    }
    let (output, _) = world.run(&world.policy(Layers::FULL), "git", &["clone", "-q", &source, "."]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("not an empty directory"));
    assert_eq!(world.names(), Vec::<String>::new());
    let (_, report) = shell(&world, &format!("git init -q && git pull -q {source} && test -e file"));
    assert_eq!(report.removed, Vec::<String>::new());
    assert_eq!(git(&world, &["log", "--format=%s"]), "one");
    assert_eq!(git(&world, &["status", "--porcelain"]), "");
}

/// What git outside would run is tried while the command runs, too.
#[test]
fn nothing_of_a_repository_in_the_making_runs_outside_while_the_command_runs() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let evil = world.text("home/p/pwned");
    let script = format!(
        "{INIT} && git config core.fsmonitor 'touch {evil}; false' && git config alias.st '!touch {evil}' && touch made; {WAIT}"
    );
    std::thread::scope(|scope| {
        let running = scope.spawn(|| shell(&world, &script));
        assert!(wait_for(&world, "home/p/made", || running.is_finished()));
        assert!(git(&world, &["status"]).contains("not a git repository"));
        git(&world, &["st"]);
        world.write("home/p/stop", "");
        let (_, report) = running.join().unwrap();
        let said = report.removed.join("\n");
        assert!(said.contains("`core.fsmonitor`") && said.contains("`alias.st`"), "{said}");
    });
    assert!(git(&world, &["status", "--porcelain"]).contains("made"));
    git(&world, &["st"]);
    assert!(!world.path("home/p/pwned").exists());
}

#[test]
fn what_git_would_run_or_be_led_by_is_set_aside_and_said() {
    if !has_full() {
        return;
    }
    for (script, said, kept_aside) in [
        (
            "printf '#!/bin/sh\\ntouch pwned\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/*",
            "`hooks/post-checkout`",
            "hooks_post-checkout",
        ),
        ("git config core.sshCommand 'touch pwned'", "`core.sshcommand`", "config"),
        ("git config include.path ../evil", "`include.path`", "config"),
        ("git config core.hooksPath evil", "`core.hookspath`", "config"),
        (
            "git config filter.x.clean 'touch pwned; cat' && echo '* filter=x' > .gitattributes",
            "`filter.x.clean`",
            "config",
        ),
        ("git config core.worktree /", "`core.worktree`", "config"),
        ("git remote add origin ./evil", "`remote.origin.url`", "config"),
        (
            "git config extensions.worktreeConfig true; printf '[core]\\nfsmonitor = x\\n' > .git/config.worktree",
            "`config.worktree`",
            "config.worktree",
        ),
        ("echo ../evil > .git/commondir", "`commondir`", "commondir"),
        (
            "mkdir .git/rebase-merge; echo 'exec touch pwned' > .git/rebase-merge/git-rebase-todo",
            "`rebase-merge`",
            "rebase-merge",
        ),
        ("ln -sf ../../file .git/logs/HEAD", "`logs/HEAD`", "logs_HEAD"),
        ("ln -s ../file .git/COMMIT_EDITMSG", "`COMMIT_EDITMSG`", "COMMIT_EDITMSG"),
        ("rm .git/index; mkfifo .git/index", "`index`", "index"),
        ("mv .git/hooks .git/h; ln -s ../evil .git/hooks", "`hooks`", "hooks"),
        ("mv .git/config evil; ln -s ../evil .git/config", "`config`", "config"),
        (
            "mkdir -p .git/branches; echo ./evil > .git/branches/origin",
            "`branches/origin`",
            "branches_origin",
        ),
        (
            "echo /elsewhere > .git/objects/info/alternates",
            "`objects/info/alternates`",
            "objects_info_alternates",
        ),
        ("mkdir -p .git/modules/x; cp .git/config .git/modules/x", "`modules`", "modules"),
    ] {
        let world = World::new();
        let (_, report) =
            shell(&world, &format!("rm -rf .git/* ; {INIT} && mkdir -p .git/logs && git add . && {script}"));
        let words = report.removed.join("\n");
        assert!(words.contains(said) && words.contains("sandbox-set-aside"), "{script}: {words}");
        let aside = world.path("home/p/.git/sandbox-set-aside").join(kept_aside);
        assert!(aside.symlink_metadata().is_ok(), "{script}");
        // The repository can be used, and runs nothing.
        for args in [
            &["add", "."][..],
            &["commit", "-qm", "x"],
            &["checkout", "-qb", "other"],
            &["push", "-q", "origin"],
        ] {
            git(&world, args);
        }
        assert_eq!(git(&world, &["log", "--format=%s"]), "x", "{script}");
        assert!(!world.path("home/p/pwned").exists(), "{script}");
        assert_eq!(std::fs::read_to_string(world.path("home/p/file")).unwrap(), "inside", "{script}");
    }
}

#[test]
fn what_is_no_repository_yet_stays_for_the_next_command() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let (_, report) = shell(&world, "echo x > .git/started");
    assert_eq!(report.removed, Vec::<String>::new());
    assert!(git(&world, &["status"]).contains("not a git repository"));
    assert_eq!(shell(&world, "cat .git/started && rm .git/started").0, "x\n");
    assert_eq!(world.names(), ["file"], "one that is empty is gone");
    shell(&world, "mkdir .git/objects");
    shell(&world, INIT);
    assert!(git(&world, &["status"]).contains("file"));
}

/// Each has a directory of its own: who ends first makes the repository, and has nobody write into it.
#[test]
fn commands_beside_each_other_make_one_repository() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let long = format!(
        "touch ready; {WAIT}; git init -q; echo '[core]' >> .git/config; touch .git/hooks/pre-commit; git rev-parse --git-dir"
    );
    std::thread::scope(|scope| {
        let running = scope.spawn(|| shell(&world, &long));
        assert!(wait_for(&world, "home/p/ready", || running.is_finished()));
        shell(&world, &format!("{INIT} && git add file && git commit -qm one"));
        assert_eq!(git(&world, &["log", "--format=%s"]), "one", "it is there although another command runs");
        assert!(
            world
                .run(&world.policy(Layers::FULL), "sh", &["-c", "echo x > .git/hooks/pre-commit"])
                .0
                .status
                .code()
                != Some(0)
        );
        world.write("home/p/stop", "");
        let (_, report) = running.join().unwrap();
        assert!(report.removed.iter().any(|it| it.contains("there is another by now")), "{report:?}");
    });
    assert_eq!(git(&world, &["log", "--format=%s"]), "one");
    assert!(!world.path("home/p/.git/hooks/pre-commit").exists());
    let left = world.path("home/p/.git/sandbox-0");
    let mut rev_parse = std::process::Command::new("git");
    rev_parse.args(["rev-parse", "--absolute-git-dir"]).current_dir(&left).env_clear().envs(world.env());
    let found = rev_parse.output().unwrap();
    // The whole path: its random part may begin like any name.
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    assert_eq!(found.trim(), world.text("home/p/.git"), "what is left is no repository");
}

#[test]
fn repository_that_somebody_makes_outside_meanwhile_is_the_one() {
    if !has_full() {
        return;
    }
    let world = World::new();
    std::thread::scope(|scope| {
        let running = scope
            .spawn(|| shell(&world, &format!("{INIT}; git config core.fsmonitor x; touch ready; {WAIT}")));
        assert!(wait_for(&world, "home/p/ready", || running.is_finished()));
        assert!(world.outside("git", &["init", "-q"]).status.success());
        world.write("home/p/stop", "");
        assert_eq!(running.join().unwrap().1.removed.len(), 1);
    });
    assert!(!std::fs::read_to_string(world.path("home/p/.git/config")).unwrap().contains("fsmonitor"));
    assert!(git(&world, &["status"]).contains("file"));
}

#[test]
fn repository_of_a_killed_helper_is_looked_at_behind_the_next_command() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let policy = world.policy(Layers::FULL);
    let script = format!("{INIT}; git config core.fsmonitor x; touch ready; {WAIT}");
    let (mut command, helper_handle) =
        launch(Path::new(PROBE), &policy, "sh".as_ref(), ["-c", &script]).unwrap();
    command.current_dir(world.path("home/p")).env_clear().envs(world.env()).process_group(0);
    let mut child = command.spawn().unwrap();
    drop(command);
    assert!(wait_for(&world, "home/p/ready", || child.try_wait().unwrap().is_some()));
    // Only the process outside: it can look at nothing any more.
    child.kill().unwrap();
    child.wait().unwrap();
    drop(helper_handle);
    assert!(git(&world, &["status"]).contains("not a git repository"));
    let (_, report) = shell(&world, "git rev-parse --git-dir");
    assert!(report.removed.iter().any(|it| it.contains("core.fsmonitor")), "{report:?}");
    assert!(git(&world, &["status"]).contains("file"));
}

#[test]
fn nothing_is_made_where_a_rule_denies_it() {
    if !has_full() {
        return;
    }
    for name in ["home/p/.git", "home/p/.git/objects", "home/p"] {
        let mut world = World::new();
        world.settings.deny_write = vec![world.path(name)];
        let (output, _) = world.run(&world.policy(Layers::FULL), "git", &["init"]);
        assert!(!output.status.success(), "{name}");
        assert_eq!(world.names(), ["file"], "{name}");
    }
}
