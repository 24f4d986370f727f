//! Git state, from files and from git itself.

use std::fs;
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

#[test]
fn variables_do_not_lead_git_elsewhere() {
    let mut world = repository();
    let elsewhere = world.env.home.join("elsewhere.git");
    world.env.vars =
        world.env.vars.with("GIT_DIR", elsewhere.to_str().unwrap()).with("GIT_INDEX_FILE", "/nowhere/x");
    assert_eq!(git_snapshot(world.cwd(), &world.env).unwrap().status, "");
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
