//! Instruction files from the machine down to the working directory.

mod hostile;
mod lazy;

use std::os::unix::fs::symlink;
use std::path::Path;

use loci_storage::config::{
    InstructionPlaces, InstructionScope, Instructions, SettingsSources, discover_instructions,
};

use crate::support::World;

fn discover(world: &World, cwd: &Path) -> Instructions {
    discover_with(world, cwd, |places| places)
}

fn discover_with(
    world: &World,
    cwd: &Path,
    change: impl Fn(InstructionPlaces) -> InstructionPlaces,
) -> Instructions {
    discover_instructions(&change(places(world, cwd)))
}

fn places(world: &World, cwd: &Path) -> InstructionPlaces {
    InstructionPlaces {
        managed: world.env.home.join("etc/CLAUDE.md"),
        managed_text: None,
        user: world.home.user_instructions(),
        home: world.env.home.clone(),
        cwd: cwd.to_owned(),
        root: world.cwd().to_owned(),
        main_checkout: None,
        extra_dirs: Vec::new(),
        sources: SettingsSources::ALL,
        excludes: Vec::new(),
        allows_external: false,
        reads_agents: false,
    }
}

/// The names of the files in their order, relative to the home directory.
fn names(world: &World, found: &Instructions) -> Vec<String> {
    show(world, found).into_iter().map(|(path, ..)| path).collect()
}

/// The files that were left out, and why.
fn left_out(world: &World, found: &Instructions) -> Vec<String> {
    let relative = |path: &Path| path.strip_prefix(&world.env.home).unwrap().display().to_string();
    found.left_out.iter().map(|note| format!("{}: {}", relative(&note.path), note.message)).collect()
}

fn show(world: &World, found: &Instructions) -> Vec<(String, InstructionScope, String)> {
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
        ("etc/CLAUDE.md", InstructionScope::Managed, "managed"),
        (".claude/CLAUDE.md", InstructionScope::User, "user"),
        ("CLAUDE.md", InstructionScope::Project, "home"),
        ("project/CLAUDE.md", InstructionScope::Project, "outside\n"),
        ("project/.claude/CLAUDE.md", InstructionScope::Project, "inner"),
        ("project/CLAUDE.local.md", InstructionScope::Local, "mine"),
        ("project/sub/CLAUDE.md", InstructionScope::Project, "sub"),
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
    assert_eq!(
        show(&world, &found),
        [("project/CLAUDE.md".to_owned(), InstructionScope::Project, "rules".to_owned())]
    );
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
fn instruction_file_at_the_limit_is_read() {
    let world = World::new();
    world.write("project/CLAUDE.md", vec![b'x'; 4 * 1024 * 1024]);
    assert_eq!(discover(&world, world.cwd()).files.len(), 1);
}

#[test]
fn imports_come_right_behind_the_file_that_asks_for_them() {
    let world = World::new();
    world.write(".claude/CLAUDE.md", "mine @~/notes.md");
    world.write("notes.md", "notes");
    world.write("project/CLAUDE.md", "top @docs/a.md and @docs/b.md `@docs/no.md` @docs/none.md @docs");
    world.write("project/docs/a.md", "a @./c.md");
    world.write("project/docs/b.md", "b @../CLAUDE.md @c.md");
    world.write("project/docs/c.md", "c");
    world.write("project/docs/no.md", "no");
    world.write("project/CLAUDE.local.md", "local");
    let found = discover(&world, world.cwd());
    let expected = [
        ".claude/CLAUDE.md",
        "notes.md",
        "project/CLAUDE.md",
        "project/docs/a.md",
        "project/docs/c.md",
        "project/docs/b.md",
        "project/CLAUDE.local.md",
    ];
    assert_eq!(names(&world, &found), expected);
    assert_eq!(found.files[2].content, "top @docs/a.md and @docs/b.md `@docs/no.md` @docs/none.md @docs");
    assert_eq!(found.files[4].imported_by, Some(world.cwd().join("docs/a.md")));
    assert_eq!(found.diagnostics, []);
}

#[test]
fn import_depth_is_four_and_cycles_end() {
    let world = World::new();
    for n in 0..6 {
        let name = if n == 0 { "CLAUDE.md".to_owned() } else { format!("{n}.md") };
        world.write(&format!("project/{name}"), format!("{n} @{}.md @CLAUDE.md", n + 1));
    }
    world.write("project/6.md", "too far");
    let found = discover(&world, world.cwd());
    assert_eq!(
        names(&world, &found),
        ["CLAUDE.md", "1.md", "2.md", "3.md", "4.md"].map(|name| format!("project/{name}"))
    );
    let expected =
        format!("project/5.md: More than 4 imports deep, in {}", world.cwd().join("4.md").display());
    assert_eq!(left_out(&world, &found), [expected]);
}

#[test]
fn a_project_brings_in_nothing_from_outside_unless_approved() {
    let world = World::new();
    world.write("secret.md", "secret");
    let secret = world.env.home.join("secret.md");
    world.write(
        "project/CLAUDE.md",
        format!("@~/secret.md @../secret.md @{} @link.md @data.bin", secret.display()),
    );
    world.write("project/data.bin", "x");
    symlink(&secret, world.cwd().join("link.md")).unwrap();
    symlink(&secret, world.cwd().join("CLAUDE.local.md")).unwrap();
    let found = discover(&world, world.cwd());
    assert_eq!(names(&world, &found), ["project/CLAUDE.md"]);
    let why = "Outside the project and not approved; see `loci config trust --imports`";
    let out = left_out(&world, &found);
    assert!(
        out.contains(&format!("secret.md: {why}")) && out.contains(&format!("project/link.md: {why}")),
        "{out:?}"
    );
    assert!(out.contains(&format!("project/CLAUDE.local.md: {why}")), "{out:?}");
    assert!(out.iter().any(|line| line.starts_with("project/data.bin: Not a kind of text file")), "{out:?}");
    assert!(found.external.contains(&secret) && found.external.contains(&world.cwd().join("link.md")));
    let approved =
        discover_with(&world, world.cwd(), |places| InstructionPlaces { allows_external: true, ..places });
    assert_eq!(names(&world, &approved), ["project/CLAUDE.md", "secret.md"]);
}

#[test]
fn rules_come_in_the_order_of_their_paths_and_some_wait() {
    let world = World::new();
    world.write(".claude/rules/mine.md", "mine");
    world.write("project/.claude/CLAUDE.md", "inner");
    world.write("project/.claude/rules/b.md", "---\nname: b\n---\n<!-- x -->\nb\n");
    world.write("project/.claude/rules/a/z.md", "z @../../../extra.md");
    world.write("project/extra.md", "extra");
    world.write("project/.claude/rules/ts.md", "---\npaths: src/**/*.ts\n---\nts\n");
    world.write("project/.claude/rules/notes.txt", "no");
    world.write("project/CLAUDE.local.md", "local");
    symlink(".", world.cwd().join(".claude/rules/loop")).unwrap();
    let found = discover(&world, world.cwd());
    let expected = [
        ".claude/rules/mine.md",
        "project/.claude/CLAUDE.md",
        "project/.claude/rules/a/z.md",
        "project/extra.md",
        "project/.claude/rules/b.md",
        "project/CLAUDE.local.md",
    ];
    assert_eq!(names(&world, &found), expected);
    let rule = found.files.iter().find(|file| file.path.ends_with("b.md")).unwrap();
    assert_eq!((rule.content.as_str(), rule.is_partial), ("b\n", true));
    let [waiting] = &found.path_rules[..] else { panic!("{:?}", found.path_rules) };
    assert_eq!((waiting.patterns[0].as_str(), waiting.file.content.as_str()), ("src/**/*.ts", "ts\n"));
    assert_eq!(waiting.base, world.cwd());
    assert_eq!(discover(&world, world.cwd()), found, "the same disk gives the same list");
}

#[test]
fn excluded_files_and_unwanted_sources_stay_out() {
    let world = World::new();
    for path in
        ["etc/CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.md", "project/CLAUDE.md", "project/CLAUDE.local.md"]
    {
        world.write(path, "text");
    }
    let excludes =
        [world.env.home.join("CLAUDE.md").display().to_string(), "**/etc/**".to_owned(), "[".to_owned()];
    let found = discover_with(&world, world.cwd(), |places| InstructionPlaces {
        managed_text: Some("from settings".to_owned()),
        excludes: excludes.to_vec(),
        ..places
    });
    let paths: Vec<String> = found.files.iter().map(|file| file.path.display().to_string()).collect();
    assert!(paths[0].ends_with("etc/CLAUDE.md"), "the administrator's cannot be excluded: {paths:?}");
    assert_eq!((paths[1].as_str(), paths.len()), ("managed settings, claudeMd", 5), "{paths:?}");
    assert_eq!(left_out(&world, &found), ["CLAUDE.md: Excluded by claudeMdExcludes"]);
    assert!(found.diagnostics[0].message.starts_with("Not a pattern in claudeMdExcludes"), "{found:?}");

    let only = |user, project, local| {
        let sources = SettingsSources { user, project, local };
        names(&world, &discover_with(&world, world.cwd(), |places| InstructionPlaces { sources, ..places }))
    };
    assert_eq!(only(false, false, false), ["etc/CLAUDE.md"]);
    assert_eq!(only(true, false, true), ["etc/CLAUDE.md", ".claude/CLAUDE.md", "project/CLAUDE.local.md"]);
    assert_eq!(only(false, true, false), ["etc/CLAUDE.md", "CLAUDE.md", "project/CLAUDE.md"]);
}

#[test]
fn agents_md_stands_in_where_that_is_wanted_and_there_is_no_claude_md() {
    let world = World::new();
    for path in ["AGENTS.md", "project/AGENTS.md", "project/sub/AGENTS.md", "project/sub/.claude/CLAUDE.md"] {
        world.write(path, path);
    }
    std::fs::create_dir_all(world.cwd().join("CLAUDE.md")).unwrap();
    let cwd = world.cwd().join("sub");
    let inner = "project/sub/.claude/CLAUDE.md";
    assert_eq!(names(&world, &discover(&world, &cwd)), [inner]);
    let found = discover_with(&world, &cwd, |places| InstructionPlaces { reads_agents: true, ..places });
    assert_eq!(names(&world, &found), ["AGENTS.md", inner], "one that cannot be read is there all the same");
}

#[test]
fn further_directories_come_last_when_they_are_wanted() {
    let world = World::new();
    for path in ["project/CLAUDE.md", "extra/CLAUDE.md", "extra/.claude/rules/r.md", "extra/CLAUDE.local.md"]
    {
        world.write(path, path);
    }
    let found = discover_with(&world, world.cwd(), |places| InstructionPlaces {
        extra_dirs: vec![world.env.home.join("extra"), world.cwd().to_owned()],
        ..places
    });
    let expected =
        ["project/CLAUDE.md", "extra/CLAUDE.md", "extra/.claude/rules/r.md", "extra/CLAUDE.local.md"];
    assert_eq!(names(&world, &found), expected);
}

#[test]
fn a_worktree_inside_its_checkout_does_not_read_shared_files_twice() {
    let world = World::new();
    let tree = "project/.claude/worktrees/w";
    for path in ["CLAUDE.md", "project/CLAUDE.md", "project/.claude/rules/r.md", "project/CLAUDE.local.md"] {
        world.write(path, path);
    }
    world.write(&format!("{tree}/CLAUDE.md"), "of the worktree");
    let root = world.env.home.join(tree);
    let found = discover_with(&world, &root, |places| InstructionPlaces {
        root: root.clone(),
        main_checkout: Some(world.cwd().to_owned()),
        ..places
    });
    let own = format!("{tree}/CLAUDE.md");
    assert_eq!(names(&world, &found), ["CLAUDE.md", "project/CLAUDE.local.md", &own]);
}

#[test]
fn instruction_text_that_differs_from_its_file_is_marked() {
    for (bytes, is_partial) in [
        (&b"plain\r\n"[..], false),
        (b"\xef\xbb\xbfwith a mark", false),
        (b"<!-- c -->\nx", true),
        (b"\xff", true),
    ] {
        let world = World::new();
        world.write("project/CLAUDE.md", bytes);
        let found = discover(&world, world.cwd());
        assert_eq!(found.files[0].is_partial, is_partial, "{bytes:?}");
        assert!(found.files[0].modified.is_some());
    }
}
