//! Instruction files from the machine down to the working directory.

use std::os::unix::fs::symlink;
use std::path::Path;

use loci_storage::{InstructionPlaces, Instructions, Scope, discover_instructions};

use crate::support::World;

fn discover(world: &World, cwd: &Path) -> Instructions {
    discover_instructions(&InstructionPlaces {
        managed: &world.env.home.join("etc/CLAUDE.md"),
        user: &world.home.user_instructions(),
        cwd,
    })
}

fn show(world: &World, found: &Instructions) -> Vec<(String, Scope, String)> {
    let relative = |path: &Path| path.strip_prefix(&world.env.home).unwrap().display().to_string();
    found.files.iter().map(|file| (relative(&file.path), file.scope, file.content.clone())).collect()
}

#[test]
fn files_come_from_the_machine_down_to_the_working_directory() {
    let world = World::new();
    world.write("etc/CLAUDE.md", "managed");
    world.write(".claude/CLAUDE.md", "user");
    world.write("CLAUDE.md", "home");
    world.write("project/CLAUDE.local.md", "mine");
    world.write("project/.claude/CLAUDE.md", "\u{feff}inner");
    world.write("project/CLAUDE.md", "<!-- for people -->\noutside\n");
    world.write("project/sub/CLAUDE.md", "sub");
    world.write("project/sub/below/CLAUDE.md", "not yet");
    let found = discover(&world, &world.cwd().join("sub"));
    let expected = [
        ("etc/CLAUDE.md", Scope::Managed, "managed"),
        (".claude/CLAUDE.md", Scope::User, "user"),
        ("CLAUDE.md", Scope::Project, "home"),
        ("project/CLAUDE.md", Scope::Project, "outside\n"),
        ("project/.claude/CLAUDE.md", Scope::Project, "inner"),
        ("project/CLAUDE.local.md", Scope::Local, "mine"),
        ("project/sub/CLAUDE.md", Scope::Project, "sub"),
    ];
    let expected: Vec<_> =
        expected.map(|(path, scope, content)| (path.to_owned(), scope, content.to_owned())).into();
    assert_eq!(show(&world, &found), expected);
    assert_eq!(found.diagnostics, []);
}

#[test]
fn one_file_under_two_names_is_read_once() {
    let world = World::new();
    let agents = world.write("project/AGENTS.md", "rules");
    symlink(&agents, world.cwd().join("CLAUDE.md")).unwrap();
    symlink(&agents, world.cwd().join("CLAUDE.local.md")).unwrap();
    let found = discover(&world, world.cwd());
    assert_eq!(show(&world, &found), [("project/CLAUDE.md".to_owned(), Scope::Project, "rules".to_owned())]);
}

#[test]
fn files_that_cannot_be_used_are_reported_and_do_not_stop_the_others() {
    let world = World::new();
    world.write("CLAUDE.md", vec![b'x'; 4 * 1024 * 1024 + 1]);
    std::fs::create_dir_all(world.cwd().join("CLAUDE.md")).unwrap();
    world.write("project/CLAUDE.local.md", b"bytes \xff here");
    symlink("CLAUDE.md", world.env.home.join("CLAUDE.local.md")).unwrap();
    symlink("nowhere", world.cwd().join(".claude")).unwrap();
    let found = discover(&world, world.cwd());
    assert_eq!(found.files.len(), 1);
    assert_eq!(found.files[0].content, "bytes \u{fffd} here");
    let messages: Vec<&str> = found.diagnostics.iter().map(|note| note.message.as_str()).collect();
    assert_eq!(messages.len(), 3, "{messages:?}");
    assert!(messages[0].starts_with("Larger than 4 MiB"), "{messages:?}");
    assert!(messages[2].starts_with("Not a regular file"), "{messages:?}");
}

#[test]
fn the_limit_itself_is_still_read() {
    let world = World::new();
    world.write("project/CLAUDE.md", vec![b'x'; 4 * 1024 * 1024]);
    assert_eq!(discover(&world, world.cwd()).files.len(), 1);
}
