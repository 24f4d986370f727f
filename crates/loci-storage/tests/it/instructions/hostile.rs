//! Instruction files that are not what they should be: each is named, and costs itself alone.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::World;

use super::{discover, names};

/// Puts something in the place of the project's file; the local one beside it still counts. Compares what is said.
fn check(prepare: impl FnOnce(&World), files: &[&str], said: &[&str]) {
    let world = World::new();
    world.write("project/CLAUDE.local.md", "mine");
    prepare(&world);
    let found = discover(&world, world.cwd());
    assert_eq!(names(&world, &found), [files, &["project/CLAUDE.local.md"]].concat());
    let notes = found.diagnostics.iter().chain(&found.left_out);
    let shown: Vec<String> = notes
        .map(|note| format!("{}: {}", note.path.display(), note.message))
        .map(|line| line.replace(world.env.home.to_str().unwrap(), "~"))
        .collect();
    assert_eq!(shown, said);
}

const PLACE: &str = "project/CLAUDE.md";

#[test]
fn instruction_path_that_is_no_file_is_reported() {
    let said = "~/project/CLAUDE.md: Not a regular file, so it was not read";
    check(|world| fs::create_dir(world.env.home.join(PLACE)).unwrap(), &[], &[said]);
    check(
        |world| {
            let path = world.env.home.join(PLACE);
            rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        },
        &[],
        &[said],
    );
    check(|world| symlink("nowhere", world.env.home.join(PLACE)).unwrap(), &[], &[]);
    check(
        |world| symlink("CLAUDE.md", world.env.home.join(PLACE)).unwrap(),
        &[],
        &[
            "~/project/CLAUDE.md: Failed to read instructions: Too many levels of symbolic links (os error 40)",
        ],
    );
}

#[test]
fn unreadable_instructions_are_reported() {
    if rustix::process::geteuid().is_root() {
        return; // Root may read everything.
    }
    check(
        |world| {
            let path = world.write(PLACE, "x");
            fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
        },
        &[],
        &["~/project/CLAUDE.md: Failed to read instructions: Permission denied (os error 13)"],
    );
}

#[test]
fn too_large_or_too_many_instructions_are_reported() {
    check(
        |world| {
            world.write(PLACE, vec![b'x'; 4 * 1024 * 1024 + 1]);
        },
        &[],
        &["~/project/CLAUDE.md: Larger than 4 MiB (4194305 bytes), so it was not read"],
    );
    check(
        |world| {
            let imports: String = (0..5).map(|n| format!("@{n}.md\n")).collect();
            world.write(PLACE, imports);
            for n in 0..5 {
                world.write(&format!("project/{n}.md"), vec![b'x'; 4 * 1024 * 1024 - 10]);
            }
        },
        &[PLACE, "project/0.md", "project/1.md", "project/2.md", "project/3.md"],
        &["~/project/4.md: More than 16 MiB of instructions in all, so it was not read"],
    );
}

#[test]
fn cyclic_or_deep_instruction_imports_end() {
    check(
        |world| {
            world.write(PLACE, "@CLAUDE.md @a.md");
            world.write("project/a.md", "@./CLAUDE.md @a.md @CLAUDE.local.md");
        },
        // What is imported comes where it is imported, so the local file is met on the way and once.
        &[PLACE, "project/a.md"],
        &[],
    );
    check(
        |world| {
            fs::create_dir_all(world.cwd().join(".claude/rules")).unwrap();
            symlink("..", world.cwd().join(".claude/rules/up")).unwrap();
            world.write("project/.claude/rules/r.md", "r");
        },
        &["project/.claude/rules/r.md"],
        &[],
    );
}

#[test]
fn instructions_that_are_not_utf8_are_read() {
    check(
        |world| {
            world.write(PLACE, b"\xef\xbb\xbfbytes \xff\r\nand\0more");
        },
        &[PLACE],
        &[],
    );
}
