use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use loci_stdx::Env;

use super::*;

struct World {
    _dir: tempfile::TempDir,
    env: Env,
    main: PathBuf,
}

impl World {
    /// A repository with one commit.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let main = root.join("project");
        fs::create_dir_all(&main).unwrap();
        let mut env = Env::for_test(&root, &main);
        let path = std::env::var("PATH").unwrap();
        env.vars = env.vars.with("PATH", &path).with("HOME", root.to_str().unwrap());
        let world = Self { _dir: dir, env, main };
        world.git(&["init", "-q", "-b", "main"]);
        world.write("a.txt", "a\n");
        world.write(".gitignore", ".env*\nnode_modules/\n.claude/\n");
        world.commit("first");
        world
    }

    fn git(&self, args: &[&str]) -> String {
        git_in(&self.main, args)
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.main.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn create(&self, name: &str) -> Result<Worktree, WorktreeError> {
        self.create_with(name, &WorktreeOptions::default())
    }

    fn create_with(&self, name: &str, options: &WorktreeOptions) -> Result<Worktree, WorktreeError> {
        create_worktree(&self.env, &self.main, name, options)
    }

    fn remove(&self, worktree: &Worktree, discards: bool) -> Result<RemovedWorktree, WorktreeRemovalError> {
        remove_worktree(&self.env, worktree, discards)
    }
}

fn git_in(dir: &Path, args: &[&str]) -> String {
    let identity = ["-c", "user.name=T", "-c", "user.email=t@e"];
    let output = Command::new("git").args(identity).args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[test]
fn worktree_has_a_branch_of_its_own_and_is_found_by_its_name_again() {
    let world = World::new();
    let made = world.create("calm").unwrap();
    assert_eq!(made.path, world.main.join(".claude/worktrees/calm"));
    assert_eq!(git_in(&made.path, &["branch", "--show-current"]), "worktree-calm");
    assert!(made.path.join("a.txt").exists() && !made.is_reused);
    let again = world.create("calm").unwrap();
    assert_eq!((again.path.clone(), again.is_reused), (made.path.clone(), true));
    let from_inside = create_worktree(&world.env, &made.path, "other", &WorktreeOptions::default()).unwrap();
    assert_eq!(from_inside.path, world.main.join(".claude/worktrees/other"), "not one in the other");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let world = World::new();
    for name in ["", "..", "../x", "a/b", "-x", ".x", "a..b", "x.lock", "x.", "a b", &"x".repeat(65)] {
        assert!(matches!(world.create(name), Err(WorktreeError::Name(_))), "{name}");
    }
    for (text, name, base) in [
        ("calm", "calm", None),
        ("#12", "pr-12", Some(WorktreeBase::PullRequest(12))),
        ("https://github.com/a/b/pull/7/files", "pr-7", Some(WorktreeBase::PullRequest(7))),
        ("https://gitlab.com/a/b/-/merge_requests/8", "pr-8", Some(WorktreeBase::PullRequest(8))),
    ] {
        assert_eq!(parse_worktree_name(text).unwrap(), (name.to_owned(), base));
    }
    assert!(parse_worktree_name("https://example.com/x").is_err());
}

#[test]
fn symlink_or_foreign_directory_in_its_place_is_refused() {
    let world = World::new();
    let elsewhere = world.main.with_file_name("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::create_dir_all(world.main.join(".claude")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, world.main.join(".claude/worktrees")).unwrap();
    assert!(matches!(world.create("calm"), Err(WorktreeError::Symlink(_))));
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    fs::remove_file(world.main.join(".claude/worktrees")).unwrap();
    fs::create_dir_all(world.main.join(".claude/worktrees/calm")).unwrap();
    assert!(matches!(world.create("calm"), Err(WorktreeError::Taken(_))));
    // A git file that points at the main checkout's own directory is no worktree.
    let trap = world.main.join(".claude/worktrees/trap");
    fs::create_dir_all(&trap).unwrap();
    fs::write(trap.join(".git"), format!("gitdir: {}", world.main.join(".git").display())).unwrap();
    assert!(matches!(world.create("trap"), Err(WorktreeError::Taken(_))));
}

#[test]
fn no_repository_and_no_commit_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let mut env = Env::for_test(&root, &root);
    env.vars = env.vars.with("PATH", std::env::var("PATH").unwrap());
    let made = create_worktree(&env, &root, "x", &WorktreeOptions::default());
    assert!(matches!(made, Err(WorktreeError::NoRepository(_))));
    git_in(&root, &["init", "-q"]);
    let made = create_worktree(&env, &root, "x", &WorktreeOptions::default());
    assert!(matches!(made, Err(WorktreeError::Git(why)) if why.contains("no commit")));
}

#[test]
fn base_is_the_remote_s_default_branch_unless_head_is_asked_for() {
    let upstream = World::new();
    let world = World::new();
    world.git(&["remote", "add", "origin", upstream.main.to_str().unwrap()]);
    world.git(&["fetch", "-q", "origin"]);
    world.git(&["remote", "set-head", "origin", "main"]);
    world.write("local.txt", "local\n");
    world.commit("local");
    let fresh = world.create("fresh").unwrap();
    assert!(!fresh.path.join("local.txt").exists());
    let head = WorktreeOptions { base: WorktreeBase::Head, ..WorktreeOptions::default() };
    assert!(world.create_with("head", &head).unwrap().path.join("local.txt").exists());
    // Upstream has moved; a fetch of today is believed, an old one is repeated.
    upstream.write("new.txt", "new\n");
    upstream.commit("new");
    fs::File::options()
        .append(true)
        .open(world.main.join(".git/FETCH_HEAD"))
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    assert!(world.create("newer").unwrap().path.join("new.txt").exists());
    let again = world.create("fresh").unwrap();
    assert!(again.path.join("new.txt").exists(), "one without anything of its own is brought up to date");
    upstream.git(&["update-ref", "refs/pull/5/head", "HEAD"]);
    let request = WorktreeOptions { base: WorktreeBase::PullRequest(5), ..WorktreeOptions::default() };
    assert!(world.create_with("pr-5", &request).unwrap().path.join("new.txt").exists());
    let missing = WorktreeOptions { base: WorktreeBase::PullRequest(6), ..WorktreeOptions::default() };
    assert!(world.create_with("pr-6", &missing).is_err());
}

#[test]
fn included_ignored_files_are_copied_and_nothing_else() {
    let world = World::new();
    world.write(".worktreeinclude", ".env\nconfig/*.json\nuntracked.txt\n!.env.skip\na.txt\nlink.env\n");
    world.write(".gitignore", ".env*\nconfig/\nlink.env\n.claude/\n");
    world.commit("include");
    world.write(".env", "SECRET=1\n");
    world.write(".env.local", "no\n");
    world.write("config/secrets.json", "{}");
    world.write("untracked.txt", "not ignored\n");
    std::os::unix::fs::symlink("/etc/hostname", world.main.join("link.env")).unwrap();
    let made = world.create("calm").unwrap();
    assert_eq!(fs::read_to_string(made.path.join(".env")).unwrap(), "SECRET=1\n");
    assert!(made.path.join("config/secrets.json").exists());
    for absent in [".env.local", "untracked.txt", "link.env"] {
        assert!(fs::symlink_metadata(made.path.join(absent)).is_err(), "{absent}");
    }
    assert!(worktree_changes(&world.env, &made).unwrap().is_empty());
    // Copies of a copy are not included.
    let second = world.create("second").unwrap();
    assert!(!second.path.join(".claude").exists());
}

#[test]
fn shared_directories_are_links_and_survive_the_removal() {
    let world = World::new();
    world.write("node_modules/pkg/index.js", "x");
    let options = WorktreeOptions {
        symlink_directories: ["node_modules", "../escape", "absent"].map(str::to_owned).to_vec(),
        ..WorktreeOptions::default()
    };
    let made = world.create_with("calm", &options).unwrap();
    assert!(made.path.join("node_modules").is_symlink());
    assert!(worktree_changes(&world.env, &made).unwrap().is_empty(), "a link is no work");
    world.remove(&made, false).unwrap();
    assert!(!made.path.exists() && world.main.join("node_modules/pkg/index.js").exists());
}

#[test]
fn sparse_worktree_has_the_named_directories_alone() {
    let world = World::new();
    world.write("src/main.rs", "fn main() {}");
    world.write("docs/big.md", "#");
    world.commit("more");
    let options = WorktreeOptions { sparse_paths: vec!["src".to_owned()], ..WorktreeOptions::default() };
    let made = world.create_with("calm", &options).unwrap();
    assert!(made.path.join("src/main.rs").exists() && !made.path.join("docs").exists());
    assert!(worktree_changes(&world.env, &made).unwrap().is_empty());
}

#[test]
fn clean_worktree_goes_with_its_branch() {
    let world = World::new();
    let made = world.create("calm").unwrap();
    let removed = world.remove(&made, false).unwrap();
    assert_eq!(removed, RemovedWorktree::default());
    assert!(!made.path.exists());
    assert_eq!(world.git(&["branch", "--list", "worktree-calm"]), "");
}

#[test]
fn work_keeps_a_worktree_unless_it_is_discarded_and_even_then_a_commit_keeps_it() {
    let world = World::new();
    let made = world.create("calm").unwrap();
    fs::write(made.path.join("new.txt"), "new\n").unwrap();
    fs::write(made.path.join("a.txt"), "changed\n").unwrap();
    git_in(&made.path, &["add", "a.txt"]);
    git_in(&made.path, &["commit", "-q", "-m", "work"]);
    let changes = WorktreeChanges { n_files: 1, n_commits: 1 };
    assert_eq!(worktree_changes(&world.env, &made).unwrap(), changes);
    assert!(
        matches!(world.remove(&made, false), Err(WorktreeRemovalError::WouldLose(found)) if found == changes)
    );
    assert!(made.path.join("new.txt").exists());
    let removed = world.remove(&made, true).unwrap();
    assert_eq!(removed.discarded, changes);
    assert!(!made.path.exists());
    let kept = removed.kept_as.unwrap();
    assert_eq!(world.git(&["show", &format!("{kept}:new.txt")]), "new");
    assert_eq!(world.git(&["show", &format!("{kept}:a.txt")]), "changed");
}

#[test]
fn commits_that_another_branch_has_are_not_lost() {
    let world = World::new();
    let made = world.create("calm").unwrap();
    fs::write(made.path.join("a.txt"), "changed\n").unwrap();
    git_in(&made.path, &["commit", "-q", "-am", "work"]);
    world.git(&["merge", "-q", "worktree-calm"]);
    assert!(worktree_changes(&world.env, &made).unwrap().is_empty());
    world.remove(&made, false).unwrap();
}

#[test]
fn worktree_that_git_cannot_look_into_is_not_removed() {
    let world = World::new();
    let made = world.create("calm").unwrap();
    fs::write(made.path.join("new.txt"), "new\n").unwrap();
    fs::remove_file(made.path.join(".git")).unwrap();
    fs::write(made.path.join(".git"), "gitdir: /nowhere").unwrap();
    assert!(matches!(world.remove(&made, false), Err(WorktreeRemovalError::Git(_))));
    assert!(made.path.join("new.txt").exists());
}

/// A repository's own configuration must not get anything run (threat model, S-23).
#[test]
fn hooks_and_filters_of_the_repository_are_not_run() {
    let world = World::new();
    let sprung = world.main.with_file_name("sprung");
    let trap = world.main.with_file_name("trap.sh");
    fs::write(&trap, format!("#!/bin/sh\ntouch {}\ncat\n", sprung.display())).unwrap();
    fs::set_permissions(&trap, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let hook = world.main.join(".git/hooks/post-checkout");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::copy(&trap, &hook).unwrap();
    world.write(".gitattributes", "*.txt filter=bad\n");
    world.commit("attributes");
    world.git(&["config", "filter.bad.smudge", trap.to_str().unwrap()]);
    world.git(&["config", "filter.bad.clean", trap.to_str().unwrap()]);
    world.git(&["config", "core.fsmonitor", trap.to_str().unwrap()]);
    fs::remove_file(&sprung).ok();
    let made = world.create("calm").unwrap();
    fs::write(made.path.join("a.txt"), "b\n").unwrap();
    worktree_changes(&world.env, &made).unwrap();
    world.remove(&made, true).unwrap();
    assert!(!sprung.exists());
}

#[test]
fn many_worktrees_at_once_are_all_made() {
    let world = World::new();
    std::thread::scope(|scope| {
        let made: Vec<_> = (0..8)
            .map(|n| {
                scope.spawn({
                    let world = &world;
                    move || world.create(&format!("w{n}"))
                })
            })
            .collect();
        made.into_iter().for_each(|made| assert!(made.join().unwrap().unwrap().path.exists()));
    });
}

#[test]
fn survey_tells_what_was_left_behind() {
    let world = World::new();
    world.create("clean").unwrap();
    let busy = world.create("agent-busy").unwrap();
    fs::write(busy.path.join("new.txt"), "x").unwrap();
    let ahead = world.create("agent-ahead").unwrap();
    fs::write(ahead.path.join("new.txt"), "x").unwrap();
    git_in(&ahead.path, &["add", "-A"]);
    git_in(&ahead.path, &["commit", "-q", "-m", "own"]);
    let gone = world.create("gone").unwrap();
    fs::remove_dir_all(&gone.path).unwrap();
    fs::create_dir_all(world.main.join(".claude/worktrees/stray")).unwrap();
    let found: Vec<(String, WorktreeState)> =
        survey_worktrees(&world.env, &world.main).into_iter().map(|it| (it.name, it.state)).collect();
    let whole = |n_files, n_commits| WorktreeState::Whole(WorktreeChanges { n_files, n_commits });
    let expected = [
        ("agent-ahead", whole(0, 1)),
        ("agent-busy", whole(1, 0)),
        ("clean", whole(0, 0)),
        ("gone", WorktreeState::Missing),
        ("stray", WorktreeState::Orphaned),
    ];
    assert_eq!(found, expected.map(|(name, state)| (name.to_owned(), state)));
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(survey_worktrees(&world.env, elsewhere.path()), []);
}

#[test]
fn sweep_takes_old_copies_of_agents_that_have_nothing_of_their_own() {
    let world = World::new();
    let copies: Vec<PathBuf> = ["calm", "agent-clean", "agent-busy", "agent-ahead"]
        .iter()
        .map(|name| world.create(name).unwrap().path)
        .collect();
    fs::write(copies[2].join("new.txt"), "x").unwrap();
    fs::write(copies[3].join("new.txt"), "x").unwrap();
    git_in(&copies[3], &["add", "-A"]);
    git_in(&copies[3], &["commit", "-q", "-m", "own"]);
    let days = |n: u64| Duration::from_secs(n * 24 * 60 * 60);
    let mut env = world.env.clone();
    env.clock = std::sync::Arc::new(loci_stdx::SystemClock::new());
    assert_eq!(sweep_agent_worktrees(&env, &world.main, days(30)), Vec::<PathBuf>::new(), "none is old");
    assert_eq!(sweep_agent_worktrees(&env, &world.main, days(0)), [copies[1].clone()]);
    let left: Vec<bool> = copies.iter().map(|path| path.exists()).collect();
    assert_eq!(left, [true, false, true, true]);
}

#[test]
fn held_worktree_is_not_removed_until_it_is_released() {
    let world = World::new();
    let made = world.create("agent-a1").unwrap();
    assert!(hold_worktree(&world.env, &made));
    assert!(!hold_worktree(&world.env, &made), "it is held already");
    assert!(matches!(world.remove(&made, false), Err(WorktreeRemovalError::Git(_))));
    let mut env = world.env.clone();
    env.clock = std::sync::Arc::new(loci_stdx::SystemClock::new());
    assert_eq!(sweep_agent_worktrees(&env, &world.main, Duration::ZERO), Vec::<PathBuf>::new());
    assert!(made.path.exists());
    release_worktree(&world.env, &made);
    world.remove(&made, false).unwrap();
    assert!(!made.path.exists());
}

#[test]
fn sweep_gives_up_locks_of_processes_that_are_gone_and_no_others() {
    let world = World::new();
    let lock = |made: &Worktree, reason: &str| {
        world.git(&["worktree", "lock", "--reason", reason, made.path.to_str().unwrap()]);
    };
    let (killed, kept, gone) = (
        world.create("agent-k").unwrap(),
        world.create("agent-p").unwrap(),
        world.create("agent-g").unwrap(),
    );
    let of_the_dead = "loci: an agent works here (process 4194303, started 1)";
    lock(&killed, of_the_dead);
    lock(&kept, "I am looking at it");
    lock(&gone, of_the_dead);
    fs::remove_dir_all(&gone.path).unwrap();
    let mut env = world.env.clone();
    env.clock = std::sync::Arc::new(loci_stdx::SystemClock::new());
    assert_eq!(sweep_agent_worktrees(&env, &world.main, Duration::ZERO), [killed.path]);
    let listed = world.git(&["worktree", "list", "--porcelain"]);
    assert!(listed.contains("locked I am looking at it"), "{listed}");
    assert!(!listed.contains("agent-g") && !listed.contains("agent-k"), "{listed}");
    release_worktree(&env, &kept);
    assert!(world.git(&["worktree", "list", "--porcelain"]).contains("I am looking at it"));
}

/// What a copy has is told from other branches, not from where it stood when it was opened again.
#[test]
fn commits_of_a_copy_that_is_opened_again_are_not_lost() {
    let world = World::new();
    let made = world.create("calm").unwrap();
    fs::write(made.path.join("b.txt"), "b\n").unwrap();
    git_in(&made.path, &["add", "-A"]);
    git_in(&made.path, &["commit", "-q", "-m", "second"]);
    let by_name = world.create("calm").unwrap();
    let by_path = open_worktree(&world.env, &world.main, &made.path).unwrap();
    for again in [by_name, by_path] {
        let error = world.remove(&again, false).unwrap_err();
        let WorktreeRemovalError::WouldLose(changes) = error else { panic!("{error}") };
        assert_eq!((changes.n_files, changes.n_commits), (0, 1));
    }
}

#[test]
fn copy_that_a_session_is_in_is_not_removed_by_another() {
    let world = World::new();
    let made = world.create("calm").unwrap();
    let (first, second) =
        (use_worktree(&world.env, &made).unwrap(), use_worktree(&world.env, &made).unwrap());
    drop(first);
    let error = world.remove(&made, true).unwrap_err();
    assert!(matches!(error, WorktreeRemovalError::InUse(_)), "{error}");
    drop(second);
    world.remove(&made, false).unwrap();
    assert!(!made.path.exists());
}

#[test]
fn copy_of_a_hook_must_lie_apart_and_behind_no_symlink() {
    let world = World::new();
    let root = world.main.parent().unwrap();
    fs::create_dir_all(root.join("copies/one")).unwrap();
    fs::create_dir_all(world.main.join("inside")).unwrap();
    std::os::unix::fs::symlink(root.join("copies"), world.main.join("linked")).unwrap();
    let at = |path: PathBuf| hook_worktree(&world.main, "one", &path);
    let made = at(root.join("copies/one")).unwrap();
    assert_eq!((made.path, made.main, made.is_hooks), (root.join("copies/one"), world.main.clone(), true));
    assert_eq!(at("../copies/one".into()).unwrap().path, root.join("copies/one"), "from where the hook ran");
    assert!(at("inside".into()).is_ok());
    for (path, why) in [
        (root.join("copies/../copies/one"), "steps"),
        (world.main.join("linked/one"), "symlink"),
        (root.join("missing"), "missing"),
        (root.to_owned(), "around"),
        (world.main.clone(), "around"),
    ] {
        let error = at(path).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}
