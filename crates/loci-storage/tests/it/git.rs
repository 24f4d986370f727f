//! Git state, from files and from git itself.

use std::fs;
use std::path::Path;
use std::process::Command;

use loci_storage::project::{git_snapshot, head_branch};

use crate::support::World;

fn git(world: &World, args: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=Test", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"]);
    command.args(args).current_dir(world.cwd()).env("HOME", &world.env.home).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn repository() -> World {
    let mut world = World::new();
    world.env.vars = world.env.vars.with("HOME", world.env.home.to_str().unwrap());
    git(&world, &["init", "-q"]);
    world.write("project/a.txt", "a\n");
    git(&world, &["add", "."]);
    git(&world, &["commit", "-q", "-m", "first words"]);
    world
}

#[test]
fn the_branch_is_read_from_head() {
    let world = World::new();
    assert_eq!(head_branch(world.cwd()), None);
    for (head, branch) in [
        ("ref: refs/heads/feature/x\n", "feature/x"),
        ("ref: refs/heads/.invalid\n", "HEAD"),
        ("9af4c0d5b6f1f5cba9e8d7c6b5a4938271605f4e\n", "HEAD"),
    ] {
        world.write("project/.git/HEAD", head);
        assert_eq!(head_branch(world.cwd()).as_deref(), Some(branch));
    }
    let below = world.cwd().join("a/b");
    fs::create_dir_all(&below).unwrap();
    assert_eq!(head_branch(&below).as_deref(), Some("HEAD"));
}

#[test]
fn a_worktree_has_its_own_head() {
    let world = World::new();
    world.write("repo/.git/HEAD", "ref: refs/heads/main\n");
    world.write("repo/.git/worktrees/w/HEAD", "ref: refs/heads/side\n");
    world.write("project/.git", "gitdir: ../repo/.git/worktrees/w\n");
    assert_eq!(head_branch(world.cwd()).as_deref(), Some("side"));
}

#[test]
fn a_snapshot_says_where_the_work_stands() {
    let world = repository();
    git(&world, &["checkout", "-q", "-b", "side"]);
    git(&world, &["config", "user.name", "Ada"]);
    world.write("project/new.txt", "n\n");
    world.write("project/a.txt", "changed\n");
    let snapshot = git_snapshot(world.cwd(), &world.env).unwrap();
    assert_eq!(snapshot.branch, "side");
    assert_eq!(snapshot.main_branch.as_deref(), Some("main"));
    assert_eq!(snapshot.status, " M a.txt\n?? new.txt");
    assert_eq!(snapshot.user.as_deref(), Some("Ada"));
    assert!(snapshot.log.ends_with("first words"), "{}", snapshot.log);
}

#[test]
fn a_repository_without_commits_has_a_snapshot_too() {
    let mut world = World::new();
    world.env.vars = world.env.vars.with("HOME", world.env.home.to_str().unwrap());
    git(&world, &["init", "-q"]);
    let snapshot = git_snapshot(world.cwd(), &world.env).unwrap();
    assert_eq!((snapshot.branch.as_str(), snapshot.log.as_str(), snapshot.main_branch), ("main", "", None));
}

#[test]
fn there_is_no_snapshot_outside_a_repository_or_without_git() {
    let world = World::new();
    assert_eq!(git_snapshot(world.cwd(), &world.env), None);
    let mut world = repository();
    world.env.vars = world.env.vars.with("PATH", "/nowhere");
    assert_eq!(git_snapshot(world.cwd(), &world.env), None);
}

/// Has a git on the path that writes down what it is asked, and returns where.
fn watched_git(world: &mut World) -> std::path::PathBuf {
    let calls = world.env.home.join("calls");
    let real = Command::new("sh").args(["-c", "command -v git"]).output().unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    let script = format!("#!/bin/sh\necho \"$@\" >> '{}'\nexec {} \"$@\"\n", calls.display(), real.trim());
    let wrapper = world.write("bin/git", script);
    fs::set_permissions(&wrapper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", wrapper.parent().unwrap().display(), world.env.vars.get("PATH").unwrap());
    world.env.vars = world.env.vars.clone().with("PATH", &path);
    calls
}

/// Git would wait for somebody to write into it, and the start for git.
#[test]
fn git_is_asked_nothing_where_its_configuration_is_a_pipe() {
    for name in [".gitconfig", ".config/git/config", "project/.git/config"] {
        let mut world = repository();
        let calls = watched_git(&mut world);
        let path = world.env.home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        drop(fs::remove_file(&path));
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!(git_snapshot(world.cwd(), &world.env), None, "{name}");
        assert!(!calls.exists(), "{name}: {:?}", fs::read_to_string(&calls));
    }
}

#[test]
fn variables_do_not_lead_git_elsewhere() {
    let mut world = repository();
    let elsewhere = world.env.home.join("elsewhere.git");
    world.env.vars =
        world.env.vars.with("GIT_DIR", elsewhere.to_str().unwrap()).with("GIT_INDEX_FILE", "/nowhere/x");
    assert_eq!(git_snapshot(world.cwd(), &world.env).unwrap().status, "");
}

/// Asks git itself.
fn git_log(world: &World, dir: &Path) -> String {
    let mut command = Command::new("git");
    command
        .args(["log", "--oneline", "--no-decorate", "-n", "5"])
        .current_dir(dir)
        .env("HOME", &world.env.home);
    String::from_utf8(command.output().unwrap().stdout).unwrap().trim_end().to_owned()
}

fn commit_all(world: &World, message: &str, time: u32) {
    let date = format!("{time} +0000");
    let mut command = Command::new("git");
    command.args([
        "-c",
        "user.name=T",
        "-c",
        "user.email=t@e",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        message,
    ]);
    command.current_dir(world.cwd()).env("HOME", &world.env.home);
    command.env("GIT_COMMITTER_DATE", &date).env("GIT_AUTHOR_DATE", &date);
    assert!(command.status().unwrap().success());
}

/// The reader of commits against git itself: branches that were merged, one second for all, loose and packed objects with
/// deltas, a detached head, a shallow clone and a worktree.
#[test]
fn snapshot_lists_commits_as_git_log_does() {
    let world = repository();
    let check = |dir: &Path, case: &str| {
        let log = git_snapshot(dir, &world.env).unwrap().log;
        assert_eq!(log, git_log(&world, dir), "{case}");
        assert!(!log.is_empty(), "{case}");
    };
    check(world.cwd(), "one commit");
    for round in 0..3 {
        let side = format!("side-{round}");
        git(&world, &["checkout", "-q", "-b", &side]);
        commit_all(
            &world,
            &format!("on the side {round}\nstill the subject\n\nand a body"),
            1_700_000_000 + round * 100,
        );
        git(&world, &["checkout", "-q", "main"]);
        commit_all(&world, &format!("on main {round}"), 1_700_000_000 + round * 60);
        git(&world, &["merge", "-q", "--no-edit", "-m", &format!("joins {round}"), &side]);
        check(world.cwd(), "merged, loose");
    }
    for n in 0..60 {
        commit_all(
            &world,
            &format!(
                "a commit with a long message that many others share, number {n}\n\n{}",
                "text ".repeat(40)
            ),
            1_800_000_000,
        );
    }
    check(world.cwd(), "all in one second");
    git(&world, &["gc", "-q", "--aggressive", "--prune=now"]);
    check(world.cwd(), "packed");
    commit_all(&world, "loose over packed", 1_800_000_001);
    check(world.cwd(), "both");
    git(&world, &["checkout", "-q", "HEAD~3"]);
    check(world.cwd(), "detached");
    git(&world, &["worktree", "add", "-q", "../tree", "side-1"]);
    check(&world.cwd().with_file_name("tree"), "worktree");
    git(&world, &["clone", "-q", "--depth", "2", "--no-local", ".", "../shallow"]);
    check(&world.cwd().with_file_name("shallow"), "shallow");
    git(&world, &["clone", "-q", "--shared", ".", "../shared"]);
    check(&world.cwd().with_file_name("shared"), "objects elsewhere");
}

#[test]
fn snapshot_of_a_plain_repository_starts_git_once() {
    let mut world = repository();
    git(&world, &["config", "user.name", "Ada"]);
    let calls = watched_git(&mut world);
    let snapshot = git_snapshot(world.cwd(), &world.env).unwrap();
    assert_eq!((snapshot.user.as_deref(), snapshot.main_branch.as_deref()), (Some("Ada"), Some("main")));
    let asked = fs::read_to_string(&calls).unwrap();
    assert!(asked.lines().count() == 1 && asked.contains("status --short"), "{asked}");
    for n in 0..20 {
        commit_all(&world, &format!("number {n}\n\n{}", "the same words ".repeat(40)), 1_800_000_000);
    }
    git(&world, &["gc", "-q", "--aggressive", "--prune=now"]);
    let snapshot = git_snapshot(world.cwd(), &world.env).unwrap();
    assert_eq!(snapshot.log.lines().count(), 5);
    let asked = fs::read_to_string(&calls).unwrap();
    assert_eq!(asked.lines().count(), 2, "packed commits are read, too: {asked}");
}

/// A repository's own configuration must not get anything run (threat model, S-23).
#[test]
fn git_snapshot_runs_nothing_of_the_repository() {
    let world = repository();
    let trap = world.write("trap.sh", "#!/bin/sh\ntouch \"$(dirname \"$0\")/sprung\"\ncat\n");
    fs::set_permissions(&trap, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let trap = trap.to_str().unwrap();
    world.write("project/.gitattributes", "*.txt filter=bad diff=bad\n*.md filter=hidden\n");
    world.write("project/b.md", "b\n");
    git(&world, &["add", "."]);
    git(&world, &["commit", "-q", "-m", "attributes"]);
    for key in [
        "core.fsmonitor",
        "filter.bad.clean",
        "filter.bad.process",
        "diff.external",
        "diff.bad.textconv",
        "core.pager",
        "gpg.program",
    ] {
        git(&world, &["config", key, trap]);
    }
    git(&world, &["config", "log.showSignature", "true"]);
    git(&world, &["config", "filter.bad.required", "true"]);
    world.write("project/.git/more", format!("[filter \"hidden\"]\n\tclean = {trap}\n"));
    git(&world, &["config", "include.path", "more"]);
    let hooks = world.cwd().join(".git/hooks");
    for hook in ["post-index-change", "post-checkout"] {
        fs::copy(trap, hooks.join(hook)).unwrap();
    }
    world.write("project/a.txt", "b\n");
    world.write("project/b.md", "c\n");
    let snapshot = git_snapshot(world.cwd(), &world.env).unwrap();
    assert_eq!(snapshot.status, " M a.txt\n M b.md");
    let is_sprung = || world.env.home.join("sprung").exists() || hooks.join("sprung").exists();
    assert!(!is_sprung());
    // The trap does work: an unguarded git steps into it, and fails on what it says.
    Command::new("git").arg("status").current_dir(world.cwd()).env("HOME", &world.env.home).output().unwrap();
    assert!(is_sprung());
}
