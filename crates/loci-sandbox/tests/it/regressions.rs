//! What went wrong elsewhere, or here, each with its name.

use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};

use loci_sandbox::policy::Layers;

use super::kit::{ORDINARY_USER, PROBE, World, has_full, is_root};

/// What a shell prints inside, with its complaints, whatever comes of it.
fn shell(world: &World, script: &str) -> String {
    let (output, report) = world.run(&world.policy(Layers::FULL), "sh", &["-c", script]);
    assert_eq!(report.why_not_run(), None, "{script}");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn head_is_not_ambiguous_and_one_that_a_command_makes_is_removed() {
    if !has_full() {
        return;
    }
    let world = World::new();
    world.repository();
    let script = "git add file && git commit -qm one && git log --oneline HEAD | wc -l && git diff HEAD && git rev-parse -q --verify HEAD >/dev/null && echo fine";
    assert_eq!(shell(&world, script), "1\nfine\n");
    let (_, report) =
        world.run(&world.policy(Layers::FULL), "sh", &["-c", "echo 'ref: refs/heads/x' > HEAD"]);
    assert!(report.removed.iter().any(|it| it.contains("HEAD")), "{report:?}");
    assert!(!world.path("home/p/HEAD").exists());
    // A `HEAD` that was there is the project's own.
    world.write("home/p/HEAD", "mine");
    assert!(shell(&world, "echo x > HEAD").contains("Read-only"));
    assert_eq!(std::fs::read_to_string(world.path("home/p/HEAD")).unwrap(), "mine");
}

/// Probe 22.
#[test]
fn repository_in_disguise_is_not_made() {
    if !has_full() {
        return;
    }
    let script = "mkdir -p objects refs; echo 'ref: refs/heads/main' > HEAD; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = \"touch pwned; false\"\\n' > config";
    for is_repository in [true, false] {
        let world = World::new();
        if is_repository {
            // The session is in a directory of a repository, where git looks at the directory itself first.
            std::fs::create_dir(world.path("home/.git")).unwrap();
            assert!(world.outside("git", &["init", "-q", ".."]).status.success());
        }
        shell(&world, script);
        world.outside("git", &["status"]);
        assert!(!world.path("home/p/pwned").exists());
        assert!(
            !world.path("home/p/HEAD").exists() && !world.path("home/p/refs").exists(),
            "{is_repository}"
        );
    }
}

#[test]
fn repository_without_a_git_directory_keeps_its_hooks_and_configuration() {
    if !has_full() {
        return;
    }
    let world = World::new();
    assert!(world.outside("git", &["init", "-q", "--bare", "."]).status.success());
    let script = "echo x > hooks/post-update; echo x >> config; echo x > config.worktree; git symbolic-ref HEAD; git hash-object -w file >/dev/null && echo stored";
    let printed = shell(&world, script);
    assert!(printed.contains("refs/heads/") && printed.contains("stored"), "{printed}");
    assert!(!world.path("home/p/hooks/post-update").exists());
    assert!(!std::fs::read_to_string(world.path("home/p/config")).unwrap().contains("x\n"));
    assert!(!world.path("home/p/config.worktree").exists(), "the placeholder is gone");
}

#[test]
fn symlinks_in_the_place_of_settings_do_not_stop_commands_and_stay_shut() {
    if !has_full() {
        return;
    }
    for (link, target) in [
        (".claude/skills", "../shared-skills"),
        (".claude/commands", "@/home/p/shared-skills"),
        (".claude/hooks", "@/outside"),
        (".claude/settings.json", "@/home/p/shared-skills/settings.json"),
        (".mcp.json", "shared-skills/missing.json"),
        (".git/hooks", "../shared-skills"),
    ] {
        let world = World::new();
        world.write("home/p/shared-skills/settings.json", "{}");
        world.write("home/p/.git/config", "");
        std::fs::create_dir_all(world.path("home/p/.claude")).unwrap();
        let target = target.replace('@', world.text("").trim_end_matches('/'));
        symlink(&target, world.path(&format!("home/p/{link}"))).unwrap();
        let names = world.names();
        let script = format!(
            "echo ran; echo x 2>/dev/null > {link}/new || echo x 2>/dev/null > {link} || echo shut; rm -f {link} 2>/dev/null; test -L {link} && echo kept"
        );
        assert_eq!(
            shell(&world, &script).lines().filter(|it| !it.contains(": ")).collect::<Vec<_>>(),
            ["ran", "shut", "kept"],
            "{link}"
        );
        assert_eq!(world.names(), names, "{link}");
        assert!(!world.path("home/p/shared-skills/missing.json").exists(), "{link}: the placeholder is gone");
    }
}

#[test]
fn working_directory_that_may_not_be_written_is_no_obstacle() {
    if !has_full() {
        return;
    }
    for deny in ["home/p", "home", ""] {
        let mut world = World::new();
        world.settings.deny_write = vec![world.path(deny)];
        let printed = shell(
            &world,
            "pwd >/dev/null && echo ran; echo x > new; f=$(mktemp) && echo x > $f && echo temporary",
        );
        assert!(printed.starts_with("ran\ntemporary\n"), "{deny}: {printed}");
        assert!(!world.path("home/p/new").exists(), "{deny}");
    }
}

#[test]
fn working_directory_that_is_gone_runs_nothing_and_says_so() {
    if !has_full() {
        return;
    }
    let world = World::new();
    // The shell removes its directory and starts the helper there.
    std::fs::create_dir(world.path("home/p/gone")).unwrap();
    let policy = world.policy(Layers::FULL);
    let (mut command, helper_handle) =
        loci_sandbox::launch(PROBE.as_ref(), &policy, "echo".as_ref(), ["ran"]).unwrap();
    let gone = world.path("home/p/gone");
    command.current_dir(&gone).env_clear().envs(world.env());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    std::fs::remove_dir(&gone).unwrap();
    match command.spawn() {
        // The system says it before the helper could.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
        Ok(child) => {
            drop(command);
            let output = child.wait_with_output().unwrap();
            assert!(output.stdout.is_empty() && !output.status.success());
            assert!(helper_handle.wait().unwrap().why_not_run().is_some());
        }
    }
}

#[test]
fn pipes_end_when_their_programs_do() {
    if !has_full() {
        return;
    }
    let world = World::new();
    (0..200).for_each(|n| world.write(&format!("home/p/many/{n}"), "needle\n"));
    assert_eq!(shell(&world, "grep -r needle many | wc -l").trim(), "200");
    assert_eq!(shell(&world, "grep -r needle . 2>/dev/null | head -1 | wc -l").trim(), "1");
    assert_eq!(shell(&world, "cat < /dev/null | cat | wc -c").trim(), "0");
}

#[test]
fn placeholder_behind_a_symlink_that_appears_is_not_made_elsewhere() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let policy = world.policy(Layers::FULL);
    std::fs::rename(world.path("home/p"), world.path("home/q")).unwrap();
    symlink(world.path("outside"), world.path("home/p")).unwrap();
    world.run(&policy, "sh", &["-c", "echo x > file; echo x > new"]);
    let names: Vec<_> =
        std::fs::read_dir(world.path("outside")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["file"], "nothing was made behind the symlink");
    assert_eq!(std::fs::read_to_string(world.path("outside/file")).unwrap(), "outside");
}

/// Root outside is nobody inside: what it made in somebody else's directory it must remove from outside.
#[test]
fn nothing_is_left_in_a_directory_of_somebody_else() {
    if !has_full() || !is_root() {
        return;
    }
    let world = World::new();
    world.give("home/p", ORDINARY_USER);
    let names = world.names();
    assert_eq!(shell(&world, "echo ran"), "ran\n");
    assert_eq!(world.names(), names);
}

#[test]
fn descriptors_memory_and_names_do_not_grow_with_commands() {
    if !has_full() {
        return;
    }
    let output = std::process::Command::new(PROBE).args(["growth", "1000"]).output().unwrap();
    let line = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers: Vec<i64> =
        line.split(|c: char| !"+-0123456789".contains(c)).filter_map(|it| it.parse().ok()).collect();
    let [1000, n_descriptors, kib, n_left] = numbers[..] else { panic!("{line}") };
    assert_eq!((n_descriptors, n_left), (0, 0), "{line}");
    assert!(kib < 1024, "{line}");
}

/// Probe 20: a directory is swapped for a symlink again and again while commands start.
#[test]
fn swapped_directory_never_leads_out() {
    if !has_full() {
        return;
    }
    let world = World::new();
    world.write("home/p/.git/config", "");
    world.write("home/p/sub/file", "inside");
    let refused = run_while_swapped(&world, "sub", N_SWAPPED);
    assert_eq!(refused, Vec::<String>::new(), "no command has anything to do with what is swapped");
}

/// The same with directories that the plan names: a command may be refused, and nothing is made or written elsewhere.
#[test]
fn swapped_protected_directory_never_leads_out() {
    if !has_full() {
        return;
    }
    for name in [".claude", ".git"] {
        let world = World::new();
        world.write("home/p/.git/config", "");
        world.write(&format!("home/p/{name}/file"), "inside");
        let refused = run_while_swapped(&world, name, N_SWAPPED / 10);
        assert!(refused.len() < N_SWAPPED / 10, "some run: {refused:?}");
    }
}

/// How many commands start while a directory is swapped. A bound of commands and not of time: how long they take is up to
/// what else the machine does.
const N_SWAPPED: usize = 1000;

/// Starts commands, two at a time, that write into a directory of the project while it is swapped for a symlink; checks
/// that nothing changes where the symlink leads to. Returns why commands did not run.
fn run_while_swapped(world: &World, name: &str, n_commands: usize) -> Vec<String> {
    let swapped = world.path("home/p").join(name);
    let [real, link] = ["home/p/real", "home/p/link"].map(|it| world.path(it));
    symlink(world.path("outside"), &link).unwrap();
    let script = format!("echo x > {name}/file; echo x > {name}/new; mkdir {name}/dir");
    let is_over = AtomicBool::new(false);
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // Each may fail where the other has just been; all that counts is that something moves.
                std::fs::rename(&swapped, &real).ok();
                std::fs::rename(&link, &swapped).ok();
                std::fs::rename(&swapped, &link).ok();
                std::fs::rename(&real, &swapped).ok();
            }
        });
        let start = || {
            let run = |_| world.run(&world.policy(Layers::FULL), "sh", &["-c", &script]).1.why_not_run();
            (0..n_commands / 2).filter_map(run).collect::<Vec<String>>()
        };
        let starters = [(); 2].map(|()| scope.spawn(start));
        let done = starters.map(|it| it.join());
        is_over.store(true, Ordering::Relaxed);
        done.into_iter().flat_map(|it| it.unwrap()).collect()
    });
    let names: Vec<_> =
        std::fs::read_dir(world.path("outside")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["file"], "nothing was made behind the symlink");
    assert_eq!(std::fs::read_to_string(world.path("outside/file")).unwrap(), "outside");
    refused
}

/// Probe 24.
#[test]
fn fork_bomb_is_stopped_and_everybody_else_lives() {
    if !has_full() {
        return;
    }
    let world = World::new();
    let found =
        world.probe(World::run, &world.policy(Layers::FULL), &["fork-bomb".to_owned(), "fork".to_owned()]);
    assert_eq!(found[0], "stopped");
    assert!(found[1].starts_with("ok"), "{found:?}");
}

/// Reads files of the home and of the project inside; returns which could be.
fn readable(world: &World) -> Vec<&'static str> {
    let names =
        ["file", "sub/f", "../.ssh/config", "../.ssh/id.pub", "../.ssh/id", "../.aws/credentials", "../note"];
    let policy = world.policy(Layers::FULL);
    let is_read = |name: &str| {
        let (output, report) = world.run(&policy, "cat", &[&world.text(&format!("home/p/{name}"))]);
        assert_eq!(report.why_not_run(), None);
        output.status.success()
    };
    names.into_iter().filter(|name| is_read(name)).collect()
}

#[test]
fn denied_directories_are_hidden_whole_and_stop_no_command() {
    if !has_full() {
        return;
    }
    let mut world = World::new();
    for name in ["home/p/sub/f", "home/.ssh/config", "home/note"] {
        world.write(name, "text");
    }
    let all = ["file", "sub/f", "../.ssh/config", "../.ssh/id.pub", "../note"];
    for (deny, allow, expected) in [
        (&[][..], &[][..], &all[..]),
        (&["home/.ssh"], &[], &["file", "sub/f", "../note"]),
        (&["home"], &["home/p"], &["file", "sub/f"]),
        (&["home"], &["home/note"], &["file", "sub/f", "../note"]),
        (&["home/.claude"], &[], &all),
        (&["home/p"], &["home/p/sub"], &all[1..]),
    ] {
        let paths = |names: &[&str]| names.iter().map(|name| world.path(name)).collect();
        (world.settings.deny_read, world.settings.allow_read) = (paths(deny), paths(allow));
        assert_eq!(readable(&world), expected, "{deny:?} but {allow:?}");
    }
}

/// A pattern may match many: what is hidden one by one stops no command, and what lies beside is read.
#[test]
fn thousand_hidden_names_stop_no_command_and_are_all_hidden() {
    if !has_full() {
        return;
    }
    let mut world = World::new();
    let names = |n: usize| [format!("home/p/many/{n}.env"), format!("home/p/deep/{n}/kept")];
    for n in 0..500 {
        for name in names(n) {
            world.write(&name, "text");
        }
        world.write(&format!("home/p/deep/{n}/modules/file"), "text");
    }
    let hidden = (0..500).flat_map(|n| [names(n)[0].clone(), format!("home/p/deep/{n}/modules")]);
    world.settings.deny_read = hidden.map(|name| world.path(&name)).collect();
    let count = "cat many/*.env deep/*/modules/file 2>/dev/null | wc -c; cat deep/*/kept | wc -c";
    assert_eq!(shell(&world, count), "0\n2000\n");
}
