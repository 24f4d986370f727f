//! Probe 21 in a directory of git: what a command leaves there leads nobody elsewhere who uses git outside.

use std::os::unix::fs::symlink;

use loci_sandbox::policy::{FileRules, Layers};
use loci_sandbox::{Policy, SandboxReport};

use super::kit::{World, has_full};

/// A project with two branches, cloned from `home/o`, and an editor that writes.
fn repository() -> World {
    let world = World::new();
    world.write(
        "home/.gitconfig",
        "[user]\nname=a\nemail=a@b\n[init]\ndefaultBranch=main\n[core]\neditor=\"echo edited >\"\n",
    );
    let script = "rm file; git init -q ../o && cd ../o && echo x > x && git add x && git commit -qm one && cd ../p && git clone -q ../o . \
        && git checkout -qb side && echo s > s && git add s && git commit -qm side && git checkout -q main && echo m > m && git add m && git commit -qm two";
    world.script_outside(script);
    world
}

/// Runs a script inside; it must work.
fn inside(world: &World, policy: &Policy, script: &str) -> SandboxReport {
    let (output, report) = world.run(policy, "sh", &["-ec", script]);
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && report.why_not_run().is_none(), "{script}: {printed}");
    report
}

/// What git writes through a symlink that lies there, and what is run outside that writes it: found with git 2.47. Names
/// that are not here it replaces, or refuses to work with.
const FOLLOWED: &[(&str, &str)] = &[
    ("logs/HEAD", "git commit --allow-empty -qm x"),
    ("logs/refs/heads/main", "git commit --allow-empty -qm x"),
    ("logs/refs/remotes/origin/main", "git -C ../o commit --allow-empty -qm x && git fetch -q"),
    ("logs/refs/stash", "echo x > m; git stash"),
    ("COMMIT_EDITMSG", "git commit --allow-empty -qm x"),
    ("MERGE_MSG", "git merge --no-commit --no-ff side"),
    ("MERGE_MODE", "git merge --no-commit --no-ff side"),
    ("SQUASH_MSG", "git merge --squash side"),
    ("FETCH_HEAD", "git fetch -q"),
    ("NOTES_EDITMSG", "git notes add -m x && git notes edit"),
    ("TAG_EDITMSG", "git tag -a v1"),
    ("EDIT_DESCRIPTION", "git branch --edit-description"),
    ("ADD_EDIT.patch", "echo x > m; git add -e"),
    ("gc.pid", "git gc -q"),
    ("objects/info/commit-graph", "git commit-graph write --reachable"),
];

/// Through a symlink to what is not there yet it makes these as well.
const MADE: &[(&str, &str)] = &[
    ("packed-refs", "git pack-refs --all"),
    ("shallow", "git fetch -q --depth 1 file://$HOME/o"),
    ("info/sparse-checkout", "git sparse-checkout init; git sparse-checkout set x"),
];

/// Directories through which it writes.
const DIRECTORIES: &[(&str, &str)] = &[
    ("logs", "git commit --allow-empty -qm x"),
    ("logs/refs", "git commit --allow-empty -qm x"),
    ("logs/refs/heads", "git commit --allow-empty -qm x"),
    ("objects/pack", "git repack -adq"),
    ("refs/tags", "git tag t"),
];

/// Leaves a symlink and runs git outside; tells whether anything was written where it leads to.
fn leads_out(name: &str, target: &str, script: &str) -> bool {
    let world = repository();
    std::fs::create_dir_all(world.path("outside/dir")).unwrap();
    let plant = format!(
        "rm -rf .git/{name}; mkdir -p .git/{name}; rmdir .git/{name}; ln -s {} .git/{name}",
        world.text(target)
    );
    let report = inside(&world, &world.policy(Layers::FULL), &plant);
    // Some of it fails where the command has taken away what git needs.
    world.outside("sh", &["-c", script]);
    let mut names: Vec<_> = ["outside", "outside/dir"]
        .iter()
        .flat_map(|dir| std::fs::read_dir(world.path(dir)).unwrap())
        .map(|it| it.unwrap().file_name())
        .collect();
    names.sort();
    let is_written =
        names != ["dir", "file"] || std::fs::read(world.path("outside/file")).unwrap() != b"outside";
    let aside = world.path("home/p/.git/sandbox-set-aside").join(name.replace('/', "_"));
    let is_kept = std::fs::read_link(aside).is_ok_and(|it| it == world.path(target));
    let is_told = report.removed.len() == 1 && report.removed[0].contains(&format!("`{name}`"));
    if !is_written {
        assert!(is_kept && is_told, "{name}: {:?}", report.removed);
    }
    is_written
}

#[test]
fn symlink_in_a_directory_of_git_leads_nothing_outside() {
    if !has_full() {
        return;
    }
    let files = FOLLOWED.iter().map(|it| ("outside/file", it));
    let missing = FOLLOWED.iter().chain(MADE).map(|it| ("outside/new", it));
    let dirs = DIRECTORIES.iter().map(|it| ("outside/dir", it));
    let cases: Vec<_> = files.chain(missing).chain(dirs).collect();
    let written = |(target, (name, script)): &&(&str, &(&str, &str))| leads_out(name, target, script);
    let written: Vec<_> = cases.iter().filter(written).collect();
    assert!(written.is_empty(), "git writes through {} of {}: {written:?}", written.len(), cases.len());
}

#[test]
fn symlinks_that_were_there_and_those_of_git_stay() {
    if !has_full() {
        return;
    }
    let world = repository();
    world.script_outside(
        "cd .git && mv logs ../../logs && ln -s ../../logs logs && git symbolic-ref HEAD >/dev/null && rm HEAD && ln -s refs/heads/main HEAD",
    );
    let script = "git commit --allow-empty -qm x; ln -sfn refs/heads/side .git/HEAD; ln -s refs/heads/main .git/refs/heads/link";
    let report = inside(&world, &world.policy(Layers::FULL), &format!("({script}) || true"));
    assert_eq!(report.removed, Vec::<String>::new());
    assert_eq!(std::fs::read_link(world.path("home/p/.git/logs")).unwrap().to_str(), Some("../../logs"));
    assert_eq!(std::fs::read_link(world.path("home/p/.git/HEAD")).unwrap().to_str(), Some("refs/heads/side"));
    // The same name with another target is another symlink.
    let report = inside(&world, &world.policy(Layers::FULL), "ln -sfn ../../../outside .git/logs");
    assert!(report.removed[0].contains("`logs`"), "{:?}", report.removed);
}

#[test]
fn ordinary_work_with_git_loses_nothing() {
    if !has_full() {
        return;
    }
    let world = repository();
    let script = "git commit --allow-empty -qm x && git branch a/b/c && git checkout -q side && git merge -q --no-edit main \
        && echo y > s && git stash -q && git stash pop -q && git checkout -q . && git tag -a v -m v && git notes add -m n \
        && git checkout -qb r main~1 && echo r > r && git add r && git commit -qm r && git rebase -q -x 'true' main \
        && git cherry-pick -n side~1 && git reset -q --hard && git pack-refs --all && git reflog expire --all --expire=now \
        && git worktree add -q sub/w a/b/c && git -C sub/w commit -q --allow-empty -m w \
        && git worktree remove sub/w && git repack -adq && git commit-graph write --reachable && git bisect start HEAD HEAD~1 && git bisect reset && git gc -q \
        && (GIT_SEQUENCE_EDITOR='echo exec false >' git rebase -qi HEAD~1 || true)";
    let report = inside(&world, &world.policy(Layers::FULL), script);
    assert_eq!(report.removed, Vec::<String>::new());
    assert!(!world.path("home/p/.git/sandbox-set-aside").exists());
    assert!(world.path("home/p/.git/rebase-merge").exists(), "a rebase that a command has begun goes on");
}

#[test]
fn linked_worktree_is_not_led_to_another_configuration() {
    if !has_full() {
        return;
    }
    let world = repository();
    let ran = world.text("outside/ran");
    world.script_outside("git config extensions.worktreeConfig true; git worktree add -q ../w side");
    let sparse = "[core]\n\tsparseCheckout = false\n";
    world.write("home/p/.git/worktrees/w/config.worktree", sparse);
    let monitor = format!("git config -f config.worktree core.fsmonitor 'touch {ran}; false'");
    let lead = format!(
        "cp -r ../.. $TMPDIR/evil; mv $TMPDIR/evil ../../..; git config -f ../../../evil/config core.fsmonitor 'touch {ran}; false'; echo ../../../evil > commondir"
    );
    for (name, script) in [("config.worktree", &monitor), ("commondir", &lead)] {
        let report = inside(&world, &world.policy(Layers::FULL), &format!("cd .git/worktrees/w; {script}"));
        world.outside("sh", &["-c", "cd ../w && git status"]);
        assert!(!world.path("outside/ran").exists(), "git outside ran what {name} says");
        assert!(
            report.removed.len() == 1 && report.removed[0].contains(&format!("`worktrees/w/{name}`")),
            "{:?}",
            report.removed
        );
    }
}

#[test]
fn objects_of_another_repository_are_not_named() {
    if !has_full() {
        return;
    }
    let world = repository();
    let policy = world.policy(Layers::FULL);
    let plant = "echo /x > .git/objects/info/alternates";
    let report = inside(&world, &policy, plant);
    assert!(report.removed[0].contains("`objects/info/alternates`"), "{:?}", report.removed);
    assert!(!world.path("home/p/.git/objects/info/alternates").exists());
    // One that is there stays as it is.
    let text = format!("{}\n", world.text("home/o/.git/objects"));
    world.write("home/p/.git/objects/info/alternates", &text);
    let (output, report) = world.run(
        &policy,
        "sh",
        &[
            "-c",
            &format!("{plant}; rm -f .git/objects/info/alternates; mv .git/objects/info .git/x; git log -1"),
        ],
    );
    assert_eq!(report.removed, Vec::<String>::new());
    assert!(output.status.success());
    assert_eq!(std::fs::read_to_string(world.path("home/p/.git/objects/info/alternates")).unwrap(), text);
}

#[test]
fn remote_is_not_named_by_a_file() {
    if !has_full() {
        return;
    }
    for (name, prefix) in [("remotes/origin", "URL: "), ("branches/origin", "")] {
        let world = repository();
        world.script_outside("git remote remove origin");
        let hook = format!("printf '#!/bin/sh\\ntouch {}\\n'", world.text("outside/ran"));
        let plant = format!(
            "git init -q --bare evil; {hook} > evil/hooks/post-receive; chmod +x evil/hooks/post-receive; \
             mkdir -p .git/remotes .git/branches; echo '{prefix}{}' > .git/{name}",
            world.text("home/p/evil")
        );
        let report = inside(&world, &world.policy(Layers::FULL), &plant);
        world.outside("git", &["push", "-q", "origin", "HEAD:refs/heads/new"]);
        assert!(!world.path("outside/ran").exists(), "{name}: a hook ran outside");
        assert!(report.removed[0].contains(&format!("`{name}`")), "{:?}", report.removed);
    }
}

/// Whatever a command puts in the way, the symlink is gone from where git writes, and nothing is silent.
#[test]
fn nothing_in_the_way_keeps_a_symlink_in_place() {
    if !has_full() {
        return;
    }
    let link = "rm .git/logs/HEAD; ln -s ../../../../outside/file .git/logs/HEAD";
    for (obstacle, is_kept) in [
        ("", true),
        ("; mkdir .git/sandbox-set-aside", true),
        ("; ln -s ../../../outside .git/sandbox-set-aside", true),
        ("; echo x > .git/sandbox-set-aside", true),
        ("; mkdir .git/sandbox-set-aside; echo x > .git/sandbox-set-aside/logs_HEAD", true),
        ("; chmod 111 .git/logs", true),
        ("; chmod 555 .git/logs", true),
        ("; chmod 111 .git", true),
        ("; mkfifo .git/COMMIT_EDITMSG.fifo; ln -s x .git/y", true),
        ("; mkdir .git/sandbox-set-aside; chmod 0 .git/sandbox-set-aside", false),
    ] {
        let world = repository();
        let world = if super::kit::is_root() { world.of_user(super::kit::ORDINARY_USER) } else { world };
        let report = inside(&world, &world.policy(Layers::FULL), &format!("{link}{obstacle}"));
        let said = report.removed.join("\n");
        assert!(said.contains("logs/HEAD"), "{obstacle}: {said}");
        let path = world.path("home/p/.git/logs/HEAD");
        assert!(path.symlink_metadata().is_err(), "{obstacle}: {said}");
        assert_eq!(std::fs::read_to_string(world.path("outside/file")).unwrap(), "outside");
        assert_eq!(world.path("outside").read_dir().unwrap().count(), 1, "{obstacle}");
        let mut dirs = world.path("home/p/.git").read_dir().unwrap().map(|it| it.unwrap().path());
        let is_aside = |dir: std::path::PathBuf| {
            dir.file_name().unwrap().to_string_lossy().starts_with("sandbox-set-aside")
                && ["logs_HEAD", "logs_HEAD~1"].iter().any(|it| dir.join(it).is_symlink())
        };
        assert_eq!(dirs.any(is_aside), is_kept, "{obstacle}: {said}");
    }
}

/// The directory of git may lie around the session's directory, or elsewhere, as that of a linked worktree does.
#[test]
fn directory_of_git_outside_the_session_s_own_is_looked_through() {
    if !has_full() {
        return;
    }
    for (dir, logs) in
        [("home/p/sub", ".git/logs"), ("home/w", ".git/worktrees/w/logs"), ("home/b", "../b/logs")]
    {
        let world = repository();
        world.script_outside("mkdir sub; git worktree add -q ../w side; git clone -q --bare . ../b");
        let mut places = world.places();
        places.dirs = vec![world.path(dir)];
        places.git_dirs = loci_sandbox::git_dirs(&world.path(dir));
        let policy =
            Policy { files: Some(FileRules::new(&places, &world.settings)), ..world.policy(Layers::FULL) };
        let logs = world.text(&format!("home/p/{logs}"));
        let report = inside(
            &world,
            &policy,
            &format!("mkdir -p {logs}; rm -f {logs}/HEAD; ln -s {} {logs}/HEAD", world.text("outside/file")),
        );
        assert!(
            report.removed.len() == 1 && report.removed[0].contains("logs/HEAD"),
            "{dir}: {:?}",
            report.removed
        );
        assert!(!std::path::Path::new(&logs).join("HEAD").is_symlink(), "{dir}");
    }
    // Beside a repository without a `.git` a symlink is somebody's own.
    let world = World::new();
    world.script_outside("git init -q --bare .");
    let report = inside(&world, &world.policy(Layers::FULL), "ln -s x current; ln -s x COMMIT_EDITMSG");
    assert!(report.removed[0].contains("`COMMIT_EDITMSG`") && !report.removed[0].contains("current"));
    symlink("y", world.path("home/p/mine")).unwrap();
    assert!(world.path("home/p/current").is_symlink());
}
