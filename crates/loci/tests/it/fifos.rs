//! A FIFO in the place of any file of the user's or a repository's: nobody writes to it, and nobody waits for it.

use std::path::{Path, PathBuf};

use loci_testkit::Step;
use rustix::fs::{CWD, FileType, mknodat};

use crate::support::{World, loci, print};

pub(crate) fn put_fifo(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    if path.exists() {
        std::fs::remove_file(path).unwrap();
    }
    mknodat(CWD, path, FileType::Fifo, 0o600.into(), 0).unwrap();
}

/// Every place, one after the other; the harness fails a run that does not end.
#[tokio::test]
async fn fifo_in_the_place_of_a_file_never_blocks_a_run() {
    type Place = fn(&World) -> PathBuf;
    let places: [(&str, Place); 17] = [
        ("HEAD", |world| world.home.project().join(".git/HEAD")),
        ("git config", |world| world.home.project().join(".git/config")),
        ("index", |world| world.home.project().join(".git/index")),
        (".git", |world| {
            std::fs::remove_dir_all(world.home.project().join(".git")).unwrap();
            world.home.project().join(".git")
        }),
        ("HEAD of a worktree", |world| {
            std::fs::remove_dir_all(world.home.project().join(".git")).unwrap();
            world.home.write(".git", "gitdir: elsewhere\n");
            world.home.project().join("elsewhere/HEAD")
        }),
        ("project settings", |world| world.home.project().join(".claude/settings.json")),
        ("local settings", |world| world.home.project().join(".claude/settings.local.json")),
        ("instructions", |world| world.home.project().join("CLAUDE.md")),
        ("rules", |world| world.home.project().join(".claude/rules/a.md")),
        ("user settings", |world| world.home.config_home().join("settings.json")),
        ("user instructions", |world| world.home.config_home().join("CLAUDE.md")),
        ("state file", |world| world.home.home().join(".claude.json")),
        ("credentials", |world| world.home.config_home().join(".credentials.json")),
        ("servers", |world| world.home.project().join(".mcp.json")),
        ("agent", |world| world.home.project().join(".claude/agents/a.md")),
        ("skill", |world| world.home.project().join(".claude/skills/a/SKILL.md")),
        ("plugins", |world| world.home.config_home().join("plugins/installed_plugins.json")),
    ];
    for (name, place) in places {
        let world = World::with_git(Step::text("answer")).await;
        let path = place(&world);
        put_fifo(&path);
        let output = world.print(["hi"]);
        assert_eq!((output.code, output.stdout.as_str()), (Some(0), "answer\n"), "{name}: {output:?}");
        for verb in [&["config", "list"][..], &["doctor"], &["sessions", "list"], &["memory", "list"]] {
            let output = world.run(&loci().args(verb.iter().copied()));
            assert!(output.code.is_some(), "{name} {verb:?}: {output:?}");
        }
    }
}

/// Files of sessions and memories, which verbs and a continued session read.
#[tokio::test]
async fn fifo_among_sessions_and_memories_is_passed_over() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    assert_eq!(world.print(["first"]).code, Some(0));
    let sessions = world.home.config_home().join("projects");
    let project = std::fs::read_dir(&sessions).unwrap().next().unwrap().unwrap().path();
    put_fifo(&project.join("0a0a0a0a-0001-4000-8000-000000000001.jsonl"));
    put_fifo(&project.join("memory/MEMORY.md"));
    put_fifo(&project.join("memory/a.md"));
    put_fifo(&world.home.config_home().join("history.jsonl"));
    let output = world.run(&print(["-c", "second"]));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "two\n"), "{output:?}");
    for verb in [
        &["sessions", "list"][..],
        &["sessions", "search", "first"],
        &["sessions", "doctor"],
        &["sessions", "show", "0a0a0a0a-0001-4000-8000-000000000001"],
        &["stats"],
        &["memory", "list"],
        &["memory", "doctor"],
        &["doctor"],
    ] {
        let output = world.run(&loci().args(verb.iter().copied()));
        assert!(output.code.is_some(), "{verb:?}: {output:?}");
    }
}
