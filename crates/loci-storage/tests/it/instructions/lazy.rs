//! Instructions that wait until files are read.

use std::os::unix::fs::symlink;
use std::path::Path;

use loci_storage::config::{InstructionPlaces, LazyInstructions, SettingsSources, discover_instructions};

use super::places;
use crate::support::World;

fn lazy(world: &World) -> LazyInstructions {
    lazy_with(world, |places| places)
}

fn lazy_with(world: &World, change: impl Fn(InstructionPlaces) -> InstructionPlaces) -> LazyInstructions {
    let places = change(places(world, world.cwd()));
    let found = discover_instructions(&places);
    LazyInstructions::new(places, &found)
}

/// Reads a file and shows what it brings, relative to the home directory.
fn read(world: &World, lazy: &mut LazyInstructions, file: &str) -> Vec<String> {
    let (met, problems) = lazy.read(&world.env.home.join(file));
    let shown = |path: &Path| path.strip_prefix(&world.env.home).unwrap().display().to_string();
    let met = met.iter().map(|met| format!("{} {:?}", shown(&met.file.path), met.file.content));
    met.chain(problems.iter().map(|note| format!("{}: {}", shown(&note.path), note.message))).collect()
}

#[test]
fn nested_directory_instructions_are_triggered_once_outermost_first() {
    let world = World::new();
    world.write("project/CLAUDE.md", "top");
    world.write("project/a/CLAUDE.md", "a @more.md");
    world.write("project/a/more.md", "more");
    world.write("project/a/b/.claude/CLAUDE.md", "<!-- x -->\nb");
    world.write("project/a/b/.claude/rules/r.md", "r");
    world.write("project/a/b/CLAUDE.local.md", "mine");
    world.write("project/other/CLAUDE.md", "other");
    world.write("project/a/b/code.rs", "");
    world.write("project/code.rs", "");
    let mut lazy = lazy(&world);
    assert_eq!(read(&world, &mut lazy, "project/code.rs"), [""; 0]);
    let expected = [
        r#"project/a/CLAUDE.md "a @more.md""#,
        r#"project/a/more.md "more""#,
        r#"project/a/b/.claude/CLAUDE.md "b""#,
        r#"project/a/b/.claude/rules/r.md "r""#,
        r#"project/a/b/CLAUDE.local.md "mine""#,
    ];
    assert_eq!(read(&world, &mut lazy, "project/a/b/code.rs"), expected);
    assert_eq!(read(&world, &mut lazy, "project/a/b/code.rs"), [""; 0], "once");
    let known = ["CLAUDE.md", "a/CLAUDE.md", "code.rs"].map(|name| lazy.has(&world.cwd().join(name)));
    assert_eq!(known, [true, true, false]);
    lazy.forget();
    assert!(lazy.has(&world.cwd().join("CLAUDE.md")) && !lazy.has(&world.cwd().join("a/CLAUDE.md")));
    assert_eq!(read(&world, &mut lazy, "project/a/b/code.rs"), expected, "until they are forgotten");
    assert_eq!(read(&world, &mut lazy, "project/none.rs"), [""; 0]);
}

#[test]
fn rules_for_certain_files_wait_for_one_of_them() {
    let world = World::new();
    world.write(".claude/rules/mine.md", "---\npaths: \"**/*.ts\"\n---\nmine");
    world.write("project/.claude/rules/ts.md", "---\npaths: [\"src/**/*.ts\", \"[\"]\n---\nts");
    world.write("project/src/.claude/rules/near.md", "---\npaths: deep/*.ts\n---\nnear");
    for file in ["src/a.ts", "src/deep/b.ts", "src/a.rs", "lib/c.ts"] {
        world.write(&format!("project/{file}"), "");
    }
    let mut lazy = lazy(&world);
    assert_eq!(read(&world, &mut lazy, "project/src/a.rs"), [""; 0]);
    assert_eq!(read(&world, &mut lazy, "project/lib/c.ts"), [r#".claude/rules/mine.md "mine""#]);
    assert_eq!(read(&world, &mut lazy, "project/src/a.ts"), [r#"project/.claude/rules/ts.md "ts""#]);
    assert_eq!(
        read(&world, &mut lazy, "project/src/deep/b.ts"),
        [r#"project/src/.claude/rules/near.md "near""#]
    );
    assert_eq!(read(&world, &mut lazy, "project/src/deep/b.ts"), [""; 0]);
}

#[test]
fn loaded_instructions_are_not_triggered_again() {
    let world = World::new();
    let path = world.write("project/a/CLAUDE.md", "a");
    world.write("project/a/x", "");
    let mut lazy = lazy(&world);
    lazy.mark_loaded(&path);
    assert_eq!(read(&world, &mut lazy, "project/a/x"), [""; 0]);

    // Reading the file itself shows it; it comes with the next file there all the same.
    let mut lazy = self::lazy(&world);
    assert_eq!(read(&world, &mut lazy, "project/a/CLAUDE.md"), [""; 0]);
    assert_eq!(read(&world, &mut lazy, "project/a/x"), [r#"project/a/CLAUDE.md "a""#]);
}

#[test]
fn only_instructions_below_the_working_directory_are_triggered() {
    let world = World::new();
    world.write("elsewhere/CLAUDE.md", "evil");
    world.write("elsewhere/x", "");
    world.write("extra/CLAUDE.md", "extra");
    world.write("extra/sub/CLAUDE.md", "sub");
    world.write("extra/sub/x", "");
    symlink(world.env.home.join("elsewhere"), world.cwd().join("link")).unwrap();
    let mut lazy = lazy(&world);
    for file in ["elsewhere/x", "project/link/x", "extra/sub/x"] {
        assert_eq!(read(&world, &mut lazy, file), [""; 0], "{file}");
    }
    let mut lazy = lazy_with(&world, |places| InstructionPlaces {
        extra_dirs: vec![world.env.home.join("extra")],
        ..places
    });
    assert_eq!(read(&world, &mut lazy, "extra/sub/x"), [r#"extra/sub/CLAUDE.md "sub""#]);
}

#[test]
fn settings_apply_to_lazy_instructions() {
    let world = World::new();
    world.write("secret.md", "secret");
    world.write("project/a/CLAUDE.md", "a @~/secret.md");
    world.write("project/a/CLAUDE.local.md", "local");
    world.write("project/a/x", "");
    let met = |change: &dyn Fn(InstructionPlaces) -> InstructionPlaces| {
        read(&world, &mut lazy_with(&world, change), "project/a/x")
    };
    let (a, local) = (r#"project/a/CLAUDE.md "a @~/secret.md""#, r#"project/a/CLAUDE.local.md "local""#);
    assert_eq!(met(&|places| places), [a, local], "nothing from outside");
    let excludes = vec!["**/a/CLAUDE.md".to_owned()];
    assert_eq!(met(&|places| InstructionPlaces { excludes: excludes.clone(), ..places }), [local]);
    let sources = SettingsSources { user: true, project: true, local: false };
    assert_eq!(met(&|places| InstructionPlaces { sources, ..places }), [a]);
}

#[test]
fn unusable_lazy_instruction_is_reported_once() {
    let world = World::new();
    std::fs::create_dir_all(world.cwd().join("a/CLAUDE.md")).unwrap();
    world.write("project/a/x", "");
    let mut lazy = lazy(&world);
    let said = read(&world, &mut lazy, "project/a/x");
    assert_eq!(said, ["project/a/CLAUDE.md: Not a regular file, so it was not read"]);
    assert_eq!(read(&world, &mut lazy, "project/a/x"), [""; 0]);
}

#[test]
fn agent_that_keeps_only_managed_instructions_meets_no_others() {
    let world = World::new();
    world.write("etc/CLAUDE.md", "managed");
    world.write("project/CLAUDE.md", "top");
    world.write("project/.claude/rules/rust.md", "---\npaths: '*.rs'\n---\nrust");
    world.write("project/a/CLAUDE.md", "a");
    world.write("project/a/code.rs", "");
    let places = places(&world, world.cwd());
    let mut found = discover_instructions(&places);
    let mut lazy = LazyInstructions::new(places, &found);
    assert_eq!(read(&world, &mut lazy.clone(), "project/a/code.rs").len(), 1, "an ordinary one does");
    found.keep_managed();
    lazy.keep_managed();
    let kept: Vec<&str> = found.files.iter().map(|file| file.content.as_str()).collect();
    assert_eq!((kept, found.path_rules.len()), (vec!["managed"], 0));
    assert_eq!(read(&world, &mut lazy, "project/a/code.rs"), [""; 0]);
}
