//! Settings files on a real disk: found, read whatever they are, trusted or not, written back, followed.

mod broken;
mod exclude;
mod write_back;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use loci_settings::Role;
use loci_storage::config::{
    GivenSettings, LoadedSettings, SettingsPlaces, SettingsSources, SettingsWatch, load_settings,
};

use crate::support::World;

pub(crate) fn places(world: &World, sources: &str) -> SettingsPlaces {
    let sources = SettingsSources::parse(sources).unwrap();
    SettingsPlaces::new(&world.env, &world.home, &world.env.home.join("etc"), sources)
}

pub(crate) fn load(world: &World) -> LoadedSettings {
    load_settings(&places(world, "user,project,local"), None)
}

fn model(loaded: &LoadedSettings) -> String {
    loaded.settings().model.unwrap_or_default()
}

/// Marks a folder as trusted in the state file.
pub(crate) fn trust(world: &World, dir: &str) {
    let dir = world.env.home.join(dir);
    let state = serde_json::json!({"projects": {dir.to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
    world.write(".claude.json", state.to_string());
}

fn git(world: &World, dir: &str, args: &[&str]) {
    let output = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(world.env.home.join(dir))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn set_model(name: &str) -> String {
    format!("{{\"model\": \"{name}\"}}")
}

#[test]
fn later_settings_source_wins() {
    let world = World::new();
    let given = GivenSettings { text: set_model("given"), name: "--settings".to_owned() };
    let mut expected = String::new();
    for (path, name) in [
        ("", ""),
        (".claude/settings.json", "user"),
        ("project/.claude/settings.json", "project"),
        ("project/.claude/settings.local.json", "local"),
        ("etc/managed-settings.json", "managed"),
        ("etc/managed-settings.d/20-b.json", "second"),
        ("etc/managed-settings.d/10-a.json", "first"),
        ("etc/managed-settings.d/.30-hidden.json", "hidden"),
        ("etc/managed-settings.d/40-notes.txt", "notes"),
    ] {
        if !path.is_empty() {
            world.write(path, set_model(name));
        }
        if !matches!(name, "first" | "hidden" | "notes") {
            expected = name.to_owned();
        }
        assert_eq!(model(&load(&world)), expected);
        let with_given = load_settings(&places(&world, "user,project,local"), Some(&given));
        let wins = if path.starts_with("etc/") { expected.as_str() } else { "given" };
        assert_eq!(model(&with_given), wins);
    }
    assert_eq!(load(&world).diagnostics, []);
}

#[test]
fn only_the_sources_asked_for_are_read() {
    let world = World::new();
    for (path, name) in [
        (".claude/settings.json", "user"),
        ("project/.claude/settings.json", "project"),
        ("project/.claude/settings.local.json", "local"),
    ] {
        world.write(path, set_model(name));
    }
    for (sources, expected) in [
        ("", ""),
        ("user", "user"),
        ("user,project", "project"),
        (" local , user", "local"),
        ("project", "project"),
    ] {
        assert_eq!(model(&load_settings(&places(&world, sources), None)), expected, "{sources}");
    }
    assert_eq!(SettingsSources::parse("user,everything"), Err("everything".to_owned()));
}

#[test]
fn the_users_file_is_not_taken_for_a_project_in_the_home_directory() {
    let mut world = World::new();
    world.env.cwd = world.env.home.clone();
    world.write(".claude/settings.json", r#"{"permissions": {"allow": ["Read"]}}"#);
    let loaded = load(&world);
    assert_eq!(loaded.diagnostics, []);
    assert_eq!(loaded.settings().permissions.allow.len(), 1);
}

#[test]
fn the_local_file_lies_at_the_root_of_the_main_checkout() {
    let mut world = World::new();
    git(&world, "project", &["init", "-q"]);
    git(&world, "project", &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&world, "project", &["worktree", "add", "-q", "../tree"]);
    world
        .write("project/.claude/settings.local.json", r#"{"model": "root", "permissions": {"deny": ["A"]}}"#);
    for cwd in ["project", "project/sub", "tree", "tree/deep"] {
        world.env.cwd = world.env.home.join(cwd);
        fs::create_dir_all(&world.env.cwd).unwrap();
        assert_eq!(model(&load(&world)), "root", "{cwd}");
    }
    world.write(
        "tree/deep/.claude/settings.local.json",
        r#"{"model": "left", "permissions": {"deny": ["B"]}}"#,
    );
    let loaded = load(&world);
    assert_eq!(model(&loaded), "root");
    let deny: Vec<String> = loaded.settings().permissions.deny.into_iter().map(|rule| rule.text).collect();
    assert_eq!(deny, ["B", "A"], "the rules of both count");
}

fn allowed(world: &World) -> bool {
    !load(world).settings().permissions.allow.is_empty()
}

#[test]
fn trust_is_the_users_word_for_the_root() {
    let mut world = World::new();
    let allow = r#"{"permissions": {"allow": ["Read"], "deny": ["Edit"]}}"#;
    world.write("project/.claude/settings.json", allow);
    assert!(!allowed(&world));
    assert_eq!(load(&world).settings().permissions.deny.len(), 1, "what restricts counts at once");
    let said = load(&world).diagnostics[0].to_string();
    assert!(said.contains("permissions.allow (1)") && said.contains("hasTrustDialogAccepted"), "{said}");

    trust(&world, "project");
    assert!(allowed(&world));
    trust(&world, "");
    assert!(!allowed(&world), "the home directory is never trusted as a whole");

    // Outside a repository, trust covers what lies below; a repository inside needs its own.
    trust(&world, "project");
    world.write("project/sub/.claude/settings.json", allow);
    world.env.cwd = world.cwd().join("sub");
    assert!(allowed(&world));
    git(&world, "project/sub", &["init", "-q"]);
    assert!(!allowed(&world), "a nested repository needs its own trust");
    trust(&world, "project/sub");
    assert!(allowed(&world));
}

#[test]
fn a_worktree_has_the_trust_of_its_main_checkout() {
    let mut world = World::new();
    git(&world, "project", &["init", "-q"]);
    git(&world, "project", &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&world, "project", &["worktree", "add", "-q", "../tree"]);
    world.env.cwd = world.env.home.join("tree");
    world.write("tree/.claude/settings.json", r#"{"permissions": {"allow": ["Read"]}}"#);
    assert!(!allowed(&world));
    trust(&world, "project");
    assert!(allowed(&world));
}

#[test]
fn no_folder_borrows_the_trust_of_another() {
    let mut world = World::new();
    git(&world, "project", &["init", "-q"]);
    git(&world, "project", &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&world, "project", &["worktree", "add", "-q", "../tree"]);
    trust(&world, "project");
    let allow = r#"{"permissions": {"allow": ["Read"]}}"#;
    world.write("evil/.claude/settings.json", allow);
    world.env.cwd = world.env.home.join("evil");
    let main = world.env.home.join("project/.git");
    for pointer in [main.clone(), main.join("worktrees/tree")] {
        world.write("evil/.git", format!("gitdir: {}\n", pointer.display()));
        assert!(!allowed(&world), "{}", pointer.display());
    }
    // A directory of its own making that names the trusted one as its common directory.
    fs::remove_file(world.env.home.join("evil/.git")).unwrap();
    world.write("evil/.git/HEAD", "ref: refs/heads/main\n");
    world.write("evil/.git/commondir", main.to_str().unwrap());
    assert!(!allowed(&world));
}

#[test]
fn a_broken_state_file_means_no_trust_and_is_said() {
    let world = World::new();
    world.write("project/.claude/settings.json", r#"{"permissions": {"allow": ["Read"]}}"#);
    world.write(".claude.json", "{ half");
    assert!(!allowed(&world));
    let said: Vec<String> = load(&world).diagnostics.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|line| line.starts_with("~/.claude.json: not valid")), "{said:?}");
}

#[test]
fn a_local_file_that_came_with_the_repository_is_the_repositorys() {
    let world = World::new();
    git(&world, "project", &["init", "-q"]);
    trust(&world, "project");
    let text = r#"{"env": {"ANTHROPIC_BASE_URL": "http://x", "FOO": "1"}}"#;
    let path = world.write("project/.claude/settings.local.json", text);
    let names =
        || load(&world).settings().env.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ");
    assert_eq!(names(), "ANTHROPIC_BASE_URL FOO", "the user's own");
    git(&world, "project", &["add", "-f", "."]);
    assert_eq!(names(), "FOO", "tracked by git");
    git(&world, "project", &["rm", "-rq", "--cached", "."]);
    assert_eq!(names(), "ANTHROPIC_BASE_URL FOO", "no longer tracked");
    let real = world.write("project/elsewhere.json", text);
    fs::remove_file(&path).unwrap();
    symlink(&real, &path).unwrap();
    assert_eq!(names(), "FOO", "reached through a link");
}

#[test]
fn settings_watch_notices_any_changed_file() {
    let world = World::new();
    git(&world, "project", &["init", "-q"]);
    let (mut watch, first) = SettingsWatch::start(places(&world, "user,project,local"), None);
    assert_eq!(model(&first), "");
    assert!(watch.poll().is_none(), "nothing changed");
    for (path, name) in [
        (".claude/settings.json", "user"),
        ("project/.claude/settings.json", "project"),
        ("project/.claude/settings.local.json", "local"),
        ("etc/managed-settings.json", "managed"),
        ("etc/managed-settings.d/a.json", "drop-in"),
        ("etc/managed-settings.d/a.json", "drop-iN"),
    ] {
        world.write(path, set_model(name));
        assert_eq!(model(&watch.poll().unwrap()), name);
        assert!(watch.poll().is_none(), "{name} is seen once");
    }
    fs::remove_file(world.env.home.join("etc/managed-settings.d/a.json")).unwrap();
    assert_eq!(model(&watch.poll().unwrap()), "managed");
    world.write("project/.claude/settings.json", r#"{"permissions": {"allow": ["Read"]}}"#);
    assert!(watch.poll().unwrap().settings().permissions.allow.is_empty());
    trust(&world, "project");
    assert_eq!(watch.poll().unwrap().settings().permissions.allow.len(), 1, "trust is followed too");
}

#[test]
fn merged_setting_names_the_file_and_line_of_each_part() {
    let world = World::new();
    world.write(".claude/settings.json", r#"{"model": "a"}"#);
    world.write("project/.claude/settings.json", "{\n\n\"model\": \"b\"}");
    let loaded = load(&world);
    let parts: Vec<(String, usize, Role)> = loaded
        .merged
        .get("model")
        .unwrap()
        .parts
        .iter()
        .map(|part| (part.origin.name.to_string(), part.line, part.role))
        .collect();
    let expected = [
        ("~/.claude/settings.json".to_owned(), 1, Role::Overridden),
        ("~/project/.claude/settings.json".to_owned(), 3, Role::Wins),
    ];
    assert_eq!(parts, expected);
}

#[test]
fn settings_of_older_homes_count_where_no_settings_file_has_them() {
    let world = World::new();
    let state = "{\n  \"theme\": \"light\",\n  \"verbose\": true,\n  \"showTurnDuration\": \"often\",\n  \"model\": \"opus\",\n  \
                 \"externalEditorContext\": true,\n  \"showExpandedTodos\": false,\n  \"projects\": {}\n}";
    world.write(".claude.json", state);
    world.write(".claude/settings.json", r#"{"verbose": false, "permissionExplainerEnabled": false}"#);
    let loaded = load(&world);
    let value = |key: &str| loaded.merged.value(key).map(ToString::to_string);
    assert_eq!(value("theme").as_deref(), Some("\"light\""));
    assert_eq!(value("verbose").as_deref(), Some("false"), "a settings file wins");
    assert_eq!(value("showTurnDuration"), None, "what is of another kind is passed over");
    assert_eq!(value("model"), None, "what was never kept there does not count there");
    assert_eq!(value("externalEditorContext").as_deref(), Some("true"), "it belongs there");
    assert_eq!(value("showExpandedTodos").as_deref(), Some("false"), "so does what Ctrl+T has left there");
    assert_eq!(value("permissionExplainerEnabled"), None, "and nowhere else");
    let told: Vec<String> = loaded.warnings().map(ToString::to_string).collect();
    assert!(told.len() == 1 && told[0].contains("global state file"), "{told:?}");
    let part = &loaded.merged.get("verbose").unwrap().parts[0];
    assert_eq!((part.origin.name.as_ref(), part.line, part.role), ("~/.claude.json", 3, Role::Overridden));
    assert!(
        loaded.merged.of_scope(loci_settings::Scope::User, |_, value| value.clone()).get("theme").is_none()
    );
    let without = load_settings(&places(&world, "project,local"), None);
    assert_eq!(without.merged.value("theme"), None);
}
