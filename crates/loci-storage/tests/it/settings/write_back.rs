//! Writing settings back: nothing else changes, and nobody's change is lost.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use loci_settings::edit::{append, set};
use loci_stdx::WriteOptions;
use loci_storage::config::{SettingsEditError, edit_settings};
use serde_json::json;

use crate::support::World;

fn set_model(world: &World, name: &str) -> Result<bool, SettingsEditError> {
    let path = world.home.root().join("settings.json");
    edit_settings(&world.home, &path, &WriteOptions::private(), |text| set(text, &["model"], &json!(name)))
}

#[test]
fn one_key_changes_and_everything_else_stays() {
    let world = World::new();
    let before =
        "{\n    // mine\n    \"unknown\": 1.50,\n    \"model\": \"a\", // why\n    \"z\": [ 1,2 ]\n}\n";
    let path = world.write(".claude/settings.json", before);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(set_model(&world, "b").unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), before.replace("\"a\"", "\"b\""));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(!set_model(&world, "b").unwrap(), "nothing to do");
}

#[test]
fn a_new_file_is_private_and_its_directory_made() {
    let world = World::new();
    assert!(set_model(&world, "a").unwrap());
    let path = world.home.root().join("settings.json");
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\n  \"model\": \"a\"\n}\n");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_link_stays_a_link() {
    let world = World::new();
    let real = world.write("dotfiles/claude.json", "{}\n");
    fs::create_dir_all(world.home.root()).unwrap();
    let link = world.home.root().join("settings.json");
    symlink(&real, &link).unwrap();
    set_model(&world, "a").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "{\n  \"model\": \"a\"\n}\n");
}

#[test]
fn a_broken_file_is_left_alone() {
    let world = World::new();
    let path = world.write(".claude/settings.json", "{\n  \"model\": \n}");
    let error = set_model(&world, "a").unwrap_err();
    assert!(matches!(error, SettingsEditError::Edit { .. }), "{error}");
    assert_eq!(fs::read_to_string(path).unwrap(), "{\n  \"model\": \n}");
}

const HELPER: &str = "LOCI_TEST_SETTINGS_HELPER";

/// Not a test of its own: what the processes of the next one do.
#[test]
fn helper_adds_its_rules() {
    let Ok(job) = std::env::var(HELPER) else { return };
    let (home, name) = job.split_once('|').unwrap();
    let mut env = loci_stdx::Env::for_test(home, home);
    env.vars = env.vars.with("CLAUDE_CONFIG_DIR", format!("{home}/.claude"));
    let config = loci_storage::layout::ConfigHome::from_env(&env);
    for round in 0..3 {
        let rule = json!(format!("Bash({name} {round})"));
        let path = config.root().join("settings.json");
        edit_settings(&config, &path, &WriteOptions::private(), |text| {
            let text = append(text, &["permissions", "allow"], &rule)?;
            set(&text, &["env", &format!("{name}_{round}")], &json!("1"))
        })
        .unwrap();
    }
}

#[test]
fn concurrent_settings_edits_of_32_processes_lose_nothing() {
    let world = World::new();
    let path = world.write(".claude/settings.json", "{\n  // stays\n  \"unknown\": {\"n\": 1.50}\n}\n");
    let home = world.env.home.display().to_string();
    let children: Vec<_> = (0..32)
        .map(|n| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "settings::write_back::helper_adds_its_rules"])
                .env(HELPER, format!("{home}|p{n}"))
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let text = fs::read_to_string(path).unwrap();
    for n in 0..32 {
        for round in 0..3 {
            assert!(text.contains(&format!("\"Bash(p{n} {round})\"")), "p{n} {round} is lost:\n{text}");
            assert!(text.contains(&format!("\"p{n}_{round}\"")), "p{n} {round} is lost:\n{text}");
        }
    }
    assert!(text.starts_with("{\n  // stays\n  \"unknown\": {\"n\": 1.50},\n"), "{text}");
}
