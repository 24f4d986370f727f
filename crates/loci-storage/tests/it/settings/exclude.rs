//! Local settings stay out of the repository.

use std::fs;

use loci_storage::config::exclude_local_settings;

use crate::support::World;

use super::git;

const RULE: &str = "**/.claude/settings.local.json\n";

/// Writes to the local file for the first time and returns where a rule was added, relative to the home.
fn exclude(world: &World) -> Option<String> {
    let local = world.cwd().join(".claude/settings.local.json");
    let added = exclude_local_settings(&world.env, &world.home, &local).unwrap()?;
    Some(added.strip_prefix(&world.env.home).unwrap().display().to_string())
}

fn text(world: &World, path: &str) -> String {
    fs::read_to_string(world.env.home.join(path)).unwrap_or_default()
}

#[test]
fn the_first_write_in_a_repository_adds_a_rule_once() {
    let world = World::new();
    assert_eq!(exclude(&world), None, "no repository");
    git(&world, "project", &["init", "-q"]);
    world.write(".config/git/ignore", "*.o");
    let mut world = world;
    // Git itself must find the user's file, so it needs to know the home.
    let home = world.env.home.display().to_string();
    world.env.vars = world.env.vars.with("HOME", home);
    assert_eq!(exclude(&world).as_deref(), Some(".config/git/ignore"));
    assert_eq!(text(&world, ".config/git/ignore"), format!("*.o\n{RULE}"));
    assert_eq!(exclude(&world), None, "git ignores it now");
    assert_eq!(text(&world, ".config/git/ignore"), format!("*.o\n{RULE}"));
}

#[test]
fn the_users_configuration_names_the_file_and_the_repositorys_does_not() {
    let mut world = World::new();
    let home = world.env.home.display().to_string();
    world.env.vars = world.env.vars.with("HOME", home);
    git(&world, "project", &["init", "-q"]);
    git(&world, "project", &["config", "core.excludesFile", "/nowhere/evil"]);
    world.write(".gitconfig", "[core]\n\texcludesFile = ~/my-excludes\n");
    assert_eq!(exclude(&world).as_deref(), Some("my-excludes"));
    assert_eq!(text(&world, "my-excludes"), RULE);
}

#[test]
fn a_repository_that_ignores_it_and_a_file_that_is_there_need_no_rule() {
    let mut world = World::new();
    let home = world.env.home.display().to_string();
    world.env.vars = world.env.vars.with("HOME", home);
    git(&world, "project", &["init", "-q"]);
    world.write("project/.gitignore", ".claude/*.local.json\n");
    assert_eq!(exclude(&world), None);
    world.write("project/.gitignore", "");
    world.write("project/.claude/settings.local.json", "{}");
    assert_eq!(exclude(&world), None, "only the first write");
    assert!(!world.env.home.join(".config").exists());
}
